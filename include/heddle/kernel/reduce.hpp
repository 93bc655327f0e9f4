// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The reduction pattern: applies a function to the elements of Views of equal shape and joins the
/// results to one value. The order of joining does not depend on the number of threads or on the
/// machine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/device/mirror.hpp>
#include <heddle/device/staging.hpp>
#include <heddle/kernel/impl/sources.hpp>
#include <heddle/kernel/impl/tiles.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/internal/walk.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

/// The elements are cut into at most this many blocks, of at least `least_block` elements each.
/// Constants of the library, like `lanes`: they decide the order.
inline constexpr std::size_t most_blocks = 1024, least_block = 2048;

/// Elements of a block: a multiple of the lanes and of what a tile holds.
[[nodiscard]] inline std::size_t reduce_block(std::size_t count) {
  const std::size_t share = (count + most_blocks - 1) / most_blocks;
  return std::max(least_block, (share + dma_line - 1) / dma_line * dma_line);
}

/// The value of one block: element j of a row, or of the block's piece of it, joins lane j mod 8.
template <class Reducer, class F, class... In>
struct ReduceBlock {
  using Value = typename Reducer::value_type;
  Reducer reducer;
  F f;
  Walk<sizeof...(In)> walk;
  Sources<const In...> in;
  std::size_t block;

  [[nodiscard]] KOKKOS_FUNCTION std::size_t first(std::size_t index) const { return index * block; }
  [[nodiscard]] KOKKOS_FUNCTION std::size_t last(std::size_t index) const {
    const std::size_t end = (index + 1) * block;
    return end < walk.size() ? end : walk.size();
  }
  KOKKOS_FUNCTION void clear(Value (&lane)[lanes]) const {
    for (std::size_t l = 0; l < lanes; ++l) reducer.init(lane[l]);
  }
  /// Joins term(0) ... term(count - 1) to the lanes.
  template <class Term>
  KOKKOS_FUNCTION void add(std::size_t count, Value (&lane)[lanes], const Term& term) const {
    Value part[lanes];  // of our own: the compiler then keeps them in registers
    for (std::size_t l = 0; l < lanes; ++l) part[l] = lane[l];
    const std::size_t whole = count - count % lanes;
    for (std::size_t j = 0; j < whole; j += lanes)
      for (std::size_t l = 0; l < lanes; ++l) reducer.join(part[l], term(j + l));
    for (std::size_t j = whole; j < count; ++j) reducer.join(part[j - whole], term(j));
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = part[l];
  }
  /// Joins the lanes pairwise: ((0+4)+(2+6)) + ((1+5)+(3+7)).
  [[nodiscard]] KOKKOS_FUNCTION Value join(Value (&lane)[lanes]) const {
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) reducer.join(lane[l], lane[l + half]);
    return lane[0];
  }
};

/// One index per block, on host cores.
template <ExecutionSpace Exec, class Reducer, class F, class... In>
struct ReduceDirect {
  using Value = typename Reducer::value_type;
  ReduceBlock<Reducer, F, In...> block;
  Value* partial;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    const auto& walk = block.walk;
    Value lane[lanes];
    block.clear(lane);
    const std::size_t last = block.last(index);
    for (std::size_t e = block.first(index); e < last;) {
      const std::size_t column = e % walk.columns, rest = walk.columns - column;
      const std::size_t count = last - e < rest ? last - e : rest;
      const auto from = block.in.template moved<0>(walk.row(e / walk.columns).at)
                            .template advanced<0>(static_cast<std::ptrdiff_t>(column), walk.step);
      if (walk.adjacent()) {
        block.add(count, lane, [&](std::size_t j) { return from.call(block.f, j); });
      } else {
        block.add(count, lane,
                  [&](std::size_t j) { return from.template call<0>(block.f, j, walk.step); });
      }
      e += count;
    }
    partial[index] = block.join(lane);
  }
};

/// One team per block, whose tiles come to its scratch. The same order as ReduceDirect's, since a
/// tile ends at a multiple of the lanes.
template <ExecutionSpace Exec, class Reducer, class F, class... In>
struct ReduceStaged {
  using Value = typename Reducer::value_type;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  ReduceBlock<Reducer, F, In...> block;
  Value* partial;
  std::size_t tile;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto& walk = block.walk;
    const auto index = static_cast<std::size_t>(team.league_rank());
    const Sources<In...> local(tile_buffer<In>(team, tile)...);
    Value* const result = tile_buffer<Value>(team, 1);
    staging<Exec> stage(team);
    Value lane[lanes];
    block.clear(lane);
    const std::size_t last = block.last(index);
    for (std::size_t e = block.first(index); e < last;) {
      const std::size_t column = e % walk.columns, rest = walk.columns - column;
      std::size_t count = last - e < rest ? last - e : rest;
      if (count > tile) count = tile;
      fetch_all<0>(stage, local,
                   block.in.template moved<0>(walk.row(e / walk.columns).at)
                       .template advanced<0>(static_cast<std::ptrdiff_t>(column), walk.step),
                   count, walk.step);
      block.add(count, lane, [&](std::size_t j) { return local.call(block.f, j); });
      e += count;
    }
    *result = block.join(lane);
    stage.put(partial + index, result, 1);
    stage.wait();
  }
};

/// One team per block on a GPU. The elements of a block are interleaved over the threads of the
/// team. Kokkos joins the values of all threads.
template <ExecutionSpace Exec, class Reducer, class F, class... In>
struct ReduceTeam {
  using Value = typename Reducer::value_type;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  ReduceBlock<Reducer, F, In...> block;

  KOKKOS_FUNCTION void operator()(const Member& team, Value& value) const {
    const auto index = static_cast<std::size_t>(team.league_rank());
    const auto threads = static_cast<std::size_t>(team.team_size());
    const std::size_t first = block.first(index) + static_cast<std::size_t>(team.team_rank());
    const auto& walk = block.walk;
    WalkCursor at(walk, first, threads);
    for (std::size_t e = first; e < block.last(index); e += threads, at.next()) {
      const auto from = block.in.template moved<0>(at.row().at);
      block.reducer.join(value, from.template call<0>(block.f, at.column(), walk.step));
    }
  }
};

/// Writes what `blocks` blocks give to the target of the reducer, by teams of any space, so that it
/// can be tested on hosts. Kokkos keeps the memory for the values of the teams.
template <ExecutionSpace Exec, class Reducer, class F, class... In>
void reduce_by_teams(const char* where, const Exec& exec,
                     const ReduceBlock<Reducer, F, In...>& block, std::size_t blocks) {
  Kokkos::parallel_reduce(where,
                          Kokkos::TeamPolicy<Exec>(exec, static_cast<int>(blocks), Kokkos::AUTO),
                          ReduceTeam<Exec, Reducer, F, In...>{block}, block.reducer);
  exec.fence(where);  // the target may be a View
}

/// A function of one element of each View in `In` that returns a value of the Kokkos reducer.
template <class F, class Reducer, class... In>
concept ReduceFunctor = Kokkos::is_reducer_v<Reducer> &&(Kokkos::is_view_v<In>&&...) &&
                        std::is_invocable_r_v<typename Reducer::value_type, const F&,
                                              typename In::const_value_type&...>;

}  // namespace impl

/// Joins f(in(i...)...) over all indices, and writes the result to the target of the Kokkos
/// reducer: `reduce(exec, Kokkos::Sum<double>(dot), Product{}, x, y)`. There must be at least one
/// View. The Views have equal shapes, of any rank and layout. Without elements, the result is the
/// initial value of the reducer.
///
/// Order: the n elements, in the memory order of the first View, are divided into blocks of
/// max(2048, ceil(n / 1024) rounded up to a multiple of 128). Within a block, element j of a row
/// joins lane j mod 8, in ascending order of j. If the block begins inside the row, j counts from
/// there. Views without gaps in the same layout are one row. Then the lanes are joined as
/// ((0+4)+(2+6)) + ((1+5)+(3+7)), and finally the blocks in ascending order. This order is the same
/// for every number of threads, on all host spaces and on Athread. On a GPU, the order is that of
/// Kokkos' parallel_reduce over teams, and the call allocates nothing itself. Values that join
/// exactly, such as integers, give the same result everywhere.
///
/// The call waits for the result, so all work that `exec` has queued before is complete on return.
/// @throws contract_error if the shapes differ.
template <ExecutionSpace Exec, class Reducer, class F, class... In>
requires(sizeof...(In) > 0 && impl::ReduceFunctor<F, Reducer, In...>) void reduce(
    const Exec& exec, const Reducer& reducer, const F& f, const In&... in) {
  constexpr const char* where = "heddle::kernel::reduce";
  static_assert((reachable_from<In, Exec> && ...),
                "heddle::kernel::reduce: kernels of the execution space cannot reach a View's "
                "memory");
  using Value = typename Reducer::value_type;
  using Block = impl::ReduceBlock<Reducer, F, typename In::non_const_value_type...>;
  const auto walk = impl::make_walk(where, in...);
  const std::size_t elements = impl::reduce_block(walk.size());
  const std::size_t blocks = (walk.size() + elements - 1) / elements;
  const Block block{reducer, f, walk, impl::Sources<const typename In::value_type...>(in.data()...),
                    elements};
  if constexpr (staging<Exec>::scratch == Scratch::shared) {
    if (blocks > 0) return impl::reduce_by_teams(where, exec, block, blocks);
  }
  // Not a View, whose constructor and copies each program would compile for its own values.
  using Memory = typename Exec::memory_space;
  const std::unique_ptr<void, void (*)(void*)> memory(
      Kokkos::kokkos_malloc<Memory>("heddle::kernel::reduce_partial", blocks * sizeof(Value)),
      [](void* data) { Kokkos::kokkos_free<Memory>(data); });
  Value* const partial = static_cast<Value*>(memory.get());
  if (blocks == 0) {
    // Nothing to launch.
  } else if constexpr (staging<Exec>::scratch == Scratch::cached) {
    Kokkos::parallel_for(
        where, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, blocks),
        impl::ReduceDirect<Exec, Reducer, F, typename In::non_const_value_type...>{block, partial});
  } else if constexpr (staging<Exec>::scratch == Scratch::local) {
    const std::size_t bytes = (sizeof(typename In::value_type) + ...);
    // Each begins at a line; the value takes some, too.
    const std::size_t buffers = sizeof...(In) + 2 + sizeof(Value) / impl::dma_line;
    using Kernel = impl::ReduceStaged<Exec, Reducer, F, typename In::non_const_value_type...>;
    const std::size_t tile = impl::tile_elements<Kernel>(where, exec, bytes, buffers, elements);
    auto policy = impl::teams_of_one(where, exec, blocks);
    policy.set_scratch_size(0, Kokkos::PerTeam(tile * bytes + buffers * impl::dma_line));
    Kokkos::parallel_for(where, policy, Kernel{block, partial, tile});
  }
  Value value;
  reducer.init(value);
  const auto join = [&](const Value* partials) {
    exec.fence("heddle::kernel::reduce");
    for (std::size_t b = 0; b < blocks; ++b) reducer.join(value, partials[b]);
  };
  using Partials = Vector<const Value, Exec>;
  if constexpr (reachable_from<Partials, Kokkos::DefaultHostExecutionSpace>) {
    join(partial);
  } else {
    const Partials there(partial, blocks);
    const auto partials = host_mirror(there);
    Kokkos::deep_copy(exec, partials, there);
    join(partials.data());
  }
  if constexpr (reachable_from<typename Reducer::result_view_type,
                               Kokkos::DefaultHostExecutionSpace>) {
    reducer.reference() = value;
  } else {
    Kokkos::deep_copy(exec, reducer.view(), value);
    exec.fence("heddle::kernel::reduce");
  }
}

}  // namespace heddle::inline v0::kernel
