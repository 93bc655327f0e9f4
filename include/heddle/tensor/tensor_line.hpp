// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TensorLine: the ranks that divide the layers of one stage among themselves, and the two ways in
/// which they exchange activations. It is for stages whose matrices are too large or too slow for
/// one rank.

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
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/row_partial.hpp>

namespace heddle::inline v0 {

/// How the rows of an activation are distributed over a TensorLine outside of divided layers.
enum class RowForm : std::uint8_t {
  whole,    ///< every rank has all rows, and sums are all-reduces (Shoeybi et al., 2019)
  sharded,  ///< every rank has a share of the rows, gathered for a divided layer and left by a
            ///< reduce-scatter (Korthikanti et al., 2022): the same bytes, less memory
};

/// Ranks that divide layers among themselves. A divided layer needs all rows of its input. Its
/// output on each rank is one addend of a sum over the ranks. This holds for forward and backward
/// passes:
///
///     forward   rows -> gather() -> layers of which each rank has a part -> sum() -> rows
///     backward  rows <- sum()    <- their gradients                      <- gather() <- rows
///
/// Matrices are rows x width, row-major, in the memory of `Exec`. Calls wait for the work of the
/// given instance and return when the result has arrived. All ranks of the line must make the same
/// calls in the same order. A line constructed without a communicator has one rank; it sends
/// nothing and does not call MPI.
///
/// Let m be the bytes of all rows and m_s those of share s. With the default options, which use a
/// ring, rank t of T ranks sends m - m_(t+1) bytes in a gather() and m - m_t bytes in a sum(). If T
/// divides the rows, each is (T - 1) / T m.
template <std::floating_point Real, kernel::ExecutionSpace Exec>
class TensorLine {
 public:
  using Matrix = kernel::Matrix<Real, Exec>;             ///< a matrix that is written
  using Input = kernel::Matrix<const Real, Exec>;        ///< a matrix that is read
  using Vector = kernel::Vector<Real, Exec>;             ///< a vector that is written
  using InputVector = kernel::Vector<const Real, Exec>;  ///< a vector that is read

  /// Constructs a line of one rank.
  TensorLine() = default;
  /// Constructs a line of the ranks of `line`, which must outlive this object. For an axis of a
  /// mesh, use `DeviceMesh::operator[]`. Unless `options` say otherwise, it uses an algorithm of
  /// Heddle's, so that the watchdog notices a rank that does not take part.
  /// @throws contract_error if `line` is empty, if `form` is none of the enumerators, or if
  ///         CallOptions::counts is not empty.
  explicit TensorLine(const Communicator& line, RowForm form = RowForm::sharded,
                      CallOptions options = {.algorithm = schedule::Algorithm::ring})
      : m_line(&line), m_form(form), m_options(std::move(options)) {
    constexpr const char* where = "heddle::TensorLine";
    line.expect_not_empty(where);
    impl::expect_enumerator(where, "form", form, RowForm::sharded);
    expects(m_options.counts.empty(), [&] {
      return ErrorInfo{where, "a line computes CallOptions::counts itself, from the rows",
                       text(m_options.counts.size(), " counts"), "leave them empty"};
    });
  }

  /// Returns the number of ranks, T.
  [[nodiscard]] std::size_t size() const {
    return m_line == nullptr ? 1 : static_cast<std::size_t>(m_line->size());
  }
  /// Returns this rank's number, t.
  [[nodiscard]] std::size_t rank() const { return m_line == nullptr ? 0 : +m_line->rank(); }
  /// Returns true on the one rank that adds what must be added only once, such as the bias of a
  /// sum.
  [[nodiscard]] bool leads() const { return rank() == 0; }
  /// Returns true if rows are sharded: there are several ranks, and the form is RowForm::sharded.
  [[nodiscard]] bool sharded() const { return size() > 1 && m_form == RowForm::sharded; }

  /// Returns this rank's share of the columns or rows of a layer, or of the classes of a
  /// vocabulary.
  [[nodiscard]] Share share(std::size_t count) const { return even_share(count, size(), rank()); }
  /// Returns the rows of an activation that this rank has between divided layers.
  [[nodiscard]] Share rows(std::size_t all) const { return sharded() ? share(all) : Share{0, all}; }

  /// Returns the shape of an attention with this rank's heads only. Every rank has the same number
  /// of heads.
  /// @throws contract_error if the number of heads is not a multiple of the ranks, or if the shape
  ///         is not that of an attention.
  [[nodiscard]] kernel::AttentionShape own_heads(kernel::AttentionShape shape) const {
    kernel::impl::expect_attention_shape("heddle::TensorLine", shape);
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

  /// Returns all rows of an activation of which this rank has `rows`. If rows are sharded, an
  /// all-gather writes them to `room` (all rows x width); otherwise the result is `rows` itself.
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
  /// Writes to `rows` this rank's rows of the sum over the ranks of term(room, rows), which
  /// afterwards holds partial sums. It is a reduce-scatter if rows are sharded, and an all-reduce
  /// in place otherwise. Every element is summed in the order of a ring that ends at the rank that
  /// keeps it. After an all-reduce all ranks have the same values.
  void sum(const Exec& exec, const Matrix& room, const Matrix& rows) const;

  /// Sums in place the gradients that each rank has computed from its own rows, for layers between
  /// divided ones. It does nothing if every rank has all rows.
  void sum_over_rows(const Exec& exec, const Vector& values) const;

  /// Merges in place the contributions of the ranks' classes to each row.
  void merge(const Exec& exec, const kernel::Vector<RowPartial<Real>, Exec>& partials) const;

 private:
  template <class Rows>
  void expect_rows(const char* where, const Rows& rows, const Matrix& room) const {
    kernel::impl::expect_shape(where, "rows", rows, share(room.extent(0)).count, room.extent(1));
  }

  /// Returns options whose blocks are whole rows.
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
