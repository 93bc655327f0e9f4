// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check(): checks the timelines that functions of trace/ are called with.

#include <cmath>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace::impl {

/// Throws contract_error if the timeline does not have a span for every action, or if a time is not
/// finite.
inline void check(const char* where, const Timeline& timeline) {
  const auto& spans = timeline.spans();
  const std::size_t actions = timeline.schedule().size();
  expects(spans.size() == actions, [&] {
    return ErrorInfo{where, "the timeline does not belong to its schedule",
                     text(spans.size(), " spans, ", actions, " actions")};
  });
  for (std::size_t i = 0; i < actions; ++i) {
    const Span& span = spans[i];
    expects(std::isfinite(span.start) && std::isfinite(span.end) && std::isfinite(span.arrival),
            [&] {
              return ErrorInfo{where, "a time is infinite or not a number",
                               text("action ", i, ": start ", span.start, ", end ", span.end,
                                    ", arrival ", span.arrival)};
            });
  }
}

}  // namespace heddle::inline v0::trace::impl
