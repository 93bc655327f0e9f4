// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of among.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/tensor/among.hpp>
#include <heddle/tensor/impl/layout_numbers.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0::impl {

/// Returns for each rank of `some` its rank in `all`, or -1 if `all` does not contain it.
HEDDLE_FULL_INLINE std::vector<int> ranks_in(const Communicator& all, const Communicator& some) {
  constexpr const char* where = "heddle::among";
  std::vector<int> own(static_cast<std::size_t>(some.size())), there(own.size());
  std::iota(own.begin(), own.end(), 0);
  MPI_Group from = MPI_GROUP_NULL, to = MPI_GROUP_NULL;
  check(MPI_Comm_group(some.get(), &from), where);
  check(MPI_Comm_group(all.get(), &to), where);
  check(MPI_Group_translate_ranks(from, some.size(), own.data(), to, there.data()), where);
  MPI_Group_free(&from);
  MPI_Group_free(&to);
  std::replace(there.begin(), there.end(), MPI_UNDEFINED, -1);
  return there;
}

/// Returns `layout` with renumbered ranks: rank r becomes `ranks[r]`.
HEDDLE_FULL_INLINE Layout renumbered(const Layout& layout, const std::vector<int>& ranks) {
  std::vector<Rank> there;
  for (const Rank rank : layout.ranks()) there.emplace_back(ranks[+rank]);
  return {layout.mesh(), layout.sizes(), layout.placements(), std::move(there)};
}

HEDDLE_FULL_INLINE Layout layout_among(const Communicator& all, const AnySharded* tensor) {
  constexpr const char* where = "heddle::among";
  check_together(
      all, where,
      [&] {
        if (tensor != nullptr) tensor->comm().expect_not_empty(where);
      },
      [] {
        return impl::CollectiveCall{where, {}};
      },
      ContractLevel::communication, 0);
  const auto me = static_cast<int>(+all.rank());
  const auto lowest = [&](bool here) {
    int rank = here ? me : all.size();
    check(MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, MPI_MIN, all.get()), where);
    return rank;
  };
  const auto ranks = tensor != nullptr ? ranks_in(all, tensor->comm()) : std::vector<int>();
  const int outside = lowest(std::find(ranks.begin(), ranks.end(), -1) != ranks.end());
  expects(outside == all.size(), [&] {
    return ErrorInfo{
        where, "the communicator lacks a rank of the tensor",
        text("rank ", outside, " of ", all.size(), " passes a tensor with such a rank"),
        "use a communicator with the ranks of both"};
  });
  const int first = lowest(tensor != nullptr);
  expects(first < all.size(), [&] {
    return ErrorInfo{where, "no rank passes the tensor", text(all.size(), " ranks gave none"),
                     "give it on the ranks of its communicator, and none on the others"};
  });
  // Which ranks share it, and how.
  std::vector<std::int64_t> mine;
  if (tensor != nullptr) {
    mine = numbers_of(renumbered(tensor->layout(), ranks));
    mine.insert(mine.begin(), ranks.begin(), ranks.end());
    mine.insert(mine.begin(), tensor->comm().size());
  }
  std::vector<std::int64_t> told = mine;
  auto length = static_cast<int>(told.size());
  check(MPI_Bcast(&length, 1, MPI_INT, first, all.get()), where);
  told.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(told.data(), length, MPI_INT64_T, first, all.get()), where);
  const auto layout = told.begin() + 1 + told.front();
  const bool shares = std::find(told.begin() + 1, layout, me) != layout;
  const int other = lowest(tensor != nullptr ? mine != told : shares);
  expects(other == all.size(), [&] {
    return ErrorInfo{where, "the ranks pass different tensors",
                     text("rank ", other, " does not give that of rank ", first),
                     "give it on every rank of its communicator, and none on the others"};
  });
  return layout_of({layout, told.end()});
}

}  // namespace heddle::inline v0::impl
