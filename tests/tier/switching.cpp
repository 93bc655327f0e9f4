// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// alone: yes

// Switching experts between shaped tiers takes the ratios of their bandwidths, by the clock.

#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/cache_event.hpp>
#include <heddle/tier/objects.hpp>

#include "support/expert_tiers.hpp"
#include "support/small_store.hpp"

namespace test_switching {

namespace hd = heddle;
namespace tier = heddle::tier;
using hd::Tier;
using hd::test::measured_switch;
using hd::test::switching_time;
using tier::CacheEvent;

TEST_CASE("executed on shaped tiers, switching takes the simulated ratios within 10%") {
  const hd::test::TestFolder folder("experts_shaped");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {50'000, 50'000});
  const std::vector<tier::Object> objects{{"expert 0", 14'000'000'000, hd::Scalar::f16}};
  const std::vector<CacheEvent> one{{CacheEvent::What::load, 0}};
  const auto simulated = [&](Tier slower) {
    return switching_time(objects, one, slower) / switching_time(objects, one, Tier{1});
  };
  const hd::Seconds fastest = measured_switch(file, Tier{1}, 25);
  CHECK(fastest >= 0.02);
  for (const Tier slower : {Tier{2}, Tier{3}}) {
    const double ratio = measured_switch(file, slower, 2) / fastest;
    CHECK(ratio > 0.9 * simulated(slower));
    CHECK(ratio < 1.1 * simulated(slower));
  }
}

}  // namespace test_switching
