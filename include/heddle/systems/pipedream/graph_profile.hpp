// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_graph_profile(): reads the text profiles of the planners DAPPLE and PipeDream.

#include <cstdint>
#include <string>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::systems {

/// The options of read_graph_profile(): what a text profile does not say.
struct GraphProfileOptions {
  std::string name = "profile.txt";  ///< the file, for errors
  std::string model = {};            ///< Profile::model
  std::string device = "measured";   ///< the kind of device; also Profile::reference
  std::int64_t samples = 1;          ///< samples of the microbatch that was measured
};

/// Returns the Profile that a text profile of DAPPLE or PipeDream describes. Such a text has a line
/// for each node of a graph of operations, then a line for each edge, which begins with a tab or a
/// blank:
///
///     node1 -- Input -- forward_compute_time=0, backward_compute_time=0, activation_size=64,
///         parameter_size=0
///     node2 -- Conv(3, 8) -- forward_compute_time=1.5, backward_compute_time=3.0,
///         activation_size=[96.0; 32.0], parameter_size=4096
///         node1 -- node2
///
/// (The two nodes are one line each; here they are folded.) Times are milliseconds, and sizes are
/// bytes of the whole microbatch. A line of a node may end with ` -- stage_id=1`, which is ignored.
/// Only empty lines are skipped.
///
/// The layers of the profile are the nodes, each behind those that it reads and otherwise in the
/// order of the text. A node without a forward time joins the layer before it, or the first layer.
/// - `output`: the bytes that cross the cut behind the layer. These are the sizes of the values
///   that are read behind the cut. If a size is a list with one entry for each edge that leaves the
///   node, each entry is the size of its edge, in the order of the text. Otherwise the value of a
///   node is the sum of its list, and it crosses a cut once, even if several nodes read it.
/// - `saved` and `delta`: the activation sizes of the layer's nodes, lists summed.
/// - `backward_weight`: half of the backward time of nodes that have parameters, and nothing of the
///   others. `backward_input` is the rest. The text has no times of the optimiser: `update` is 0.
/// - `input`: the activation sizes of nodes that read nothing and have no forward time.
///
/// Bytes a sample are rounded up.
/// @throws format_error if a line is neither a node nor an edge, or if a field is missing, unknown
///         or given twice; if a time or size is negative, not finite or not a number, a size is not
///         a whole number, or a list does not end; if a node is given twice or is in no edge; if an
///         edge is given twice or names an unknown node; if the edges have a cycle or do not join
///         all nodes; and if there are no nodes, or if none takes time. The error names the file,
///         the line, what is wrong and a remedy.
/// @throws contract_error if `samples` is less than 1 or `device` is empty.
[[nodiscard]] plan::Profile read_graph_profile(std::string_view text,
                                               const GraphProfileOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/pipedream/graph_profile.ipp>
#endif
