// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The embedding of tokens: output row = row of the token's table + row of the position's table.
/// Tokens are sequences x context; output rows are numbered sequence * context + position.

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

namespace impl {

/// A row-major matrix of token numbers that kernels of `Exec` can read.
template <class View, class Exec>
concept TokensOn =
    ExecutionSpace<Exec> && Kokkos::is_view_v<View> && View::rank == 2 &&
    std::is_same_v<typename View::array_layout, Kokkos::LayoutRight>&&
        std::unsigned_integral<typename View::non_const_value_type>&& reachable_from<View, Exec>;

template <ExecutionSpace Exec, class Real, class Token>
struct EmbeddingForward {
  Matrix<const Token, Exec> tokens;
  Matrix<const Real, Exec> token_table, position_table;
  Matrix<Real, Exec> output;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    const std::size_t sequence = row / tokens.extent(1), position = row % tokens.extent(1);
    output(row, column) =
        token_table(tokens(sequence, position), column) + position_table(position, column);
  }
};

/// Owns columns_per_index columns and walks all tokens in order: no two indices write the same
/// element, so the sum needs no atomics and has one order.
template <ExecutionSpace Exec, class Real, class Token>
struct EmbeddingBackwardToken {
  Matrix<const Token, Exec> tokens;
  Matrix<const Real, Exec> output_grad;
  Matrix<Real, Exec> token_table_grad;
  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    constexpr std::size_t width = columns_per_index<Exec>;
    const std::size_t first = index * width;
    const std::size_t columns = output_grad.extent(1);
    const std::size_t last = first + width < columns ? first + width : columns;
    for (std::size_t row = 0; row < output_grad.extent(0); ++row) {
      const std::size_t token = tokens(row / tokens.extent(1), row % tokens.extent(1));
      for (std::size_t j = first; j < last; ++j) token_table_grad(token, j) += output_grad(row, j);
    }
  }
};

template <ExecutionSpace Exec, class Real>
struct EmbeddingBackwardPosition {
  Matrix<const Real, Exec> output_grad;
  Matrix<Real, Exec> position_table_grad;
  std::size_t sequences, context;
  KOKKOS_FUNCTION void operator()(std::size_t position, std::size_t column) const {
    Real sum = 0;
    for (std::size_t sequence = 0; sequence < sequences; ++sequence)
      sum += output_grad(sequence * context + position, column);
    position_table_grad(position, column) += sum;
  }
};

}  // namespace impl

/// Computes for each token the sum of its row of the token table and the row of its position. Every
/// token must be below the rows of `token_table`; the caller checks this on the host, where the
/// tokens come from. The kernel is queued in `exec`. Tokens have no gradient, so there is no
/// backward_input.
template <ExecutionSpace Exec, impl::TokensOn<Exec> Tokens, MatrixOn<Exec> Output>
void embedding_forward(const Exec& exec, const Tokens& tokens,
                       Matrix<const std::type_identity_t<element<Output>>, Exec> token_table,
                       Matrix<const std::type_identity_t<element<Output>>, Exec> position_table,
                       const Output& output) {
  using Token = typename Tokens::non_const_value_type;
  constexpr const char* where = "heddle::kernel::embedding_forward";
  const std::size_t width = output.extent(1);
  impl::expect_shape(where, "output", output, tokens.extent(0) * tokens.extent(1), width);
  impl::expect_shape(where, "token_table", token_table, token_table.extent(0), width);
  impl::expect_shape(where, "position_table", position_table, tokens.extent(1), width);
  impl::for_each_element(where, exec, output.extent(0), width,
                         impl::EmbeddingForward<Exec, element<Output>, Token>{
                             tokens, token_table, position_table, output});
}

/// Adds each row of output_grad to the gradient rows of its token and of its position. The order of
/// sums is fixed: rows ascend for a token, and sequences ascend for a position. The kernel is
/// queued in `exec`.
template <ExecutionSpace Exec, impl::TokensOn<Exec> Tokens, MatrixOn<Exec> TableGrad>
void embedding_backward_weight(
    const Exec& exec, const Tokens& tokens,
    Matrix<const std::type_identity_t<element<TableGrad>>, Exec> output_grad,
    const TableGrad& token_table_grad,
    Matrix<std::type_identity_t<element<TableGrad>>, Exec> position_table_grad) {
  using Token = typename Tokens::non_const_value_type;
  using Real = element<TableGrad>;
  constexpr const char* where = "heddle::kernel::embedding_backward_weight";
  constexpr std::size_t block = impl::columns_per_index<Exec>;
  const std::size_t width = token_table_grad.extent(1);
  impl::expect_shape(where, "output_grad", output_grad, tokens.extent(0) * tokens.extent(1), width);
  impl::expect_shape(where, "position_table_grad", position_table_grad, tokens.extent(1), width);
  Kokkos::parallel_for(
      "heddle::kernel::embedding_backward_weight_token",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0,
                                                                (width + block - 1) / block),
      impl::EmbeddingBackwardToken<Exec, Real, Token>{tokens, output_grad, token_table_grad});
  impl::for_each_element("heddle::kernel::embedding_backward_weight_position", exec,
                         tokens.extent(1), width,
                         impl::EmbeddingBackwardPosition<Exec, Real>{
                             output_grad, position_table_grad, tokens.extent(0), tokens.extent(1)});
}

}  // namespace heddle::inline v0::kernel
