// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// group(): turns every microbatch of some Orders into several. For slow or shared networks: the
/// transfer of one microbatch of a group overlaps with the computation of the next one.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Returns `orders` with `size` entries, one after the other, for each entry. An entry of
/// microbatch m becomes entries of the microbatches size m to size m + size - 1. Fused pairs stay
/// pairs. An update follows the backward passes of its whole group once. The result has `size`
/// times the microbatches and `size` times the live activations.
///
/// Source of the rule: Ada-Grouper's kFkB (Wang et al., 2023), which applies it to 1F1B.
/// @throws contract_error if `size` is below 1.
[[nodiscard]] Orders group(const Orders& orders, int size);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/group.ipp>
#endif
