// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cut_curve(): divides weighted items on a space-filling curve into pieces, which are intervals of
/// keys. CurveCut: the owner of each key.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// Pieces of a curve: piece p owns the keys from begins[p] up to but without begins[p + 1], and the
/// last piece owns all keys behind. Every key has one owner, also where no item was.
struct CurveCut {
  std::vector<std::uint64_t> begins;  ///< by piece, the first key; begins[0] is 0

  /// Returns the piece that owns `key`, from 0.
  [[nodiscard]] int owner(std::uint64_t key) const noexcept;
  friend bool operator==(const CurveCut&, const CurveCut&) = default;
};

/// Returns pieces of a curve, one for each share. The largest quotient of a piece's weight and its
/// share is the least of all divisions into intervals of keys, see cut(). Items with the same key
/// have the same owner, so rounding coordinates to coarse cells costs balance.
/// @param keys by item, for example from GridCurve::key(), in any order; below 2^63
/// @param weights by item, at least 0, for example the interactions of a particle in the last step
/// @param shares by piece, for example the speeds of ranks; at least 0
/// @throws contract_error if there are more or fewer weights than keys, if a key is 2^63 or more,
///         or if a weight or a share is rejected by cut().
[[nodiscard]] CurveCut cut_curve(std::span<const std::uint64_t> keys,
                                 std::span<const double> weights,
                                 const std::vector<double>& shares);

/// Returns so many pieces with equal shares. @throws contract_error as above, or if `pieces` is
/// below 1.
[[nodiscard]] CurveCut cut_curve(std::span<const std::uint64_t> keys,
                                 std::span<const double> weights, int pieces);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/photons/curve_cut.ipp>
#endif
