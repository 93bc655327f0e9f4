// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// searched(): the search for shorter orders that the explorer's page can ask for.

#include <heddle/schedule/order/orders.hpp>

#include "../common/pricing.hpp"
#include "../common/search_orders.hpp"
#include "request.hpp"

namespace tool {

/// Returns the shortest orders that a search finds for the computations of `orders`: in the memory
/// of the request, or, with `search=kept`, in the activations that each rank keeps in `orders`.
/// @throws heddle::contract_error if the schedule is too large, or its prices are not those of a
///         search. @throws heddle::infeasible if no orders fit the memory.
[[nodiscard]] Candidate searched(const Request& request, const heddle::Orders& orders,
                                 const Prices& prices);

}  // namespace tool
