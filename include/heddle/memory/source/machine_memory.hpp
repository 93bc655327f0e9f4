// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// machine_memory: how much memory the machine can back for this process.

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <sys/resource.h>

#include <heddle/memory/source/system_memory.hpp>

namespace heddle::inline v0::memory {

/// The paths at which Linux lists the control groups of a process and their limits.
struct ControlGroups {
  std::string of_process = "/proc/self/cgroup";  ///< a file
  std::string limits = "/sys/fs/cgroup";         ///< a directory
};

namespace impl {

/// Returns the smallest memory limit of a control group and its ancestors.
[[nodiscard]] inline std::size_t limit_of_group(const std::string& root, std::string_view group,
                                                const char* file) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (bool more = true; more; group = group.substr(0, group.rfind('/'))) {
    more = group.find('/') != std::string_view::npos;
    std::size_t limit = 0;
    // "max" is not a number, and means no limit. Containers do not see the groups above their own.
    if (std::ifstream(root + std::string(group) + "/" + file) >> limit)
      least = std::min(least, limit);
  }
  return least;
}

}  // namespace impl

/// Returns the maximum bytes of memory that this process can have. It is the minimum of the
/// physical memory, the limits of its control groups (versions 1 and 2), RLIMIT_AS and RLIMIT_DATA.
/// Memory already in use, by this process or others, is not subtracted. The function reads some
/// files, which takes 0.1 to 0.3 ms.
[[nodiscard]] inline std::size_t machine_memory(const ControlGroups& groups = {}) {
  std::size_t least = system_memory().physical;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      least = std::min<std::size_t>(least, limit.rlim_cur);
  }
  // Each line has the form "4:cpu,memory:/job/step" (version 1) or "0::/job/step" (version 2).
  std::ifstream lines(groups.of_process);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view group = std::string_view(line).substr(second + 1);
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers == ",,")
      least = std::min(least, impl::limit_of_group(groups.limits, group, "memory.max"));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(
          least, impl::limit_of_group(groups.limits + "/memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

}  // namespace heddle::inline v0::memory
