// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fixed_point.hpp.

#include <cmath>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void check_options(const pattern::FixedPointOptions& options) {
  constexpr const char* where = "heddle::pattern::fixed_point";
  expect_enumerator(where, "sweep", options.sweep, pattern::Sweep::gauss_seidel_jacobi);
  expects(options.threads >= 1 && options.threads <= most_threads && options.block >= 0 &&
              options.most_sweeps >= 0 && options.reach >= 0,
          [&] {
            return ErrorInfo{
                where, "an option is out of range",
                text("threads = ", options.threads, ", block = ", options.block,
                     ", most_sweeps = ", options.most_sweeps, ", reach = ", options.reach),
                text("use 1 to ", most_threads, " threads, and no negative number")};
          });
  expects(std::isfinite(options.tolerance) && options.tolerance >= 0, [&] {
    return ErrorInfo{where, "the tolerance must be finite and not negative",
                     text("tolerance = ", options.tolerance)};
  });
  schedule::impl::expect_valid(options.staleness, where);
}

HEDDLE_INLINE void check_options_of_threads(const pattern::FixedPointOptions& options) {
  check_options(options);
  expects(options.staleness.age == 0, [&] {
    return ErrorInfo{"heddle::pattern::fixed_point", "only values of other ranks can be old",
                     text("staleness = ", options.staleness), "pass a transport, or use age 0"};
  });
}

}  // namespace heddle::inline v0::impl
