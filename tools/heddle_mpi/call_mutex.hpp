// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CallMutex: what guards memory of the interposer. For the interposer.

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

}  // namespace heddle_mpi
