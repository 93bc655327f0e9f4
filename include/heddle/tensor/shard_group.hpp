// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardGroup: replicas in nested groups, and what travels between shares of one level and shares
/// of another.

#include <cstddef>
#include <optional>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/tensor/parameter_sharding.hpp>
#include <heddle/tensor/shard_place.hpp>

namespace heddle::inline v0 {

/// The ranks of a communicator in pairs, nodes and the whole: a ShardPlace, and the lines of ranks
/// along which it sends. Making one is collective. Move-only.
class ShardGroup : public ShardPlace {
 public:
  /// A group of one rank, without communication: MPI is not called.
  ShardGroup() = default;
  /// `pair` ranks in a pair and `node` in a node; 1 and all: no such level.
  /// @throws contract_error where a pair does not divide a node, or a node not the ranks.
  ShardGroup(const Communicator& ranks, int node, int pair)
      : ShardPlace(ranks.rank(), ranks.size(), node, pair) {
    const int rank = static_cast<int>(+ranks.rank());
    m_lines.push_back(ranks.split(rank / pair, rank));
    m_lines.push_back(ranks.split(rank / node * pair + rank % pair, rank));
    m_lines.push_back(ranks.split(rank % node, rank));
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
      if (size(line) == 1) continue;
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
      if (size(line) == 1) continue;
      const Steps at = steps(line, from, count);
      const kernel::Vector<Real, Exec> outer(block + at.outer.first, at.outer.count);
      const kernel::Vector<Real, Exec> inner(block + at.inner.first, at.inner.count);
      reduce_scatter(exec, outer, inner, Sum{}, m_lines[line],
                     {.algorithm = codec ? schedule::Algorithm::direct : schedule::Algorithm::ring,
                      .counts = at.counts,
                      .codec = codec});
    }
  }

 private:
  std::vector<Communicator> m_lines;  ///< the lines of a pair, of a node's pairs, and of nodes
};

}  // namespace heddle::inline v0
