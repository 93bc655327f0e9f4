// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What docs/tiers.md shows, as it stands there; structure.tiers compares.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/byte_literals.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/tier.hpp>

#include "support/small_store.hpp"

namespace test_tiers_guide {

namespace hd = heddle;
namespace tier = heddle::tier;
using namespace hd::byte_literals;

namespace {

void write_weights(const std::string& file) {
  const std::vector<std::vector<float>> weights(9, std::vector<float>(1024, 0.5f));
  tier::StoreWriter writer(file, "experts 1");
  for (std::size_t e = 0; e < weights.size(); ++e) writer.add(hd::text("expert ", e), weights[e]);
  writer.finish();
}

float sum(std::span<const float> weights) {
  float total = 0;
  for (const float weight : weights) total += weight;
  return total;
}

}  // namespace

TEST_CASE("the pages' lines about stores and caches") {
  const hd::test::TestFolder folder("tiers_guide");
  const std::string file = folder.file("weights.tier");
  write_weights(file);
  std::ostringstream out;
  {
    tier::Store store({.file = file, .model = "experts 1"});
    tier::Cache experts(store, {.capacity = 12_KiB, .policy = tier::Lru{}, .record = true});

    const tier::Pinned expert = experts.get("expert 7");
    out << sum(expert.as<float>()) << '\n';

    for (const char* name : {"expert 1", "expert 2", "expert 1", "expert 3", "expert 2"})
      static_cast<void>(experts.get(name));
    out << tier::report(experts) << '\n';

    const hd::Schedule list =
        tier::recorded_schedule("experts", experts.objects(), experts.events());
    const hd::Device device{
        .memories = {{.name = "memory"}, {.name = "disk", .link = {1e-4, 2e9}}}};
    const hd::Timeline timeline = hd::simulate(list, {}, hd::Machine::uniform(1, device, {}));
    out << timeline.makespan() * 1e3 << " ms\n";

    const tier::Pinned two = experts.get("expert 2"), three = experts.get("expert 3");
    try {
      const tier::Pinned four = experts.get("expert 4");
    } catch (const hd::infeasible& error) {
      out << error.what() << '\n';
    }
  }
  CHECK(out.str() ==
        "512\n"
        "1 of 6 requests hit, any policy: at most 2\n"
        "6 requests, 1 hits, 5 misses, 20480 B read, 2 evictions, 0 write-backs of 0 B\n"
        "0.51024 ms\n"
        "heddle::tier::Cache: object 'expert 4' has no room, because handles pin the others (4096 "
        "bytes are needed, 0 of 12288 are free, and 'expert 2', 'expert 3', 'expert 7' are "
        "pinned); release a handle first, set CacheOptions::patience if another thread releases "
        "one, or set the capacity to at least 16384 bytes\n");
  {
    tier::Store store({.file = file, .writable = true});
    tier::Cache cache(store, {.capacity = 8_KiB});
    {
      const tier::Pinned state = cache.get("expert 4", hd::Access::update);
      state.writable_as<float>()[0] = 2;
    }
    cache.flush();
    CHECK(store.counters().bytes_written == 4_KiB);
  }
  {
    tier::Store disk({.file = file, .shape = {.latency = 1e-4, .bandwidth = 200e6}});
    tier::Cache host(disk, {.capacity = 64_KiB});
    tier::Cache fast(host, {.capacity = 8_KiB});
    CHECK(sum(fast.get("expert 0").as<float>()) == 512);
  }
}

TEST_CASE("the page's lines about spilling") {
  const std::vector<tier::Symbol> symbols{
      {.name = "weights", .bytes = 6, .first = 0, .last = 9, .transferred = 60},
      {.name = "first activations", .bytes = 4, .first = 0, .last = 4, .transferred = 40},
      {.name = "second activations", .bytes = 4, .first = 5, .last = 9, .transferred = 40},
      {.name = "optimiser", .bytes = 6, .first = 0, .last = 9, .transferred = 12}};
  const tier::SpilledSymbols choice = tier::spill(symbols, 10);
  CHECK(choice.spilled == std::vector<std::size_t>{3});
  CHECK(choice.peak == 10);
}

}  // namespace test_tiers_guide
