// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CacheEvent: one entry of the list that a Cache executed, and the Schedule of such a list.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tier/objects.hpp>

namespace heddle::inline v0::tier {

/// Something that happened to an object of a Cache.
struct CacheEvent {
  /// The kinds of events.
  enum class What : std::uint8_t {
    load,        ///< it was copied from the slower tier
    use,         ///< a handle to it was returned
    write_back,  ///< it was copied to the slower tier
    evict,       ///< it left the faster tier
  };
  What what = What::use;  ///< the kind
  ObjectId object = {};   ///< the object

  friend bool operator==(const CacheEvent&, const CacheEvent&) = default;
};

/// Returns the list that a Cache executed as a Schedule of one rank, for simulate() and the traces.
/// A load moves the object from `slower` to tier 0, a use is a user action that reads it, and a
/// write-back moves it from tier 0 to `slower`. All are in one queue, because a thread that
/// requests an object waits for it. The item of an action is the number of its object. The price of
/// a move is the link of the memory `slower` of a Device.
/// @throws contract_error if an event names no object, or if `slower` is 0.
[[nodiscard]] Schedule recorded_schedule(std::string name, std::span<const Object> objects,
                                         std::span<const CacheEvent> events, Tier slower = Tier{1});

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/cache_event.ipp>
#endif
