// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Finds the first parameter step of LoweredOrders at which torch.distributed.pipelining would stop
/// or compute something else.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/order/impl/parameter_steps.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// A wrong parameter step, or an entry of the orders that lacks a step.
struct StepFault {
  Rank rank;
  bool is_step;       ///< true for a step, false for an entry of the orders
  std::size_t index;  ///< its number in the list of steps or in the list of entries of the rank
  std::string what, why;
};

/// The search for the first fault. The orders must have no fault of their own.
class StepChecker {
 public:
  explicit StepChecker(const LoweredOrders& lowered) : m_lowered(lowered) {
    for (const auto& list : lowered.steps)
      for (const ParameterStep& step : list)
        m_reduces |= step.action == ParameterStep::Action::reduce_grad;
  }

  /// Returns the first fault, or none.
  std::optional<StepFault> find() {
    for (std::size_t rank = 0; rank < m_lowered.steps.size(); ++rank)
      if (auto found = of_rank(rank)) return found;
    return m_reduces ? missing_sum() : std::nullopt;
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  /// The state of a stage on the rank that is being checked.
  struct State {
    bool sharded = false;             ///< a step unshards or reshards it
    bool unsharded = false;           ///< it is unsharded now
    bool used = false;                ///< it was used since it was unsharded
    bool reduced = false;             ///< its gradient is reduced
    std::size_t last = none;          ///< the entry that completes its gradient
    std::size_t last_use = none;      ///< the last entry that uses it
    std::size_t unsharded_at = 0;     ///< the step that unsharded it
    std::size_t resharded_at = none;  ///< the step that resharded it
  };

  std::optional<StepFault> of_rank(std::size_t rank) {
    if (rank >= m_lowered.orders.ranks.size())
      return StepFault{Rank{rank}, true, 0, "a step is on a rank without orders", {}};
    const auto& list = m_lowered.orders.ranks[rank];
    const auto& steps = m_lowered.steps[rank];
    m_states.clear();
    for (std::size_t i = 0; i < list.size(); ++i) {
      State& state = m_states[+list[i].stage];
      state.last_use = i;
      if (completes_gradient(list[i].kind)) state.last = i;
    }
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (auto found = place(rank, s)) return found;
      if (steps[s].action != ParameterStep::Action::reduce_grad)
        m_states[+steps[s].stage].sharded = true;
    }
    std::size_t entry = 0;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (; entry < steps[s].before; ++entry)
        if (auto found = compute(rank, entry)) return found;
      if (auto found = step(rank, s)) return found;
    }
    for (; entry < list.size(); ++entry)
      if (auto found = compute(rank, entry)) return found;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const State& state = m_states[+steps[s].stage];
      if (!state.unsharded || state.unsharded_at != s) continue;
      if (!state.used) return unused(rank, s);
      return StepFault{Rank{rank}, true, s, "a stage stays unsharded at the end of the step",
                       text("no ", reshard(steps[s].stage), " after ", list[state.last_use])};
    }
    return {};
  }

  [[nodiscard]] static ParameterStep reshard(Stage stage) {
    return {ParameterStep::Action::reshard, stage};
  }

  /// Checks that a step is for a stage of its rank, and between two turns.
  [[nodiscard]] std::optional<StepFault> place(std::size_t rank, std::size_t s) const {
    const auto& list = m_lowered.orders.ranks[rank];
    const ParameterStep& step = m_lowered.steps[rank][s];
    const auto fault = [&](std::string what, std::string why) {
      return StepFault{Rank{rank}, true, s, std::move(what), std::move(why)};
    };
    if (!m_states.contains(+step.stage))
      return fault("a step is of a stage that its rank does not compute",
                   text(step, " on rank ", rank));
    const std::size_t least = s == 0 ? 0 : m_lowered.steps[rank][s - 1].before;
    const bool divides =
        step.before > 0 && step.before <= list.size() && list[step.before - 1].fused;
    if (step.before < least || step.before > list.size() || divides)
      return fault("a step is not between two entries of its rank",
                   text(step, " before entry ", step.before, " of ", list.size()));
    return {};
  }

  [[nodiscard]] std::optional<StepFault> compute(std::size_t rank, std::size_t entry) {
    const Order& order = m_lowered.orders.ranks[rank][entry];
    State& state = m_states[+order.stage];
    if (order.kind == Kind::update || !state.sharded) return {};
    if (state.unsharded) {
      state.used = true;
      return {};
    }
    if (state.resharded_at != none)
      return StepFault{Rank{rank}, true, state.resharded_at,
                       "a stage is resharded before its last use",
                       text(reshard(order.stage), " before ", order)};
    return StepFault{
        Rank{rank}, false, entry, "a stage computes before it is unsharded",
        text(order, " before ", ParameterStep{ParameterStep::Action::unshard, order.stage})};
  }

  [[nodiscard]] StepFault unused(std::size_t rank, std::size_t s) const {
    return {Rank{rank}, true, s, "a stage is unsharded and not used",
            text("nothing computes after ", m_lowered.steps[rank][s])};
  }

  [[nodiscard]] std::optional<StepFault> step(std::size_t rank, std::size_t s) {
    const auto& list = m_lowered.orders.ranks[rank];
    const ParameterStep& step = m_lowered.steps[rank][s];
    State& state = m_states[+step.stage];
    const auto fault = [&](std::string what, std::string why) {
      return StepFault{Rank{rank}, true, s, std::move(what), std::move(why)};
    };
    switch (step.action) {
      case ParameterStep::Action::unshard:
        if (std::exchange(state.unsharded, true))
          return fault("a stage is unsharded twice", text(step));
        state.used = false;
        state.unsharded_at = s;
        break;
      case ParameterStep::Action::reshard:
        if (!state.unsharded) return fault("a stage is resharded but is not unsharded", text(step));
        if (!state.used) return unused(rank, state.unsharded_at);
        state.unsharded = false;
        state.resharded_at = s;
        break;
      case ParameterStep::Action::reduce_grad:
        if (state.last == none)
          return fault("a gradient is reduced but not computed",
                       text(step, ", and no B or W of this stage"));
        if (step.before <= state.last)
          return fault("a gradient is reduced before it is complete",
                       text(step, " before ", list[state.last]));
        if (std::exchange(state.reduced, true))
          return fault("a gradient is reduced twice", text(step));
    }
    return {};
  }

  /// Returns a fault for the last B or W of a stage whose gradient is not reduced although other
  /// gradients are.
  [[nodiscard]] std::optional<StepFault> missing_sum() const {
    for (std::size_t rank = 0; rank < m_lowered.orders.ranks.size(); ++rank) {
      const auto& list = m_lowered.orders.ranks[rank];
      std::unordered_map<std::size_t, std::size_t> last;
      for (std::size_t i = 0; i < list.size(); ++i)
        if (completes_gradient(list[i].kind)) last[+list[i].stage] = i;
      if (rank < m_lowered.steps.size())
        for (const ParameterStep& step : m_lowered.steps[rank])
          if (step.action == ParameterStep::Action::reduce_grad) last.erase(+step.stage);
      const auto first =
          std::ranges::min_element(last, {}, [](const auto& each) { return each.second; });
      if (first == last.end()) continue;
      const Order& order = list[first->second];
      return StepFault{Rank{rank}, false, first->second, "a gradient is not reduced",
                       text("no ", ParameterStep{ParameterStep::Action::reduce_grad, order.stage},
                            " after ", order)};
    }
    return {};
  }

  const LoweredOrders& m_lowered;
  bool m_reduces = false;
  std::unordered_map<std::size_t, State> m_states;  ///< by stage
};

}  // namespace heddle::inline v0::schedule::impl
