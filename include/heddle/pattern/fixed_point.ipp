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

namespace heddle::inline v0::impl {

HEDDLE_INLINE void check_tolerance(double tolerance) {
  expects(std::isfinite(tolerance) && tolerance >= 0, [&] {
    return ErrorInfo{"heddle::fixed_point", "the tolerance must be finite and not negative",
                     text("tolerance = ", tolerance)};
  });
}

HEDDLE_INLINE void check_options(const FixedPointOptions& options) {
  expect_enumerator("heddle::fixed_point", "sweep", options.sweep, Sweep::gauss_seidel_jacobi);
  expects(options.threads >= 1 && options.threads <= most_threads && options.block >= 0 &&
              options.most_sweeps >= 0,
          [&] {
            return ErrorInfo{"heddle::fixed_point", "an option is out of range",
                             text("threads = ", options.threads, ", block = ", options.block,
                                  ", most_sweeps = ", options.most_sweeps),
                             text("use 1 to ", most_threads, " threads, and no negative number")};
          });
  check_tolerance(options.tolerance);
}

}  // namespace heddle::inline v0::impl
