// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// among(): makes a tensor of some ranks known to a larger communicator.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tensor/impl/layout_numbers.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns for each rank of `some` its rank in `all`, or -1 if `all` does not contain it.
[[nodiscard]] inline std::vector<int> ranks_in(const Communicator& all, const Communicator& some) {
  constexpr const char* where = "heddle::among";
  std::vector<int> own(static_cast<std::size_t>(some.size())), there(own.size());
  std::iota(own.begin(), own.end(), 0);
  MPI_Group from = MPI_GROUP_NULL, to = MPI_GROUP_NULL;
  check(MPI_Comm_group(some.get(), &from), where);
  check(MPI_Comm_group(all.get(), &to), where);
  check(MPI_Group_translate_ranks(from, some.size(), own.data(), to, there.data()), where);
  MPI_Group_free(&from);
  MPI_Group_free(&to);
  std::ranges::replace(there, MPI_UNDEFINED, -1);
  return there;
}

/// Returns `layout` with renumbered ranks: rank r becomes `ranks[r]`.
[[nodiscard]] inline Layout renumbered(const Layout& layout, const std::vector<int>& ranks) {
  std::vector<Rank> there;
  for (const Rank rank : layout.ranks()) there.emplace_back(ranks[+rank]);
  return {layout.mesh(), layout.sizes(), layout.placements(), std::move(there)};
}

}  // namespace impl

/// Returns `tensor`, which belongs to another communicator, as a tensor of `all`. Elements and
/// Views are the same; its ranks have the numbers that they have in `all`. This redistributes
/// between communicators that overlap, are nested or have no rank in common:
///
///     const auto from = hd::among(world, a), to = hd::among(world, b);
///     hd::redistribute(exec, from, to);
///
/// All ranks of `all` must call it. The ranks of the tensor's communicator pass the tensor, and the
/// others pass none. Some short messages tell all ranks the layout, so keep the result if it is
/// needed again. `all` must outlive the result; the tensor and its communicator need not.
/// @throws contract_error on all ranks if no rank passes the tensor, if `all` lacks a rank of its
///         communicator, or if the ranks that pass a tensor are not exactly the ranks of one
///         communicator.
template <class Data, class Space>
[[nodiscard]] Sharded<Data, Space> among(const Communicator& all,
                                         const std::optional<Sharded<Data, Space>>& tensor) {
  constexpr const char* where = "heddle::among";
  check_together(
      all, where,
      [&] {
        if (tensor) tensor->comm().expect_not_empty(where);
      },
      [] {
        return CollectiveCall{where, {}};
      },
      ContractLevel::communication, 0);
  const auto me = static_cast<int>(+all.rank());
  const auto lowest = [&](bool here) {
    int rank = here ? me : all.size();
    check(MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, MPI_MIN, all.get()), where);
    return rank;
  };
  const auto ranks = tensor ? impl::ranks_in(all, tensor->comm()) : std::vector<int>();
  const int outside = lowest(std::ranges::find(ranks, -1) != ranks.end());
  expects(outside == all.size(), [&] {
    return ErrorInfo{
        where, "the communicator lacks a rank of the tensor",
        text("rank ", outside, " of ", all.size(), " passes a tensor with such a rank"),
        "use a communicator with the ranks of both"};
  });
  const int first = lowest(tensor.has_value());
  expects(first < all.size(), [&] {
    return ErrorInfo{where, "no rank passes the tensor", text(all.size(), " ranks gave none"),
                     "give it on the ranks of its communicator, and none on the others"};
  });
  // Which ranks share it, and how.
  std::vector<std::int64_t> mine;
  if (tensor) {
    mine = impl::numbers_of(impl::renumbered(tensor->layout(), ranks));
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
  const int other = lowest(tensor ? mine != told : shares);
  expects(other == all.size(), [&] {
    return ErrorInfo{where, "the ranks pass different tensors",
                     text("rank ", other, " does not give that of rank ", first),
                     "give it on every rank of its communicator, and none on the others"};
  });
  Layout there = impl::layout_of({layout, told.end()});
  if (!tensor) return {all, std::move(there)};
  return {all, std::move(there), tensor->parts()};
}

/// Returns a tensor that every rank of `all` holds as a tensor of `all`.
template <class Data, class Space>
[[nodiscard]] Sharded<Data, Space> among(const Communicator& all,
                                         const Sharded<Data, Space>& tensor) {
  return among(all, std::optional(tensor));
}

}  // namespace heddle::inline v0
