// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What measure_collectives() times: the call that a choice leads to.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/all_to_all.hpp>
#include <heddle/collective/barrier.hpp>
#include <heddle/collective/broadcast.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/gather.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/scan_call.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduce.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/collective/scatter.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>

namespace heddle::inline v0::impl {

/// Calls of one collective of so many bytes of floats, all in the same memory, which is that of
/// `Exec`: none finds it in a cache that another one has not. Zeros, which stay zeros.
template <class Exec>
class TimedCalls {
  using Memory = Kokkos::View<float*, typename Exec::memory_space>;
  using View =
      Kokkos::View<float*, typename Exec::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

 public:
  /// Over `comm` and from root 0, in schedules for the machine of `costs`, to which it refers.
  TimedCalls(const Exec& exec, schedule::Collective collective, Bytes bytes,
             const Communicator& comm, const CostTable& costs, Seconds watchdog)
      : m_exec(exec),
        m_collective(collective),
        m_blocks(bytes / sizeof(float), static_cast<std::size_t>(comm.size())),
        m_comm(&comm),
        m_costs(&costs),
        m_watchdog(watchdog),
        m_in("heddle::collective::measured", m_blocks.total()),
        m_out("heddle::collective::measured",
              std::max(m_blocks.total(), m_blocks.count(0) * m_blocks.ranks())) {}

  /// The call as `choice` has it. Keeps nothing alive.
  [[nodiscard]] std::function<void()> operator()(const CollectiveChoice& choice) const {
    using schedule::Collective;
    const Communicator& comm = *m_comm;
    const std::size_t all = m_blocks.total();
    const std::size_t mine = m_blocks.count(+comm.rank());
    const View in(m_in.data(), all), out(m_out.data(), all);
    const View my_in(m_in.data(), mine), my_out(m_out.data(), mine);
    const Rank root{0};
    CallOptions options;
    options.execute.watchdog = m_watchdog;
    CallOptions counted = options;
    for (std::size_t r = 0; r < m_blocks.ranks() && !m_blocks.even(); ++r)
      counted.counts.push_back(m_blocks.count(r));
    switch (m_collective) {
      case Collective::all_reduce:
        return chosen(all_reduce_call(Kept{}, m_exec, in, Sum{}, comm, options), choice);
      case Collective::reduce_scatter:
        return chosen(reduce_scatter_call(Kept{}, m_exec, in, my_out, Sum{}, comm, options),
                      choice);
      case Collective::all_gather:
        return chosen(all_gather_call(Kept{}, m_exec, my_in, out, comm, options), choice);
      case Collective::all_to_all: {
        const View from_all(m_out.data(), mine * m_blocks.ranks());
        return chosen(all_to_all_call(Kept{}, m_exec, in, from_all, comm, options), choice);
      }
      case Collective::broadcast:
        return chosen(broadcast_call(Kept{}, m_exec, in, root, comm, options), choice);
      case Collective::reduce:
        return chosen(reduce_call(Kept{}, m_exec, in, Sum{}, root, comm, options), choice);
      case Collective::gather:
        return chosen(gather_call(Kept{}, m_exec, my_in, out, root, comm, counted), choice);
      case Collective::scatter:
        return chosen(scatter_call(Kept{}, m_exec, in, my_out, root, comm, counted), choice);
      case Collective::inclusive_scan:
        return chosen(
            scan_call<Collective::inclusive_scan>(Kept{}, m_exec, in, Sum{}, comm, options),
            choice);
      case Collective::exclusive_scan:
        return chosen(
            scan_call<Collective::exclusive_scan>(Kept{}, m_exec, in, Sum{}, comm, options),
            choice);
      case Collective::barrier: break;
    }
    return chosen(BarrierCall{{{}, {}, m_comm, options}}, choice);
  }

 private:
  template <class Call>
  [[nodiscard]] std::function<void()> chosen(Call call, const CollectiveChoice& choice) const {
    call.check();
    PerformerKey key = call.key();
    key.choice = choice;
    if (!choice.library) key.costs = m_costs;
    return [call = std::move(call), key = std::move(key)]() mutable { perform(call, key); };
  }

  Exec m_exec;
  schedule::Collective m_collective;
  BlockCounts m_blocks;
  const Communicator* m_comm;
  const CostTable* m_costs;
  Seconds m_watchdog;
  Memory m_in;
  Memory m_out;
};

/// The least value that nine tenths of `sample` do not exceed.
[[nodiscard]] inline double nine_tenths(std::vector<double> sample) {
  const auto last = sample.begin() + static_cast<std::ptrdiff_t>((9 * sample.size() + 9) / 10 - 1);
  std::nth_element(sample.begin(), last, sample.end());
  return *last;
}

/// Times of `calls`, which take turns. Of the first one the median of the slowest rank's; of every
/// other one what it takes at most in nine rounds of ten, compared with the first one of the same
/// round. So one that is not clearly faster is not taken for faster, however much times vary. The
/// rounds end with the budget, but not before there are enough of them to say so.
[[nodiscard]] inline std::vector<Seconds> time_in_turns(
    const std::vector<std::function<void()>>& calls, Seconds budget, const Communicator& comm) {
  constexpr const char* where = "heddle::measure_collectives";
  // One that is no faster is the faster one in all of so many rounds once in 128 times.
  constexpr std::size_t least_rounds = 7;
  constexpr Seconds sample = 1e-3;  // long against what ranks leave a barrier one after another
  std::vector<std::vector<Seconds>> times(calls.size());
  std::vector<Seconds> least(calls.size(), sample);
  Seconds spent = 0;
  const auto few = [&] { return times.front().size() < least_rounds; };
  for (std::size_t round = 0; few() || (round <= 50 && spent < budget); ++round) {
    // In the first round connections are made, and memory is touched.
    if (round == 1 && spent < budget)
      for (std::vector<Seconds>& each : times) each.clear();
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
  std::vector<Seconds>& first = times.front();
  const auto middle = first.begin() + static_cast<std::ptrdiff_t>(first.size() / 2);
  std::nth_element(first.begin(), middle, first.end());
  for (Seconds& ratio : found) ratio *= *middle;
  return found;
}

}  // namespace heddle::inline v0::impl
