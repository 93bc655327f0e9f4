// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of replay.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <ostream>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/cache_event.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/policy.hpp>
#include <heddle/tier/replay.hpp>

namespace heddle::inline v0::tier {

namespace impl {

inline void check_requests(const char* where, std::span<const Object> objects,
                           std::span<const ObjectId> requests, Bytes capacity) {
  for (const ObjectId id : requests) {
    expects(+id < objects.size(), [&] {
      return ErrorInfo{where, "a request names no object",
                       text("object ", id, ", there are ", objects.size())};
    });
    const Object& object = objects[+id];
    if (object.bytes > capacity)
      throw infeasible({where, text("object '", object.name, "' is larger than the cache"),
                        text(object.bytes, " bytes, the capacity is ", capacity),
                        "raise the capacity, or divide the object"});
  }
}

// Returns the hits if the object with the farthest next request leaves, with room for `slots`.
[[nodiscard]] inline std::uint64_t belady_hits(std::span<const ObjectId> requests,
                                               std::size_t objects, std::uint64_t slots) {
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> after(requests.size()), next(objects, never);
  for (std::size_t r = requests.size(); r-- > 0;) after[r] = std::exchange(next[+requests[r]], r);
  std::set<std::pair<std::size_t, ObjectId>> held;  // by next request
  std::uint64_t hits = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    if (held.erase({r, requests[r]}) == 1)
      ++hits;
    else if (held.size() == slots)
      held.erase(std::prev(held.end()));
    held.insert({after[r], requests[r]});
  }
  return hits;
}

// Returns the bound for objects of any sizes.
[[nodiscard]] inline std::uint64_t relaxed_hits(std::span<const Object> objects,
                                                std::span<const ObjectId> requests,
                                                Bytes capacity) {
  __extension__ using Wide = unsigned __int128;
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> last(objects.size(), never);
  std::vector<Wide> costs;  // bytes times the requests between two of the same object
  Wide room = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const std::size_t o = +requests[r];
    room += capacity - objects[o].bytes;
    if (last[o] != never) costs.push_back(Wide{objects[o].bytes} * (r - last[o] - 1));
    last[o] = r;
  }
  std::ranges::sort(costs);
  std::uint64_t hits = 0;
  for (const Wide cost : costs) {
    if (cost > room) break;
    room -= cost;
    ++hits;
  }
  return hits;
}

}  // namespace impl

HEDDLE_INLINE Replay replay(std::span<const Object> objects, std::span<const ObjectId> requests,
                            Bytes capacity, AnyPolicy policy) {
  impl::check_requests("heddle::tier::replay", objects, requests, capacity);
  policy.begin(objects);
  std::vector<bool> held(objects.size(), false);
  Bytes used = 0;
  Replay made;
  for (const ObjectId id : requests) {
    ++made.counters.requests;
    if (held[+id]) {
      ++made.counters.hits;
    } else {
      ++made.counters.misses;
      const Bytes bytes = objects[+id].bytes;
      while (bytes > capacity - used) {
        const std::size_t victim = impl::least_worth(
            policy, objects.size(), [&](std::size_t o) { return held[o] && objects[o].bytes > 0; });
        held[victim] = false;
        used -= objects[victim].bytes;
        ++made.counters.evictions;
        made.events.push_back({CacheEvent::What::evict, ObjectId{victim}});
      }
      held[+id] = true;
      used += bytes;
      made.counters.bytes_read += bytes;
      made.events.push_back({CacheEvent::What::load, id});
    }
    policy.use(id);
    made.events.push_back({CacheEvent::What::use, id});
  }
  return made;
}

HEDDLE_INLINE HitsBound hits_bound(std::span<const Object> objects,
                                   std::span<const ObjectId> requests, Bytes capacity) {
  impl::check_requests("heddle::tier::hits_bound", objects, requests, capacity);
  if (requests.empty()) return {0, true};
  const Bytes size = objects[+requests.front()].bytes;
  const bool equal =
      std::ranges::all_of(requests, [&](ObjectId id) { return objects[+id].bytes == size; });
  if (equal && size > 0)
    return {impl::belady_hits(requests, objects.size(), capacity / size), true};
  return {impl::relaxed_hits(objects, requests, capacity), false};
}

HEDDLE_INLINE std::vector<ObjectId> impl::requests_of(std::span<const CacheEvent> events) {
  std::vector<ObjectId> requests;
  for (const CacheEvent& event : events)
    if (event.what == CacheEvent::What::use) requests.push_back(event.object);
  return requests;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const CacheReport& report) {
  const Cache::Counters& counters = report.counters;
  return out << text(counters.hits, " of ", counters.requests,
                     " requests hit, any policy: ", report.bound.exact ? "at most " : "not above ",
                     report.bound.hits, '\n', counters);
}

HEDDLE_INLINE CacheReport report(const Cache& cache) {
  const std::vector<CacheEvent> events = cache.events();
  const Cache::Counters counters = cache.counters();
  const std::vector<ObjectId> requests = impl::requests_of(events);
  expects(requests.size() == counters.requests, [&] {
    return ErrorInfo{"heddle::tier::report", "the cache did not record its requests",
                     text(requests.size(), " of ", counters.requests),
                     "set CacheOptions::record, and call report() between requests"};
  });
  return {counters, hits_bound(cache.objects(), requests, cache.capacity())};
}

}  // namespace heddle::inline v0::tier
