// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of await.hpp.

#include <optional>
#include <span>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::string impl::does_not(std::span<const Rank> ranks, const char* what) {
  if (ranks.empty()) return text("another rank does not ", what);
  std::string list;
  for (const Rank rank : ranks) list += text(list.empty() ? "" : ", ", rank);
  return text(ranks.size() == 1 ? "rank " : "ranks ", list,
              ranks.size() == 1 ? " does not " : " do not ", what);
}

namespace impl {

HEDDLE_INLINE std::string failure_of(const Abort& abort) {
  if (!abort.action.empty()) return text("rank ", abort.rank, " failed at ", abort.action);
  return abort.rank == unknown_rank ? "a rank has died" : text("rank ", abort.rank, " has died");
}

HEDDLE_INLINE communication_error lost(std::string where, const Abort& abort) {
  return communication_error({std::move(where), failure_of(abort), abort.reason});
}

HEDDLE_INLINE void look_up(const TransportRef& transport, Seconds since, Seconds watchdog,
                           impl::FunctionRef<std::string()> where,
                           impl::FunctionRef<ErrorInfo()> stuck) {
  if (const std::optional<Abort> abort = transport.aborted()) throw lost(where(), *abort);
  if (watchdog <= 0 || steady_seconds() - since <= watchdog) return;
  transport.note_silence();
  throw communication_error(stuck());
}

HEDDLE_INLINE void await(const TransportRef& transport, impl::FunctionRef<bool()> ready, Idle idle,
                         Seconds watchdog, impl::FunctionRef<std::string()> where,
                         impl::FunctionRef<ErrorInfo()> stuck) {
  if (ready()) return;
  Waiting waiting(idle);
  Seconds since = 0;
  while (!ready()) {
    waiting();
    // A nap is long enough to check after every one. A spin checks every 64 polls.
    if (waiting.polls() % 64 != 0 && idle != Idle::nap) continue;
    if (since == 0) since = steady_seconds();  // most waits end before this costs any time
    look_up(transport, since, watchdog, where, stuck);
  }
}

}  // namespace impl

}  // namespace heddle::inline v0
