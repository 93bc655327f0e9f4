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
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/layout/share.hpp>

namespace heddle::inline v0 {

/// The position of a rank in a hierarchy of pairs, nodes and all ranks; consecutive ranks belong
/// together. A vector of n elements is divided among the ranks of a pair. Each of these shares is
/// divided among the pairs of the node, and each of the results among the nodes. The shares of one
/// level therefore lie in the shares of the level before. Data that change level are sent along
/// three lines of ranks, one after the other, with the least traffic over the slowest.
class ShardPlace {
 public:
  /// The bytes that one rank sends, separated by the links that they use.
  struct Traffic {
    Bytes pair = 0;   ///< within the pair
    Bytes node = 0;   ///< between the pairs of a node
    Bytes world = 0;  ///< between nodes

    /// Returns the bytes over all links.
    [[nodiscard]] Bytes all() const { return pair + node + world; }
    /// Returns the sums of both, link by link.
    friend Traffic operator+(const Traffic& a, const Traffic& b) {
      return {a.pair + b.pair, a.node + b.node, a.world + b.world};
    }
    /// Returns `times` times the bytes.
    friend Traffic operator*(Bytes times, const Traffic& a) {
      return {times * a.pair, times * a.node, times * a.world};
    }
    friend bool operator==(const Traffic&, const Traffic&) = default;
  };

  /// The position of a single rank, without communication.
  ShardPlace() = default;
  /// The position of `rank` among `ranks`, with `pair` ranks in a pair and `node` in a node. A
  /// level of one rank or of all ranks does not exist.
  /// @throws contract_error if a pair does not divide a node, if a node does not divide the ranks,
  ///         or if there is no such rank.
  ShardPlace(Rank rank, int ranks, int node, int pair);

  /// Returns the number of ranks among which data are divided at a level.
  [[nodiscard]] std::size_t ranks(ShardLevel level) const;

  /// Returns the rank's share of `count` elements at a level.
  [[nodiscard]] Share share(ShardLevel level, std::size_t count) const;

  /// Returns the position of the share at level `inner` in the share at level `outer` that holds
  /// it.
  [[nodiscard]] Share within(ShardLevel outer, ShardLevel inner, std::size_t count) const {
    const Share own = share(inner, count);
    return {own.first - share(outer, count).first, own.count};
  }

  /// Returns the traffic that the rank sends in a gather() of `count` elements of `bytes` each:
  /// along every line, all blocks except the one of the next rank.
  [[nodiscard]] Traffic gather_traffic(std::size_t count, Bytes bytes, ShardLevel from,
                                       ShardLevel to,
                                       const std::optional<Codec>& codec = {}) const {
    return traffic(count, bytes, to, from, codec, 1);
  }
  /// Returns the traffic that the rank sends in a reduce(): along every line, all blocks except its
  /// own.
  [[nodiscard]] Traffic reduce_traffic(std::size_t count, Bytes bytes, ShardLevel from,
                                       ShardLevel to,
                                       const std::optional<Codec>& codec = {}) const {
    return traffic(count, bytes, from, to, codec, 0);
  }
  /// Returns the traffic that the rank sends through a ShardGroup in a step of `passes` forward and
  /// backward passes, if `count` elements of `bytes` each are divided as `how` says.
  [[nodiscard]] Traffic step_traffic(const ParameterSharding& how, std::size_t count, Bytes bytes,
                                     std::size_t passes) const;

 protected:
  /// The messages along a line of ranks, in the rank's share at some level.
  struct Steps {
    Share outer;                      ///< all that the line divides
    Share inner;                      ///< the rank's own part of it
    std::vector<std::size_t> counts;  ///< elements of each of its ranks
  };

  /// Returns the number of lines along which data are divided at a level.
  /// @throws contract_error if `level` is none of the enumerators.
  [[nodiscard]] static std::size_t lines(ShardLevel level);
  /// Returns the number of ranks of a line.
  [[nodiscard]] std::size_t size(std::size_t line) const { return m_sizes[line]; }
  /// Returns the steps along a line in the rank's share at level `in` of `count` elements.
  [[nodiscard]] Steps steps(std::size_t line, ShardLevel in, std::size_t count) const;

 private:
  /// Returns the level at which the data that a line divides are shared.
  [[nodiscard]] static ShardLevel level(std::size_t line) { return static_cast<ShardLevel>(line); }

  /// Returns the bytes of all blocks except that of the rank `after` this one, of every line
  /// between two levels.
  [[nodiscard]] Traffic traffic(std::size_t count, Bytes bytes, ShardLevel outer, ShardLevel inner,
                                const std::optional<Codec>& codec, std::size_t after) const;

  std::array<std::size_t, 3> m_sizes = {1, 1, 1};
  std::array<std::size_t, 3> m_places = {0, 0, 0};
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/shard_place.ipp>
#endif
