// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The schedule called `best`: the shortest one for the given costs and memory.

#include <string>
#include <string_view>

#include <heddle/schedule/order/orders.hpp>

#include "../common/command_line.hpp"
#include "settings.hpp"

namespace tool {

/// The name that stands for the schedule of best_orders().
inline constexpr std::string_view best_name = "best";

/// Searches for the shortest orders for the prices of `s`, in its memory. The candidates are the
/// schedules of the catalogue and the results of plan::coordinate() for the work of five of them.
/// Prints which one it is, its makespan and a lower bound.
/// @throws usage_error if the costs differ from stage to stage.
/// @throws infeasible if nothing fits the memory.
[[nodiscard]] heddle::Orders best_orders(const CommandLine& command, const Settings& s);

}  // namespace tool
