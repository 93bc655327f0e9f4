// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// expert_requests(): which experts a router asks for. oracle_lru_hits(): the hits of LRU, by a
/// list.

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/tier/objects.hpp>

namespace heddle::test {

/// Returns requests over experts of which some are asked for more often: the number of an expert is
/// experts * u^3 with a uniform u, and every fourth request repeats one of the last eight.
[[nodiscard]] inline std::vector<tier::ObjectId> expert_requests(std::size_t count,
                                                                 std::size_t experts) {
  const Random random(32, "requests of experts");
  std::vector<tier::ObjectId> requests;
  for (std::uint64_t r = 0; r < count; ++r) {
    if (r >= 8 && random.below(2 * r, 4) == 0) {
      requests.push_back(requests[r - 1 - random.below(2 * r + 1, 8)]);
      continue;
    }
    const double u = random.uniform(2 * r + 1);
    requests.emplace_back(static_cast<std::size_t>(static_cast<double>(experts) * u * u * u));
  }
  return requests;
}

/// Returns the hits of LRU with room for `room` objects, by a list in the order of the last use.
[[nodiscard]] inline std::uint64_t oracle_lru_hits(const std::vector<tier::ObjectId>& requests,
                                                   std::size_t room) {
  std::list<std::uint32_t> recent;  // the latest first
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> place;
  std::uint64_t hits = 0;
  for (const tier::ObjectId id : requests) {
    const auto found = place.find(id.value);
    if (found != place.end()) {
      ++hits;
      recent.erase(found->second);
    } else if (recent.size() == room) {
      place.erase(recent.back());
      recent.pop_back();
    }
    recent.push_front(id.value);
    place[id.value] = recent.begin();
  }
  return hits;
}

}  // namespace heddle::test
