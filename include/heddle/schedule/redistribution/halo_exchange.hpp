// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// halo_exchange(): which blocks go between neighbours so that every rank's halo holds what they
/// own.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>

namespace heddle::inline v0::schedule {

/// What is filled of a halo.
struct HaloOptions {
  /// Of each dimension, whether the first index follows the last one. Empty: none does, and what
  /// lies beyond the ends of the tensor stays as it is.
  std::vector<bool> periodic = {};
  /// Whether the halo is filled where it lies beyond a rank's block in several dimensions, too:
  /// edges and corners.
  bool corners = true;
};

/// The exchange after which the halo of every rank holds what others own, or the rank itself on
/// the other side of a periodic dimension: at most one message from any rank to another, of any
/// width, also where it takes more than the next neighbour has. A rank without elements has no halo
/// to fill. Where ranks have the same elements, each asks one that shares its coordinates on those
/// axes. Elements are of `element` bytes, in the arrays "to" of ranks 0 to `ranks` - 1 of a
/// communicator. Beyond the ends of a dimension that is not periodic nothing is written.
/// @throws contract_error where not each dimension is said to be periodic, or not; or where 63 bits
/// do not hold the bytes of a rank's array.
[[nodiscard]] BlockExchange halo_exchange(const Layout& layout, int ranks, Bytes element,
                                          const HaloOptions& options = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/redistribution/halo_exchange.ipp>
#endif
