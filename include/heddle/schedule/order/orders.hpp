// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Orders: per-rank lists of (kind, stage, microbatch) over a graph of stages. The small language
/// that pipeline generators and torch's schedule files speak; weave() makes a Schedule of it.

#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0 {

/// One entry of a rank's list, printed `2F0`: stage 2, forward, microbatch 0.
struct Order {
  Kind kind =
      Kind::forward;    ///< F, I, W, B; or update, where a stage does not wait for the step's end
  Stage stage;          ///< of which stage
  Item item;            ///< for which microbatch
  bool fused = false;   ///< computed together with the next entry of the list

  friend constexpr bool operator==(const Order&, const Order&) = default;
};

/// As torch.distributed.pipelining writes it, `2F0`; whether it is fused shows in lists only.
inline std::ostream& operator<<(std::ostream& out, const Order& order) {
  return out << order.stage << order.kind << order.item;
}

/// What every rank computes, in its order. Nothing is said about transfers.
struct Orders {
  std::string name;                       ///< of the Schedule that is woven from them
  std::vector<std::vector<Order>> ranks;  ///< a list for each rank
  StageGraph graph = {};                  ///< which stage uses the output of which
  /// Where the orders hold updates: every stage computes a microbatch with the version of its
  /// weights that the first stage used ("vertical sync"), not with its newest.
  bool vertical_sync = false;

  friend bool operator==(const Orders&, const Orders&) = default;
};

/// A line per rank, its actions separated by commas, as torch.distributed.pipelining writes them:
/// a fused pair is `(0F7;7B3)OVERLAP_F_B`.
[[nodiscard]] inline std::string to_string(const Orders& orders) {
  std::string lines;
  for (const auto& rank : orders.ranks) {
    bool fused = false;
    for (std::size_t i = 0; i < rank.size(); ++i) {
      lines += text(fused   ? ";"
                    : i > 0 ? ","
                            : "",
                    rank[i].fused ? "(" : "", rank[i], fused ? ")OVERLAP_F_B" : "");
      fused = rank[i].fused;
    }
    lines += '\n';
  }
  return lines;
}

}  // namespace heddle::inline v0
