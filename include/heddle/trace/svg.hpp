// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_svg(): draws a timeline to scale as an SVG picture, for documents and slides.

#include <optional>
#include <span>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/named_timeline.hpp>

namespace heddle::inline v0::trace {

/// The size and the labels of the picture of to_svg().
struct SvgOptions {
  int width = 960;         ///< pixels; at least 240
  std::string title = {};  ///< empty: the schedule's name
  /// The name of the unit of the timeline, which may be empty. Without it, times are shown as s, ms
  /// or us.
  std::optional<std::string> unit = {};
  bool arrows = false;  ///< a thin arrow for each move between ranks
  bool memory = false;  ///< a second row per rank: all memory, live activations, weights
};

/// Returns an SVG document in UTF-8, with a row per rank and a box to scale per action that takes
/// time. Forwards are blue, backwards green, their two halves teal and orange, updates grey. The
/// rank is idle where the row is light. Darker boxes belong to further stages of the rank or, if
/// several ranks have the same stage, to microbatches that enter at another rank; the legend tells
/// which. The two boxes of a fused pair are above each other. Boxes that are wide enough show the
/// text of their action, and arrows pass behind it. With `memory`, a second row per rank shows its
/// memory over the same time; if the schedule has sizes, the weights are a line whose height counts
/// all versions. The document is deterministic.
/// @throws contract_error if the width is less than 240 pixels, or if a time is not finite.
[[nodiscard]] std::string to_svg(const Timeline& timeline, const SvgOptions& options = {});

/// Returns an SVG document of several timelines, such as a predicted and a measured one, in rows
/// above each other. All have the same scale, so equal widths are equal times. Each begins at 0 and
/// has its name as its title; `options.title`, if there is one, stands before the first name.
/// @throws contract_error as for one timeline.
[[nodiscard]] std::string to_svg(std::span<const NamedTimeline> timelines,
                                 const SvgOptions& options = {});

}  // namespace heddle::inline v0::trace

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/svg.ipp>
#endif
