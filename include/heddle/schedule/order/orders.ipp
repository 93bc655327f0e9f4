// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of orders.hpp.

#include <cstddef>
#include <ostream>
#include <string>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Order& order) {
  return out << order.stage << order.kind << order.item;
}

HEDDLE_INLINE std::string to_string(const Orders& orders) {
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
