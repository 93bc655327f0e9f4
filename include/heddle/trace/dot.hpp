// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_dot(): a schedule as a graph, for Graphviz.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::trace {

/// A directed graph in the DOT language; `dot -Tsvg` draws it. A node for each action, those of a
/// rank in a box, messages outside; a solid edge for each derived dependency (dashed where the
/// destination of a message waits for its storage), a dotted one from each action to the next of
/// its queue, and a double one between the two of a fused pair.
[[nodiscard]] std::string to_dot(const Schedule& schedule);

}  // namespace heddle::inline v0::trace

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/dot.ipp>
#endif
