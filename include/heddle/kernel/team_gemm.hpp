// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The matrix product as a Kokkos team kernel, which runs on every execution space without a BLAS.
/// `gemm` in linalg.hpp uses it if there is no library. Call it directly for comparisons, or to
/// avoid a library.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/impl/gemm_operand.hpp>
#include <heddle/kernel/impl/host_gemm.hpp>
#include <heddle/kernel/transpose.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

/// For devices and core groups: one team computes one tile of C. Tiles of A, B and the sums lie in
/// team scratch (12 KiB in float, 24 KiB in double; a device has 48 KiB or more); a thread keeps
/// 4 x 8 sums in registers while it runs along the depth of a tile.
template <ExecutionSpace Exec, class Real>
struct TeamGemm {
  static constexpr std::size_t edge = 32;  // of every tile, in rows, columns and depth
  static constexpr std::size_t tile = edge * edge;
  static constexpr std::size_t micro_rows = 4, micro_columns = 8;
  using Policy = Kokkos::TeamPolicy<Exec>;
  using Member = typename Policy::member_type;

  Operand<Real> a_transposed;  // depth x rows, so that the rows of a micro tile are adjacent
  Operand<Real> b;             // depth x columns
  Matrix<Real, Exec> c;
  Real alpha, beta;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::size_t across = (c.extent(1) + edge - 1) / edge;
    const auto tile_number = static_cast<std::size_t>(team.league_rank());
    const std::size_t row = tile_number / across * edge;
    const std::size_t column = tile_number % across * edge;
    auto* const tile_a =
        static_cast<Real*>(team.team_scratch(0).get_shmem(3 * tile * sizeof(Real)));
    Real* const tile_b = tile_a + tile;
    Real* const sums = tile_b + tile;  // [row][column]

    // Ranges take their end by reference, and on a device a static constant has no address.
    const std::size_t elements = tile;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, elements),
                         [=](std::size_t e) { sums[e] = 0; });
    for (std::size_t k = 0; k < b.rows; k += edge) {
      load(team, a_transposed, k, row, tile_a);
      load(team, b, k, column, tile_b);
      team.team_barrier();
      constexpr std::size_t micro_across = edge / micro_columns;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, edge / micro_rows * micro_across),
                           [=](std::size_t e) {
                             const std::size_t i = e / micro_across * micro_rows;
                             const std::size_t j = e % micro_across * micro_columns;
                             add_micro_tile(tile_a + i, tile_b + j, sums + i * edge + j);
                           });
      team.team_barrier();
    }
    team.team_barrier();
    const Matrix<Real, Exec> to = c;
    const Real factor = alpha, keep = beta;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, elements), [=](std::size_t e) {
      const std::size_t i = row + e / edge, j = column + e % edge;
      if (i >= to.extent(0) || j >= to.extent(1)) return;
      // beta == 0 overwrites: what C held may be uninitialised, even a NaN.
      to(i, j) = factor * sums[e] + (keep == Real(0) ? Real(0) : keep * to(i, j));
    });
  }

  /// to[p][q] = from(first + p, second + q), zero beyond the operand. Reads along its memory.
  KOKKOS_FUNCTION static void load(const Member& team, const Operand<Real>& from, std::size_t first,
                                   std::size_t second, Real* to) {
    const std::size_t rows = inside(first, from.rows), columns = inside(second, from.columns);
    const bool along_rows = from.column_stride == 1;
    const std::size_t outer = along_rows ? rows : columns, inner = along_rows ? columns : rows;
    const std::size_t stride = along_rows ? from.row_stride : from.column_stride;
    const std::size_t to_outer = along_rows ? edge : 1, to_inner = along_rows ? 1 : edge;
    const Real* const start = from.data + first * from.row_stride + second * from.column_stride;
    const std::size_t lines = edge;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lines), [=](std::size_t o) {
      const std::size_t valid = o < outer ? inner : 0;
      const Real* const line = start + o * stride;
      Real* const to_line = to + o * to_outer;
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, valid),
                           [=](std::size_t i) { to_line[i * to_inner] = line[i]; });
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, edge - valid),
                           [=](std::size_t i) { to_line[(valid + i) * to_inner] = 0; });
    });
  }

  KOKKOS_FUNCTION static std::size_t inside(std::size_t first, std::size_t size) {
    return size - first < edge ? size - first : edge;
  }

  KOKKOS_FUNCTION static void add_micro_tile(const Real* left, const Real* right, Real* sums) {
    Real sum[micro_rows][micro_columns] = {};
    for (std::size_t l = 0; l < edge; ++l)
      for (std::size_t i = 0; i < micro_rows; ++i)
        for (std::size_t j = 0; j < micro_columns; ++j)
          sum[i][j] += left[l * edge + i] * right[l * edge + j];
    for (std::size_t i = 0; i < micro_rows; ++i)
      for (std::size_t j = 0; j < micro_columns; ++j) sums[i * edge + j] += sum[i][j];
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
    return ErrorInfo{where, "the shapes of A, B and C do not fit",
                     text("A is ", shape_text(a), " ", transpose_a, ", B is ", shape_text(b), " ",
                          transpose_b, ", C is ", shape_text(c)),
                     "op(A) must be m x k, op(B) k x n and C m x n"};
  });
  return shape;
}

}  // namespace impl

/// Computes C = alpha op(A) op(B) + beta C. If beta == 0, C is written without being read. A sum is
/// computed in blocks of the depth, in ascending order within a block and over the blocks. Blocks
/// have 32 terms on devices; on hosts they have equal sizes of at most 128. The error of an element
/// is at most (k + 2) eps (|alpha| |op(A)| |op(B)| + |beta C|). The kernel is queued in `exec`, and
/// the call returns without waiting.
template <ExecutionSpace Exec, MatrixOn<Exec> C>
void team_gemm(const Exec& exec, Transpose transpose_a, Transpose transpose_b, element<C> alpha,
               Matrix<const std::type_identity_t<element<C>>, Exec> a,
               Matrix<const std::type_identity_t<element<C>>, Exec> b, element<C> beta,
               const C& c) {
  using Real = element<C>;
  const auto shape =
      impl::gemm_shape("heddle::kernel::team_gemm", transpose_a, transpose_b, a, b, c);
  if (shape.rows == 0 || shape.columns == 0) return;
  const impl::Operand<Real> left(a, transpose_a == Transpose::no);
  const impl::Operand<Real> right(b, transpose_b == Transpose::yes);
  if constexpr (runs_on_host<Exec>) {
    const impl::HostGemm<Exec, Real> kernel(left, right, c, alpha, beta);
    Kokkos::parallel_for("heddle::kernel::team_gemm", kernel.policy(exec), kernel);
  } else {
    using Kernel = impl::TeamGemm<Exec, Real>;
    const std::size_t teams = ((shape.rows + Kernel::edge - 1) / Kernel::edge) *
                              ((shape.columns + Kernel::edge - 1) / Kernel::edge);
    auto policy = typename Kernel::Policy(exec, static_cast<int>(teams), Kokkos::AUTO);
    // 8 bytes more: the scratch is handed out from an 8-byte boundary.
    policy.set_scratch_size(0, Kokkos::PerTeam(3 * Kernel::tile * sizeof(Real) + 8));
    Kokkos::parallel_for("heddle::kernel::team_gemm", policy, Kernel{left, right, c, alpha, beta});
  }
}

}  // namespace heddle::inline v0::kernel
