// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_spans(): checks that a timeline has a finite span for every action of its schedule.

#include <cmath>
#include <concepts>
#include <cstddef>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::impl {

/// Checks the number of spans, and that times of floating-point numbers are finite.
/// @throws contract_error that names the first wrong span.
template <class Time>
void check_spans(const char* where, const BasicTimeline<Time>& timeline) {
  const auto& spans = timeline.spans();
  const std::size_t actions = timeline.schedule().size();
  expects(spans.size() == actions, [&] {
    return ErrorInfo{where, "the timeline does not belong to its schedule",
                     text(spans.size(), " spans, ", actions, " actions")};
  });
  if constexpr (std::floating_point<Time>)
    for (std::size_t i = 0; i < actions; ++i) {
      const auto& span = spans[i];
      expects(std::isfinite(span.start) && std::isfinite(span.end) && std::isfinite(span.arrival),
              [&] {
                return ErrorInfo{where, "a time is infinite or not a number",
                                 text("action ", i, ": start ", span.start, ", end ", span.end,
                                      ", arrival ", span.arrival)};
              });
    }
}

}  // namespace heddle::inline v0::impl
