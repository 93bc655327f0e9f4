// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rank_fixed_point.hpp.

#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::string fixed_point_terms(int equations,
                                            const pattern::FixedPointOptions& options) {
  return text("equations = ", equations, "\nsweep = ", static_cast<int>(options.sweep),
              "\nblock = ", options.block, "\ntolerance = ", exact_text(options.tolerance),
              "\nmost_sweeps = ", options.most_sweeps, "\nreach = ", options.reach,
              "\nstaleness = ", options.staleness, "\ntrail = ", options.trail != nullptr, "\n");
}

HEDDLE_INLINE pattern::FixedPointOptions as_on_threads(const pattern::FixedPointOptions& options,
                                                       int ranks) {
  expects(options.threads == 1, [&] {
    return ErrorInfo{"heddle::pattern::fixed_point", "each rank is one worker, with one thread",
                     text("threads = ", options.threads), "leave threads at 1"};
  });
  check_options(options);
  const bool is_stale = options.staleness.age > 0;
  expects(!is_stale || options.sweep == pattern::Sweep::jacobi ||
              options.sweep == pattern::Sweep::jacobi_gauss_seidel,
          [&] {
            return ErrorInfo{"heddle::pattern::fixed_point",
                             "old values need a sweep in which all ranks compute at once",
                             text("staleness = ", options.staleness,
                                  ", sweep = ", static_cast<int>(options.sweep)),
                             "use Sweep::jacobi or Sweep::jacobi_gauss_seidel, or age 0"};
          });
  pattern::FixedPointOptions same = options;
  same.threads = ranks;
  return same;
}

}  // namespace heddle::inline v0::impl
