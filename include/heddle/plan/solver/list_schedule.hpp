// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// List scheduling: decides event by event in which order every rank computes its given work. It
/// makes schedules for which there is no formula: unequal stages, branches, memory limits.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/plan/impl/list_run.hpp>
#include <heddle/plan/solver/list_options.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

/// Reorders one set of Orders by many rules. The dependencies and the costs are computed once.
template <Costs C>
class ListScheduler {
 public:
  /// Constructs a scheduler for the work of every rank in `orders`, which weave() must accept.
  /// `costs` prices the orders and the moves of `sizes`, as in simulate().
  /// @throws contract_error if there are updates or fused pairs, because they must keep their
  /// places.
  ListScheduler(const Orders& orders, const C& costs, const StageSizes& sizes = {})
      : m_orders(checked(orders)), m_problem(orders, weave(orders, sizes), costs) {}

  /// Returns the orders of a greedy list schedule. Whenever a rank is idle, it takes the most
  /// urgent order whose inputs are present and whose activations fit under the cap. At equal
  /// urgency the first of the woven orders wins. The result need not be optimal, and a cap may lead
  /// into a dead end. A cap holds forwards back only if there are backwards.
  /// @throws blocked_order, an infeasible, if no rank can go on within the cap. It names the cap,
  ///         the ranks and the first order without room, which its grid marks.
  /// @throws contract_error if the activations are not one number of at least 0 for each stage, if
  ///         the cap is negative, or if the priority is empty.
  [[nodiscard]] Orders run(const ListOptions& options) const {
    expects(options.cap >= 0, [&] {
      return ErrorInfo{where(m_orders), "the cap on activations must be at least 0",
                       text("cap = ", options.cap), "0 means no limit"};
    });
    expects(options.priority != nullptr, [&] {
      return ErrorInfo{where(m_orders), "there is no priority", "ListOptions::priority is empty"};
    });
    const auto& activations = options.activations;
    expects(activations.empty() || activations.size() == m_problem.stages, [&] {
      return ErrorInfo{where(m_orders), "every stage needs a number of kept activations",
                       text(activations.size(), " numbers for ", m_problem.stages, " stages")};
    });
    for (std::size_t s = 0; s < activations.size(); ++s)
      expects(activations[s] >= 0, [&] {
        return ErrorInfo{where(m_orders), "a stage keeps at least 0 activations",
                         text("activations[", s, "] = ", activations[s])};
      });
    Orders orders = m_orders;
    orders.ranks = impl::ListRun(m_problem, options).lists(where(m_orders));
    return orders;
  }

  /// Returns the dependencies and the costs, for other searches.
  [[nodiscard]] const impl::ListProblem<typename C::Time>& problem() const noexcept {
    return m_problem;
  }

 private:
  static std::string where(const Orders& orders) {
    return text("heddle::plan::list_schedule(", orders.name, ")");
  }

  static const Orders& checked(const Orders& orders) {
    for (const auto& list : orders.ranks)
      for (const Order& order : list)
        expects(order.kind <= Kind::backward && !order.fused, [&] {
          return ErrorInfo{where(orders),
                           "orders with updates or fused pairs cannot be rescheduled",
                           text("found ", order, order.fused ? ", fused" : "")};
        });
    return orders;
  }

  Orders m_orders;
  impl::ListProblem<typename C::Time> m_problem;
};

/// Returns `orders` in the order of list scheduling; see ListScheduler.
/// @throws blocked_order if no rank can go on within the cap.
template <Costs C>
[[nodiscard]] Orders list_schedule(const Orders& orders, const C& costs,
                                   const ListOptions& options = {}, const StageSizes& sizes = {}) {
  return ListScheduler<C>(orders, costs, sizes).run(options);
}
/// Reorders under costs that are written as a braced list:
/// `list_schedule(orders, {.forward = 1, .backward = 2})`.
[[nodiscard]] Orders list_schedule(const Orders& orders, const StageCosts& costs,
                                   const ListOptions& options = {}, const StageSizes& sizes = {});

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN_SOLVER
#include <heddle/plan/solver/list_schedule.ipp>
#endif
