// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A composition of experts: a router over small experts in a Store gives what it gives with all of
// them in memory; switching takes the time of the tier, simulated.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/byte_literals.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/tier.hpp>

#include "support/complaint.hpp"
#include "support/expert_requests.hpp"
#include "support/expert_tiers.hpp"
#include "support/small_store.hpp"

namespace test_experts {

namespace hd = heddle;
namespace tier = heddle::tier;
using namespace hd::byte_literals;
using Catch::Matchers::ContainsSubstring;
using hd::Tier;
using hd::test::switching_time;
using hd::test::three_tiers;
using tier::CacheEvent;
using tier::ObjectId;

namespace {

using Vector = std::array<float, 8>;

/// Returns the product of an expert's 8 x 8 matrix with x.
Vector multiplied(std::span<const float> matrix, const Vector& x) {
  Vector y{};
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t column = 0; column < 8; ++column)
      y[row] += matrix[8 * row + column] * x[column];
  return y;
}

/// Returns the expert for x: the one whose gate has the largest product with x.
std::size_t route(const std::vector<Vector>& gates, const Vector& x) {
  std::size_t best = 0;
  float most = -1e30f;
  for (std::size_t e = 0; e < gates.size(); ++e) {
    float product = 0;
    for (std::size_t i = 0; i < 8; ++i) product += gates[e][i] * x[i];
    if (product > most) {
      most = product;
      best = e;
    }
  }
  return best;
}

Vector random_vector(const hd::Random& random, std::uint64_t number) {
  Vector x;
  for (std::size_t i = 0; i < 8; ++i) x[i] = static_cast<float>(random.normal(8 * number + i));
  return x;
}

}  // namespace

TEST_CASE("a router over experts in a file gives what it gives with all in memory") {
  const hd::test::TestFolder folder("experts");
  const std::string file = folder.file("weights.tier");
  const hd::Random random(5, "experts");
  std::vector<std::vector<float>> matrices(10);
  std::vector<Vector> gates;
  tier::StoreWriter writer(file, "router 1");
  for (std::size_t e = 0; e < matrices.size(); ++e) {
    for (std::uint64_t i = 0; i < 64; ++i)
      matrices[e].push_back(static_cast<float>(random.normal(1000 + 64 * e + i)));
    gates.push_back(random_vector(random, 2000 + e));
    writer.add(hd::text("expert ", e), matrices[e]);
  }
  writer.finish();

  tier::Store store({.file = file, .model = "router 1"});
  tier::Cache experts(store, {.capacity = 1_KiB, .policy = tier::Lru{}, .record = true});
  for (std::uint64_t request = 0; request < 200; ++request) {
    const Vector x = random_vector(random, 5000 + request);
    const std::size_t e = route(gates, x);
    const tier::Pinned expert = experts.get(hd::text("expert ", e));
    CHECK(multiplied(expert.as<float>(), x) == multiplied(matrices[e], x));
  }
  const tier::CacheReport report = tier::report(experts);
  CHECK(report.counters.hits > 0);
  CHECK(report.counters.hits <= report.bound.hits);
  CHECK(report.counters.bytes_written == 0);
}

TEST_CASE("the list that a cache executed is a Schedule") {
  const hd::test::TestFolder folder("experts_list");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {64, 64});
  tier::Store store({.file = file, .writable = true});
  tier::Cache cache(store, {.capacity = 256, .record = true});
  static_cast<void>(cache.get("expert 0", hd::Access::update));
  static_cast<void>(cache.get("expert 1"));
  const hd::Schedule list = tier::recorded_schedule("run", store.objects(), cache.events());
  CHECK(hd::to_text(list) == "0PREFETCH0,0USER0,0EVICT0,0PREFETCH1,0USER1\n");
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([&] {
        static_cast<void>(tier::recorded_schedule("run", store.objects(), cache.events(), Tier{0}));
      }),
      ContainsSubstring("both tiers are tier 0"));
}

TEST_CASE("switching takes the ratio of the bandwidths: 15.625 and 31.25, exactly") {
  const std::vector<tier::Object> objects{{"expert 0", 14'000'000'000, hd::Scalar::f16}};
  const std::vector<CacheEvent> one{{CacheEvent::What::load, 0}, {CacheEvent::What::use, 0}};
  const hd::Seconds ddr = switching_time(objects, one, Tier{1});
  CHECK(ddr == 0.014);
  CHECK(switching_time(objects, one, Tier{2}) / ddr == 15.625);
  CHECK(switching_time(objects, one, Tier{3}) / ddr == 31.25);
}

TEST_CASE("20,000 requests over 150 experts take the time of their loads in every tier") {
  std::vector<tier::Object> objects;
  for (int e = 0; e < 150; ++e)
    objects.push_back({hd::text("expert ", e), 14'000'000'000, hd::Scalar::f16});
  const std::vector<ObjectId> requests = hd::test::expert_requests(20'000, 150);
  // Four experts of 14 GB have room in 64 GB.
  const tier::Replay lru =
      tier::replay(objects, requests, three_tiers().device(0).memories[0].capacity, tier::Lru{});
  CHECK(lru.counters.hits == hd::test::oracle_lru_hits(requests, 4));
  CHECK(lru.counters.hits <= tier::hits_bound(objects, requests, 64'000'000'000).hits);
  const double loads = static_cast<double>(lru.counters.misses);
  for (const auto& [slower, bandwidth] :
       {std::pair{Tier{1}, 1000e9}, {Tier{2}, 64e9}, {Tier{3}, 32e9}}) {
    const double expected = loads * 14e9 / bandwidth;
    const double time = switching_time(objects, lru.events, slower);
    CHECK(std::abs(time / expected - 1) < 1e-9);
  }
}

}  // namespace test_experts
