// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the counts of operations against layers of numbers that count, and TPE on searches with a
// known optimum.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/systems/aiperf/operation_count.hpp>
#include <heddle/systems/aiperf/tpe.hpp>

#include "support/complaint.hpp"
#include "support/counted.hpp"

namespace test_operation_count {

namespace plan = heddle::plan;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using heddle::contract_error;
using heddle::Random;
using heddle::test::count_layer;
using heddle::test::message_of;

TEST_CASE("analytic counts equal the operations of numbers that count") {
  for (const heddle::systems::OperationWeights& weights :
       {heddle::systems::OperationWeights{}, heddle::systems::OperationWeights{3, 5, 7, 11, 13}})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Random random(seed, "layers");
      const auto draw = [&](std::uint64_t index, std::uint64_t most) {
        return 1 + static_cast<std::int64_t>(random.below(index, most));
      };
      const heddle::systems::ConvolutionLayer convolution{.inputs = draw(0, 4),
                                                          .outputs = draw(1, 4),
                                                          .kernel = draw(2, 4),
                                                          .height = draw(3, 6),
                                                          .width = draw(4, 6),
                                                          .first = seed % 2 == 0};
      REQUIRE(heddle::systems::operations(convolution, weights) ==
              count_layer(convolution, weights));
      const heddle::systems::DenseLayer dense{draw(5, 30), draw(6, 30)};
      REQUIRE(heddle::systems::operations(dense, weights) == count_layer(dense, weights));
      const heddle::systems::ElementLayer elements{
          static_cast<heddle::systems::ElementLayer::Kind>(seed % 5), draw(7, 30), draw(8, 4)};
      REQUIRE(heddle::systems::operations(elements, weights) == count_layer(elements, weights));
      heddle::systems::OperationCount sum = heddle::systems::operations(convolution, weights);
      sum += heddle::systems::operations(dense, weights);
      sum += heddle::systems::operations(elements, weights);
      const std::vector<heddle::systems::CountedLayer> layers{convolution, dense, elements};
      REQUIRE(heddle::systems::operations(layers, weights) == sum);
    }
}

TEST_CASE("convolutions and dense layers have AIPerf's formulas") {
  const auto conv = heddle::systems::operations(heddle::systems::ConvolutionLayer{
      .inputs = 3, .outputs = 64, .kernel = 7, .height = 112, .width = 112});
  CHECK(conv.forward == 2 * 49 * 3 * 64 * 112 * 112);
  CHECK(conv.backward == std::int64_t{49} * 3 * 64 * (4 * 112 * 112 + 2));
  CHECK(heddle::systems::operations(heddle::systems::ConvolutionLayer{3, 64, 7, 112, 112, true})
            .backward == std::int64_t{49} * 3 * 64 * (2 * 112 * 112 + 2));
  const auto dense = heddle::systems::operations(heddle::systems::DenseLayer{2048, 1000});
  CHECK(dense.forward == 2 * 2048 * 1000);
  CHECK(dense.backward == 4 * 2048 * 1000 + 2 * 2049 * 1000);
}

TEST_CASE("a search counts training and evaluation, and its score follows the accuracy") {
  const std::vector<heddle::systems::TrainedNetwork> networks{{{10, 25}, 2, 100, 30},
                                                              {{1, 2}, 1, 7, 0}};
  CHECK(heddle::systems::search_operations(networks) == 2 * (100 * 35 + 30 * 10) + 7 * 3);
  CHECK(heddle::systems::search_score(4e12, 2, 1 - std::exp(-1.0)) == Approx(2000));
  CHECK(heddle::systems::search_score(4e12, 2, 0) == 0);
  CHECK_THAT(message_of<contract_error>([] { (void)heddle::systems::search_score(1, 1, 1); }),
             ContainsSubstring("accuracy = 1"));
  CHECK_THAT(message_of<contract_error>([] { (void)heddle::systems::search_score(1, 0, 0.5); }),
             ContainsSubstring("time = 0"));
  CHECK_THAT(message_of<contract_error>([] {
               (void)heddle::systems::operations(heddle::systems::DenseLayer{0, 1});
             }),
             ContainsSubstring("a dense layer with inputs = 0"));
}

TEST_CASE("proposals by TPE find better points than random ones") {
  const std::vector<plan::TuneAxis> axes(6, {"axis", 8, true});
  const auto cost = [](const plan::TunePoint& point, const Random& best) {
    double sum = 1;
    for (std::size_t a = 0; a < point.size(); ++a) {
      const double far = static_cast<double>(point[a]) - static_cast<double>(best.below(a, 8));
      sum += far * far;
    }
    return sum;
  };
  double by_tpe = 0;
  double by_chance = 0;
  int wins = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Random best(seed, "optimum");
    // With `startup` beyond the trials, the same function proposes random points only.
    const auto search = [&](std::size_t startup) {
      std::vector<plan::TuneTrial> trials;
      double least = std::numeric_limits<double>::infinity();
      for (std::uint64_t t = 0; t < 80; ++t) {
        const plan::TunePoint point =
            heddle::systems::propose_by_tpe(axes, trials, t, {.startup = startup, .seed = seed});
        trials.push_back({point, cost(point, best)});
        least = std::min(least, *trials.back().cost);
      }
      return least;
    };
    const double found = search(10);
    const double chance = search(1000);
    by_tpe += found;
    by_chance += chance;
    wins += found <= chance;
  }
  INFO("TPE " << by_tpe / 40 << ", random " << by_chance / 40 << ", wins " << wins);
  CHECK(by_tpe < 0.5 * by_chance);
  CHECK(wins >= 36);
}

TEST_CASE("TPE prefers the value of good trials, and infeasible trials are not good") {
  const std::vector<plan::TuneAxis> axes{{"a", 4, false}};
  std::vector<plan::TuneTrial> trials;
  for (std::size_t t = 0; t < 40; ++t) {
    const std::size_t value = t % 4;
    trials.push_back({{value},
                      value == 0   ? std::nullopt
                      : value == 2 ? std::optional<double>(1)
                                   : std::optional<double>(5)});
  }
  for (std::uint64_t number = 0; number < 20; ++number)
    CHECK(heddle::systems::propose_by_tpe(axes, trials, number) == plan::TunePoint{2});
  for (plan::TuneTrial& trial : trials) trial.cost = std::nullopt;
  CHECK(heddle::systems::propose_by_tpe(axes, trials, 3).at(0) < 4);
  CHECK(heddle::systems::propose_by_tpe(axes, trials, 3, {.seed = 1}) ==
        heddle::systems::propose_by_tpe(axes, trials, 3, {.seed = 1}));
}

TEST_CASE("TPE rejects trials of another grid") {
  const auto message = [](const std::vector<plan::TuneAxis>& axes,
                          const std::vector<plan::TuneTrial>& trials,
                          const heddle::systems::TpeOptions& options = {}) {
    return message_of<contract_error>(
        [&] { (void)heddle::systems::propose_by_tpe(axes, trials, 0, options); });
  };
  CHECK_THAT(message({}, {}), ContainsSubstring("0 axes"));
  CHECK_THAT(message({{"a", 0}}, {}), ContainsSubstring("axis 'a'"));
  CHECK_THAT(message({{"a", 2}}, {{{0, 1}, 1.0}}), ContainsSubstring("trial 0 has 2"));
  CHECK_THAT(message({{"a", 2}}, {{{2}, 1.0}}), ContainsSubstring("axis 'a': 2 of 2"));
  CHECK_THAT(message({{"a", 2}}, {}, {.good = 1}), ContainsSubstring("good = 1"));
}

}  // namespace test_operation_count
