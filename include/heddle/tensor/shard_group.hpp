// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardGroup: replicas in nested groups, and what travels between shares of one level and shares
/// of another, with its closed forms.

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/parameter_sharding.hpp>

namespace heddle::inline v0 {

/// Bytes that one rank sends, by the links that they take: to ranks of its pair, to others of its
/// node, to other nodes.
struct ShardTraffic {
  Bytes pair = 0;   ///< within the pair
  Bytes node = 0;   ///< between the pairs of a node
  Bytes world = 0;  ///< between nodes

  /// Over all links.
  [[nodiscard]] Bytes all() const { return pair + node + world; }
  /// Both.
  friend ShardTraffic operator+(const ShardTraffic& a, const ShardTraffic& b) {
    return {a.pair + b.pair, a.node + b.node, a.world + b.world};
  }
  /// So many times as much.
  friend ShardTraffic operator*(Bytes times, const ShardTraffic& a) {
    return {times * a.pair, times * a.node, times * a.world};
  }
  friend bool operator==(const ShardTraffic&, const ShardTraffic&) = default;
};

/// The ranks of a communicator in pairs, nodes and the whole, consecutive ones together. A vector
/// of n elements is dealt out to the ranks of a pair; the share of each to the pairs of its node;
/// what these have to the nodes: shares of one level lie in those of the level before, so that what
/// changes level travels along three lines of ranks, one after the other, and as little as can be
/// over the slowest. Making one is collective. Move-only.
class ShardGroup {
 public:
  /// Of one rank: nothing travels, and no call of MPI is made.
  ShardGroup() = default;
  /// `pair` ranks in a pair and `node` in a node; 1 and all: no such level.
  /// @throws contract_error where a pair does not divide a node, or a node not the ranks.
  ShardGroup(const Communicator& ranks, int node, int pair) {
    const int all = ranks.size();
    expects(pair >= 1 && node >= 1 && node % pair == 0 && all % node == 0, [&] {
      return Complaint{"heddle::ShardGroup",
                       "pairs do not make whole nodes, or nodes not all ranks",
                       text("pairs of ", pair, ", nodes of ", node, ", ", all, " ranks"),
                       "choose a node that divides the ranks, and a pair that divides the node"};
    });
    const int rank = static_cast<int>(+ranks.rank());
    const int in_pair = rank % pair, in_node = rank / pair % (node / pair);
    m_sizes = {static_cast<std::size_t>(pair), static_cast<std::size_t>(node / pair),
               static_cast<std::size_t>(all / node)};
    m_places = {static_cast<std::size_t>(in_pair), static_cast<std::size_t>(in_node),
                static_cast<std::size_t>(rank / node)};
    m_lines.push_back(ranks.split(rank / pair, rank));
    m_lines.push_back(ranks.split(rank / node * pair + in_pair, rank));
    m_lines.push_back(ranks.split(rank % node, rank));
  }

  /// Among how many ranks something is divided at a level.
  [[nodiscard]] std::size_t ranks(ShardLevel level) const {
    std::size_t product = 1;
    for (std::size_t line = 0; line < lines(level); ++line) product *= m_sizes[line];
    return product;
  }

  /// This rank's share of so many elements at a level.
  [[nodiscard]] Share share(ShardLevel level, std::size_t count) const {
    Share part{0, count};
    for (std::size_t line = 0; line < lines(level); ++line) {
      const Share inner = even_share(part.count, m_sizes[line], m_places[line]);
      part = {part.first + inner.first, inner.count};
    }
    return part;
  }

  /// Where the share at level `inner` lies in that at level `outer`, of which it is a part.
  [[nodiscard]] Share within(ShardLevel outer, ShardLevel inner, std::size_t count) const {
    const Share own = share(inner, count);
    return {own.first - share(outer, count).first, own.count};
  }

  /// `block`, in the memory of `Exec`, is this rank's share at level `to` of `count` elements, in
  /// which within(to, from) is there: gathers the rest from those who have it, by rings. With a
  /// codec every rank ends with the same numbers, its own part rounded as those of the others;
  /// every line rounds once.
  template <kernel::ExecutionSpace Exec, class Real>
  void gather(const Exec& exec, Real* block, std::size_t count, ShardLevel from, ShardLevel to,
              std::optional<Codec> codec = {}) const {
    if (codec) codec->agree = true;
    for (std::size_t line = lines(from); line-- > lines(to);) {
      if (m_sizes[line] == 1) continue;
      const Steps at = steps(line, to, count);
      const kernel::Vector<const Real, Exec> inner(block + at.inner.first, at.inner.count);
      const kernel::Vector<Real, Exec> outer(block + at.outer.first, at.outer.count);
      all_gather(exec, inner, outer, m_lines[line],
                 {.algorithm = schedule::Algorithm::ring, .counts = at.counts, .codec = codec});
    }
  }

  /// `block` is likewise this rank's share at level `from` of `count` elements: leaves the sum over
  /// the ranks that share its level `to` in within(from, to) of it, and parts of sums elsewhere; by
  /// rings, or with a codec directly, so that every term is rounded once a line.
  template <kernel::ExecutionSpace Exec, class Real>
  void reduce(const Exec& exec, Real* block, std::size_t count, ShardLevel from, ShardLevel to,
              const std::optional<Codec>& codec = {}) const {
    for (std::size_t line = lines(from); line < lines(to); ++line) {
      if (m_sizes[line] == 1) continue;
      const Steps at = steps(line, from, count);
      const kernel::Vector<Real, Exec> outer(block + at.outer.first, at.outer.count);
      const kernel::Vector<Real, Exec> inner(block + at.inner.first, at.inner.count);
      reduce_scatter(exec, outer, inner, Sum{}, m_lines[line],
                     {.algorithm = codec ? schedule::Algorithm::direct : schedule::Algorithm::ring,
                      .counts = at.counts,
                      .codec = codec});
    }
  }

  /// What this rank sends in a gather() of `count` elements of `bytes` each: of every line all
  /// blocks but that of the next rank.
  [[nodiscard]] ShardTraffic gather_traffic(std::size_t count, Bytes bytes, ShardLevel from,
                                            ShardLevel to,
                                            const std::optional<Codec>& codec = {}) const {
    return traffic(count, bytes, to, from, codec, 1);
  }
  /// What this rank sends in a reduce(): of every line all blocks but its own.
  [[nodiscard]] ShardTraffic reduce_traffic(std::size_t count, Bytes bytes, ShardLevel from,
                                            ShardLevel to,
                                            const std::optional<Codec>& codec = {}) const {
    return traffic(count, bytes, from, to, codec, 0);
  }

 private:
  /// The blocks of a line's ranks, and this rank's, in this rank's share at some level.
  struct Steps {
    Share outer, inner;
    std::vector<std::size_t> counts;
  };

  /// Number of lines along which something is divided at a level.
  [[nodiscard]] static std::size_t lines(ShardLevel level) {
    return static_cast<std::size_t>(level);
  }
  [[nodiscard]] static ShardLevel level(std::size_t line) { return static_cast<ShardLevel>(line); }
  [[nodiscard]] Steps steps(std::size_t line, ShardLevel in, std::size_t count) const {
    Steps at{within(in, level(line), count), within(in, level(line + 1), count), {}};
    for (std::size_t r = 0; r < m_sizes[line]; ++r)
      at.counts.push_back(even_share(at.outer.count, m_sizes[line], r).count);
    return at;
  }

  /// All blocks but that of the rank `after` this one, of every line between two levels.
  [[nodiscard]] ShardTraffic traffic(std::size_t count, Bytes bytes, ShardLevel outer,
                                     ShardLevel inner, const std::optional<Codec>& codec,
                                     std::size_t after) const {
    std::array<Bytes, 3> sent = {};
    for (std::size_t line = lines(outer); line < lines(inner); ++line) {
      if (m_sizes[line] == 1) continue;
      const Steps at = steps(line, outer, count);
      for (std::size_t r = 0; r < m_sizes[line]; ++r)
        if (r != (m_places[line] + after) % m_sizes[line])
          sent[line] +=
              codec ? encoded_bytes(codec->type, codec->block, at.counts[r]) : at.counts[r] * bytes;
    }
    return {sent[0], sent[1], sent[2]};
  }

  std::array<std::size_t, 3> m_sizes = {1, 1, 1};
  std::array<std::size_t, 3> m_places = {0, 0, 0};
  std::vector<Communicator> m_lines;  ///< of a pair, of a node's pairs, of nodes
};

}  // namespace heddle::inline v0
