// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// UsedBytes: the sizes of one step, which say how much of its parts the step uses. use_bytes()
/// sets them in a Program.

#include <cstdint>
#include <functional>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// A function that returns how many bytes of a part an action uses in a step, at most the size of
/// the part in the Schedule, which is its capacity. The used bytes are the first ones. All ranks
/// must return the same, so it depends on what all of them know when the step begins, such as the
/// lengths of the sequences of `action.item`. A value that stays for the next step has the same
/// size in both. schedule::fold() renames parts, so a function for a folded Schedule looks at the
/// action.
using UsedBytes =
    std::function<Bytes(const Action& action, const Buffer& buffer, std::uint32_t part)>;

namespace impl {

/// Sets the sizes of the uses of `program`: messages, moves and tasks have so many bytes from the
/// next step on. The memory stays where it is. An empty function restores the capacities.
/// @throws contract_error that names the action and the buffer if a part uses more than its
///         capacity or a fraction of a value, if the two ends of a move or the terms of a sum
///         differ, if an action uses several parts and one before the last is not full (the used
///         bytes would have gaps), or if a part with scales is not full. The program is then as
///         before.
void use_bytes(Program& program, const UsedBytes& used);

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/step_sizes.ipp>
#endif
