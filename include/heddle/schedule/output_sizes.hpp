// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// with_output_sizes(): gives every stage of a woven Schedule an output of its own size.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Returns `schedule` with outputs[s] bytes in each part of the output of stage s, and with buffers
/// of the same size on the ranks to which the output is moved. weave() alone gives the outputs of
/// all stages one size. Call it for forwards: the gradients of outputs keep their sizes.
/// @throws contract_error if there is not one number for each stage that has an output.
[[nodiscard]] Schedule with_output_sizes(const Schedule& schedule,
                                         const std::vector<Bytes>& outputs);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/output_sizes.ipp>
#endif
