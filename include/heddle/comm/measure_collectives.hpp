// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_collectives: a CostTable of the ranks that call it. For whoever wants collectives that
/// suit the network; tools/measure writes the table to a file.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/timed_collective.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>

namespace heddle::inline v0 {

/// What measure_collectives() measures. The same on all ranks.
struct CollectiveMeasureOptions {
  std::vector<schedule::Collective> collectives = {schedule::Collective::all_reduce};  ///< which
  /// How large, as schedule::CollectiveOptions::bytes says, in whole floats.
  std::vector<Bytes> sizes = {8, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20};
  /// How many candidates are timed for a size, beside the library's own call: those with the least
  /// simulated times, at most two of one algorithm.
  std::size_t candidates = 4;
  /// For the rounds of a size, of which there are at most 50. The first one counts only where it
  /// takes all of this; a size at which the fastest candidate alone is expected to is left out.
  Seconds budget = 2;
  LinkOptions links = {};  ///< how the links are measured first
};

namespace impl {

/// The first of `all` that are to be timed: `count`, at most two of one algorithm.
[[nodiscard]] inline std::vector<CollectiveChoice> shortlist(
    const std::vector<CollectivePrediction>& all, std::size_t count) {
  std::vector<CollectiveChoice> found;
  for (const auto& [choice, time] : all) {
    const auto same = std::ranges::count(found, choice.algorithm, &CollectiveChoice::algorithm);
    if (found.size() < count && same < 2) found.push_back(choice);
  }
  return found;
}

/// Times of `candidates`, which take turns, each the median of the slowest rank's.
[[nodiscard]] inline std::vector<Seconds> time_in_turns(
    std::vector<std::function<void()>>& candidates, Seconds budget, const Communicator& comm) {
  constexpr const char* where = "heddle::measure_collectives";
  std::vector<std::vector<Seconds>> times(candidates.size());
  const auto slowest = [&](Seconds mine) {
    check(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, comm.get()), where);
    return mine;
  };
  Seconds spent = 0;
  for (int round = 0; round <= 50 && spent < budget; ++round) {
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      check(MPI_Barrier(comm.get()), where);
      const Seconds begin = steady_seconds();
      candidates[c]();
      // In the first round connections are made, and memory is touched.
      if (round == 1) times[c].clear();
      times[c].push_back(slowest(steady_seconds() - begin));
      spent += times[c].back();
    }
  }
  std::vector<Seconds> medians;
  for (std::vector<Seconds>& each : times) {
    const auto middle = each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2);
    std::nth_element(each.begin(), middle, each.end());
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace impl

/// Measures the links between all ranks of `comm`, then for every collective and size the library's
/// own call and the candidates that are expected to be the fastest, of floats in host memory and
/// from root 0. A time is that from the end of a barrier to the end of the slowest rank.
///
/// Collective over `comm`; the result is the same on all ranks. It takes about budget seconds for
/// each size of each collective, or a round of the candidates where that is longer.
/// @throws contract_error for sizes that are not whole floats; what measure_links() throws.
[[nodiscard]] inline CostTable measure_collectives(const Communicator& comm,
                                                   const CollectiveMeasureOptions& options = {}) {
  using schedule::Collective;
  for (const Bytes bytes : options.sizes)
    expects(bytes % sizeof(float) == 0 && bytes / sizeof(float) < (std::size_t{1} << 31), [&] {
      return Complaint{"heddle::measure_collectives", "a size is whole floats, fewer than 2^31",
                       text(bytes, " bytes")};
    });
  MpiTransport transport(comm.get());
  CostTable table(measure_links(transport, options.links));
  for (const Collective collective : options.collectives) {
    const std::vector<Bytes> none{0};
    for (const Bytes bytes : collective == Collective::barrier ? none : options.sizes) {
      std::vector<CollectiveChoice> choices{{.library = true}};
      std::vector<std::function<void()>> calls{impl::LibraryCollective(collective, bytes, comm)};
      std::deque<impl::ScheduledCollective> schedules;
      const schedule::CollectiveOptions size{
          .ranks = comm.size(), .bytes = bytes, .type = Scalar::f32};
      if (comm.size() > 1) {
        const auto all = predict(collective, size, table.machine());
        if (all.front().time > options.budget && bytes != options.sizes.front()) continue;
        for (const CollectiveChoice& choice : impl::shortlist(all, options.candidates)) {
          choices.push_back(choice);
          schedules.emplace_back(to_schedule(choice, collective, size, table.machine()), transport,
                                 options.links.watchdog);
          calls.emplace_back(std::ref(schedules.back()));
        }
      }
      const std::vector<Seconds> times = impl::time_in_turns(calls, options.budget, comm);
      // A clock's tick at least: a call over one rank may take none.
      for (std::size_t c = 0; c < choices.size(); ++c)
        for (const CollectiveChoice& same : same_at(collective, choices[c], size))
          table.set(collective, bytes, same, std::max(times[c], 1e-9));
    }
  }
  return table;
}

}  // namespace heddle::inline v0
