// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The matrix product as a Kokkos team kernel: runs on every execution space without a BLAS.
/// `gemm` in linalg.hpp falls back to it; call it directly to compare or to avoid a library.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/transpose.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

/// op(A) by its strides: a transposed operand is the same memory with the two strides exchanged.
template <class Real>
struct Operand {
  const Real* data;
  std::size_t row_stride;
  std::size_t column_stride;

  template <class View>
  Operand(const View& view, Transpose transpose)
      : data(view.data()),
        row_stride(transpose == Transpose::yes ? 1 : view.stride(0)),
        column_stride(transpose == Transpose::yes ? view.stride(0) : 1) {}

  KOKKOS_FUNCTION Real operator()(std::size_t row, std::size_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

/// One team computes one tile of C. Tiles of A, B and the sums lie in
/// team scratch (12 KiB in float, 24 KiB in double; the host's limit is 32 KiB, a device's 48 KiB
/// or more); a thread keeps 4 x 8 sums in registers while it runs along the depth of a tile.
template <ExecutionSpace Exec, class Real>
struct TeamGemm {
  static constexpr std::size_t tile_rows = 32, tile_columns = 32, tile_depth = 32;
  static constexpr std::size_t micro_rows = 4, micro_columns = 8;
  static constexpr std::size_t scratch_elements =
      tile_rows * tile_depth + tile_depth * tile_columns + tile_rows * tile_columns;
  using Policy = Kokkos::TeamPolicy<Exec>;
  using Member = typename Policy::member_type;

  Operand<Real> a, b;
  Matrix<Real, Exec> c;
  Real alpha, beta;
  std::size_t depth;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::size_t across = (c.extent(1) + tile_columns - 1) / tile_columns;
    const std::size_t row = team.league_rank() / across * tile_rows;
    const std::size_t column = team.league_rank() % across * tile_columns;
    auto* const scratch =
        static_cast<Real*>(team.team_scratch(0).get_shmem(scratch_elements * sizeof(Real)));
    Real* const tile_a = scratch;  // [depth][row], so that a micro tile's rows are adjacent
    Real* const tile_b = tile_a + tile_rows * tile_depth;   // [depth][column]
    Real* const sums = tile_b + tile_depth * tile_columns;  // [row][column]

    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, tile_rows * tile_columns),
                         [&](std::size_t e) { sums[e] = 0; });
    for (std::size_t k = 0; k < depth; k += tile_depth) {
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, tile_depth * tile_rows),
                           [&](std::size_t e) {
                             const std::size_t i = row + e % tile_rows, l = k + e / tile_rows;
                             tile_a[e] = i < c.extent(0) && l < depth ? a(i, l) : Real(0);
                           });
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, tile_depth * tile_columns),
                           [&](std::size_t e) {
                             const std::size_t j = column + e % tile_columns;
                             const std::size_t l = k + e / tile_columns;
                             tile_b[e] = j < c.extent(1) && l < depth ? b(l, j) : Real(0);
                           });
      team.team_barrier();
      constexpr std::size_t micro_across = tile_columns / micro_columns;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, tile_rows / micro_rows * micro_across),
                           [&](std::size_t e) {
                             const std::size_t i = e / micro_across * micro_rows;
                             const std::size_t j = e % micro_across * micro_columns;
                             add_micro_tile(tile_a + i, tile_b + j, sums + i * tile_columns + j);
                           });
      team.team_barrier();
    }
    team.team_barrier();
    Kokkos::parallel_for(
        Kokkos::TeamVectorRange(team, tile_rows * tile_columns), [&](std::size_t e) {
          const std::size_t i = row + e / tile_columns, j = column + e % tile_columns;
          if (i >= c.extent(0) || j >= c.extent(1)) return;
          // beta == 0 overwrites: what C held may be uninitialised, even a NaN.
          c(i, j) = alpha * sums[e] + (beta == Real(0) ? Real(0) : beta * c(i, j));
        });
  }

  KOKKOS_FUNCTION static void add_micro_tile(const Real* tile_a, const Real* tile_b, Real* sums) {
    Real sum[micro_rows][micro_columns] = {};
    for (std::size_t l = 0; l < tile_depth; ++l)
      for (std::size_t i = 0; i < micro_rows; ++i)
        for (std::size_t j = 0; j < micro_columns; ++j)
          sum[i][j] += tile_a[l * tile_rows + i] * tile_b[l * tile_columns + j];
    for (std::size_t i = 0; i < micro_rows; ++i)
      for (std::size_t j = 0; j < micro_columns; ++j) sums[i * tile_columns + j] += sum[i][j];
  }
};

/// The shapes of a product, checked: C is rows x columns, the sums run over depth.
struct GemmShape {
  std::size_t rows, columns, depth;
};

template <class A, class B, class C>
[[nodiscard]] GemmShape gemm_shape(const char* where, Transpose transpose_a, Transpose transpose_b,
                                   const A& a, const B& b, const C& c) {
  const bool ta = transpose_a == Transpose::yes, tb = transpose_b == Transpose::yes;
  const GemmShape shape{a.extent(ta ? 1 : 0), b.extent(tb ? 0 : 1), a.extent(ta ? 0 : 1)};
  const std::size_t depth_b = b.extent(tb ? 1 : 0);
  expects(shape.depth == depth_b && shape.rows == c.extent(0) && shape.columns == c.extent(1), [&] {
    return Complaint{where, "the shapes of A, B and C do not fit",
                     text("A is ", shape_text(a), " ", transpose_a, ", B is ", shape_text(b), " ",
                          transpose_b, ", C is ", shape_text(c)),
                     "op(A) must be m x k, op(B) k x n and C m x n"};
  });
  return shape;
}

}  // namespace impl

/// C = alpha op(A) op(B) + beta C. With beta == 0, C is written without being read.
/// Order of a sum: depth in blocks of 32, ascending inside a block and over the blocks.
/// Error per element: at most (k + 2) eps (|alpha| |op(A)| |op(B)| + |beta C|).
/// Stream order: queued in `exec`; returns without waiting.
template <ExecutionSpace Exec, MatrixOn<Exec> C>
void team_gemm(const Exec& exec, Transpose transpose_a, Transpose transpose_b, element<C> alpha,
               Matrix<const std::type_identity_t<element<C>>, Exec> a,
               Matrix<const std::type_identity_t<element<C>>, Exec> b, element<C> beta,
               const C& c) {
  using Real = element<C>;
  using Kernel = impl::TeamGemm<Exec, Real>;
  const auto shape =
      impl::gemm_shape("heddle::kernel::team_gemm", transpose_a, transpose_b, a, b, c);
  if (shape.rows == 0 || shape.columns == 0) return;
  const std::size_t teams = ((shape.rows + Kernel::tile_rows - 1) / Kernel::tile_rows) *
                            ((shape.columns + Kernel::tile_columns - 1) / Kernel::tile_columns);
  auto policy = typename Kernel::Policy(exec, static_cast<int>(teams), Kokkos::AUTO);
  // 8 bytes more: the scratch is handed out from an 8-byte boundary.
  policy.set_scratch_size(0, Kokkos::PerTeam(Kernel::scratch_elements * sizeof(Real) + 8));
  Kokkos::parallel_for("heddle::kernel::team_gemm", policy,
                       Kernel{{a, transpose_a}, {b, transpose_b}, c, alpha, beta, shape.depth});
}

}  // namespace heddle::inline v0::kernel
