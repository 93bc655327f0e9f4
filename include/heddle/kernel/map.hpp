// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The elementwise pattern: applies one function to the elements of Views of equal shape, of any
/// rank and layout. It replaces a Kokkos::parallel_for over indices. It is also efficient on cores
/// that access memory only by explicit copies.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/device/staging.hpp>
#include <heddle/kernel/impl/index_launch.hpp>
#include <heddle/kernel/impl/sources.hpp>
#include <heddle/kernel/impl/tiles.hpp>
#include <heddle/kernel/internal/walk.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

/// out[j] = f(in[j]...) for a row or a piece of one.
template <class F, class Out, class... In>
struct MapRow {
  F f;
  Walk<1 + sizeof...(In)> walk;
  Out* out;
  Sources<const In...> in;

  KOKKOS_FUNCTION void columns(std::size_t row, std::size_t first, std::size_t count) const {
    const auto start = walk.row(row);
    const auto at = static_cast<std::ptrdiff_t>(first);
    Out* const to = out + start.at[0] + at * walk.step[0];
    const auto from = in.template moved<1>(start.at).template advanced<1>(at, walk.step);
    if (walk.adjacent()) {
      HEDDLE_INDEPENDENT
      for (std::size_t j = 0; j < count; ++j) to[j] = from.call(f, j);
    } else {
      HEDDLE_INDEPENDENT
      for (std::size_t j = 0; j < count; ++j)
        to[static_cast<std::ptrdiff_t>(j) * walk.step[0]] = from.template call<1>(f, j, walk.step);
    }
  }
};

/// One index per piece of a row on host cores, so that the loop over it vectorises; one per element
/// on a GPU, so that neighbouring threads share a memory transaction.
template <ExecutionSpace Exec, class F, class Out, class... In>
struct MapDirect {
  MapRow<F, Out, In...> row;
  std::size_t piece;   ///< columns of a piece
  std::size_t pieces;  ///< pieces of a row

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const auto item = static_cast<std::size_t>(index);
    const std::size_t first = item % pieces * piece, rest = row.walk.columns - first;
    row.columns(item / pieces, first, piece < rest ? piece : rest);
  }
};

/// One team per tile: the inputs come to its scratch, the output goes from there.
template <ExecutionSpace Exec, class F, class Out, class... In>
struct MapStaged {
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  MapRow<F, Out, In...> row;
  std::size_t tile, tiles;  // columns of one; tiles of a row

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto item = static_cast<std::size_t>(team.league_rank());
    const std::size_t first = item % tiles * tile, rest = row.walk.columns - first;
    const std::size_t count = tile < rest ? tile : rest;
    const auto start = row.walk.row(item / tiles);
    const auto at = static_cast<std::ptrdiff_t>(first);

    Out* const to = tile_buffer<Out>(team, tile);
    const Sources<In...> from(tile_buffer<In>(team, tile)...);
    staging<Exec> stage(team);
    fetch_all<1>(stage, from,
                 row.in.template moved<1>(start.at).template advanced<1>(at, row.walk.step), count,
                 row.walk.step);
    HEDDLE_INDEPENDENT
    for (std::size_t j = 0; j < count; ++j) to[j] = from.call(row.f, j);
    const std::ptrdiff_t step = row.walk.step[0];
    store(stage, row.out + start.at[0] + at * step, to, count, step);
    stage.wait();
  }
};

/// Calls `f` for the elements of a walk over memory that begins at `out` and at each `in`.
template <ExecutionSpace Exec, class F, class Out, class... In>
void map_rows(const char* where, const Exec& exec, const F& f, const Walk<1 + sizeof...(In)>& walk,
              Out* out, const In*... in) {
  if (walk.size() == 0) return;
  const MapRow<F, Out, In...> row{f, walk, out, Sources<const In...>(in...)};
  const auto cores = static_cast<std::size_t>(exec.concurrency());
  if constexpr (staging<Exec>::scratch == Scratch::local) {
    using Kernel = MapStaged<Exec, F, Out, In...>;
    const std::size_t bytes = (sizeof(Out) + ... + sizeof(In));
    const std::size_t tile =
        tile_elements<Kernel>(where, exec, bytes, 1 + sizeof...(In), walk.size() / cores + 1);
    const std::size_t tiles = (walk.columns + tile - 1) / tile;
    auto policy = teams_of_one(where, exec, walk.rows * tiles);
    policy.set_scratch_size(0, Kokkos::PerTeam(tile * bytes + (1 + sizeof...(In)) * dma_line));
    Kokkos::parallel_for(where, policy, Kernel{row, tile, tiles});
  } else {
    // A piece per core, of whole cache lines of the smallest elements.
    const std::size_t split = (cores + walk.rows - 1) / walk.rows;
    const std::size_t share = (walk.columns + split - 1) / split;
    const std::size_t piece = runs_on_host<Exec> ? (share + 63) / 64 * 64 : 1;
    const std::size_t pieces = (walk.columns + piece - 1) / piece;
    launch_indices(where, exec, static_cast<std::int64_t>(walk.rows * pieces),
                   MapDirect<Exec, F, Out, In...>{row, piece, pieces});
  }
}

/// A function of one element of each View in `In`. Its result becomes an element of `Out`.
template <class F, class Out, class... In>
concept MapFunctor =
    Kokkos::is_view_v<Out> &&(Kokkos::is_view_v<In>&&...) &&
    std::is_invocable_r_v<typename Out::value_type, const F&, typename In::const_value_type&...>;

}  // namespace impl

/// Computes out(i...) = f(in(i...)...) for every index. The Views have equal shapes, of any rank
/// and layout. `out` may also be one of the inputs; otherwise it must not overlap them. `f` is
/// called once per element, in no particular order. On a space with local memory, each element
/// costs a small transfer if the elements of a View are not adjacent along the fastest axis of
/// `out`. The kernel is queued in `exec`.
/// @throws contract_error if the shapes differ, or if 128 elements of every View do not fit into
///         the local memory of such a space.
template <ExecutionSpace Exec, class F, class Out, class... In>
requires impl::MapFunctor<F, Out, In...>
void map(const Exec& exec, const F& f, const Out& out, const In&... in) {
  constexpr const char* where = "heddle::kernel::map";
  static_assert(reachable_from<Out, Exec> && (reachable_from<In, Exec> && ...),
                "heddle::kernel::map: kernels of the execution space cannot reach a View's memory");
  static_assert(!std::is_const_v<typename Out::value_type>,
                "heddle::kernel::map: the elements of the output are const");
  impl::map_rows(where, exec, f, impl::make_walk(where, out, in...), out.data(),
                 static_cast<const typename In::value_type*>(in.data())...);
}

}  // namespace heddle::inline v0::kernel
