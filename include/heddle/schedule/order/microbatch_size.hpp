// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// microbatch_size() and microbatch_sizes(): divide a batch into microbatches of equal sizes, or of
/// sizes as equal as possible.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule {

/// Returns the number of samples of each microbatch if all microbatches have the same size. Without
/// StageShares the buffer sizes of a stage are constant, so the last microbatch cannot be smaller.
/// @throws contract_error if one of the numbers is not positive.
/// @throws infeasible if `samples` is not divisible by `microbatches`. It names the nearest numbers
///         that are.
[[nodiscard]] std::int64_t microbatch_size(std::int64_t samples, int microbatches);

/// Returns the number of samples of each microbatch for StageShares::microbatches. The sizes differ
/// by at most one, and the larger ones come first: 8 samples in 3 microbatches are 3, 3 and 2.
/// @throws contract_error if one of the numbers is not positive.
/// @throws infeasible if there are fewer samples than microbatches.
[[nodiscard]] std::vector<std::int64_t> microbatch_sizes(std::int64_t samples, int microbatches);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/microbatch_size.ipp>
#endif
