// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_dot(): writes a schedule as a graph for Graphviz.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::trace {

/// Returns a directed graph in the DOT language; `dot -Tsvg` draws it. Each action is a node. The
/// actions of a rank are in a box, and messages are outside. Each derived dependency is a solid
/// edge, or a dashed one if the destination of a message waits for its storage. A dotted edge leads
/// from each action to the next action of its queue, and a double edge joins a fused pair.
[[nodiscard]] std::string to_dot(const Schedule& schedule);

}  // namespace heddle::inline v0::trace

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/dot.ipp>
#endif
