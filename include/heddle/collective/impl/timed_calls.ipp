// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of timed_calls.hpp.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/all_to_all.hpp>
#include <heddle/collective/barrier.hpp>
#include <heddle/collective/broadcast.hpp>
#include <heddle/collective/gather.hpp>
#include <heddle/collective/impl/all_reduce_call.hpp>
#include <heddle/collective/impl/perform.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scan_call.hpp>
#include <heddle/collective/impl/timed_calls.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/reduce.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/collective/scatter.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/quantile.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE TimedCalls::TimedCalls(const TimedInstances& by, schedule::Collective collective,
                                          Bytes bytes, const Communicator& comm,
                                          std::shared_ptr<const plan::CostTable> costs,
                                          Seconds watchdog)
    : m_by(by),
      m_collective(collective),
      m_blocks(bytes / sizeof(float), static_cast<std::size_t>(comm.size())),
      m_comm(&comm),
      m_costs(std::move(costs)) {
  m_options.wait.watchdog = watchdog;
  m_counted = m_options;
  for (std::size_t r = 0; r < m_blocks.ranks() && !m_blocks.even(); ++r)
    m_counted.counts.push_back(m_blocks.count(r));
  constexpr const char* label = "heddle::collective::measured";
  const std::size_t whole = std::max(m_blocks.total(), m_blocks.count(0) * m_blocks.ranks());
  m_in = by.moves.zeros(label, m_blocks.total() * sizeof(float));
  m_out = by.moves.zeros(label, whole * sizeof(float));
}

HEDDLE_FULL_INLINE std::function<void()> TimedCalls::operator()(
    const plan::CollectiveChoice& choice) const {
  const std::shared_ptr<Call> made = call();
  made->exchange();
  made->check();
  PerformerKey key = made->key();
  key.choice = choice;
  if (!choice.library) key.costs = m_costs;
  return [made, key = std::move(key)] { perform(*made, key); };
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> TimedCalls::call() const {
  using schedule::Collective;
  using View = Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  // Only the addresses count, in whichever memory they are.
  auto* const in_data = reinterpret_cast<float*>(m_in.data);
  auto* const out_data = reinterpret_cast<float*>(m_out.data);
  const std::size_t all = m_blocks.total();
  const std::size_t mine = m_blocks.count(+m_comm->rank());
  const View in(in_data, all), out(out_data, all);
  const View my_in(in_data, mine), my_out(out_data, mine);
  const View from_all(out_data, mine * m_blocks.ranks());
  const auto level = ContractLevel::local;
  const CallArguments moves(m_by.moves, *m_comm, m_options, level);
  const CallArguments counted(m_by.moves, *m_comm, m_counted, level);
  const CallArguments adds(m_by.adds, *m_comm, m_options, level);
  const auto kept = [](Call&& call) {
    call.keep();
    return call.moved();
  };
  const Rank root{0};
  switch (m_collective) {
    case Collective::all_reduce: return kept(AllReduceCall(adds, in));
    case Collective::reduce_scatter: return kept(ReduceScatterCall(adds, in, my_out));
    case Collective::all_gather: return kept(AllGatherCall(moves, my_in, out));
    case Collective::all_to_all: return kept(AllToAllCall(moves, in, from_all));
    case Collective::broadcast: return kept(BroadcastCall(moves, in, root));
    case Collective::reduce: return kept(ReduceCall(adds, in, root));
    case Collective::gather: return kept(GatherCall(counted, my_in, out, root));
    case Collective::scatter: return kept(ScatterCall(counted, in, my_out, root));
    case Collective::inclusive_scan:
    case Collective::exclusive_scan: return kept(ScanCall(m_collective, adds, in));
    case Collective::barrier: break;
  }
  return kept(BarrierCall(moves));
}

HEDDLE_FULL_INLINE double nine_tenths(std::vector<double> sample) {
  return value_at(sample, (9 * sample.size() + 9) / 10 - 1);
}

HEDDLE_FULL_INLINE std::vector<Seconds> time_in_turns(
    const std::vector<std::function<void()>>& calls, Seconds budget, const Communicator& comm) {
  constexpr const char* where = "heddle::measure_collectives";
  // One that is no faster is the faster one in all of so many rounds once in 128 times.
  constexpr std::size_t least_rounds = 7;
  constexpr Seconds sample = 1e-3;  // long against what ranks leave a barrier one after another
  std::vector<std::vector<Seconds>> times(calls.size());
  std::vector<Seconds> least(calls.size(), sample);
  constexpr std::size_t most_rounds = 51;
  Seconds spent = 0;
  for (std::size_t round = 0;; ++round) {
    // In the first round connections are made, and memory is touched. It counts only if it took
    // the whole budget.
    if (round == 1 && spent < budget)
      for (std::vector<Seconds>& each : times) each.clear();
    const bool enough = round > 0 && times.front().size() >= least_rounds;
    if (enough && (round >= most_rounds || !(spent < budget))) break;  // not a number: none
    for (std::size_t turn = 0; turn < calls.size(); ++turn) {
      const std::size_t c = (turn + round) % calls.size();
      const int repeats = static_cast<int>(std::clamp(sample / least[c], 1.0, 1000.0));
      check(MPI_Barrier(comm.get()), where);
      const Seconds begin = steady_seconds();
      for (int i = 0; i < repeats; ++i) calls[c]();
      // A clock's tick at least: a call over one rank may take none.
      Seconds time = std::max((steady_seconds() - begin) / repeats, 1e-9);
      check(MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, comm.get()), where);
      times[c].push_back(time);
      least[c] = std::min(least[c], time);
      spent += repeats * time;
    }
  }
  std::vector<Seconds> found;
  for (const std::vector<Seconds>& each : times) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < each.size(); ++i) ratios.push_back(each[i] / times.front()[i]);
    found.push_back(nine_tenths(std::move(ratios)));
  }
  const Seconds middle = median(times.front());
  for (Seconds& ratio : found) ratio *= middle;
  return found;
}

}  // namespace heddle::inline v0::impl
