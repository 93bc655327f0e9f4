// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The schedule called `best`: the shortest one for the given costs and memory.

#include <string>
#include <string_view>
#include <vector>

#include <heddle/schedule.hpp>

#include "settings.hpp"

namespace tool {

/// The name that stands for the shortest schedule.
inline constexpr std::string_view best_name = "best";

/// Returns what `best` chooses from: the results of plan::coordinate() for the computations of five
/// schedules, then the synchronous schedules of the catalogue that there are of this shape.
[[nodiscard]] std::vector<Candidate> candidates(const Settings& s);

/// Returns the shortest candidate that fits, the first one of several.
/// @throws infeasible if none fits.
[[nodiscard]] const Candidate& shortest(const std::vector<Candidate>& all, const Settings& s);

/// Returns the name of a candidate with its gap to the lower bound, if that is known.
[[nodiscard]] std::string with_gap(const Candidate& candidate, const Settings& s);

/// Returns the orders of one of named_schedules(). If `entry` is null these are the shortest ones
/// for the prices of `s` in its memory: of the schedules of the catalogue and of the results of
/// plan::coordinate() for the computations of five of them. Their name is "best (...)", with the
/// rule that found them and a lower bound. With `refine`, the orders of an entry are the shortest
/// ones that plan::coordinate() finds in the activations that each rank keeps.
/// @throws infeasible if there are none of this shape, or if nothing fits the memory.
[[nodiscard]] heddle::Orders orders_of(const heddle::schedule::NamedSchedule* entry,
                                       const Settings& s);

}  // namespace tool
