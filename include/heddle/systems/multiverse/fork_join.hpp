// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// systems::fork_join(): the Schedule of a text whose paths are written side by side.

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>

namespace heddle::inline v0::systems {

/// Returns the Schedule in which each path of `text` is written by a rank of its own: rank p writes
/// path p, so rank 0 writes what all share. Each run of tokens is one user action that writes a
/// buffer of `per_token` bytes for each token and reads the buffers of all runs that it sees. The
/// ranks share their memory, so a prefix is stored once and no token is moved; the item of an
/// action is the number of its run in ForkedText::segments().
///
/// If each token takes the same time, the makespan is ForkedText::positions() times it: prefix plus
/// longest path plus conclusion, at every fork.
/// @throws contract_error if `per_token` is 0.
[[nodiscard]] Schedule fork_join(const ForkedText& text, Bytes per_token = 1);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/multiverse/fork_join.ipp>
#endif
