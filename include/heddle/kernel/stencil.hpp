// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The stencil pattern: computes every point of a grid from its neighbourhood.
///
///     struct Average {
///       template <class Neighbourhood>
///       KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
///         return 0.25 * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1));
///       }
///     };
///     stencil(exec, 1, Average{}, next, now);
///
/// It is for solvers on structured grids of any rank that a View can have. The execution space
/// determines how the grid is divided into tiles, and whether the tiles are copied.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/staging.hpp>
#include <heddle/kernel/impl/stencil_kernels.hpp>
#include <heddle/kernel/impl/stencil_plan.hpp>
#include <heddle/kernel/impl/tiles.hpp>
#include <heddle/kernel/impl/window.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

/// Options of a stencil on Views with `Rank` axes and elements of type T.
template <class T, std::size_t Rank>
struct StencilOptions {
  Boundary boundary = Boundary::interior;  ///< the values beyond the edge
  T outside = {};                          ///< the value beyond the edge for Boundary::constant
  /// The number of points of a tile along each axis of the View. If set, tiles of this size are
  /// copied to level-0 scratch on every space. If all are 0, the tile is chosen from the grid, the
  /// radius and the scratch, and is copied only if that is faster.
  std::array<std::size_t, Rank> tile = {};
};

namespace impl {

/// The layouts that a grid may have. LayoutStride is treated as row-major. The elements along the
/// last axis must be adjacent in memory; for LayoutLeft, those along the first axis.
template <class Layout>
concept GridLayout = std::same_as<Layout, Kokkos::LayoutRight> ||
    std::same_as<Layout, Kokkos::LayoutLeft> || std::same_as<Layout, Kokkos::LayoutStride>;

/// A View that a stencil can read or write.
template <class View>
concept GridView =
    Kokkos::is_view_v<View> && View::rank >= 1 && GridLayout<typename View::array_layout>;

/// A function of the neighbourhood of an element of `In`. Its result becomes an element of `Out`.
/// The function must be a template, because the type of the neighbourhood depends on the execution
/// space and the tile.
template <class F, class Out, class In>
concept StencilFunctor = GridView<In> && std::is_invocable_r_v < typename Out::value_type,
        const F&,
        const impl::PlainWindow<typename In::non_const_value_type, In::rank,
                                std::is_same_v<typename In::array_layout, Kokkos::LayoutLeft>>
& > ;

inline constexpr const char* stencil_where = "heddle::kernel::stencil";

/// The part of the caches that a tile may take on hosts: what a core of today's servers has of the
/// last level and of its own. Tiles that stay in the second level alone were up to 1.2 times slower
/// in measurements: their rows are short runs of memory, which are fetched ahead less well.
inline constexpr std::size_t cached_tile_bytes = 2 * 1024 * 1024;

/// The largest radius that a stencil may have. A larger number is a negative one that was
/// converted, or a sum with it would overflow.
inline constexpr std::size_t most_radius = std::size_t{1} << 60;

/// The limits of the bytes that a plan of tiles may move, as multiples of the bytes of the grid.
/// Where tiles are copied into local memory, at most 1.10 is promised, and whole lines at the edges
/// of tiles need the rest. On host cores the limit is higher, because tiles that overlap find what
/// they both read in a shared cache, and more tiles keep all cores busy.
inline constexpr double copied_traffic = 1.08, cached_traffic = 1.5;

template <GridView View>
inline constexpr bool is_left = std::is_same_v<typename View::array_layout, Kokkos::LayoutLeft>;

/// value(axis) for the axes of a View, in the order of memory; `spare` for the plane of a grid of
/// rank 1.
template <class T, GridView View, class Value>
[[nodiscard]] auto by_axis(const View&, T spare, const Value& value) {
  T axis[View::rank];
  for (std::size_t a = 0; a < View::rank; ++a) axis[a] = static_cast<T>(value(a));
  return in_memory_order<is_left<View>>(axis, spare);
}

template <std::size_t Axes>
[[nodiscard]] PerAxis<std::ptrdiff_t, Axes> as_signed(const PerAxis<std::size_t, Axes>& from) {
  PerAxis<std::ptrdiff_t, Axes> to;
  for (std::size_t a = 0; a < Axes; ++a) to[a] = static_cast<std::ptrdiff_t>(from[a]);
  return to;
}

/// Refuses a View whose columns lie apart.
template <GridView View>
void check_columns(const View& view) {
  const std::size_t last = is_left<View> ? 0 : View::rank - 1;
  expects(view.extent(last) <= 1 || view.stride(last) == 1, [&] {
    return ErrorInfo{
        stencil_where, "the elements of a row are not adjacent",
        text(view.label(), " has a stride of ", view.stride(last), " along axis ", last),
        "copy it to a View in LayoutRight"};
  });
}

/// Refuses an output of another shape, or one that overlaps the input.
template <GridView Out, GridView In>
void check_grids(const Out& out, const In& in) {
  bool same = true;
  for (std::size_t axis = 0; axis < Out::rank; ++axis)
    same = same && out.extent(axis) == in.extent(axis);
  expects(same, [&] {
    return ErrorInfo{stencil_where, "input and output have different shapes",
                     text(shape_text(in), " and ", shape_text(out))};
  });
  const auto begin = [](const auto& view) { return reinterpret_cast<std::uintptr_t>(view.data()); };
  const auto end = [&](const auto& view) {
    return begin(view) + view.span() * sizeof(*view.data());
  };
  expects(out.size() == 0 || end(in) <= begin(out) || end(out) <= begin(in), [&] {
    return ErrorInfo{stencil_where, "the output overlaps the input",
                     text(out.label(), " and ", in.label()),
                     "write to another View and exchange the two afterwards"};
  });
}

/// The plan of `tile`, or one that we choose; refused where its tiles do not fit into `bytes`.
template <std::size_t Axes>
[[nodiscard]] StencilPlan<Axes> fitting_plan(const StencilShape<Axes>& shape,
                                             const PerAxis<std::size_t, Axes>& tile, bool chosen,
                                             std::size_t bytes, std::size_t cores,
                                             std::size_t line) {
  const auto plan =
      chosen ? plan_with(shape, tile) : plan_stencil(shape, bytes, cores, line, copied_traffic);
  const std::size_t needed = stencil_bytes(shape, plan.none() ? one_row<Axes>(1) : plan.tile);
  expects(!plan.none() && needed <= bytes, [&] {
    return ErrorInfo{stencil_where,
                     chosen ? "the tile does not fit into level-0 scratch"
                            : "not even a tile of one point fits into level-0 scratch",
                     text("with its neighbourhood it takes ", needed, " bytes of ", bytes),
                     chosen ? "choose a smaller tile" : "use a smaller radius"};
  });
  return plan;
}

}  // namespace impl

/// Computes out(i...) = f(u) for every index. u(d...) is in(i + d...) for distances d up to
/// `radius` along every axis: u(0, 0) is the element itself, and u(-1, 0) is the element before it
/// along the first axis. Beyond the edge, u has the values that `options.boundary` defines. With
/// the default Boundary::interior, the outermost `radius` elements of `out` are not changed; if the
/// radius spans the grid, nothing is written. The Views have equal shapes and the same layout, and
/// do not overlap.
///
/// GPUs and spaces with local memory copy tiles of `in` to level-0 scratch. They copy 2 radius + 1
/// planes of a tile at a time, along the axis with the largest stride. With local memory, no
/// element is loaded directly, except elements of less than 4 bytes. If the scratch holds large
/// enough tiles, at most 1.10 times the minimum of bytes is transferred. Host cores read `in`
/// without a copy, in the order of such tiles. The kernels are queued in `exec`.
/// @throws contract_error if the shapes differ, the Views overlap, the elements of a row are not
///         adjacent, a tile does not fit into the scratch, the radius is above 2^60 and the grid is
///         not empty, or `options.boundary` is none of the enumerators.
template <ExecutionSpace Exec, class F, impl::GridView Out, impl::GridView In>
requires impl::StencilFunctor<F, Out, In>
void stencil(const Exec& exec, std::size_t radius, const F& f, const Out& out, const In& in,
             const StencilOptions<std::type_identity_t<typename In::non_const_value_type>,
                                  static_cast<std::size_t>(In::rank)>& options = {}) {
  static_assert(reachable_from<Out, Exec> && reachable_from<In, Exec>,
                "heddle::kernel::stencil: kernels of the execution space cannot reach a View's "
                "memory");
  static_assert(Out::rank == In::rank && impl::is_left<Out> == impl::is_left<In>,
                "heddle::kernel::stencil: input and output must have the same rank and layout");
  using From = typename In::non_const_value_type;
  using To = typename Out::value_type;
  constexpr std::size_t rank = In::rank, axes = impl::axes_of<rank>;
  constexpr bool left = impl::is_left<In>;
  heddle::impl::expect_enumerator(impl::stencil_where, "boundary", options.boundary,
                                  Boundary::periodic);
  impl::check_columns(in);
  impl::check_columns(out);
  impl::check_grids(out, in);

  using Count = std::size_t;
  const auto extents = impl::by_axis<Count>(in, 1, [&](Count a) { return in.extent(a); });
  const auto radii = impl::by_axis<Count>(in, 0, [&](Count) { return radius; });
  impl::StencilShape<axes> shape{extents, {}, radii, sizeof(From), sizeof(To)};
  if (options.boundary == Boundary::interior) shape.leave_edges();
  if (shape.empty()) return;
  expects(radius <= impl::most_radius, [&] {
    return ErrorInfo{impl::stencil_where, "the radius is too large",
                     text("radius ", radius, ", at most ", impl::most_radius),
                     "pass the largest distance of a neighbour that the function reads"};
  });

  bool chosen = false, complete = true;
  for (const std::size_t length : options.tile)
    chosen = chosen || length > 0, complete = complete && length > 0;
  expects(chosen == complete, [] {
    return ErrorInfo{impl::stencil_where,
                     "the tile has 0 points along an axis",
                     {},
                     "give the number of points along every axis, or along none"};
  });
  const auto tile = impl::by_axis<Count>(in, 1, [&](Count a) { return options.tile[a]; });

  constexpr std::size_t line = impl::dma_line > sizeof(To) ? impl::dma_line / sizeof(To) : 1;
  constexpr Scratch scratch = staging<Exec>::scratch;
  const std::size_t cores = impl::scratch_count(exec);
  const auto grid = [&](const impl::StencilPlan<axes>& plan) {
    const auto first = impl::as_signed(shape.first), count = impl::as_signed(shape.points);
    impl::Box<axes> points;
    for (std::size_t a = 0; a < axes; ++a) points[a] = {first[a], first[a] + count[a]};
    return impl::StencilGrid<axes, F, To, From>{
        f,
        out.data(),
        in.data(),
        impl::as_signed(extents),
        impl::by_axis<std::ptrdiff_t>(in, 0, [&](Count a) { return in.stride(a); }),
        impl::by_axis<std::ptrdiff_t>(out, 0, [&](Count a) { return out.stride(a); }),
        impl::as_signed(radii),
        points,
        options.boundary,
        options.outside,
        impl::as_signed(plan.tile),
        impl::as_signed(plan.count)};
  };
  if constexpr (scratch == Scratch::cached) {
    if (!chosen) {
      // Where no tile is that small, the smallest do.
      auto plan =
          impl::plan_stencil(shape, impl::cached_tile_bytes, cores, line, impl::cached_traffic);
      if (plan.none()) plan = impl::plan_with(shape, impl::one_row<axes>(shape.points[axes - 1]));
      Kokkos::parallel_for(impl::stencil_where,
                           Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(
                               exec, 0, static_cast<std::int64_t>(plan.tiles())),
                           impl::StencilDirect<Exec, rank, left, F, To, From>{grid(plan)});
      return;
    }
  }
  using Kernel = impl::StencilStaged<Exec, rank, left, F, To, From>;
  if (!Kernel::gathers) shape.output_bytes = 0;
  constexpr std::size_t spare = 2 * impl::dma_line;  // to begin both buffers at a line
  const std::size_t bytes = impl::scratch_bytes<Kernel>(exec);
  const auto plan =
      impl::fitting_plan(shape, tile, chosen, bytes > spare ? bytes - spare : 0, cores, line);
  expects(plan.tiles() <= static_cast<std::size_t>(std::numeric_limits<int>::max()), [&] {
    return ErrorInfo{impl::stencil_where, "the call needs more tiles than a league can have teams",
                     text(plan.tiles(), " tiles"), "choose larger tiles"};
  });
  const std::size_t ring = impl::ring_bytes(shape, plan.tile);
  const std::size_t all = impl::stencil_bytes(shape, plan.tile);
  const int league = static_cast<int>(plan.tiles());
  auto policy = scratch == Scratch::shared ? Kokkos::TeamPolicy<Exec>(exec, league, Kokkos::AUTO)
                                           : Kokkos::TeamPolicy<Exec>(exec, league, 1);
  policy.set_scratch_size(0, Kokkos::PerTeam(all + spare));
  Kokkos::parallel_for(impl::stencil_where, policy, Kernel{grid(plan), ring, all - ring});
}

}  // namespace heddle::inline v0::kernel
