// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Orders: lists of (kind, stage, microbatch) per rank, over a graph of stages. Pipeline generators
/// and torch's schedule files use this small language; weave() makes a Schedule of it.

#include <iosfwd>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/stage_shares.hpp>

namespace heddle::inline v0 {

/// One entry of a rank's list, printed `2F0`: stage 2, forward, microbatch 0.
struct Order {
  /// F, I, W or B; or update, if the stage does not wait for the end of the step.
  Kind kind = Kind::forward;
  Stage stage;         ///< the stage
  Item item;           ///< the microbatch
  bool fused = false;  ///< computed together with the next entry of the list

  friend constexpr bool operator==(const Order&, const Order&) = default;
};

/// Prints the order as torch.distributed.pipelining does, `2F0`. Only lists show whether it is
/// fused.
std::ostream& operator<<(std::ostream& out, const Order& order);

/// The actions of every rank, in order. Orders contain no transfers.
struct Orders {
  std::string name;                       ///< the name of the Schedule that is woven from them
  std::vector<std::vector<Order>> ranks;  ///< a list for each rank
  StageGraph graph = {};                  ///< the stages, and which of them use which outputs
  /// Applies if the orders contain updates. If true ("vertical sync"), every stage computes a
  /// microbatch with the version of its weights that the first stage used. If false, it uses its
  /// newest version.
  bool vertical_sync = false;
  /// The ranks of a stage may divide the samples of every microbatch. Then each of them has the
  /// stage's entries in its list. See schedule::in_shares().
  StageShares shares = {};

  friend bool operator==(const Orders&, const Orders&) = default;
};

/// Returns a line per rank with its actions separated by commas, as torch.distributed.pipelining
/// writes them. A fused pair is `(0F7;7B3)OVERLAP_F_B`.
[[nodiscard]] std::string to_string(const Orders& orders);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/orders.ipp>
#endif
