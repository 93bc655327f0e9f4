// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of periodic.hpp.

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/any_costs.hpp>
#include <heddle/simulate/impl/class_prices.hpp>
#include <heddle/simulate/impl/period_engine.hpp>
#include <heddle/simulate/impl/period_program.hpp>
#include <heddle/simulate/internal/repeated_orders.hpp>
#include <heddle/simulate/periodic.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE double PeriodicStep::bubble_ratio() const {
  const double whole = makespan * static_cast<double>(busy.size());
  if (!(whole > 0)) return 0;
  double work = 0;
  for (const Seconds rank : busy) work += rank;
  return 1 - work / whole;
}

HEDDLE_INLINE PeriodicStep impl::periodic_step(impl::FunctionRef<Orders(int)> orders_of,
                                               int microbatches, const AnyCosts& costs,
                                               const StageSizes& sizes) {
  const PeriodicOrders orders = periodic_orders(orders_of, microbatches);
  const Orders& sample = orders.sample;
  if (!sample.shares.stages.empty()) no_period(sample.name, "ranks divide the samples of a stage");
  const Schedule woven = weave(sample, sizes);
  if (const Machine* const machine = costs.machine(); machine != nullptr && machine->shares())
    no_period(sample.name, "queues share resources of the machine");
  ClassPrices prices(woven, costs);
  const StageGraph graph = graph_of(sample);
  const PeriodProgram program(orders, graph, prices);
  return PeriodEngine(program).run();
}

HEDDLE_INLINE PeriodicStep simulate_periodic(impl::FunctionRef<Orders(int)> orders_of,
                                             int microbatches, const StageCosts& costs,
                                             const StageSizes& sizes) {
  return impl::periodic_step(orders_of, microbatches, impl::CostsOf<StageCosts>(costs), sizes);
}

}  // namespace heddle::inline v0
