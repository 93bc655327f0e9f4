// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sum_by_factors.hpp.

#include <cstddef>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/hap/sum_by_factors.hpp>

namespace heddle::inline v0::systems::impl {

// Refuses a matrix of another shape, as kernel::impl::expect_shape() does.
inline void expect_matrix(const char* where, const char* name, const heddle::impl::ViewRef& view,
                          std::size_t rows, std::size_t columns) {
  expects(view.extents[0] == rows && view.extents[1] == columns, [&] {
    return ErrorInfo{where, text(name, " has the wrong shape"),
                     text("it is ", view.extents[0], " x ", view.extents[1], ", expected ", rows,
                          " x ", columns)};
  });
}

// Gathers the rows of the other ranks.
inline void gather_rows(const heddle::impl::CallArguments& with,
                        const heddle::impl::ViewRef& matrix,
                        const heddle::impl::BlockCounts& rows) {
  const std::size_t columns = matrix.extents[1], me = +with.comm->rank();
  CallOptions options = *with.options;
  options.counts.clear();
  for (std::size_t r = 0; r < rows.ranks(); ++r) options.counts.push_back(rows.count(r) * columns);
  heddle::impl::AllGatherCall({*with.by, *with.comm, options, with.level},
                              matrix.rows(rows.first(me), rows.count(me)), matrix)
      .perform();
}

HEDDLE_FULL_INLINE void gather_factors(const heddle::impl::CallArguments& with,
                                       const heddle::impl::ViewRef& x,
                                       const heddle::impl::ViewRef& dy,
                                       const heddle::impl::ViewRef& gradient) {
  constexpr const char* where = "heddle::collective::sum_by_factors";
  heddle::impl::BlockCounts rows;
  const auto check = [&] {
    expect_matrix(where, "dy", dy, x.extents[0], dy.extents[1]);
    expect_matrix(where, "the gradient", gradient, x.extents[1], dy.extents[1]);
    const auto apart = [&](const heddle::impl::ViewRef& factor) {
      return !heddle::impl::overlap(factor.data, factor.span(), gradient.data, gradient.span());
    };
    expects(apart(x) && apart(dy), [&] {
      return ErrorInfo{where, "the gradient shares memory with x or dy",
                       text(gradient.label(), ", ", x.label(), " and ", dy.label()),
                       "use other memory for the gradient"};
    });
    rows = {where, x.extents[0], static_cast<std::size_t>(with.comm->size()), with.options->counts};
  };
  heddle::impl::check_together(
      *with.comm, where, check,
      [&] {
        return heddle::impl::CollectiveCall{where,
                                            {{"rows", text(x.extents[0])},
                                             {"inputs", text(x.extents[1])},
                                             {"outputs", text(dy.extents[1])}}};
      },
      with.level);
  gather_rows(with, x, rows);
  gather_rows(with, dy, rows);
}

}  // namespace heddle::inline v0::systems::impl
