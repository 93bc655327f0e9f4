// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// List scheduling: what every rank computes is given, in which order is decided event by event.
/// For schedules that no formula gives: unequal stages, branches, memory limits.

#include <algorithm>
#include <cstdint>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/plan/impl/list_run.hpp>
#include <heddle/plan/list_options.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

/// Reorders one set of Orders by many rules. What depends on what, and what it costs, is found
/// once.
template <Costs C>
class ListScheduler {
 public:
  /// Takes over what every rank computes; the order in `orders` only has to be one that weave()
  /// accepts. Moves of `sizes` are priced by `costs` as simulate() does.
  /// @throws contract_error for orders with updates or fused pairs: their places are part of what
  ///         they mean.
  ListScheduler(const Orders& orders, const C& costs, const StageSizes& sizes = {})
      : m_orders(checked(orders)), m_problem(orders, weave(orders, sizes), costs) {}

  /// The orders in which every rank, whenever it is idle, takes the most urgent order of those
  /// whose inputs are there and whose activations fit under the cap. Greedy: it may be beaten, and
  /// under a cap it may lead into a dead end. Ties go to what comes first in the woven orders. A
  /// cap holds forwards back only where there are backwards.
  /// @throws blocked_order, an infeasible, where no rank can go on within the cap; it names the
  ///         cap, the ranks, and the first order without room, which its grid marks.
  /// @throws contract_error for activations that are not one number of at least 0 for each stage,
  ///         or a negative cap.
  [[nodiscard]] Orders run(const ListOptions& options) const {
    expects(options.cap >= 0, [&] {
      return Complaint{where(m_orders), "a cap is a number of activations",
                       text("cap = ", options.cap), "0 means no limit"};
    });
    const auto& activations = options.activations;
    expects((activations.empty() || activations.size() == m_problem.stages) &&
                std::all_of(activations.begin(), activations.end(),
                            [](std::int64_t each) { return each >= 0; }),
            [&] {
              return Complaint{
                  where(m_orders), "every stage keeps a number of activations",
                  text(activations.size(), " numbers for ", m_problem.stages, " stages")};
            });
    Orders orders = m_orders;
    orders.ranks = impl::ListRun(m_problem, options).lists(where(m_orders));
    return orders;
  }

 private:
  static std::string where(const Orders& orders) {
    return text("heddle::plan::list_schedule(", orders.name, ")");
  }

  static const Orders& checked(const Orders& orders) {
    for (const auto& list : orders.ranks)
      for (const Order& order : list)
        expects(order.kind <= Kind::backward && !order.fused, [&] {
          return Complaint{where(orders), "updates and fused pairs are not moved about",
                           text("found ", order, order.fused ? ", fused" : "")};
        });
    return orders;
  }

  Orders m_orders;
  impl::ListProblem<typename C::Time> m_problem;
};

/// `orders` in the order that list scheduling gives them; see ListScheduler.
/// @throws blocked_order where no rank can go on within the cap.
template <Costs C>
[[nodiscard]] Orders list_schedule(const Orders& orders, const C& costs,
                                   const ListOptions& options = {}, const StageSizes& sizes = {}) {
  return ListScheduler<C>(orders, costs, sizes).run(options);
}
/// The same with costs in braces: `list_schedule(orders, {.forward = 1, .backward = 2})`.
[[nodiscard]] Orders list_schedule(const Orders& orders, const StageCosts& costs,
                                   const ListOptions& options = {}, const StageSizes& sizes = {});

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/list_schedule.ipp>
#endif
