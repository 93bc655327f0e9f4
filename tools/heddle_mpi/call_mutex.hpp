// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CallMutex and CallCount: what guards memory of the interposer. For the interposer.

#include <atomic>
#include <mutex>

#include <mpi.h>

namespace heddle_mpi {

/// Whether threads may call MPI at the same time; while MPI is up.
[[nodiscard]] inline bool threads_call_at_once() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

/// Locks nothing where calls follow one another: a short message feels every atomic operation.
/// Made while MPI is up.
class CallMutex {
 public:
  void lock() {
    if (m_needed) m_mutex.lock();
  }
  void unlock() {
    if (m_needed) m_mutex.unlock();
  }

 private:
  std::mutex m_mutex;
  const bool m_needed = threads_call_at_once();
};

/// How many share something; without atomic operations where calls follow one another. Made while
/// MPI is up.
class CallCount {
 public:
  void add() noexcept {
    if (m_needed)
      m_count.fetch_add(1, std::memory_order_relaxed);
    else
      m_count.store(m_count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Whether that was the last one.
  [[nodiscard]] bool remove() noexcept {
    if (m_needed) return m_count.fetch_sub(1, std::memory_order_acq_rel) == 1;
    const unsigned left = m_count.load(std::memory_order_relaxed) - 1;
    m_count.store(left, std::memory_order_relaxed);
    return left == 0;
  }

 private:
  std::atomic<unsigned> m_count = 0;
  const bool m_needed = threads_call_at_once();
};

}  // namespace heddle_mpi
