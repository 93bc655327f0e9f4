// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rank_fixed_point.hpp.

#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>
#include <heddle/schedule/redistribution/freshness.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::string fixed_point_terms(int equations, const RankFixedPointOptions& options) {
  return text("equations = ", equations, "\nsweep = ", static_cast<int>(options.sweep),
              "\nblock = ", options.block, "\ntolerance = ", exact_text(options.tolerance),
              "\nmost_sweeps = ", options.most_sweeps, "\nreach = ", options.reach,
              "\nfreshness = ", options.freshness, "\ntrail = ", options.trail != nullptr, "\n");
}

HEDDLE_INLINE FixedPointOptions as_on_threads(const RankFixedPointOptions& options, int ranks) {
  expect_enumerator("heddle::fixed_point", "sweep", options.sweep, Sweep::gauss_seidel_jacobi);
  expects(options.block >= 0 && options.most_sweeps >= 0 && options.reach >= 0, [&] {
    return ErrorInfo{"heddle::fixed_point", "an option must not be negative",
                     text("block = ", options.block, ", most_sweeps = ", options.most_sweeps,
                          ", reach = ", options.reach)};
  });
  schedule::expect_valid(options.freshness, "heddle::fixed_point");
  const bool is_stale = options.freshness.age > 0;
  expects(
      !is_stale || options.sweep == Sweep::jacobi || options.sweep == Sweep::jacobi_gauss_seidel,
      [&] {
        return ErrorInfo{
            "heddle::fixed_point", "old values need a sweep in which all ranks compute at once",
            text("freshness = ", options.freshness, ", sweep = ", static_cast<int>(options.sweep)),
            "use Sweep::jacobi or Sweep::jacobi_gauss_seidel, or age 0"};
      });
  FixedPointOptions same;
  same.sweep = options.sweep;
  same.threads = ranks;
  same.block = options.block;
  same.tolerance = options.tolerance;
  same.most_sweeps = options.most_sweeps;
  same.trail = options.trail;
  check_tolerance(same.tolerance);
  return same;
}

}  // namespace heddle::inline v0::impl
