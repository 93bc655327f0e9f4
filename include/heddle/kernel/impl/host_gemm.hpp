// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The team kernel of the matrix product for the cores of the host. For team_gemm.hpp.

#include <algorithm>
#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/impl/gemm_operand.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// `size` cut into as few parts as `most` allows, all but the last equal and a multiple of `unit`.
struct EvenParts {
  std::size_t size, part, count;

  EvenParts(std::size_t whole, std::size_t most, std::size_t unit) : size(whole), part(0) {
    const std::size_t parts = std::max<std::size_t>(1, (whole + most - 1) / most);
    part = std::max(unit, ((whole + parts - 1) / parts + unit - 1) / unit * unit);
    count = std::max<std::size_t>(1, (whole + part - 1) / part);
  }

  [[nodiscard]] std::size_t first(std::size_t index) const { return index * part; }
  [[nodiscard]] std::size_t length(std::size_t index) const {
    return std::min(part, size - first(index));
  }
};

/// One team of one thread computes one tile of C. For a block of the depth it packs op(A) and op(B)
/// into panels as wide as a micro tile, so that the innermost loop runs along memory, then adds
/// their product to C, one micro tile of sums in registers at a time.
template <ExecutionSpace Exec, class Real>
struct HostGemm {
  // 4 x 24 sums fill the vector registers of SSE2, AVX2 and AVX-512 well. A loop of 24 is also too
  // long for g++ to unroll before it has vectorised it; with 8 or 16 columns it loses most of this.
  static constexpr std::size_t micro_rows = 4, micro_columns = 24;
  // In double a panel of B (24 KiB) fits into the level-1 cache, both tiles (456 KiB) into level 2.
  static constexpr std::size_t most_rows = 192, most_columns = 264, most_depth = 128;
  using Policy = Kokkos::TeamPolicy<Exec>;
  using Member = typename Policy::member_type;

  Operand<Real> a_transposed;  // depth x rows, so that the rows of a micro tile are adjacent
  Operand<Real> b;             // depth x columns
  Matrix<Real, Exec> c;
  Real alpha, beta;
  EvenParts down, across, deep;

  HostGemm(const Operand<Real>& left, const Operand<Real>& right, const Matrix<Real, Exec>& to,
           Real factor, Real keep)
      : a_transposed(left),
        b(right),
        c(to),
        alpha(factor),
        beta(keep),
        down(left.columns, most_rows, micro_rows),
        across(right.columns, most_columns, micro_columns),
        deep(right.rows, most_depth, 1) {}

  [[nodiscard]] Policy policy(const Exec& exec) const {
    // More than level 0 holds. 8 bytes more: the scratch is handed out from an 8-byte boundary.
    return Policy(exec, static_cast<int>(down.count * across.count), 1)
        .set_scratch_size(
            1, Kokkos::PerTeam((down.part + across.part) * deep.part * sizeof(Real) + 8));
  }

  void operator()(const Member& team) const {
    const auto tile = static_cast<std::size_t>(team.league_rank());
    const std::size_t row = down.first(tile / across.count);
    const std::size_t rows = down.length(tile / across.count);
    const std::size_t column = across.first(tile % across.count);
    const std::size_t columns = across.length(tile % across.count);
    auto* const panels_a = static_cast<Real*>(
        team.team_scratch(1).get_shmem((down.part + across.part) * deep.part * sizeof(Real)));
    Real* const panels_b = panels_a + down.part * deep.part;
    for (std::size_t block = 0; block < deep.count; ++block) {
      const std::size_t first = deep.first(block), depth = deep.length(block);
      pack<micro_rows>(a_transposed, first, depth, row, rows, panels_a);
      pack<micro_columns>(b, first, depth, column, columns, panels_b);
      for (std::size_t j = 0; j < columns; j += micro_columns)
        for (std::size_t i = 0; i < rows; i += micro_rows) {
          Real sums[micro_rows * micro_columns];
          multiply(panels_a + i * depth, panels_b + j * depth, depth, sums);
          add(sums, block == 0 ? beta : Real(1), row + i, std::min(micro_rows, rows - i),
              column + j, std::min(micro_columns, columns - j));
        }
    }
  }

  /// Panels of `width` columns of from(first.., column..), one after the other, each row by row;
  /// the last is filled up with zeros. Reads along the operand's memory.
  template <std::size_t width>
  static void pack(const Operand<Real>& from, std::size_t first, std::size_t depth,
                   std::size_t column, std::size_t columns, Real* to) {
    for (std::size_t done = 0; done < columns; done += width, to += width * depth) {
      const std::size_t valid = std::min(width, columns - done);
      const Real* const start =
          from.data + first * from.row_stride + (column + done) * from.column_stride;
      if (valid < width) std::fill(to, to + width * depth, Real(0));
      if (from.column_stride == 1)
        for (std::size_t l = 0; l < depth; ++l)
          for (std::size_t j = 0; j < valid; ++j)
            to[l * width + j] = start[l * from.row_stride + j];
      else
        for (std::size_t j = 0; j < valid; ++j)
          for (std::size_t l = 0; l < depth; ++l)
            to[l * width + j] = start[l + j * from.column_stride];
    }
  }

  /// sums = left^T right. A local array: the compiler holds it in registers.
  static void multiply(const Real* left, const Real* right, std::size_t depth, Real* sums) {
    Real sum[micro_rows][micro_columns] = {};
    for (std::size_t l = 0; l < depth; ++l)
      for (std::size_t i = 0; i < micro_rows; ++i)
        for (std::size_t j = 0; j < micro_columns; ++j)
          sum[i][j] += left[l * micro_rows + i] * right[l * micro_columns + j];
    for (std::size_t i = 0; i < micro_rows; ++i)
      for (std::size_t j = 0; j < micro_columns; ++j) sums[i * micro_columns + j] = sum[i][j];
  }

  /// C = alpha sums + keep C, where the micro tile lies inside C.
  void add(const Real* sums, Real keep, std::size_t row, std::size_t rows, std::size_t column,
           std::size_t columns) const {
    for (std::size_t i = 0; i < rows; ++i, sums += micro_columns) {
      Real* const to = &c(row + i, column);
      // beta == 0 overwrites: what C held may be uninitialised, even a NaN.
      if (keep == Real(0))
        for (std::size_t j = 0; j < columns; ++j) to[j] = alpha * sums[j];
      else
        for (std::size_t j = 0; j < columns; ++j) to[j] = alpha * sums[j] + keep * to[j];
    }
  }
};

}  // namespace heddle::inline v0::kernel::impl
