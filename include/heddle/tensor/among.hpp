// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// among(): a tensor of some ranks as one of more ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tensor/impl/layout_numbers.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns for each rank of `some` its number in `all`; -1 if it is not there.
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

/// `layout` with ranks that are numbered otherwise: rank r is `ranks[r]` now.
[[nodiscard]] inline Layout renumbered(const Layout& layout, const std::vector<int>& ranks) {
  std::vector<Rank> there;
  for (const Rank rank : layout.ranks()) there.emplace_back(ranks[+rank]);
  return {layout.mesh(), layout.sizes(), layout.placements(), std::move(there)};
}

}  // namespace impl

/// `tensor`, which is on another communicator, as one among the ranks of `all`: the same elements
/// in the same Views, under the numbers that its ranks have in `all`. Tensors of communicators that
/// overlap, nest or have no rank in common are redistributed so:
///
///     const auto from = hd::among(world, a), to = hd::among(world, b);
///     hd::redistribute(exec, from, to);
///
/// All ranks of `all` call it; those of the tensor's communicator give it, the others none. They
/// tell the others its layout, which takes some short messages: keep what it returns where it is
/// wanted again. `all` outlives it; the tensor and its communicator need not.
/// @throws contract_error on all ranks, where no rank gives the tensor, its communicator has a rank
///         that `all` has not, or the ranks that give one are not those of one communicator.
template <class Data, class Space>
[[nodiscard]] Sharded<Data, Space> among(const Communicator& all,
                                         const std::optional<Sharded<Data, Space>>& tensor) {
  constexpr const char* where = "heddle::among";
  const auto me = static_cast<int>(+all.rank());
  const auto lowest = [&](bool here) {
    int rank = here ? me : all.size();
    check(MPI_Allreduce(MPI_IN_PLACE, &rank, 1, MPI_INT, MPI_MIN, all.get()), where);
    return rank;
  };
  const auto ranks = tensor ? impl::ranks_in(all, tensor->comm()) : std::vector<int>();
  const int outside = lowest(std::ranges::find(ranks, -1) != ranks.end());
  expects(outside == all.size(), [&] {
    return ErrorInfo{where, "the communicator lacks a rank of the tensor",
                     text("rank ", outside, " of ", all.size(), " shares one with it"),
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

/// The same for a tensor that every rank of `all` holds.
template <class Data, class Space>
[[nodiscard]] Sharded<Data, Space> among(const Communicator& all,
                                         const Sharded<Data, Space>& tensor) {
  return among(all, std::optional(tensor));
}

}  // namespace heddle::inline v0
