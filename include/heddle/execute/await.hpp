// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// await(): the loop in which a rank waits for a message, and what it says when none comes. For all
/// that waits on a Transport, or for something else beside one.

#include <concepts>
#include <optional>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// What a rank says, at `where`, when it has heard of another one's abort.
[[nodiscard]] inline communication_error lost(std::string where, const Abort& abort) {
  return communication_error(
      {std::move(where), text("rank ", abort.rank, " failed at ", abort.action), abort.reason});
}

/// What a rank that has waited since `since`, by steady_seconds(), asks now and then.
/// @throws communication_error: `lost(where(), ...)` where another rank has aborted, and the
/// Complaint `stuck()` where the wait is longer than `watchdog` seconds (0: never).
template <Transport T, std::invocable Where, std::invocable Stuck>
void look_up(T& transport, Seconds since, Seconds watchdog, Where&& where, Stuck&& stuck) {
  if (const std::optional<Abort> abort = transport.aborted()) throw lost(where(), *abort);
  if (watchdog > 0 && steady_seconds() - since > watchdog) throw communication_error(stuck());
}

/// Waits until `ready()` says so, as idly as `idle` allows.
/// @throws communication_error as look_up() does.
template <Transport T, std::predicate Ready, std::invocable Where, std::invocable Stuck>
void await(T& transport, Ready&& ready, Idle idle, Seconds watchdog, Where&& where, Stuck&& stuck) {
  if (ready()) return;
  Waiting waiting(idle);
  Seconds since = 0;
  while (!ready()) {
    waiting();
    // Naps are long enough to look up after every one; a spin looks up now and then.
    if (waiting.polls() % 64 != 0 && idle != Idle::nap) continue;
    if (since == 0) since = steady_seconds();  // most waits are over before it is worth its time
    look_up(transport, since, watchdog, where, stuck);
  }
}

/// The same until `request` is complete.
template <Transport T, std::invocable Where, std::invocable Stuck>
void await(T& transport, typename T::Request& request, Idle idle, Seconds watchdog, Where&& where,
           Stuck&& stuck) {
  await(
      transport, [&] { return transport.test(request); }, idle, watchdog,
      std::forward<Where>(where), std::forward<Stuck>(stuck));
}

}  // namespace heddle::inline v0
