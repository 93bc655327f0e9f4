// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Policies and bounds: LRU equals a serial oracle, Belady's bound equals the best of all choices,
// and a Cache does what replay() says.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/policy.hpp>
#include <heddle/tier/replay.hpp>
#include <heddle/tier/store.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/expert_requests.hpp"
#include "support/small_store.hpp"

namespace test_replay {

namespace hd = heddle;
namespace tier = heddle::tier;
using Catch::Matchers::ContainsSubstring;
using hd::Bytes;
using hd::test::message_of;
using tier::Object;
using tier::ObjectId;

namespace {

std::vector<Object> objects_of(const std::vector<Bytes>& sizes) {
  std::vector<Object> objects;
  for (std::size_t o = 0; o < sizes.size(); ++o) objects.push_back({hd::text(o), sizes[o]});
  return objects;
}

/// The most hits of any choices of objects to evict, by trying all sets that can be held. A set is
/// a number whose bits are objects.
std::uint64_t most_hits(const std::vector<Object>& objects, const std::vector<ObjectId>& requests,
                        Bytes capacity) {
  const auto bytes = [&](unsigned set) {
    Bytes sum = 0;
    for (std::size_t o = 0; o < objects.size(); ++o)
      if ((set >> o & 1) != 0) sum += objects[o].bytes;
    return sum;
  };
  std::map<unsigned, std::uint64_t> best{{0u, 0}};
  for (const ObjectId id : requests) {
    std::map<unsigned, std::uint64_t> next;
    for (const auto& [set, hits] : best) {
      const unsigned one = 1u << +id;
      const std::uint64_t now = hits + ((set & one) != 0);
      for (unsigned kept = set;; kept = (kept - 1) & set) {
        if (bytes(kept | one) <= capacity) next[kept | one] = std::max(next[kept | one], now);
        if (kept == 0) break;
      }
    }
    best = std::move(next);
  }
  std::uint64_t most = 0;
  for (const auto& [set, hits] : best) most = std::max(most, hits);
  return most;
}

/// A policy of a user: the object that came first leaves first.
struct FirstIn {
  std::vector<double> came;
  double now = 0;
  void begin(std::span<const Object> objects) { came.assign(objects.size(), 0); }
  void use(ObjectId id) {
    if (came[+id] == 0) came[+id] = ++now;
  }
  [[nodiscard]] double worth(ObjectId id) const { return came[+id]; }
};

}  // namespace

TEST_CASE("100,000 requests over 150 experts: LRU has the hits of an oracle, below Belady's") {
  const std::vector<Object> objects = objects_of(std::vector<Bytes>(150, 14));
  const std::vector<ObjectId> requests = hd::test::expert_requests(100'000, 150);
  for (const std::size_t room : {10u, 37u, 150u}) {
    const tier::Replay lru = tier::replay(objects, requests, 14 * room + 3, tier::Lru{});
    CHECK(lru.counters.hits == hd::test::oracle_lru_hits(requests, room));
    CHECK(lru.counters.hits + lru.counters.misses == requests.size());
    CHECK(lru.counters.bytes_read == 14 * lru.counters.misses);
    const tier::HitsBound bound = tier::hits_bound(objects, requests, 14 * room + 3);
    CHECK(bound.exact);
    CHECK(lru.counters.hits <= bound.hits);
    if (room == 150) CHECK(lru.counters.hits == bound.hits);
    if (room == 37) {
      CHECK(lru.counters.hits < bound.hits);
      const tier::Replay best =
          tier::replay(objects, requests, 14 * room, tier::FarthestNext(requests));
      CHECK(best.counters.hits == bound.hits);
      const tier::Replay other = tier::replay(objects, requests, 14 * room, tier::LeastTransfers{});
      CHECK(other.counters.hits <= bound.hits);
    }
  }
}

TEST_CASE("the bound is the best of all choices for equal sizes, and not below it for others") {
  const std::uint64_t cases = hd::test::cases(150, 5'000);
  std::uint64_t tight = 0;
  for (std::uint64_t c = 0; c < cases; ++c) {
    const hd::Random random(c, "requests");
    const std::size_t count = 2 + random.below(0, 5);
    const bool equal = c % 2 == 0;
    std::vector<Bytes> sizes;
    for (std::size_t o = 0; o < count; ++o) sizes.push_back(equal ? 3 : 1 + random.below(1 + o, 6));
    const std::vector<Object> objects = objects_of(sizes);
    const Bytes capacity = 6 + random.below(20, 8);
    std::vector<ObjectId> requests;
    for (std::uint64_t r = 0; r < 24; ++r) requests.emplace_back(random.below(30 + r, count));
    const std::uint64_t most = most_hits(objects, requests, capacity);
    const tier::HitsBound bound = tier::hits_bound(objects, requests, capacity);
    const bool all_equal = std::ranges::all_of(
        requests, [&](ObjectId id) { return sizes[+id] == sizes[+requests[0]]; });
    CHECK(bound.exact == all_equal);
    if (bound.exact) {
      CHECK(bound.hits == most);
      CHECK(tier::replay(objects, requests, capacity, tier::FarthestNext(requests)).counters.hits ==
            most);
    } else {
      CHECK(bound.hits >= most);
      tight += bound.hits == most;
    }
    CHECK(tier::replay(objects, requests, capacity, tier::Lru{}).counters.hits <= most);
    CHECK(tier::replay(objects, requests, capacity, tier::LeastTransfers{}).counters.hits <= most);
  }
  CHECK(tight > 0);
}

TEST_CASE("a cache of one thread does what replay() says, for every policy") {
  const hd::test::TestFolder folder("replay");
  std::vector<std::size_t> elements;
  for (std::size_t e = 0; e < 20; ++e) elements.push_back(e % 4 * 10);
  hd::test::write_experts(folder.file("weights.tier"), elements);
  tier::Store store({.file = folder.file("weights.tier")});
  const std::vector<ObjectId> requests = hd::test::expert_requests(1'000, 20);
  std::vector<std::uint64_t> uses(20, 0);
  for (const ObjectId id : requests) ++uses[+id];
  const std::vector<tier::AnyPolicy> policies{tier::Lru{}, tier::LeastTransfers{},
                                              tier::Lifetimes(uses), tier::FarthestNext(requests),
                                              FirstIn{}};
  std::vector<std::uint64_t> hits;
  for (const tier::AnyPolicy& policy : policies) {
    tier::Cache cache(store, {.capacity = 400, .policy = policy, .record = true});
    for (const ObjectId id : requests) static_cast<void>(cache.get(id));
    const tier::Replay replayed = tier::replay(store.objects(), requests, 400, policy);
    CHECK(cache.counters() == replayed.counters);
    CHECK(cache.events() == replayed.events);
    CHECK(tier::impl::requests_of(cache.events()) == requests);
    const tier::CacheReport report = tier::report(cache);
    CHECK(report.counters == replayed.counters);
    CHECK(report.counters.hits <= report.bound.hits);
    CHECK_THAT(hd::text(report),
               ContainsSubstring(hd::text(report.counters.hits,
                                          " of 1000 requests hit, any policy: not "
                                          "above ",
                                          report.bound.hits)));
    hits.push_back(replayed.counters.hits);
  }
  CHECK(hits[2] >= hits[0]);  // to know the last request of each object does not harm here
  CHECK(hits[3] > hits[0]);
}

TEST_CASE("objects whose lifetimes are over give their room first") {
  // A program that uses 0 and 1 in turns, 2 once in between, and never again.
  const std::vector<Object> objects = objects_of({1, 1, 1});
  const std::vector<ObjectId> requests{0, 1, 2, 0, 1};
  CHECK(tier::replay(objects, requests, 2, tier::Lru{}).counters.hits == 0);
  const tier::Replay known = tier::replay(objects, requests, 2, tier::Lifetimes({2, 2, 1}));
  CHECK(known.counters.hits == 1);
  CHECK(known.counters.hits == tier::hits_bound(objects, requests, 2).hits);
}

TEST_CASE("requests that do not fit are refused") {
  const std::vector<Object> objects = objects_of({5, 9});
  const std::vector<ObjectId> requests{0, 1};
  CHECK_THAT(message_of<hd::infeasible>(
                 [&] { static_cast<void>(tier::replay(objects, requests, 8, tier::Lru{})); }),
             ContainsSubstring("object '1' is larger than the cache (9 bytes, the capacity is 8)"));
  CHECK_THROWS_AS(tier::hits_bound(objects, requests, 8), hd::infeasible);
  const std::vector<ObjectId> wrong{ObjectId{2}};
  CHECK_THROWS_AS(tier::hits_bound(objects, wrong, 8), hd::contract_error);
  CHECK_THROWS_AS(tier::replay(objects, requests, 20, tier::Lifetimes({1})), hd::contract_error);
  CHECK_THROWS_AS(tier::replay(objects, requests, 20, tier::FarthestNext({0})), hd::contract_error);
  CHECK_THROWS_AS(tier::replay(objects, requests, 20, tier::FarthestNext({1, 0})),
                  hd::contract_error);
  CHECK(tier::hits_bound(objects, {}, 8).hits == 0);
}

TEST_CASE("a report needs a recorded cache") {
  const hd::test::TestFolder folder("replay_report");
  hd::test::write_experts(folder.file("weights.tier"), {1});
  tier::Store store({.file = folder.file("weights.tier")});
  tier::Cache cache(store, {.capacity = 4});
  static_cast<void>(cache.get("expert 0"));
  CHECK_THAT(message_of<hd::contract_error>([&] { static_cast<void>(tier::report(cache)); }),
             ContainsSubstring("set CacheOptions::record"));
}

}  // namespace test_replay
