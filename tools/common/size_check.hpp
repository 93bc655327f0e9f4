// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_size(): rejects a schedule that is too large for this machine before it is made.

#include <algorithm>
#include <fstream>
#include <string>
#include <unistd.h>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/catalogue.hpp>

#include "pricing.hpp"

namespace tool {

/// Returns the bytes of memory of this machine, or of the control group of this process if that has
/// fewer.
inline double memory_of_machine() {
  double bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  double limit = 0;  // "max" is no number
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

/// Throws infeasible if a schedule of the catalogue has more actions than a Schedule can have, or
/// needs more memory than this machine has. `place` and `fix` are parts of the error.
inline void check_size(const heddle::schedule::NamedSchedule& entry,
                       const heddle::schedule::PipelineShape& shape, const char* place,
                       const char* fix) {
  using heddle::text;
  const Size size = size_of(entry, shape);
  const double memory = memory_of_machine();
  constexpr double most_actions = 1 << 30;
  if (size.bytes <= memory && size.actions < most_actions) return;
  const auto gigabytes = [](double bytes) { return text(number(bytes / 1e9), " GB"); };
  throw heddle::infeasible({place,
                            text("'", entry.name, "' of ", shape.ranks, " ranks and ",
                                 shape.microbatches, " microbatches is too large"),
                            size.bytes > memory ? text("it needs up to ", gigabytes(size.bytes),
                                                       ", this machine has ", gigabytes(memory))
                                                : text("it has up to ", size.actions,
                                                       " actions, expected fewer than 2^30"),
                            fix});
}

}  // namespace tool
