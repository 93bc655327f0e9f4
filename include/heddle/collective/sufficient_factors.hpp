// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// sum_by_factors(): sums a gradient x^T dy over ranks by gathering its factors x and dy.
/// plan::prefers_factors() tells if this is faster than to sum the products.

#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/linalg.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Gathers the rows of the other ranks.
template <class Exec, class Matrix>
void gather_rows(const Exec& space, const Matrix& matrix, const BlockCounts& rows,
                 const Communicator& comm, CallOptions options) {
  const std::size_t columns = matrix.extent(1);
  options.counts.clear();
  for (std::size_t r = 0; r < static_cast<std::size_t>(comm.size()); ++r)
    options.counts.push_back(rows.count(r) * columns);
  const std::size_t first = rows.first(+comm.rank());
  const auto own =
      Kokkos::subview(matrix, std::pair(first, first + rows.count(+comm.rank())), Kokkos::ALL);
  all_gather(space, own, matrix, comm, options);
}

}  // namespace impl

/// Computes x^T dy, a matrix of inputs x outputs, from the rows of all ranks of `comm`, and writes
/// it to `gradient` on every rank. `x` (rows x inputs) and `dy` (rows x outputs) have room for the
/// rows of all ranks. Each rank fills in its own rows before the call, and the call fills in the
/// others. CallOptions::counts has the number of rows of each rank. If it is empty, the rows are
/// divided evenly, and the first ranks have one row more if needed.
///
/// Every rank sends its rows to all others, (inputs + outputs) elements per row, and multiplies all
/// rows. The result has the rounding error of one gemm() with these arguments, whatever the number
/// of ranks. The call runs all_gather() and then queues gemm() in the given instance.
/// @throws contract_error if the shapes do not fit each other or the counts, if `gradient` shares
///         memory with `x` or `dy`, and the errors of all_gather().
template <kernel::ExecutionSpace Exec, kernel::MatrixOn<Exec> Factor, kernel::MatrixOn<Exec> Sum>
void sum_by_factors(const Exec& space, const Factor& x, const Factor& dy, const Sum& gradient,
                    const Communicator& comm, const CallOptions& options = {}) {
  constexpr const char* where = "heddle::collective::sum_by_factors";
  impl::BlockCounts rows;
  const auto check = [&] {
    kernel::expect_shape(where, "dy", dy, x.extent(0), dy.extent(1));
    kernel::expect_shape(where, "the gradient", gradient, x.extent(1), dy.extent(1));
    const auto apart = [&](const auto& factor) {
      return !impl::overlap(impl::begin_of(factor), factor.span() * sizeof(*factor.data()),
                            impl::begin_of(gradient), gradient.span() * sizeof(*gradient.data()));
    };
    expects(apart(x) && apart(dy), [&] {
      return ErrorInfo{where, "the gradient shares memory with x or dy",
                       text(gradient.label(), ", ", x.label(), " and ", dy.label()),
                       "use other memory for the gradient"};
    });
    rows = {where, x.extent(0), static_cast<std::size_t>(comm.size()), options.counts};
  };
  check_together(comm, where, check, [&] {
    return CollectiveCall{where,
                          {{"rows", text(x.extent(0))},
                           {"inputs", text(x.extent(1))},
                           {"outputs", text(dy.extent(1))}}};
  });
  impl::gather_rows(space, x, rows, comm, options);
  impl::gather_rows(space, dy, rows, comm, options);
  kernel::gemm(space, kernel::Transpose::yes, kernel::Transpose::no, 1, x, dy, 0, gradient);
}

}  // namespace heddle::inline v0
