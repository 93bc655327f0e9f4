// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// search_orders(): the shortest orders that plan::coordinate() finds for given prices and memory.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/plan/solver/coordinate.hpp>

#include "pricing.hpp"

namespace tool {

/// The schedules whose computations are searched for shorter orders.
inline constexpr std::string_view searched_work[] = {"1f1b", "zb-h1", "zb-v", "interleaved",
                                                     "interleaved-zb1p"};

/// The memory that a rank may use.
struct MemoryLimit {
  double activations = 0;   ///< of a microbatch on the share of a rank; 0: no limit
  heddle::Bytes bytes = 0;  ///< 0: no limit
};

/// Returns whether the memory of a rank holds `activations`, the most of each rank, and `bytes`,
/// the most of all ranks.
[[nodiscard]] bool fits(const std::vector<double>& activations, heddle::Bytes bytes,
                        const MemoryLimit& limit);

/// A schedule for given prices.
struct Candidate {
  std::string name;  ///< in the catalogue, or the work that a search had and its rule
  Priced priced;
  bool fits = true;  ///< in the memory of each rank
  double bound = 0;  ///< lower bound of all orders with its computations that fit; 0 if unknown
};

/// Returns the orders with their price, and whether they fit.
[[nodiscard]] Candidate candidate(std::string name, const heddle::Orders& orders,
                                  const Prices& prices, const MemoryLimit& limit);

/// Searches for orders with the computations of `orders`, of stages that take equally long. With
/// `effort` 1 it takes about a second if they are few; the time grows with `effort`.
[[nodiscard]] heddle::plan::Coordinated<heddle::Seconds> coordinated(
    const heddle::Orders& orders, const Prices& prices, heddle::plan::CoordinateOptions options,
    double effort = 1);

/// Returns the result of coordinated() for the computations of the schedule `name`, whose orders
/// are `orders`, or nothing if none fits.
[[nodiscard]] std::optional<Candidate> search_orders(std::string_view name,
                                                     const heddle::Orders& orders,
                                                     const Prices& prices, const MemoryLimit& limit,
                                                     double effort = 1);

/// Returns the name of a candidate with its gap to the lower bound `bound_text`, if that is known.
[[nodiscard]] std::string with_gap(const Candidate& candidate, const std::string& bound_text);

}  // namespace tool
