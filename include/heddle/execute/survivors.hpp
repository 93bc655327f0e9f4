// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LosesRanks: a transport that finds out which ranks are left after some have died, and makes a
/// transport between them. survive() uses it.

#include <concepts>
#include <cstdint>
#include <memory>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// The ranks of a transport that are left, and a new transport between them.
template <class T>
struct Survivors {
  std::vector<Rank> ranks = {};       ///< their numbers in the old transport, in ascending order
  std::unique_ptr<T> transport = {};  ///< gives them the numbers 0, 1, ... in this order
};

/// A Transport whose other ranks can continue after a rank has died. It models Transport, with one
/// more rule: if a rank dies, every wait of another rank for a message ends with a
/// communication_error, perhaps after other ranks have called `abort`. Both functions below also
/// work after an abort. All ranks that are alive must call them in the same order. They wait for at
/// most `watchdog` seconds (0: no limit) and then throw communication_error.
///
/// - `agree(flags, watchdog)` returns the bitwise and of the flags of all ranks that are alive. A
///   rank that dies meanwhile may count or not, but the result is the same on every rank.
/// - `survivors(watchdog)` returns the ranks that are left. The result is the same on every rank. A
///   rank that dies meanwhile may be among them, and is then a lost rank of the new transport.
template <class T>
concept LosesRanks = Transport<T> && requires(T& transport, std::uint32_t flags, Seconds watchdog) {
  { transport.agree(flags, watchdog) } -> std::same_as<std::uint32_t>;
  { transport.survivors(watchdog) } -> std::same_as<Survivors<T>>;
};

}  // namespace heddle::inline v0
