// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_collectives(): measures a CostTable for the ranks that call it. The table lets
/// collective calls choose the fastest algorithm on this network. tools/measure writes it to a
/// file.

#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/timed_calls.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/link_options.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0 {

/// The options of measure_collectives(), the same on all ranks.
struct CollectiveMeasureOptions {
  std::vector<schedule::Collective> collectives = {
      schedule::Collective::all_reduce};  ///< the collectives to measure
  /// The message sizes in bytes, with the meaning of schedule::CollectiveOptions::bytes. Each must
  /// be a multiple of 4, the size of a float.
  std::vector<Bytes> sizes = {8, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20};
  /// The number of candidates that are timed for each size, beside the library's own call. They
  /// have the least simulated times, and at most two use the same algorithm. In addition, up to two
  /// candidates over shared memory and up to two hierarchical ones are timed.
  std::size_t candidates = 4;
  /// The time in seconds for the rounds of one size. There are at least 7 rounds, even if they take
  /// longer, and at most 50. The first round counts only if it takes all of the budget. A size
  /// (other than the first) is left out if its fastest candidate alone is expected to exceed the
  /// budget.
  Seconds budget = 2;
  LinkOptions links = {};  ///< how the links are measured before the collectives
};

namespace impl {

/// Returns the choices that are timed: the first `count` of `all`, at most two of one algorithm,
/// and the first two over shared memory and over levels. The simulation is less exact for the
/// latter: it does not know the copies in shared memory, or the links that messages of one node
/// share.
[[nodiscard]] std::vector<plan::CollectiveChoice> shortlist(
    const std::vector<plan::CollectivePrediction>& all, std::size_t count);

/// measure_collectives() in memory of these instances.
[[nodiscard]] plan::CostTable measure_collectives(const Communicator& comm,
                                                  const CollectiveMeasureOptions& options,
                                                  const TimedInstances& by);

}  // namespace impl

/// Measures the links between all ranks of `comm`. Then measures, for every collective and size,
/// the library's own call and the candidates that are expected to be the fastest. The measured
/// calls are those for which the table will be used: floats in the memory of `space`, root 0, sums.
///
/// The candidates run alternately. A sample repeats a call for about a millisecond, from the end of
/// a barrier to the end of the slowest rank. The library's time is the median of its samples. A
/// candidate's time is the 90th percentile relative to the library's time of the same round, so
/// that noise does not make it win.
///
/// The call is collective over `comm`, and the result is the same on all ranks. Each size of each
/// collective takes about `budget` seconds, or seven rounds of the candidates if that is longer.
/// @throws contract_error on every rank if a size is not a multiple of a float, if a collective is
///         none of the enumerators, if a budget or another number of the options is invalid, or if
///         the options of the ranks differ.
/// @throws communication_error if a rank does not make the call within 120 seconds.
/// Throws the errors of measure_links().
template <class Exec = Kokkos::DefaultHostExecutionSpace>
[[nodiscard]] plan::CostTable measure_collectives(const Communicator& comm,
                                                  const CollectiveMeasureOptions& options = {},
                                                  const Exec& space = {}) {
  using Floats = Kokkos::View<float*, typename Exec::memory_space>;
  return impl::measure_collectives(
      comm, options, {impl::instance<Floats>(space), impl::instance<Floats>(space, Sum{})});
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/measure_collectives.ipp>
#endif
