// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Orders: per-rank lists of (kind, stage, microbatch). The small language that pipeline generators
/// and torch's schedule files speak; weave() makes a Schedule of it.

#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

/// One entry of a rank's list, printed `2F0`: stage 2, forward, microbatch 0.
struct Order {
  Kind kind = Kind::F;  ///< what is computed
  Stage stage;          ///< by which stage
  Item item;            ///< for which microbatch

  friend constexpr bool operator==(const Order&, const Order&) = default;
};

/// As torch.distributed.pipelining writes it, `2F0`.
inline std::ostream& operator<<(std::ostream& out, const Order& order) {
  return out << order.stage << order.kind << order.item;
}

/// What every rank computes, in its order. Nothing is said about transfers.
struct Orders {
  std::string name;                       ///< of the Schedule that is woven from them
  std::vector<std::vector<Order>> ranks;  ///< a list for each rank

  friend bool operator==(const Orders&, const Orders&) = default;
};

/// A line per rank, its actions separated by commas, as torch.distributed.pipelining writes them.
[[nodiscard]] inline std::string to_string(const Orders& orders) {
  std::string lines;
  for (const auto& rank : orders.ranks) {
    const char* separator = "";
    for (const Order& order : rank) {
      lines += text(separator, order);
      separator = ",";
    }
    lines += '\n';
  }
  return lines;
}

}  // namespace heddle::inline v0
