// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of await.hpp.

#include <span>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::string impl::does_not(std::span<const Rank> ranks, const char* what) {
  if (ranks.empty()) return text("another rank does not ", what);
  std::string list;
  for (const Rank rank : ranks) list += text(list.empty() ? "" : ", ", rank);
  return text(ranks.size() == 1 ? "rank " : "ranks ", list,
              ranks.size() == 1 ? " does not " : " do not ", what);
}

HEDDLE_INLINE communication_error lost(std::string where, const Abort& abort) {
  return communication_error(
      {std::move(where), text("rank ", abort.rank, " failed at ", abort.action), abort.reason});
}

}  // namespace heddle::inline v0
