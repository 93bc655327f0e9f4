// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the simulated time of decoding in groups against its closed form, on rationals.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/units.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/lpd/grid_order.hpp>
#include <heddle/systems/lpd/group_decoding.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/step_costs.hpp"

namespace test_group_decoding {

namespace hd = heddle;
using hd::test::Rational;
using StepCosts = hd::test::StepCosts<Rational>;

TEST_CASE("decoding in groups takes a + b ceil(size / ranks) for every group") {
  const StepCosts costs{Rational(5, 3), Rational(1, 7)};
  for (const auto& [cells, steps] :
       {std::pair{256, 20}, std::pair{256, 256}, std::pair{37, 5}, std::pair{1, 1}})
    for (const int ranks : {1, 2, 3, 8, 64}) {
      const std::vector<std::int64_t> sizes = hd::systems::cosine_group_sizes(cells, steps);
      const hd::Schedule schedule = hd::systems::group_decoding(sizes, ranks);
      Rational expected = 0;
      hd::Bytes bytes = 0;
      for (const std::int64_t size : sizes)
        expected = expected + costs.step + costs.token * Rational((size + ranks - 1) / ranks);
      for (const hd::Buffer& buffer : schedule.buffers()) bytes += buffer.bytes;
      INFO(cells << " cells, " << steps << " steps, " << ranks << " ranks");
      CHECK(hd::simulate(schedule, costs).makespan() == expected);
      CHECK(bytes == static_cast<hd::Bytes>(cells));
    }
}

TEST_CASE("no part of a group begins before all parts of the group before have ended") {
  const StepCosts costs{0, 1};  // so ranks with fewer tokens end earlier
  const std::vector<std::int64_t> sizes{1, 5, 4, 2, 9};
  const hd::Schedule schedule = hd::systems::group_decoding(sizes, 4);
  const auto timeline = hd::simulate(schedule, costs);
  std::vector<Rational> begin(sizes.size(), 1000), end(sizes.size(), 0);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const std::size_t group = +schedule[hd::ActionId{i}].item;
    begin[group] = std::min(begin[group], timeline.spans()[i].start);
    end[group] = std::max(end[group], timeline.spans()[i].end);
  }
  for (std::size_t g = 1; g < sizes.size(); ++g) CHECK(begin[g] == end[g - 1]);
}

TEST_CASE("without costs per token the speed-up is the ratio of the steps") {
  const StepCosts costs{1, 0};
  const auto time = [&](int cells, int steps) {
    return hd::simulate(hd::systems::group_decoding(hd::systems::cosine_group_sizes(cells, steps)),
                        costs)
        .makespan();
  };
  CHECK(time(256, 256) / time(256, 20) == Rational(256, 20));
  CHECK(time(1024, 1024) / time(1024, 48) == Rational(1024, 48));
}

TEST_CASE("decoding in groups rejects empty groups") {
  const std::vector<std::int64_t> sizes{1, 0};
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([&] { (void)hd::systems::group_decoding(sizes); }),
      Catch::Matchers::ContainsSubstring("sizes[1] = 0"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>(
                 [&] { (void)hd::systems::group_decoding(sizes, 0); }),
             Catch::Matchers::ContainsSubstring("ranks = 0"));
}

}  // namespace test_group_decoding
