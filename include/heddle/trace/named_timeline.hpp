// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// NamedTimeline: a timeline that is drawn beside others.

#include <string_view>

#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace {

/// A timeline and its name, such as "predicted" or "measured"; the name may be empty. It refers to
/// the timeline, which must outlive it.
struct NamedTimeline {
  std::string_view name;     ///< shown beside the ranks
  const Timeline& timeline;  ///< the timeline to draw
};

}  // namespace heddle::inline v0::trace
