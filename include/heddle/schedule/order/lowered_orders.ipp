// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of lowered_orders.hpp.

#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/impl/parameter_steps.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/parameter_step.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE LoweredOrders lower(Orders orders, const std::vector<int>& ahead) {
  const std::size_t ranks = orders.ranks.size();
  const auto where = [&] { return text("heddle::schedule::lower(", orders.name, ")"); };
  expects(ahead.empty() || ahead.size() == ranks, [&] {
    return ErrorInfo{where(),
                     text("expected a number of stages ahead for each of ", ranks, " ranks"),
                     text("got ", ahead.size(), " numbers"), "without them, each rank has three"};
  });
  for (const int each : ahead)
    expects(each >= 1 && each <= impl::most_unsharded, [&] {
      return ErrorInfo{where(), "a rank unshards 1 to 3 stages ahead", text("got ", each)};
    });
  LoweredOrders lowered{std::move(orders), {}};
  for (std::size_t rank = 0; rank < ranks; ++rank)
    lowered.steps.push_back(impl::parameter_steps(
        lowered.orders.ranks[rank], ahead.empty() ? impl::most_unsharded : ahead[rank]));
  return lowered;
}

}  // namespace heddle::inline v0::schedule
