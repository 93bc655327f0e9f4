// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The race of threads, compiled once for all searches.

#include <cstdint>
#include <vector>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/pattern/race_options.hpp>
#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::impl {

/// The state that the threads of a race share.
class ThreadRace;

/// Calls keep() if the result of `walker` is the best one so far. One thread at a time keeps one.
void keep_best(ThreadRace& race, const pattern::Walker& walker, FunctionRef<void()> keep);

/// Runs `search` for each walker, which calls keep_best() if it finds a result. Returns the winner,
/// or -1, and sets the work of each walker. Throws as race() does.
[[nodiscard]] int thread_race(const pattern::RaceOptions& options, std::vector<std::uint64_t>& work,
                              FunctionRef<void(pattern::Walker&, ThreadRace&)> search);

}  // namespace heddle::inline v0::impl
