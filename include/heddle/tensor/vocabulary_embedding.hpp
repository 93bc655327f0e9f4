// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The embedding of tokens with the token table divided along a TensorLine: each rank has the rows
/// of a share of the vocabulary, which need not divide, and all of the position table. Shapes as in
/// kernel/embedding.hpp, `room` as in parallel_linear.hpp.
///
/// A rank that has some tokens of each sequence gives their `positions`: the row of the position
/// table for each column of the tokens. Several columns may have one position, as in sequences that
/// are packed into one row. Without `positions` column j is position j, and the table has as many
/// rows as the tokens have columns.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/embedding.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/tensor_line.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The rows of the position table for the columns of the tokens.
template <kernel::ExecutionSpace Exec>
struct PositionRows {
  kernel::Vector<const std::size_t, Exec> positions;  // empty: each column is its own position
  [[nodiscard]] KOKKOS_FUNCTION std::size_t of(std::size_t column) const {
    return positions.extent(0) == 0 ? column : positions(column);
  }
};

/// Adds the gradients of each column of the tokens to those of its position.
template <kernel::ExecutionSpace Exec, class Real>
struct VocabularyEmbeddingBackwardPosition {
  kernel::Matrix<const Real, Exec> output_grad;
  kernel::Matrix<Real, Exec> position_table_grad;
  std::size_t sequences, columns;
  PositionRows<Exec> position_rows;
  KOKKOS_FUNCTION void operator()(std::size_t column, std::size_t j) const {
    Real sum = 0;
    for (std::size_t sequence = 0; sequence < sequences; ++sequence)
      sum += output_grad(sequence * columns + column, j);
    position_table_grad(position_rows.of(column), j) += sum;
  }
};

/// The same if several columns of the tokens may have one position. An index computes
/// columns_per_index columns of the gradient and visits the columns of the tokens in order, so that
/// no two indices write the same element.
template <kernel::ExecutionSpace Exec, class Real>
struct VocabularyEmbeddingBackwardPositions {
  VocabularyEmbeddingBackwardPosition<Exec, Real> add;
  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    constexpr std::size_t width = kernel::impl::columns_per_index<Exec>;
    const std::size_t first = index * width, all = add.output_grad.extent(1);
    const std::size_t last = first + width < all ? first + width : all;
    for (std::size_t column = 0; column < add.columns; ++column)
      for (std::size_t j = first; j < last; ++j) add(column, j);
  }
};

/// Checks the position table, or its gradient. That the positions are below its rows, the caller
/// checks.
template <class Table, class Positions>
void expect_position_table(const char* where, const char* name, const Table& table,
                           const Positions& positions, std::size_t columns, std::size_t width) {
  const bool some = positions.extent(0) > 0;
  if (some) kernel::impl::expect_shape(where, "positions", positions, columns);
  kernel::impl::expect_shape(where, name, table, some ? table.extent(0) : columns, width);
}

/// This rank's term of the sum: rows of tokens that it has, and the positions where `leads`.
template <kernel::ExecutionSpace Exec, class Real, class Token>
struct VocabularyEmbedding {
  kernel::Matrix<const Token, Exec> tokens;
  Share own;
  kernel::Matrix<const Real, Exec> token_table, position_table;
  PositionRows<Exec> position_rows;
  bool leads;
  kernel::Matrix<Real, Exec> output;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    const std::size_t sequence = row / tokens.extent(1), at = row % tokens.extent(1);
    const std::size_t token = tokens(sequence, at) - own.first;  // wraps where it is below
    Real value = leads ? position_table(position_rows.of(at), column) : Real(0);
    if (token < own.count) value += token_table(token, column);
    output(row, column) = value;
  }
};

/// Computes columns_per_index columns and visits all tokens in order, like the kernel that is not
/// divided.
template <kernel::ExecutionSpace Exec, class Real, class Token>
struct VocabularyEmbeddingBackward {
  kernel::Matrix<const Token, Exec> tokens;
  Share own;
  kernel::Matrix<const Real, Exec> output_grad;
  kernel::Matrix<Real, Exec> token_table_grad;
  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    constexpr std::size_t width = kernel::impl::columns_per_index<Exec>;
    const std::size_t first = index * width;
    const std::size_t columns = output_grad.extent(1);
    const std::size_t last = first + width < columns ? first + width : columns;
    for (std::size_t row = 0; row < output_grad.extent(0); ++row) {
      const std::size_t token = tokens(row / tokens.extent(1), row % tokens.extent(1)) - own.first;
      if (token >= own.count) continue;
      for (std::size_t j = first; j < last; ++j) token_table_grad(token, j) += output_grad(row, j);
    }
  }
};

}  // namespace impl

/// output (n x width): this rank's rows of the sum over the ranks of the rows of tokens that each
/// has, `own` of the vocabulary in token_table (own.count x width), and of the positions, which the
/// first rank adds. One sum(), in `room` (N x width). Tokens below the size of the vocabulary, and
/// positions below the rows of the table: the caller checks it.
template <class Real, class Exec, kernel::impl::TokensOn<Exec> Tokens>
void vocabulary_embedding_forward(
    const TensorLine<Real, Exec>& line, const Exec& exec, const Tokens& tokens, const Share& own,
    const typename TensorLine<Real, Exec>::Input& token_table,
    const typename TensorLine<Real, Exec>::Input& position_table,
    const typename TensorLine<Real, Exec>::Matrix& room,
    const typename TensorLine<Real, Exec>::Matrix& output,
    const std::type_identity_t<kernel::Vector<const std::size_t, Exec>>& positions = {}) {
  using Token = typename Tokens::non_const_value_type;
  constexpr const char* where = "heddle::tensor::vocabulary_embedding_forward";
  if (line.size() == 1 && positions.extent(0) == 0)
    return kernel::embedding_forward(exec, tokens, token_table, position_table, output);
  const auto term = line.term(room, output);
  const std::size_t width = term.extent(1);
  kernel::impl::expect_shape(where, "output", term, tokens.extent(0) * tokens.extent(1), width);
  kernel::impl::expect_shape(where, "token_table", token_table, own.count, width);
  impl::expect_position_table(where, "position_table", position_table, positions, tokens.extent(1),
                              width);
  kernel::impl::for_each_element(
      where, exec, term.extent(0), width,
      impl::VocabularyEmbedding<Exec, Real, Token>{
          tokens, own, token_table, position_table, {positions}, line.leads(), term});
  line.sum(exec, room, output);
}

/// Adds each row of output_grad (n x width) to the gradient row of its token, if this rank has it,
/// and of its position, which every rank has. The call needs one gather() with `room` (N x width).
/// The order of the sums is that of kernel::embedding_backward_weight().
template <class Real, class Exec, kernel::impl::TokensOn<Exec> Tokens>
void vocabulary_embedding_backward_weight(
    const TensorLine<Real, Exec>& line, const Exec& exec, const Tokens& tokens, const Share& own,
    const typename TensorLine<Real, Exec>::Input& output_grad,
    const typename TensorLine<Real, Exec>::Matrix& room,
    const typename TensorLine<Real, Exec>::Matrix& token_table_grad,
    const typename TensorLine<Real, Exec>::Matrix& position_table_grad,
    const std::type_identity_t<kernel::Vector<const std::size_t, Exec>>& positions = {}) {
  using Token = typename Tokens::non_const_value_type;
  constexpr const char* where = "heddle::tensor::vocabulary_embedding_backward_weight";
  constexpr std::size_t block = kernel::impl::columns_per_index<Exec>;
  if (line.size() == 1 && positions.extent(0) == 0)
    return kernel::embedding_backward_weight(exec, tokens, output_grad, token_table_grad,
                                             position_table_grad);
  const auto all = line.gather(exec, output_grad, room);
  const std::size_t width = all.extent(1);
  kernel::impl::expect_shape(where, "output_grad", all, tokens.extent(0) * tokens.extent(1), width);
  kernel::impl::expect_shape(where, "token_table_grad", token_table_grad, own.count, width);
  impl::expect_position_table(where, "position_table_grad", position_table_grad, positions,
                              tokens.extent(1), width);
  Kokkos::parallel_for(
      where,
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0,
                                                                (width + block - 1) / block),
      impl::VocabularyEmbeddingBackward<Exec, Real, Token>{tokens, own, all, token_table_grad});
  const impl::VocabularyEmbeddingBackwardPosition<Exec, Real> add{
      all, position_table_grad, tokens.extent(0), tokens.extent(1), {positions}};
  constexpr const char* label = "heddle::tensor::vocabulary_embedding_backward_weight_position";
  if (positions.extent(0) == 0)
    kernel::impl::for_each_element(label, exec, tokens.extent(1), width, add);
  else
    Kokkos::parallel_for(label,
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(
                             exec, 0, (width + block - 1) / block),
                         impl::VocabularyEmbeddingBackwardPositions<Exec, Real>{add});
}

}  // namespace heddle::inline v0
