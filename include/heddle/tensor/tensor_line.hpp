// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TensorLine: the ranks along which the layers of one stage are divided, and the two ways in which
/// activations travel between them. For stages whose matrices are too large, or too slow, for one
/// rank.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/row_partial.hpp>

namespace heddle::inline v0 {

/// How the rows of an activation lie on a TensorLine outside of the layers that it divides.
enum class RowForm : std::uint8_t {
  whole,    ///< every rank has all rows, and sums are all-reduces (Shoeybi et al., 2019)
  sharded,  ///< every rank has a share of them, which is gathered for a divided layer and left as
            ///< the share of a sum (Korthikanti et al., 2022): as many bytes, less memory
};

/// Ranks that divide layers between them. A divided layer takes all rows of its input, and what it
/// gives is one term of a sum over the ranks; forward and backward alike:
///
///     forward   rows -> gather() -> layers of which each rank has a part -> sum() -> rows
///     backward  rows <- sum()    <- their gradients                      <- gather() <- rows
///
/// Matrices are rows x width, row-major, in the memory of `Exec`. Calls wait for the work of the
/// instance that they are given, and return when what they bring is there. All ranks of the line
/// make the same calls in the same order. A line that is made without a communicator is of one
/// rank: nothing travels, and no call of MPI is made.
///
/// Bytes that rank t of T sends, for m bytes of all rows of which share s has m_s, by the ring of
/// the default options: gather() m - m_(t+1), sum() m - m_t; where m divides, (T - 1) / T m each.
template <std::floating_point Real, kernel::ExecutionSpace Exec>
class TensorLine {
 public:
  using Matrix = kernel::Matrix<Real, Exec>;             ///< a matrix that is written
  using Input = kernel::Matrix<const Real, Exec>;        ///< a matrix that is read
  using Vector = kernel::Vector<Real, Exec>;             ///< likewise, of one dimension
  using InputVector = kernel::Vector<const Real, Exec>;  ///< likewise, to be read

  /// A line of one rank.
  TensorLine() = default;
  /// The ranks of `line`, which outlives this; `DeviceMesh::operator[]` has them for an axis. By an
  /// algorithm of ours unless `options` say otherwise, so that its watchdog sees a rank that does
  /// not come.
  explicit TensorLine(const Communicator& line, RowForm form = RowForm::sharded,
                      CallOptions options = {.algorithm = schedule::Algorithm::ring})
      : m_line(&line), m_form(form), m_options(std::move(options)) {}

  /// Number of ranks, T.
  [[nodiscard]] std::size_t size() const {
    return m_line == nullptr ? 1 : static_cast<std::size_t>(m_line->size());
  }
  /// This rank's number, t.
  [[nodiscard]] std::size_t rank() const { return m_line == nullptr ? 0 : +m_line->rank(); }
  /// Whether this is the rank that adds what must be added once, as the bias of a sum.
  [[nodiscard]] bool leads() const { return rank() == 0; }
  /// Whether rows are divided: there are several ranks, and the form says so.
  [[nodiscard]] bool sharded() const { return size() > 1 && m_form == RowForm::sharded; }

  /// This rank's share of the columns or rows of a layer, or of the classes of a vocabulary.
  [[nodiscard]] Share share(std::size_t count) const { return even_share(count, size(), rank()); }
  /// The rows of an activation that this rank has between divided layers.
  [[nodiscard]] Share rows(std::size_t all) const { return sharded() ? share(all) : Share{0, all}; }

  /// Attention with this rank's heads alone, of which each rank has as many.
  /// @throws contract_error where the ranks do not divide the heads.
  [[nodiscard]] kernel::AttentionShape own_heads(kernel::AttentionShape shape) const {
    expects(shape.heads % size() == 0, [&] {
      return ErrorInfo{"heddle::TensorLine",
                       "the number of heads must be a multiple of the ranks of the line",
                       text(shape.heads, " heads, ", size(), " ranks"),
                       "use a number of ranks that divides the heads"};
    });
    shape.width = shape.width / shape.heads * (shape.heads / size());
    shape.heads /= size();
    return shape;
  }

  /// All rows of an activation of which this rank has `rows`: in `room`, all rows x width, where
  /// they are sharded, by an all-gather; else `rows` itself.
  Input gather(const Exec& exec, const Input& rows, const Matrix& room) const;
  /// Returns the result of the last gather() with the same arguments, without communication.
  [[nodiscard]] Input gathered(const Input& rows, const Matrix& room) const {
    return sharded() ? Input(room) : rows;
  }

  /// Returns the matrix in which a divided layer leaves its term of a sum, for sum() with the same
  /// arguments: `room` with all rows x width if rows are sharded, else `rows` itself.
  [[nodiscard]] Matrix term(const Matrix& room, const Matrix& rows) const {
    return sharded() ? room : rows;
  }
  /// Leaves in `rows` this rank's rows of the sum over the ranks of term(room, rows), which holds
  /// parts of sums afterwards: a reduce-scatter, or an all-reduce in place. Every element is added
  /// up in the order of a ring that ends where it is kept; of an all-reduce all ranks have the
  /// same.
  void sum(const Exec& exec, const Matrix& room, const Matrix& rows) const;

  /// Sums in place what each rank has from the rows that it has: the gradients of a layer between
  /// divided ones. Does nothing where all have all rows.
  void sum_over_rows(const Exec& exec, const Vector& values) const;

  /// Merges in place what the ranks' classes contribute to rows.
  void merge(const Exec& exec, const kernel::Vector<RowPartial<Real>, Exec>& partials) const;

 private:
  template <class Rows>
  void expect_rows(const char* where, const Rows& rows, const Matrix& room) const {
    kernel::expect_shape(where, "rows", rows, share(room.extent(0)).count, room.extent(1));
  }

  /// With blocks of whole rows.
  [[nodiscard]] CallOptions options_of(const Matrix& all) const {
    CallOptions options = m_options;
    for (std::size_t r = 0; r < size(); ++r)
      options.counts.push_back(even_share(all.extent(0), size(), r).count * all.extent(1));
    return options;
  }

  const Communicator* m_line = nullptr;
  RowForm m_form = RowForm::sharded;
  CallOptions m_options = {};
};

// Apart from the class, and not inline, so that a source of its own may hold them: they take a
// compiler some time.

template <std::floating_point Real, kernel::ExecutionSpace Exec>
auto TensorLine<Real, Exec>::gather(const Exec& exec, const Input& rows, const Matrix& room) const
    -> Input {
  if (!sharded()) return rows;
  expect_rows("heddle::TensorLine::gather", rows, room);
  all_gather(exec, InputVector(rows.data(), rows.size()), Vector(room.data(), room.size()), *m_line,
             options_of(room));
  return room;
}

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void TensorLine<Real, Exec>::sum(const Exec& exec, const Matrix& room, const Matrix& rows) const {
  if (size() == 1) return;
  const Vector mine(rows.data(), rows.size());
  if (!sharded()) return all_reduce(exec, mine, Sum{}, *m_line, m_options);
  expect_rows("heddle::TensorLine::sum", rows, room);
  reduce_scatter(exec, Vector(room.data(), room.size()), mine, Sum{}, *m_line, options_of(room));
}

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void TensorLine<Real, Exec>::sum_over_rows(const Exec& exec, const Vector& values) const {
  if (sharded()) all_reduce(exec, values, Sum{}, *m_line, m_options);
}

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void TensorLine<Real, Exec>::merge(const Exec& exec,
                                   const kernel::Vector<RowPartial<Real>, Exec>& partials) const {
  if (size() > 1) all_reduce(exec, partials, MergeRowPartials{}, *m_line, m_options);
}

}  // namespace heddle::inline v0
