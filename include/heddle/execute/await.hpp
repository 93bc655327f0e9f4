// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// await(): the loop in which a rank waits for a message or for another condition, while it watches
/// a Transport for aborts.

#include <span>
#include <string>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0::impl {

/// The fix in an error about a silent rank.
inline constexpr const char* about_silence =
    "see what that rank is doing, or raise ExecuteOptions::watchdog; a blocking collective call of "
    "the MPI library has a watchdog only with CallOptions::watch_library";

/// Returns "rank 1 does not WHAT", "ranks 1, 2 do not WHAT", or "another rank does not WHAT" if no
/// ranks are known.
[[nodiscard]] std::string does_not(std::span<const Rank> ranks, const char* what);

/// Returns "rank 1 failed at WHAT", or "rank 1 has died", which is an Abort without an action.
[[nodiscard]] std::string failure_of(const Abort& abort);

/// Returns the error that a rank throws at `where` when another rank has aborted.
[[nodiscard]] communication_error lost(std::string where, const Abort& abort);

/// Checks whether a wait should end. It began at `since` in steady_seconds().
/// @throws communication_error: `lost(where(), ...)` if another rank has aborted, or the ErrorInfo
///         `stuck()` if the wait is longer than `watchdog` seconds (0: never).
void look_up(const TransportRef& transport, Seconds since, Seconds watchdog,
             impl::FunctionRef<std::string()> where, impl::FunctionRef<ErrorInfo()> stuck);

/// Waits until `ready()` returns true, as idly as `idle` allows.
/// @throws communication_error as look_up() does.
void await(const TransportRef& transport, impl::FunctionRef<bool()> ready, Idle idle,
           Seconds watchdog, impl::FunctionRef<std::string()> where,
           impl::FunctionRef<ErrorInfo()> stuck);

/// Waits in the same way until `request` is complete.
template <Transport T>
void await(T& transport, typename T::Request& request, Idle idle, Seconds watchdog,
           impl::FunctionRef<std::string()> where, impl::FunctionRef<ErrorInfo()> stuck) {
  await(
      transport, [&] { return transport.test(request); }, idle, watchdog, where, stuck);
}

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/await.ipp>
#endif
