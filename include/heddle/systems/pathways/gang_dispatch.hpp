// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gang_dispatch(): the Schedule of a chain of functions whose hosts dispatch one after another, or
/// all at once.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::systems {

/// When the hosts of a chain prepare their functions.
enum class Dispatch : std::uint8_t {
  sequential,  ///< a host prepares when the function before has run, because it needs its shapes
  parallel     ///< all hosts prepare at once, because all shapes are known
};

/// Options of gang_dispatch().
struct GangDispatchOptions {
  int functions = 1;                       ///< the functions of the chain
  int hosts = 1;                           ///< function k runs on host k mod hosts
  Dispatch dispatch = Dispatch::parallel;  ///< when the hosts prepare
};

/// The stages of the actions of gang_dispatch(), by which costs tell them apart. All are of
/// Kind::user.
namespace gang {
inline constexpr Stage prepare = 0;  ///< the host allocates and posts the receives of a function
inline constexpr Stage enqueue = 1;  ///< the host hands the function to its device
inline constexpr Stage compute = 2;  ///< the device runs the function
}  // namespace gang

/// Returns the Schedule of a chain of functions in which every function reads the result of the one
/// before it. Each function is prepared on its host, then enqueued, then computed; the item of an
/// action is the number of the function. Functions are enqueued in the order of the chain. A host,
/// its enqueues and its device are three queues of a rank. The moves carry no bytes.
///
/// This is the asynchronous gang dispatch of Pathways (Barham et al., 2022). Let h, p and x be the
/// times of the three actions, and let each of the n functions have a host of its own. Sequential
/// dispatch takes n (h + p + x). Parallel dispatch takes h + p + n x if x >= p, and h + n p + x
/// otherwise.
/// @throws contract_error if there is no function or no host.
[[nodiscard]] Schedule gang_dispatch(const GangDispatchOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/pathways/gang_dispatch.ipp>
#endif
