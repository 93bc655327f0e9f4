// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Defines pthread_create() for a program of its own, so that a test can limit the threads that the
/// system starts. A real limit (ulimit -u) does not hold for root.

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <pthread.h>

namespace heddle::test {

/// The number of threads that the system still starts; -1: no limit.
inline std::atomic<int> threads_left{-1};

/// Limits the threads that the system starts in a scope.
struct ThreadLimit {
  explicit ThreadLimit(int threads) { threads_left = threads; }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;
  ~ThreadLimit() { threads_left = -1; }
};

}  // namespace heddle::test

/// Starts a thread by the system's function, or fails as the system does at its limit.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*routine)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  int left = heddle::test::threads_left;
  while (left > 0 && !heddle::test::threads_left.compare_exchange_weak(left, left - 1)) {
  }
  return left == 0 ? EAGAIN : create(thread, attributes, routine, argument);
}
