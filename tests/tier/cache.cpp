// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Caches: pinned objects stay, the least recently used one leaves, changed objects are written back
// and others never, whatever threads request; and wrong requests say what to do.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory_resource>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/byte_literals.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/pinned.hpp>
#include <heddle/tier/store.hpp>

#include "support/complaint.hpp"
#include "support/small_store.hpp"

namespace test_cache {

namespace hd = heddle;
namespace tier = heddle::tier;
using namespace hd::byte_literals;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
using hd::test::TestFolder;
using tier::Cache;
using tier::Pinned;
using tier::Store;

namespace {

/// Returns true if the object has the weights that write_experts() gave it.
bool is_expert(const Pinned& pinned, std::size_t e) {
  const std::span<const float> weights = pinned.as<float>();
  return std::ranges::equal(weights, hd::test::expert_weights(e, weights.size()));
}

/// A memory resource that counts its live bytes, and has no more than a limit.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  std::size_t live = 0;
  std::size_t limit = ~std::size_t{0};

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > limit - live) throw std::bad_alloc();
    live += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    live -= bytes;
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

}  // namespace

TEST_CASE("the least recently used expert leaves, a pinned one stays") {
  const TestFolder folder("cache");
  hd::test::write_experts(folder.file("weights.tier"), std::vector<std::size_t>(9, 256));
  Store store({.file = folder.file("weights.tier"), .model = "experts 1"});
  Cache experts(store, {.capacity = 3_KiB, .policy = tier::Lru{}});
  {
    const Pinned expert = experts.get("expert 7");
    CHECK(is_expert(expert, 7));
    CHECK(expert.object().name == "expert 7");
    CHECK(reinterpret_cast<std::uintptr_t>(expert.bytes().data()) % Cache::alignment == 0);
    CHECK(is_expert(experts.get("expert 1"), 1));
    CHECK(is_expert(experts.get("expert 2"), 2));
    CHECK(is_expert(experts.get("expert 3"), 3));  // evicts 1, because 7 is pinned
    CHECK(is_expert(expert, 7));
  }
  CHECK(experts.holds("expert 7"));
  CHECK_FALSE(experts.holds("expert 1"));
  static_cast<void>(experts.get("expert 2"));
  static_cast<void>(experts.get("expert 4"));  // evicts 7, which nobody holds now
  CHECK_FALSE(experts.holds("expert 7"));
  CHECK(experts.used() == 3_KiB);
  CHECK(experts.peak() == 3_KiB);
  const tier::Cache::Counters counters = experts.counters();
  CHECK(hd::text(counters) ==
        "6 requests, 1 hits, 5 misses, 5120 B read, 2 evictions, 0 write-backs of 0 B");
  CHECK(store.counters().bytes_read == counters.bytes_read);
}

TEST_CASE("changed objects are written back when they leave, read ones never") {
  const TestFolder folder("cache_changed");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, std::vector<std::size_t>(5, 64));
  {
    Store store({.file = file, .writable = true});
    Cache cache(store, {.capacity = 512});
    for (std::size_t e = 0; e < 5; ++e) CHECK(is_expert(cache.get(hd::text("expert ", e)), e));
    CHECK(store.counters().bytes_written == 0);
    {
      const Pinned changed = cache.get("expert 1", hd::Access::update);
      CHECK(is_expert(changed, 1));
      changed.writable_as<float>()[5] = 77;
      CHECK_THAT(message_of<hd::contract_error>([&] { cache.flush(); }),
                 ContainsSubstring("release the handle before flush()"));
    }
    CHECK(cache.counters().write_backs == 0);
    static_cast<void>(cache.get("expert 2"));
    static_cast<void>(cache.get("expert 3"));  // evicts 1
    CHECK(cache.counters().write_backs == 1);
    CHECK(store.counters().bytes_written == 256);
    // Written without being read: the next read is a hit.
    const std::uint64_t reads = store.counters().reads;
    std::ranges::fill(cache.get("expert 0", hd::Access::write).writable_as<float>(), 5.f);
    CHECK(store.counters().reads == reads);
    CHECK(cache.get("expert 0").as<float>()[63] == 5);
    cache.flush();
    CHECK(store.counters().bytes_written == 512);
    cache.flush();
    CHECK(store.counters().bytes_written == 512);
    std::ranges::fill(cache.get("expert 4", hd::Access::write).writable_as<float>(), 6.f);
  }
  Store store({.file = file});
  Cache cache(store, {.capacity = 1_MiB});
  CHECK(cache.get("expert 1").as<float>()[5] == 77);
  CHECK(cache.get("expert 0").as<float>()[0] == 5);
  CHECK(cache.get("expert 4").as<float>()[0] == 6);
  CHECK(is_expert(cache.get("expert 2"), 2));
  CHECK_THAT(message_of<hd::contract_error>(
                 [&] { static_cast<void>(cache.get("expert 2", hd::Access::update)); }),
             ContainsSubstring("object 'expert 2' is read-only") &&
                 ContainsSubstring("StoreOptions::writable"));
}

TEST_CASE("requests that no cache can serve say what to do, and nothing is lost") {
  const TestFolder folder("cache_refused");
  hd::test::write_experts(folder.file("weights.tier"), {64, 64, 64, 300});
  Store store({.file = folder.file("weights.tier")});
  CHECK_THAT(
      message_of<hd::contract_error>([&] { Cache(store, {.capacity = 0}); }),
      ContainsSubstring("the capacity is 0") && ContainsSubstring("set CacheOptions::capacity"));
  CHECK_THROWS_AS(Cache(store, {.capacity = 1, .patience = -1}), hd::contract_error);
  Cache cache(store, {.capacity = 600});
  CHECK_THAT(message_of<hd::infeasible>([&] { static_cast<void>(cache.get("expert 3")); }),
             ContainsSubstring("object 'expert 3' is larger than the cache") &&
                 ContainsSubstring("1200 bytes, the capacity is 600") &&
                 ContainsSubstring("raise CacheOptions::capacity"));
  CHECK_THAT(message_of<hd::contract_error>([&] { static_cast<void>(cache.get("expert 9")); }),
             ContainsSubstring("there is no object 'expert 9'") &&
                 ContainsSubstring("did you mean 'expert 0'?"));
  std::optional<Pinned> first = cache.get("expert 0");
  const Pinned second = cache.get("expert 1");
  const std::string said =
      message_of<hd::infeasible>([&] { static_cast<void>(cache.get("expert 2")); });
  CHECK_THAT(said, ContainsSubstring("object 'expert 2' has no room, because handles pin") &&
                       ContainsSubstring("256 bytes are needed, 88 of 600 are free, and "
                                         "'expert 0', 'expert 1' are pinned") &&
                       ContainsSubstring("release a handle first") &&
                       ContainsSubstring("set the capacity to at least 768 bytes"));
  CHECK(is_expert(*first, 0));
  CHECK(is_expert(second, 1));
  first.reset();
  // 300 elements would need more than what the pinned object leaves, so the other one stays.
  Cache larger(store, {.capacity = 1300});
  static_cast<void>(larger.get("expert 0"));
  {
    const Pinned pinned = larger.get("expert 1");
    CHECK_THROWS_AS(larger.get("expert 3"), hd::infeasible);
    CHECK(larger.holds("expert 0"));
    CHECK(larger.counters().evictions == 0);
  }
  CHECK(is_expert(larger.get("expert 3"), 3));
  CHECK(is_expert(cache.get("expert 2"), 2));
  CHECK_THAT(message_of<hd::contract_error>([&] { static_cast<void>(second.as<double>()); }),
             ContainsSubstring("its elements are f32, not f64"));
  CHECK_THAT(message_of<hd::contract_error>([&] { static_cast<void>(second.writable_bytes()); }),
             ContainsSubstring("request it with Access::update"));
}

TEST_CASE("handles move, and release once") {
  const TestFolder folder("cache_handles");
  hd::test::write_experts(folder.file("weights.tier"), {64, 64});
  Store store({.file = folder.file("weights.tier")});
  Cache cache(store, {.capacity = 256});
  Pinned one = cache.get("expert 0");
  Pinned two = std::move(one);
  CHECK_THROWS_AS(cache.get("expert 1"), hd::infeasible);
  one = std::move(two);
  CHECK(is_expert(one, 0));
  { const Pinned gone = std::move(one); }
  CHECK(is_expert(cache.get("expert 1"), 1));
}

TEST_CASE("an object that cannot be read or has no memory leaves the cache as it was") {
  const TestFolder folder("cache_failing");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {64, 64, 1000});
  CountedMemory memory;
  {
    Store store({.file = file});
    Cache cache(store, {.capacity = 5000, .memory = &memory});
    static_cast<void>(cache.get("expert 0"));
    CHECK(memory.live == 256);
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    CHECK_THAT(message_of<hd::format_error>([&] { static_cast<void>(cache.get("expert 2")); }),
               ContainsSubstring("object 'expert 2'"));
    CHECK(cache.used() == 256);
    CHECK(memory.live == 256);
    CHECK(is_expert(cache.get("expert 0"), 0));
    CHECK(is_expert(cache.get("expert 1"), 1));
    hd::test::write_experts(file, {64, 64, 1000});
    memory.limit = 1000;
    CHECK_THROWS_AS(cache.get("expert 2"), std::bad_alloc);
    CHECK(cache.used() == 512);
    CHECK(memory.live == 512);
  }
  CHECK(memory.live == 0);
}

TEST_CASE("an object that cannot be written back stays in the cache, changed") {
  const TestFolder folder("cache_unwritten");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {64, 64, 64});
  Store store({.file = file, .medium = tier::StoreOptions::Medium::mapped, .writable = true});
  Cache cache(store, {.capacity = 256});
  cache.get("expert 2", hd::Access::update).writable_as<float>()[0] = 9;
  const auto whole = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, whole - 1);
  CHECK_THAT(message_of<hd::format_error>([&] { static_cast<void>(cache.get("expert 0")); }),
             ContainsSubstring("object 'expert 2'") && ContainsSubstring("cannot be written"));
  CHECK(cache.get("expert 2").as<float>()[0] == 9);
  std::filesystem::resize_file(file, whole);
  CHECK(is_expert(cache.get("expert 0"), 0));
  CHECK(cache.get("expert 2").as<float>()[0] == 9);
}

TEST_CASE("a cache before a cache reads each tier as seldom as it can") {
  const TestFolder folder("cache_chain");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, std::vector<std::size_t>(6, 64));
  Store store({.file = file, .writable = true});
  Cache host(store, {.capacity = 4 * 256});
  Cache fast(host, {.capacity = 2 * 256});
  for (int pass = 0; pass < 3; ++pass)
    for (std::size_t e = 0; e < 4; ++e) CHECK(is_expert(fast.get(hd::text("expert ", e)), e));
  CHECK(fast.counters().misses == 12);
  CHECK(host.counters().misses == 4);
  CHECK(store.counters().reads == 4);
  fast.get("expert 5", hd::Access::update).writable_as<float>()[1] = 3;
  fast.flush();
  CHECK(store.counters().bytes_written == 0);
  host.flush();
  CHECK(store.counters().bytes_written == 256);
}

TEST_CASE("threads share objects: each load is one, and every sum is right") {
  const TestFolder folder("cache_threads");
  const std::string file = folder.file("weights.tier");
  constexpr std::size_t experts = 12, threads = 4, rounds = 150;
  hd::test::write_experts(file, std::vector<std::size_t>(experts, 64));
  std::vector<std::int64_t> added(experts, 0);
  {
    Store store({.file = file, .writable = true});
    // Room for all handles at once and two objects more.
    Cache cache(store, {.capacity = (threads + 2) * 256, .record = true});
    std::atomic<int> wrong{0};
    std::vector<std::vector<std::int64_t>> of(threads, std::vector<std::int64_t>(experts, 0));
    {
      std::vector<std::jthread> all;
      for (std::size_t t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
          const hd::Random random(7, hd::text("thread ", t));
          for (std::size_t r = 0; r < rounds; ++r) {
            const std::size_t e = random.below(r, experts);
            // Each thread changes an element of its own; the last ones stay as they were.
            const bool change = random.below(1000 + r, 3) == 0;
            const Pinned got =
                cache.get(hd::text("expert ", e), change ? hd::Access::update : hd::Access::read);
            if (got.as<float>()[63] != hd::test::expert_weights(e, 64)[63]) ++wrong;
            if (change) {
              got.writable_as<float>()[t] += 1;
              ++of[t][e];
            }
          }
        });
    }
    CHECK(wrong == 0);
    for (std::size_t t = 0; t < threads; ++t)
      for (std::size_t e = 0; e < experts; ++e) added[e] += of[t][e];
    const tier::Cache::Counters counters = cache.counters();
    CHECK(counters.requests == threads * rounds);
    CHECK(counters.hits + counters.misses == counters.requests);
    CHECK(counters.bytes_read == counters.misses * 256);
    CHECK(store.counters().reads == counters.misses);
    CHECK(store.counters().writes == counters.write_backs);
    CHECK(cache.peak() <= cache.capacity());
    // The list of events: an object is loaded only if it is absent, and used only if it is there.
    std::vector<bool> there(experts, false);
    bool ordered = true;
    for (const tier::CacheEvent& event : cache.events()) {
      const std::size_t o = +event.object;
      if (event.what == tier::CacheEvent::What::load) {
        ordered = ordered && !there[o];
        there[o] = true;
      } else if (event.what == tier::CacheEvent::What::evict) {
        ordered = ordered && there[o];
        there[o] = false;
      } else {
        ordered = ordered && there[o];
      }
    }
    CHECK(ordered);
    cache.flush();
  }
  Store store({.file = file});
  Cache cache(store, {.capacity = 1_MiB});
  for (std::size_t e = 0; e < experts; ++e) {
    const Pinned got = cache.get(hd::text("expert ", e));
    const std::vector<float> before = hd::test::expert_weights(e, 64);
    double sum = 0;
    for (std::size_t i = 0; i < 64; ++i)
      sum += static_cast<double>(got.as<float>()[i]) - static_cast<double>(before[i]);
    CHECK(sum == static_cast<double>(added[e]));
  }
}

TEST_CASE("with patience a request waits until another thread releases its handle") {
  const TestFolder folder("cache_patience");
  hd::test::write_experts(folder.file("weights.tier"), {64, 64});
  Store store({.file = folder.file("weights.tier")});
  Cache cache(store, {.capacity = 256, .patience = 60});
  std::optional<Pinned> held = cache.get("expert 0");
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.reset();
  });
  CHECK(is_expert(cache.get("expert 1"), 1));
  other.join();
  Cache hasty(store, {.capacity = 256, .patience = 0.01});
  const Pinned first = hasty.get("expert 0");
  CHECK_THROWS_AS(hasty.get("expert 1"), hd::infeasible);
}

}  // namespace test_cache
