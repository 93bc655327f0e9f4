// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// barrier_on_all_threads(): a memory barrier on the threads of the process. Internal.

#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/membarrier.h>)
#include <linux/membarrier.h>
#endif

namespace heddle::inline v0::memory::impl {

/// Executes a full memory barrier on every running thread of the process, so that the other side of
/// a handshake needs none. Returns false if the system has no such call, as Linux before 4.14.
[[nodiscard]] inline bool barrier_on_all_threads() noexcept {
#if defined(SYS_membarrier) && __has_include(<linux/membarrier.h>)
  const auto call = [](int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; };
  // A process must register once, which is slow.
  return call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
         (call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
          call(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
#else
  return false;
#endif
}

}  // namespace heddle::inline v0::memory::impl
