// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardPlace: the position of a rank in pairs, nodes and all ranks, its shares at each level, and
/// closed forms of the bytes that it sends. It contains only arithmetic.

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/layout/share.hpp>

namespace heddle::inline v0 {

/// The bytes that one rank sends, separated by the links that they use.
struct ShardTraffic {
  Bytes pair = 0;   ///< within the pair
  Bytes node = 0;   ///< between the pairs of a node
  Bytes world = 0;  ///< between nodes

  /// Returns the bytes over all links.
  [[nodiscard]] Bytes all() const { return pair + node + world; }
  /// Returns the sums of both, link by link.
  friend ShardTraffic operator+(const ShardTraffic& a, const ShardTraffic& b) {
    return {a.pair + b.pair, a.node + b.node, a.world + b.world};
  }
  /// Returns `times` times the bytes.
  friend ShardTraffic operator*(Bytes times, const ShardTraffic& a) {
    return {times * a.pair, times * a.node, times * a.world};
  }
  friend bool operator==(const ShardTraffic&, const ShardTraffic&) = default;
};

/// The position of a rank in a hierarchy of pairs, nodes and all ranks; consecutive ranks belong
/// together. A vector of n elements is divided among the ranks of a pair. Each of these shares is
/// divided among the pairs of the node, and each of the results among the nodes. The shares of one
/// level therefore lie in the shares of the level before. Data that change level are sent along
/// three lines of ranks, one after the other, with the least traffic over the slowest.
class ShardPlace {
 public:
  /// The position of a single rank, without communication.
  ShardPlace() = default;
  /// The position of `rank` among `ranks`, with `pair` ranks in a pair and `node` in a node. A
  /// level of one rank or of all ranks does not exist.
  /// @throws contract_error if a pair does not divide a node, if a node does not divide the ranks,
  ///         or if there is no such rank.
  ShardPlace(Rank rank, int ranks, int node, int pair) {
    expects(ranks >= 1 && +rank < static_cast<std::size_t>(ranks), [&] {
      return ErrorInfo{"heddle::ShardPlace", "there is no such rank",
                       text("rank ", rank, " of ", ranks)};
    });
    expects(pair >= 1 && node >= 1 && node % pair == 0 && ranks % node == 0, [&] {
      return ErrorInfo{
          "heddle::ShardPlace",
          "the pairs must divide the node, and the nodes must divide all ranks",
          text("pairs of ", pair, ", nodes of ", node, ", ", ranks, " ranks"),
          "choose a node size that divides the ranks, and a pair size that divides the node"};
    });
    const auto in_pair = static_cast<std::size_t>(pair), in_node = static_cast<std::size_t>(node);
    m_sizes = {in_pair, in_node / in_pair, static_cast<std::size_t>(ranks) / in_node};
    m_places = {+rank % in_pair, +rank % in_node / in_pair, +rank / in_node};
  }

  /// Returns the number of ranks among which data are divided at a level.
  [[nodiscard]] std::size_t ranks(ShardLevel level) const {
    std::size_t product = 1;
    for (std::size_t line = 0; line < lines(level); ++line) product *= m_sizes[line];
    return product;
  }

  /// Returns the rank's share of `count` elements at a level.
  [[nodiscard]] Share share(ShardLevel level, std::size_t count) const {
    Share part{0, count};
    for (std::size_t line = 0; line < lines(level); ++line) {
      const Share inner = even_share(part.count, m_sizes[line], m_places[line]);
      part = {part.first + inner.first, inner.count};
    }
    return part;
  }

  /// Returns the position of the share at level `inner` in the share at level `outer` that holds
  /// it.
  [[nodiscard]] Share within(ShardLevel outer, ShardLevel inner, std::size_t count) const {
    const Share own = share(inner, count);
    return {own.first - share(outer, count).first, own.count};
  }

  /// Returns the traffic that the rank sends in a gather() of `count` elements of `bytes` each:
  /// along every line, all blocks except the one of the next rank.
  [[nodiscard]] ShardTraffic gather_traffic(std::size_t count, Bytes bytes, ShardLevel from,
                                            ShardLevel to,
                                            const std::optional<Codec>& codec = {}) const {
    return traffic(count, bytes, to, from, codec, 1);
  }
  /// Returns the traffic that the rank sends in a reduce(): along every line, all blocks except its
  /// own.
  [[nodiscard]] ShardTraffic reduce_traffic(std::size_t count, Bytes bytes, ShardLevel from,
                                            ShardLevel to,
                                            const std::optional<Codec>& codec = {}) const {
    return traffic(count, bytes, from, to, codec, 0);
  }

 protected:
  /// The messages along a line of ranks, in the rank's share at some level.
  struct Steps {
    Share outer;                      ///< all that the line divides
    Share inner;                      ///< the rank's own part of it
    std::vector<std::size_t> counts;  ///< elements of each of its ranks
  };

  /// Returns the number of lines along which data are divided at a level.
  /// @throws contract_error if `level` is none of the enumerators.
  [[nodiscard]] static std::size_t lines(ShardLevel level) {
    impl::expect_enumerator("heddle::ShardPlace", "level", level, ShardLevel::world);
    return static_cast<std::size_t>(level);
  }
  /// Returns the number of ranks of a line.
  [[nodiscard]] std::size_t size(std::size_t line) const { return m_sizes[line]; }
  /// Returns the steps along a line in the rank's share at level `in` of `count` elements.
  [[nodiscard]] Steps steps(std::size_t line, ShardLevel in, std::size_t count) const {
    Steps at{within(in, level(line), count), within(in, level(line + 1), count), {}};
    for (std::size_t r = 0; r < m_sizes[line]; ++r)
      at.counts.push_back(even_share(at.outer.count, m_sizes[line], r).count);
    return at;
  }

 private:
  /// Returns the level at which the data that a line divides are shared.
  [[nodiscard]] static ShardLevel level(std::size_t line) { return static_cast<ShardLevel>(line); }

  /// Returns the bytes of all blocks except that of the rank `after` this one, of every line
  /// between two levels.
  [[nodiscard]] ShardTraffic traffic(std::size_t count, Bytes bytes, ShardLevel outer,
                                     ShardLevel inner, const std::optional<Codec>& codec,
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

  std::array<std::size_t, 3> m_sizes = {1, 1, 1};
  std::array<std::size_t, 3> m_places = {0, 0, 0};
};

/// Returns the traffic that the rank at `place` sends through a ShardGroup in a step of `passes`
/// forward and backward passes, if `count` elements of `bytes` each are divided as `how` says.
[[nodiscard]] inline ShardTraffic step_traffic(const ParameterSharding& how,
                                               const ShardPlace& place, std::size_t count,
                                               Bytes bytes, std::size_t passes) {
  using enum ShardLevel;
  const ShardTraffic forward =
      place.gather_traffic(count, bytes, how.weights, rank, how.weight_codec);
  const ShardTraffic backward =
      how.backward ? place.gather_traffic(count, bytes, *how.backward, rank) : forward;
  const ShardTraffic sums =
      place.reduce_traffic(count, bytes, rank, how.gradients, how.gradient_codec);
  return passes * (forward + backward + sums) +
         place.reduce_traffic(count, bytes, how.gradients, world, how.gradient_codec) +
         place.gather_traffic(count, bytes, world, how.weights, how.weight_codec);
}

}  // namespace heddle::inline v0
