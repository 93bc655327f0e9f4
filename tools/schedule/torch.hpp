// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the user is told about files for torch.distributed.pipelining.

#include <string>

#include <heddle/schedule.hpp>

namespace tool {

/// The schedules of the catalogue whose files torch does not run, a line each with the reason.
[[nodiscard]] std::string not_for_torch();

/// Warns on standard error if torch does not run a file of these orders.
void warn_if_not_for_torch(const std::string& file, const heddle::Orders& orders);

/// Warns on standard error if `csv` has transfers and lacks what torch adds to a file without them:
/// it adds nothing to this one.
void warn_if_half_lowered(const std::string& file, const std::string& csv,
                          const heddle::schedule::LoweredOrders& lowered);

/// The orders as a file with transfers: with the steps that they have, or with those of torch's
/// lowering if they reduce no gradients. If `stagger`, the steps of torch's lowering are those of
/// its staggered rule.
[[nodiscard]] std::string to_lowered_csv(const heddle::schedule::LoweredOrders& lowered,
                                         bool stagger);

}  // namespace tool
