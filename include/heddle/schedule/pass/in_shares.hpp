// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// in_shares(): puts every stage of some Orders on several ranks, which divide the samples of each
/// microbatch.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_shares.hpp>

namespace heddle::inline v0::schedule {

/// Returns `orders` in which the ranks of a stage compute the given shares of every microbatch. A
/// rank whose stages have k shares becomes k consecutive ranks, which all have its list. For
/// example, 1F1B of two stages with the shares `{.samples = 8, .stages = {{3, 3, 2}, {8}}}` has
/// stage 0 on ranks 0, 1 and 2, and stage 1 on rank 3. Passes that reorder come before this one.
///
/// @throws contract_error if the shares are wrong (see StageShares::check()), if a stage of the
///         orders has no shares, if the stages of a rank have different numbers of shares, or if
///         the orders have shares already. A stage with replicas has one share.
[[nodiscard]] Orders in_shares(Orders orders, StageShares shares);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/in_shares.ipp>
#endif
