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
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
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
    call.exchange();
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
[[nodiscard]] double nine_tenths(std::vector<double> sample);

/// Times of `calls`, which take turns. Of the first one the median of the slowest rank's; of every
/// other one what it takes at most in nine rounds of ten, compared with the first one of the same
/// round. So one that is not clearly faster is not taken for faster, however much times vary. The
/// rounds end with the budget, but not before there are enough of them to say so.
[[nodiscard]] std::vector<Seconds> time_in_turns(const std::vector<std::function<void()>>& calls,
                                                 Seconds budget, const Communicator& comm);

}  // namespace heddle::inline v0::impl

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/collective/impl/timed_calls.ipp>
#endif
