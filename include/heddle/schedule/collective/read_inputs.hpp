// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// read_inputs(): an all-gather whose inputs are no parts of its outputs.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/rounds.hpp>

namespace heddle::inline v0::schedule {

/// Makes of an all-gather of `ranks` ranks in place, of `each` blocks a rank, one whose members are
/// the inputs of all ranks and then their outputs. Whoever sends its own blocks only takes them
/// from its input, which nobody writes: these messages wait for no copy. Own blocks are copied to
/// the outputs behind what the first round sends.
void read_inputs(Rounds& rounds, std::uint32_t ranks, std::uint32_t each);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/read_inputs.ipp>
#endif
