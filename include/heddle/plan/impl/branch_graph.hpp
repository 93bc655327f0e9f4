// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The branches of a StageGraph, for place_branches().

#include <cstddef>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::plan::impl {

/// A longest chain of stages without a fork or a fusion inside.
struct Branch {
  std::vector<Stage> stages;        ///< in the order of the chain
  std::vector<std::size_t> inputs;  ///< the branches that the first stage reads, once per edge
};

/// Returns the branches of `graph`; a branch comes behind its inputs. Only forward edges count.
/// @throws contract_error if an edge leads to no stage, or if there is a cycle.
[[nodiscard]] std::vector<Branch> branches_of(const StageGraph& graph);

/// Returns the orders in which worker worker_of[b] computes branch b, for the branches in the
/// sequence `order`.
[[nodiscard]] Orders branch_orders(const StageGraph& graph, const std::vector<Branch>& branches,
                                   std::span<const std::size_t> order,
                                   std::span<const std::size_t> worker_of, int workers);

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/branch_graph.ipp>
#endif
