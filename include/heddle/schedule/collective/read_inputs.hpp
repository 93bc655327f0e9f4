// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_inputs(): turns an all-gather in place into one with separate inputs.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/rounds.hpp>

namespace heddle::inline v0::schedule {

/// Changes the rounds of an all-gather in place, of `ranks` ranks with `each` blocks each, such
/// that the members are the inputs of all ranks, then their outputs. A message with only the
/// sender's own blocks reads them from its input. No action writes inputs, so such a message waits
/// for no copy. The copies of own blocks to the outputs follow the messages of the first round.
void read_inputs(Rounds& rounds, std::uint32_t ranks, std::uint32_t each);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/read_inputs.ipp>
#endif
