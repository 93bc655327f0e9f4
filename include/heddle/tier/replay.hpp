// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// replay(): the hits of a policy for a list of requests, without memory or time. hits_bound(): the
/// most hits that any policy can have. CacheReport: both for a Cache that ran.

#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/cache_event.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/policy.hpp>

namespace heddle::inline v0::tier {

/// The requests and transfers that a Cache of one thread would have.
struct Replay {
  Cache::Counters counters;        ///< its requests and transfers
  std::vector<CacheEvent> events;  ///< what happens, in order
};

/// Returns what a Cache of this capacity and policy does if one thread requests these objects, one
/// after another, and changes none.
/// @throws contract_error if a request names no object or if the policy does not fit the requests;
///         infeasible if an object is larger than the capacity.
[[nodiscard]] Replay replay(std::span<const Object> objects, std::span<const ObjectId> requests,
                            Bytes capacity, AnyPolicy policy);

/// An upper bound of the hits of any policy.
struct HitsBound {
  std::uint64_t hits = 0;  ///< the bound: no policy has more hits
  bool exact = false;      ///< whether a policy with so many hits exists
};

/// Returns the most hits of any policy that loads every absent object that is requested.
///
/// If all objects have the same size, the bound is exact: the object whose next request is the
/// farthest leaves (Belady, IBM Systems Journal 5(2), 1966). Otherwise it is the relaxation PFOO-U
/// of Berger, Beckmann and Harchol-Balter ("Practical bounds on optimal caching with variable
/// object sizes", 2018): every hit occupies the object's bytes since its last request, and all hits
/// together occupy at most the free bytes summed over all requests.
/// Throws as replay() does.
[[nodiscard]] HitsBound hits_bound(std::span<const Object> objects,
                                   std::span<const ObjectId> requests, Bytes capacity);

namespace impl {

/// Returns the objects that were used, in order.
[[nodiscard]] std::vector<ObjectId> requests_of(std::span<const CacheEvent> events);

}  // namespace impl

/// The counters of a Cache beside the bound of its requests.
struct CacheReport {
  Cache::Counters counters;  ///< what the cache did
  HitsBound bound;           ///< the most hits of any policy

  /// Prints "60 of 100 requests hit, any policy: at most 72", and the transfers in a second line.
  friend std::ostream& operator<<(std::ostream& out, const CacheReport& report);
};

/// Returns the report of a cache.
/// @throws contract_error if it was made without CacheOptions::record.
[[nodiscard]] CacheReport report(const Cache& cache);

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/replay.ipp>
#endif
