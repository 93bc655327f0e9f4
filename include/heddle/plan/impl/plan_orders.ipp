// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_orders.hpp.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/plan_orders.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/pass/divide_stages.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

HEDDLE_INLINE Orders line_orders(const std::string& name, std::size_t stages, int microbatches,
                                 const char* where) {
  const schedule::NamedSchedule& named = schedule::find_schedule(name);
  const auto refuse = [&](const std::string& why) {
    throw contract_error({where, text("the schedule '", name, "' does not fit the plan"), why,
                          "use a schedule with one stage on each rank, such as 1f1b"});
  };
  if (named.branches) refuse("it is for a model with two branches");
  Orders orders = named.orders(
      {.ranks = static_cast<int>(stages), .microbatches = microbatches, .stages_per_rank = 1});
  if (orders.ranks.size() != stages)
    refuse(text("it has ", orders.ranks.size(), " ranks for ", stages, " stages"));
  for (std::size_t r = 0; r < orders.ranks.size(); ++r)
    for (const Order& order : orders.ranks[r])
      if (+order.stage != r) refuse(text("it puts stage ", order.stage, " on rank ", r));
  return orders;
}

HEDDLE_INLINE Orders plan_orders(const Plan& plan, const char* where) {
  return line_orders(plan.schedule, plan.stages.size(), plan.microbatches, where);
}

HEDDLE_INLINE Orders bucket_orders(const Plan& plan, const char* where) {
  Orders orders = plan_orders(plan, where);
  const int count = plan.bucket_count();
  if (count == 1) return orders;
  return schedule::divide_stages(std::move(orders), std::vector(plan.stages.size(), count));
}

}  // namespace heddle::inline v0::plan::impl
