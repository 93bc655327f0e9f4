// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// stage_levels(): computes the distance of every stage of a graph from the data. Generators and
/// priorities use it to treat the stages of several branches alike.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::impl {

/// Returns for each stage the number of edges on the longest path to it from a stage without
/// inputs: 0, 1, 2, ... along a chain. Edges that end at a backward pass do not count.
/// @throws contract_error if an edge leads to a stage that does not exist, or if the forward passes
///         of some stages wait for each other in a cycle. It names these stages. There are no
///         orders here whose entry it could mark; first_fault() does that for orders over such a
///         graph.
[[nodiscard]] std::vector<int> stage_levels(const StageGraph& graph);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/stage_levels.ipp>
#endif
