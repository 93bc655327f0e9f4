// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardLines: the times of the gathers and sums of a ShardGroup, on a described machine.

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/traffic_round.hpp>

namespace heddle::inline v0::plan::impl {

/// The ranks that hold the same weights, in pairs, nodes and all ranks as a ShardPlace has them.
/// Several such rings communicate at once. Along each line of ranks, a gather is a ring: m - 1
/// rounds in which each of m ranks sends a block to the next one. A sum is a ring as well; with a
/// codec each rank sends one message to each other rank of its line. The largest block counts, and
/// rounds do not overlap, so the times are those of simulate() if the links of a line are alike and
/// blocks are equal.
class ShardLines {
 public:
  /// `bytes` are those of the weights of one ring. 0 ranks of a node are all ranks, and 0 of a pair
  /// are one.
  /// @throws contract_error if a pair does not divide a node, or a node the ranks of a ring.
  ShardLines(std::vector<std::vector<Rank>> rings, int node, int pair, Bytes bytes, Scalar type,
             const Machine& machine)
      : m_rings(std::move(rings)), m_element(size_of(type)), m_machine(&machine) {
    const std::size_t ranks = m_rings.front().size();
    const std::size_t in_node = node == 0 ? ranks : static_cast<std::size_t>(node);
    const std::size_t in_pair = pair == 0 ? 1 : static_cast<std::size_t>(pair);
    expects(in_node % in_pair == 0 && ranks % in_node == 0, [&] {
      return ErrorInfo{
          "heddle::plan::stage_prices",
          "pairs do not make whole nodes, or nodes not all ranks with the same weights",
          text("pairs of ", in_pair, ", nodes of ", in_node, ", ", ranks, " ranks"),
          "set Plan::shard_node and Plan::shard_pair to sizes that divide the ranks"};
    });
    m_sizes = {in_pair, in_node / in_pair, ranks / in_node};
    m_strides = {1, in_pair, in_node};
    Bytes elements = (bytes + m_element - 1) / m_element;
    for (std::size_t line = 0; line < 3; ++line) {
      elements = (elements + m_sizes[line] - 1) / m_sizes[line];
      m_blocks[line] = elements;
    }
  }

  /// Returns the time of ShardGroup::gather().
  [[nodiscard]] Seconds gather(ShardLevel from, ShardLevel to,
                               const std::optional<Codec>& codec) const {
    Seconds sum = 0;
    for (std::size_t line = lines(to); line < lines(from); ++line) sum += ring(line, codec);
    return sum;
  }
  /// Returns the time of ShardGroup::reduce().
  [[nodiscard]] Seconds reduce(ShardLevel from, ShardLevel to,
                               const std::optional<Codec>& codec) const {
    Seconds sum = 0;
    for (std::size_t line = lines(from); line < lines(to); ++line)
      sum += codec ? direct(line, codec) : ring(line, codec);
    return sum;
  }

 private:
  [[nodiscard]] static std::size_t lines(ShardLevel level) {
    return static_cast<std::size_t>(level);
  }
  [[nodiscard]] double bytes(std::size_t line, const std::optional<Codec>& codec) const {
    const Bytes elements = m_blocks[line];
    return static_cast<double>(
        codec ? heddle::impl::encoded_bytes(codec->type, codec->block, elements)
              : elements * m_element);
  }
  /// Returns the time in which each rank sends a block to each of the `most` ranks behind it.
  [[nodiscard]] Seconds round(std::size_t line, std::size_t most,
                              const std::optional<Codec>& codec) const {
    const std::size_t size = m_sizes[line], stride = m_strides[line];
    const double each = bytes(line, codec);
    TrafficRound messages(*m_machine);
    for (const std::vector<Rank>& ranks : m_rings)
      for (std::size_t i = 0; i < ranks.size(); ++i)
        for (std::size_t step = 1; step <= most; ++step) {
          const std::size_t place = i / stride % size, to = (place + step) % size;
          messages.add(ranks[i], ranks[i - place * stride + to * stride], each);
        }
    return messages.time();
  }
  [[nodiscard]] Seconds ring(std::size_t line, const std::optional<Codec>& codec) const {
    if (m_sizes[line] == 1) return 0;
    return static_cast<double>(m_sizes[line] - 1) * round(line, 1, codec);
  }
  [[nodiscard]] Seconds direct(std::size_t line, const std::optional<Codec>& codec) const {
    return m_sizes[line] == 1 ? 0 : round(line, m_sizes[line] - 1, codec);
  }

  std::vector<std::vector<Rank>> m_rings;
  Bytes m_element;
  const Machine* m_machine;
  std::array<std::size_t, 3> m_sizes = {}, m_strides = {};
  std::array<Bytes, 3> m_blocks = {};  ///< elements of the largest block, by line
};

}  // namespace heddle::inline v0::plan::impl
