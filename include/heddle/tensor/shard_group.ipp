// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shard_group.hpp.

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/tensor/shard_group.hpp>
#include <heddle/tensor/shard_place.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE ShardGroup::ShardGroup(const Communicator& ranks, int node, int pair)
    : ShardPlace(place_in(ranks, node, pair)) {
  const int rank = static_cast<int>(+ranks.rank());
  m_lines.push_back(ranks.split(rank / pair, rank));
  m_lines.push_back(ranks.split(rank / node * pair + rank % pair, rank));
  m_lines.push_back(ranks.split(rank % node, rank));
}

HEDDLE_FULL_INLINE void ShardGroup::expect_levels(const char* where, ShardLevel outer,
                                                  ShardLevel inner) {
  expects(lines(outer) <= lines(inner), [&] {
    return ErrorInfo{where, "shares of a level do not lie in those of a finer level",
                     text("from and to are ", outer, " and ", inner), "exchange the two"};
  });
}

HEDDLE_FULL_INLINE ShardPlace ShardGroup::place_in(const Communicator& ranks, int node, int pair) {
  constexpr const char* where = "heddle::ShardGroup";
  ShardPlace place;
  impl::check_together(
      ranks, where, [&] { place = ShardPlace(ranks.rank(), ranks.size(), node, pair); },
      [&] {
        return impl::CollectiveCall{where, {{"node", text(node)}, {"pair", text(pair)}}};
      },
      ContractLevel::communication, 0);
  return place;
}

}  // namespace heddle::inline v0
