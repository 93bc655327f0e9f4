// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListPlace: how far a rank has come in the list of a Schedule, when a step hangs.

#include <cstdint>

namespace heddle::inline v0 {

/// How far a rank has come in the list of a Schedule, when a step hangs. Only actions of the rank
/// itself count: its local actions, and its ends of moves.
struct ListPlace {
  /// The `list` of a rank that is in no list.
  static constexpr std::uint64_t outside = ~std::uint64_t{0};

  std::uint32_t started = 0;   ///< one past the last action that it has started; 0: none
  std::uint32_t finished = 0;  ///< one past the last action up to which all have finished
  bool answered = true;        ///< false if the rank is silent and the places are the last known
  std::uint64_t step = 0;      ///< the number of the step: its first one that is not finished
  /// The hash() of the Schedule. 0: the Schedule that the places are for.
  std::uint64_t list = 0;

  friend bool operator==(const ListPlace&, const ListPlace&) = default;
};

}  // namespace heddle::inline v0
