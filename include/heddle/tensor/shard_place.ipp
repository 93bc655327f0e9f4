// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shard_place.hpp.

#include <array>
#include <cstddef>
#include <optional>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/shard_place.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE ShardPlace::ShardPlace(Rank rank, int ranks, int node, int pair) {
  expects(ranks >= 1 && +rank < static_cast<std::size_t>(ranks), [&] {
    return ErrorInfo{"heddle::ShardPlace", "there is no such rank",
                     text("rank ", rank, " of ", ranks)};
  });
  expects(pair >= 1 && node >= 1 && node % pair == 0 && ranks % node == 0, [&] {
    return ErrorInfo{
        "heddle::ShardPlace", "the pairs must divide the node, and the nodes must divide all ranks",
        text("pairs of ", pair, ", nodes of ", node, ", ", ranks, " ranks"),
        "choose a node size that divides the ranks, and a pair size that divides the node"};
  });
  const auto in_pair = static_cast<std::size_t>(pair), in_node = static_cast<std::size_t>(node);
  m_sizes = {in_pair, in_node / in_pair, static_cast<std::size_t>(ranks) / in_node};
  m_places = {+rank % in_pair, +rank % in_node / in_pair, +rank / in_node};
}

HEDDLE_FULL_INLINE std::size_t ShardPlace::ranks(ShardLevel level) const {
  std::size_t product = 1;
  for (std::size_t line = 0; line < lines(level); ++line) product *= m_sizes[line];
  return product;
}

HEDDLE_FULL_INLINE Share ShardPlace::share(ShardLevel level, std::size_t count) const {
  Share part{0, count};
  for (std::size_t line = 0; line < lines(level); ++line) {
    const Share inner = even_share(part.count, m_sizes[line], m_places[line]);
    part = {part.first + inner.first, inner.count};
  }
  return part;
}

HEDDLE_FULL_INLINE std::size_t ShardPlace::lines(ShardLevel level) {
  impl::expect_enumerator("heddle::ShardPlace", "level", level, ShardLevel::world);
  return static_cast<std::size_t>(level);
}

HEDDLE_FULL_INLINE ShardPlace::Steps ShardPlace::steps(std::size_t line, ShardLevel in,
                                                       std::size_t count) const {
  Steps at{within(in, level(line), count), within(in, level(line + 1), count), {}};
  for (std::size_t r = 0; r < m_sizes[line]; ++r)
    at.counts.push_back(even_share(at.outer.count, m_sizes[line], r).count);
  return at;
}

HEDDLE_FULL_INLINE ShardPlace::Traffic ShardPlace::traffic(std::size_t count, Bytes bytes,
                                                           ShardLevel outer, ShardLevel inner,
                                                           const std::optional<Codec>& codec,
                                                           std::size_t after) const {
  std::array<Bytes, 3> sent = {};
  for (std::size_t line = lines(outer); line < lines(inner); ++line) {
    if (m_sizes[line] == 1) continue;
    const Steps at = steps(line, outer, count);
    for (std::size_t r = 0; r < m_sizes[line]; ++r)
      if (r != (m_places[line] + after) % m_sizes[line])
        sent[line] += codec ? impl::encoded_bytes(codec->type, codec->block, at.counts[r])
                            : at.counts[r] * bytes;
  }
  return {sent[0], sent[1], sent[2]};
}

HEDDLE_FULL_INLINE ShardPlace::Traffic ShardPlace::step_traffic(const ParameterSharding& how,
                                                                std::size_t count, Bytes bytes,
                                                                std::size_t passes) const {
  const Traffic forward =
      gather_traffic(count, bytes, how.weights, ShardLevel::rank, how.weight_codec);
  const Traffic backward =
      how.backward ? gather_traffic(count, bytes, *how.backward, ShardLevel::rank) : forward;
  const Traffic sums =
      reduce_traffic(count, bytes, ShardLevel::rank, how.gradients, how.gradient_codec);
  return passes * (forward + backward + sums) +
         reduce_traffic(count, bytes, how.gradients, ShardLevel::world, how.gradient_codec) +
         gather_traffic(count, bytes, ShardLevel::world, how.weights, how.weight_codec);
}

}  // namespace heddle::inline v0
