// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// expect_link(): checks links and bandwidths that a program gave.

#include <cmath>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0::impl {

/// Throws contract_error if a bandwidth is not above 0. `whose()` returns its name.
template <class Whose>
void expect_bandwidth(double bandwidth, const char* where, const Whose& whose) {
  expects(bandwidth > 0, [&] {
    return ErrorInfo{where, "a bandwidth must be above 0", text(whose(), bandwidth, " B/s"),
                     "use infinity if the size of messages must not matter"};
  });
}

/// Throws contract_error if the latency of a link is below 0 or not finite, or if its bandwidth is
/// not above 0. `whose()` returns the name of the link.
template <class Whose>
void expect_link(const Link& link, const char* where, const Whose& whose) {
  expects(link.latency >= 0 && std::isfinite(link.latency), [&] {
    return ErrorInfo{where, "the latency of a link must be finite and at least 0",
                     text(whose(), ": latency ", link.latency, " s"), "use 0 for no latency"};
  });
  expect_bandwidth(link.bandwidth, where, [&] { return text(whose(), ": bandwidth "); });
}

}  // namespace heddle::inline v0::impl
