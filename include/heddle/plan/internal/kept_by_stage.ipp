// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of kept_by_stage.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/plan_orders.hpp>
#include <heddle/plan/internal/kept_by_stage.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/simulate/internal/repeated_orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the highest value of a counter to which an entry of a list adds `change(kind)`.
template <class Change>
[[nodiscard]] std::int64_t highest(const std::vector<heddle::impl::Repetition>& list,
                                   Change&& change) {
  std::int64_t now = 0, most = 0;
  for (const heddle::impl::Repetition& repetition : list) {
    std::int64_t once = 0, high = 0;  // within one repetition
    for (const heddle::impl::RepeatedEntry& entry : repetition.entries) {
      once += change(entry.kind);
      high = std::max(high, once);
    }
    most = std::max({most, now + high, now + (repetition.times - 1) * once + high});
    now += repetition.times * once;
  }
  return most;
}

HEDDLE_INLINE KeptByStage kept_by_orders(const Orders& orders) {
  KeptByStage kept{schedule::live_activations(orders), {}};
  for (const std::vector<Order>& list : orders.ranks) kept.split.push_back(most_split(list));
  return kept;
}

HEDDLE_INLINE KeptByStage kept_by_orders(const heddle::impl::RepeatedOrders& orders) {
  KeptByStage kept;
  for (const std::vector<heddle::impl::Repetition>& list : orders) {
    const bool trains = std::ranges::any_of(list, [](const heddle::impl::Repetition& repetition) {
      return std::ranges::any_of(repetition.entries,
                                 [](const auto& entry) { return entry.kind != Kind::forward; });
    });
    kept.live.push_back(!trains ? 0 : highest(list, [](Kind kind) {
      if (kind == Kind::forward) return 1;
      return kind == Kind::backward || kind == Kind::backward_weight ? -1 : 0;
    }));
    kept.split.push_back(highest(list, [](Kind kind) {
      if (kind == Kind::backward_input) return 1;
      return kind == Kind::backward_weight ? -1 : 0;
    }));
  }
  return kept;
}

HEDDLE_INLINE KeptByStage kept_by_schedule(const std::string& schedule, std::size_t stages,
                                           int microbatches, const char* where,
                                           std::uint64_t* listed) {
  const auto count = [&](std::int64_t more) {
    if (listed != nullptr) *listed += static_cast<std::uint64_t>(more);
  };
  const auto orders_of = [&](int number) {
    count(1);  // there may be no orders of many numbers
    Orders orders = line_orders(schedule, stages, number, where);
    count(passes(stages, number));
    return orders;
  };
  const std::int64_t all = passes(stages, microbatches);
  if (all > most_listed) try {
      return kept_by_orders(heddle::impl::periodic_orders(orders_of, microbatches).lists);
    } catch (const infeasible&) {
      if (all > most_listed_without_period) throw;
    }
  count(all);
  return kept_by_orders(line_orders(schedule, stages, microbatches, where));
}

HEDDLE_INLINE std::optional<KeptByStage> kept_by_stage(const std::string& name, int stages,
                                                       int microbatches, std::uint64_t* listed) {
  try {
    return kept_by_schedule(name, static_cast<std::size_t>(stages), microbatches,
                            "heddle::plan::search", listed);
  } catch (const infeasible&) {
    return {};
  } catch (const contract_error&) {
    return {};
  }
}

}  // namespace heddle::inline v0::plan::impl
