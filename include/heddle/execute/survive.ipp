// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of survive.hpp.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/survive.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE bool impl::all_are_done(WorkEnd agreed, const std::exception_ptr& error) {
  if (agreed == WorkEnd::done) return true;
  if (agreed == WorkEnd::lost) return false;
  if (error) std::rethrow_exception(error);
  throw communication_error({"heddle::survive", "the work has failed on another rank"});
}

HEDDLE_INLINE void impl::note_survivors(std::vector<Rank>& first, std::span<const Rank> left,
                                        const std::exception_ptr& error,
                                        const ExecuteOptions& options) {
  if (left.size() == first.size()) {
    if (error) std::rethrow_exception(error);
    throw communication_error(
        {"heddle::survive", "a message has failed on another rank, although no rank has died"});
  }
  std::vector<Rank> kept;
  for (const Rank rank : left) kept.push_back(first[+rank]);
  std::string dead;
  std::size_t deaths = 0;
  for (const Rank rank : first)
    if (std::ranges::find(kept, rank) == kept.end()) {
      dead += text(dead.empty() ? "" : ", ", rank);
      ++deaths;
    }
  if (options.log)
    options.log(text("heddle::survive: ", deaths == 1 ? "rank " : "ranks ", dead,
                     deaths == 1 ? " has died; " : " have died; ", kept.size(),
                     kept.size() == 1 ? " rank goes on" : " ranks go on"));
  first = std::move(kept);
}

}  // namespace heddle::inline v0
