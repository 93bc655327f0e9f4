// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Threads: the only place where Heddle starts threads, so that each caller handles a system that
/// does not start all of them.

#include <functional>
#include <memory>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

/// The most threads that options may ask for; Linux has no more process numbers.
inline constexpr int most_threads = 1 << 22;

/// Threads that work beside the calling one. None of them works before begin() or begin_all().
class Threads {
 public:
  /// Starts up to `count` threads, fewer if the system does not start more. Thread i, from 1 on,
  /// will call `work(i)`, which must not throw.
  Threads(int count, std::function<void(int)> work);
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  /// Waits until all threads have ended. If they have not begun, they end without any work.
  ~Threads();

  /// Returns the number of threads that have started.
  [[nodiscard]] int size() const noexcept;
  /// Lets the threads that have started work.
  void begin() noexcept;
  /// Lets all threads work. @throws std::system_error in the name of `where`, before any work, if
  /// fewer than `count` threads have started.
  void begin_all(const char* where);

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_CORE
#include <heddle/core/internal/threads.ipp>
#endif
