// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_collectives(): measures a CostTable for the ranks that call it. The table lets
/// collective calls choose the fastest algorithm on this network. tools/measure writes it to a
/// file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/timed_calls.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>

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
[[nodiscard]] std::vector<CollectiveChoice> shortlist(const std::vector<CollectivePrediction>& all,
                                                      std::size_t count);

/// Returns what of `options` must be equal on all ranks.
[[nodiscard]] CollectiveCall call_to_measure(const char* where,
                                             const CollectiveMeasureOptions& options);

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
/// @throws contract_error on every rank if a size is not a multiple of a float, or if the options
///         of the ranks differ.
/// @throws communication_error if a rank does not make the call within 120 seconds.
/// @throws the errors of measure_links().
template <class Exec = Kokkos::DefaultHostExecutionSpace>
[[nodiscard]] CostTable measure_collectives(const Communicator& comm,
                                            const CollectiveMeasureOptions& options = {},
                                            const Exec& space = {}) {
  using schedule::Collective;
  const auto ranks = static_cast<Bytes>(comm.size());
  constexpr const char* where = "heddle::measure_collectives";
  const auto check = [&] {
    for (const Bytes bytes : options.sizes)
      expects(bytes % sizeof(float) == 0 && impl::fits_int(bytes + ranks * sizeof(float)), [&] {
        return ErrorInfo{where,
                         "a size must be a multiple of 4 bytes (a float) and below 2^31 bytes",
                         text(bytes, " bytes")};
      });
  };
  check_together(
      comm, where, check, [&] { return impl::call_to_measure(where, options); },
      ContractLevel::communication);
  // What it keeps for the calls refers to the table, and ends with it.
  const Communicator own(comm.get());
  MpiTransport transport(own.get());
  CostTable table(measure_links(transport, options.links));
  // Of memory that the host does not reach, nothing is read in place.
  std::vector<std::uint32_t> domains;
  if (Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible)
    domains = SharedTransport(own.get()).domains();
  for (const Collective collective : options.collectives) {
    const std::vector<Bytes> none{0};
    const std::vector<Bytes>& sizes = collective == Collective::barrier ? none : options.sizes;
    for (const Bytes bytes : sizes) {
      const schedule::CollectiveOptions size{
          .ranks = comm.size(), .bytes = bytes, .type = Scalar::f32};
      std::vector<CollectiveChoice> choices{{.library = true}};
      if (comm.size() > 1) {
        const auto all = predict(collective, size, table.machine(), domains);
        if (all.front().time > options.budget && bytes != sizes.front()) continue;
        const auto best = impl::shortlist(all, options.candidates);
        choices.insert(choices.end(), best.begin(), best.end());
      }
      const impl::TimedCalls<Exec> timed(space, collective, bytes, own, table,
                                         options.links.watchdog);
      std::vector<std::function<void()>> calls;
      for (const CollectiveChoice& choice : choices) calls.push_back(timed(choice));
      const std::vector<Seconds> times = impl::time_in_turns(calls, options.budget, own);
      for (std::size_t c = 0; c < choices.size(); ++c)
        for (const CollectiveChoice& same : same_at(collective, choices[c], size))
          table.set(collective, bytes, same, times[c]);
    }
  }
  return table;
}

}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/collective/measure_collectives.ipp>
#endif
