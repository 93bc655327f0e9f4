// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// halo_exchange(): the exchange that fills the halo of every rank with the elements of its
/// neighbours.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>

namespace heddle::inline v0::schedule {

/// The parts of a halo that are filled.
struct HaloOptions {
  /// For each dimension, whether it is periodic: its first index follows its last one. If empty, no
  /// dimension is periodic, and the halo beyond the ends of the tensor stays unchanged.
  std::vector<bool> periodic = {};
  /// True if edges and corners are filled, where the halo lies beyond a rank's block in several
  /// dimensions.
  bool corners = true;
};

/// Returns the exchange that fills the halo of every rank with the elements that other ranks own,
/// or that the rank itself owns on the other side of a periodic dimension. Each pair of ranks
/// exchanges at most one message in each direction. The halo may be wider than the block of the
/// next neighbour. A rank without elements has no halo to fill. If several ranks have the same
/// elements, a rank receives from the one with its coordinates on the axes that do not shard.
/// Nothing is written beyond the ends of a dimension that is not periodic.
///
/// Elements have `element` bytes, and lie in the arrays "to" of ranks 0 to `ranks` - 1 of a
/// communicator.
/// @throws contract_error if `options.periodic` is neither empty nor one value for each dimension,
///         or if the size of a rank's array does not fit in 63 bits.
[[nodiscard]] BlockExchange halo_exchange(const Layout& layout, int ranks, Bytes element,
                                          const HaloOptions& options = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION
#include <heddle/schedule/redistribution/halo_exchange.ipp>
#endif
