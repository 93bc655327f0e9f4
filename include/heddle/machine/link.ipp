// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of link.hpp.

#include <cmath>
#include <ostream>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Link& link) {
  return out << link.latency * 1e6 << " us and " << link.bandwidth / 1e9 << " GB/s";
}

HEDDLE_INLINE void expect_valid(const Link& link, const char* where, const std::string& whose) {
  expects(link.latency >= 0 && std::isfinite(link.latency), [&] {
    return ErrorInfo{where, "the latency of a link must be finite and at least 0",
                     text(whose, ": latency ", link.latency, " s"), "use 0 for no latency"};
  });
  expects(link.bandwidth > 0, [&] {
    return ErrorInfo{where, "a bandwidth must be above 0",
                     text(whose, ": bandwidth ", link.bandwidth, " B/s"),
                     "use infinity if the size of messages must not matter"};
  });
}

}  // namespace heddle::inline v0
