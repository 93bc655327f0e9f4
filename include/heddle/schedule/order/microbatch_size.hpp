// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// microbatch_size(): divides a batch into microbatches.

#include <cstdint>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule {

/// Returns the number of samples of each microbatch. All microbatches of a step have the same size,
/// because the buffer sizes of a stage are constant. The last microbatch cannot be smaller.
/// @throws contract_error if one of the numbers is not positive.
/// @throws infeasible if `samples` is not divisible by `microbatches`. It names the nearest numbers
///         that are.
[[nodiscard]] std::int64_t microbatch_size(std::int64_t samples, int microbatches);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/order/microbatch_size.ipp>
#endif
