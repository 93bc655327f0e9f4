// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of machine_memory.hpp.

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <sys/resource.h>

#include <heddle/core/linkage.hpp>
#include <heddle/memory/source/machine_memory.hpp>
#include <heddle/memory/source/system_memory.hpp>

namespace heddle::inline v0::memory {
namespace impl {

/// Returns the smallest memory limit of a control group and its ancestors.
HEDDLE_FULL_INLINE std::size_t limit_of_group(const std::string& root, std::string_view group,
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

HEDDLE_FULL_INLINE std::size_t machine_memory(const ControlGroups& groups) {
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
