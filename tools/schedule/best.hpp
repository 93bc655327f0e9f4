// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The schedule called `best`: the shortest one for the given costs and memory.

#include <string_view>

#include <heddle/schedule.hpp>

#include "settings.hpp"

namespace tool {

/// The name that stands for the shortest schedule.
inline constexpr std::string_view best_name = "best";

/// Returns the orders of one of named_schedules(). If `entry` is null these are the shortest ones
/// for the prices of `s` in its memory: of the schedules of the catalogue and of the results of
/// plan::coordinate() for the computations of five of them. Their name is "best (...)", with the
/// rule that found them and a lower bound.
/// @throws infeasible if there are none of this shape, or if nothing fits the memory.
[[nodiscard]] heddle::Orders orders_of(const heddle::schedule::NamedSchedule* entry,
                                       const Settings& s);

}  // namespace tool
