// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// machine_memory: how much memory the machine can back for this process.

#include <cstddef>
#include <string>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::memory {

/// The paths at which Linux lists the control groups of a process and their limits.
struct ControlGroups {
  std::string of_process = "/proc/self/cgroup";  ///< a file
  std::string limits = "/sys/fs/cgroup";         ///< a directory
};

/// Returns the maximum bytes of memory that this process can have. It is the minimum of the
/// physical memory, the limits of its control groups (versions 1 and 2), RLIMIT_AS and RLIMIT_DATA.
/// Memory already in use, by this process or others, is not subtracted. The function reads some
/// files, which takes 0.1 to 0.3 ms.
[[nodiscard]] std::size_t machine_memory(const ControlGroups& groups = {});

}  // namespace heddle::inline v0::memory

#if HEDDLE_DEFINES_MEMORY
#include <heddle/memory/source/machine_memory.ipp>
#endif
