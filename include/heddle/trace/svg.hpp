// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_svg(): a timeline as a picture to scale, for documents and slides.

#include <optional>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace {

/// Size and labels of to_svg()'s picture.
struct SvgOptions {
  int width = 960;         ///< pixels; at least 240
  std::string title = {};  ///< empty: the schedule's name
  /// The name of what a second of the timeline stands for; it may be empty. Without one, times are
  /// shown as s, ms or us.
  std::optional<std::string> unit = {};
  bool arrows = false;  ///< a thin arrow for each move between ranks
  bool memory = false;  ///< a second row per rank: all memory, live activations, weights
};

/// A row per rank, a box per action that takes time, to scale: blue forward, green backward, teal
/// and orange its two halves, grey update; the rank is idle where the row is light. Darker boxes
/// are of further stages of the rank or, if several ranks have the same stage, of microbatches that
/// enter at another rank; the legend says which. Fused actions lie above each other. Boxes that are
/// wide enough carry their action's text; arrows pass behind it. With `memory`, what every rank
/// holds over the same time; if there are sizes, its weights are a line, as high as the versions
/// that it keeps. An SVG document in UTF-8, the same bytes for the same timeline.
/// @throws contract_error if the width is less than 240 pixels or the timeline is not finite.
[[nodiscard]] std::string to_svg(const Timeline& timeline, const SvgOptions& options = {});

}  // namespace heddle::inline v0::trace

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/svg.ipp>
#endif
