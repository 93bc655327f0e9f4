// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of execute_options.hpp.

#include <limits>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void impl::expect_valid(const ExecuteOptions& options, const char* where) {
  impl::expect_enumerator(where, "idle", options.idle, Idle::nap);
  expects(options.watchdog >= 0, [&] {
    return ErrorInfo{where, "the watchdog needs a time of at least 0",
                     text("watchdog = ", options.watchdog, " s"), "use 0 for no limit"};
  });
  expects(options.grace >= 0 && options.grace <= std::numeric_limits<Seconds>::max(), [&] {
    return ErrorInfo{where, "the grace after a hang must be finite and at least 0",
                     text("grace = ", options.grace, " s")};
  });
}

}  // namespace heddle::inline v0
