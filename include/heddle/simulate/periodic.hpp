// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// simulate_periodic(): prices a step of very many microbatches, without a Schedule of all of them.
/// It simulates the warm-up, the periods until they are steady, and the drain. It skips the steady
/// periods between them, exactly.

#include <cstdint>
#include <vector>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/stage_storage.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/any_costs.hpp>

namespace heddle::inline v0 {

struct Orders;

/// The time and the activations of a step that simulate_periodic() has priced.
struct PeriodicStep {
  Seconds makespan = 0;            ///< the time from the first start to the last arrival
  std::vector<Seconds> busy;       ///< by rank: the time of the model's work
  std::vector<std::int64_t> live;  ///< by rank: the peak of live activations, of single stages
  std::int64_t orders = 0;         ///< the entries of the orders of all ranks
  std::int64_t simulated = 0;      ///< the orders among them that were simulated
  std::int64_t messages = 0;       ///< moves between ranks
  int period = 0;                  ///< the microbatches of a period; 0 if no period was skipped

  /// Returns the share of the ranks' time in which they do none of the model's work.
  [[nodiscard]] double bubble_ratio() const;
};

namespace impl {

/// simulate_periodic() for costs of any type.
PeriodicStep periodic_step(FunctionRef<Orders(int)> orders_of, int microbatches,
                           const AnyCosts& costs, const StageSizes& sizes);

}  // namespace impl

/// Returns the price of a step of `microbatches`, as simulate() of the woven orders gives it.
/// `orders_of(m)` returns the orders of m microbatches, for example
/// `[](int m) { return schedule::one_f_one_b(64, m); }`. It is called with a few small numbers. If
/// the orders of these repeat, the other orders are assumed to repeat in the same way.
///
/// A period is skipped only if its times are proven: all times have grown by constant amounts over
/// as many periods as an action looks back, and no maximum of times can change its winner. Times
/// are added as whole multiples of a power of two, so that no sum is rounded. The result differs
/// from that of simulate() by the rounding of simulate() only.
///
/// @throws infeasible if the step has no period: the orders do not repeat or have shares, costs
///         differ between microbatches, queues share resources of a Machine, or the times do not
///         become steady.
/// @throws contract_error as weave() and simulate() do.
template <Costs C>
[[nodiscard]] PeriodicStep simulate_periodic(impl::FunctionRef<Orders(int)> orders_of,
                                             int microbatches, const C& costs,
                                             const StageSizes& sizes = {}) {
  return impl::periodic_step(orders_of, microbatches, impl::CostsOf<C>(costs), sizes);
}

/// Returns the price under costs that are written as a braced list.
[[nodiscard]] PeriodicStep simulate_periodic(impl::FunctionRef<Orders(int)> orders_of,
                                             int microbatches, const StageCosts& costs,
                                             const StageSizes& sizes = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SIMULATE
#include <heddle/simulate/periodic.ipp>
#endif
