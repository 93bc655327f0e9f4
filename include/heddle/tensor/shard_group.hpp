// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardGroup: replicas in nested groups, with operations that gather and sum shares between
/// levels.

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
#include <heddle/core/linkage.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/tensor/shard_place.hpp>

namespace heddle::inline v0 {

/// The ranks of a communicator in pairs, nodes and all ranks. It combines a ShardPlace with the
/// communicators along which it sends. Construction is collective. A group can be moved, but not
/// copied.
class ShardGroup : public ShardPlace {
 public:
  /// Constructs a group of one rank, which does not communicate and does not call MPI.
  ShardGroup() = default;
  /// Constructs a group with `pair` ranks in a pair and `node` ranks in a node. A level with one
  /// rank or with all ranks does not exist.
  /// @throws contract_error on every rank if a pair does not divide a node, if a node does not
  ///         divide the ranks, or if the numbers differ between ranks.
  ShardGroup(const Communicator& ranks, int node, int pair);

  /// Gathers a share. `block` is this rank's share at level `to` of `count` elements, in the memory
  /// of `Exec`. The part within(to, from) of it must be filled in, and the call receives the other
  /// parts from the ranks that hold them. It uses ring algorithms. With a codec every rank ends
  /// with the same numbers, because its own part is rounded like those of the others. Every line of
  /// ranks rounds once. @throws contract_error if `from` divides less finely than `to`.
  template <kernel::ExecutionSpace Exec, class Real>
  void gather(const Exec& exec, Real* block, std::size_t count, ShardLevel from, ShardLevel to,
              std::optional<Codec> codec = {}) const {
    expect_levels("heddle::ShardGroup::gather", to, from);
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

  /// Sums shares. `block` is this rank's share at level `from` of `count` elements. Afterwards the
  /// part within(from, to) of it holds the sum over the ranks with the same share at level `to`;
  /// the other parts hold partial sums. It uses ring algorithms, or with a codec direct ones, so
  /// that every addend is rounded once per line. @throws contract_error if `to` divides less finely
  /// than `from`.
  template <kernel::ExecutionSpace Exec, class Real>
  void reduce(const Exec& exec, Real* block, std::size_t count, ShardLevel from, ShardLevel to,
              const std::optional<Codec>& codec = {}) const {
    expect_levels("heddle::ShardGroup::reduce", from, to);
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
  /// Throws unless `inner` divides at least as finely as `outer`.
  static void expect_levels(const char* where, ShardLevel outer, ShardLevel inner);

  [[nodiscard]] static ShardPlace place_in(const Communicator& ranks, int node, int pair);

  std::vector<Communicator> m_lines;  ///< the lines of a pair, of a node's pairs, and of nodes
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/shard_group.ipp>
#endif
