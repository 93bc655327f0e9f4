// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// prefetch_window(): the Schedule of a rank whose weights lie in a slow memory tier. A window of
/// them moves through the fast tier ahead of their use.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Options of prefetch_window(). An object is what is loaded at once, such as the weights of an
/// attention block or of an MLP.
struct PrefetchWindowOptions {
  std::vector<Bytes> objects = {};  ///< the bytes of every object, in the order of use
  int window = 2;                   ///< the most objects in the fast tier at any time
  int passes = 1;      ///< the number of times that all objects are used, one pass after another
  Bytes capacity = 0;  ///< the bytes of the fast tier; 0: unknown

  /// Returns the bytes of all slots. If objects of two sizes a < b alternate, an even window w
  /// needs w (a + b) / 2 bytes, and an odd window needs w b because every slot holds both sizes.
  /// @throws contract_error as prefetch_window() does.
  [[nodiscard]] Bytes slot_bytes() const;
};

/// The places of prefetch_window(): the tiers, the queues and the label of its fast buffer.
namespace window {
inline constexpr Tier fast = 0;                ///< the tier in which objects are used
inline constexpr Tier slow = 1;                ///< the tier that holds all objects
inline constexpr Lane compute = 0;             ///< the local lane of the actions that use objects
inline constexpr Lane load = 1;                ///< the local lane of the loads
inline constexpr const char* slots = "slots";  ///< the label of the buffer in the fast tier
}  // namespace window

/// Returns the Schedule of one rank that uses the objects in a cycle and loads them ahead of their
/// use, as TPI-LLM does (Li et al., "TPI-LLM: serving 70B-scale LLMs efficiently on low-resource
/// edge devices", 2024).
///
/// - The persistent buffer role::weights in tier window::slow has a part for every object.
/// - The transient buffer window::slots in tier window::fast has `window` slots. The i-th load goes
///   to slot i mod `window`, which is as large as the largest object that it ever holds. An object
///   occupies the first bytes of its slot.
/// - Use i is a forward of stage i mod n and of item i div n if there are n objects. It reads the
///   object. Load i is a move with the same stage and item. It waits until use i - window has
///   ended, so at most `window` objects are in the fast tier.
/// - If the window has room for all objects, each is loaded once.
///
/// A load needs its slot before it begins, so simulate it with Sending::rendezvous.
///
/// Let two kinds of objects alternate, with c and d seconds for their uses and C and D for their
/// loads. After the first two uses, no use waits for its load if the window is 2, C <= d and
/// D <= c. With a larger window it is enough that C + D <= c + d. If one of these conditions does
/// not hold, uses keep waiting. The uses of TPI-LLM include the sum over ranks that follows.
///
/// @throws contract_error if the window or the number of passes is below 1, if there is no object,
///         or if an object has no bytes.
/// @throws infeasible if `capacity` is not 0 and an object or all slots exceed it. The error names
///         the largest window that fits.
[[nodiscard]] Schedule prefetch_window(const PrefetchWindowOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/prefetch_window.ipp>
#endif
