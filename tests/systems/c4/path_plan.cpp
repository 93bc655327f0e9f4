// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/c4/path_plan.hpp>

#include "support/complaint.hpp"

namespace test_path_plan {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using systems::Flow;
using systems::PathPlan;

namespace {

/// Whether no link of a leaf carries more than its share of the spines that are left, rounded up.
bool is_balanced(const std::vector<Flow>& flows, const PathPlan& plan, std::uint32_t leaves,
                 int spines, std::uint32_t alive) {
  const auto s = static_cast<std::size_t>(spines);
  std::vector<std::uint32_t> load(2 * leaves * s, 0);
  std::vector<std::uint32_t> degree(2 * leaves, 0);
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (const std::size_t end : {std::size_t{flows[f].from}, std::size_t{leaves} + flows[f].to}) {
      ++degree[end];
      ++load[end * s + plan.spine(f)];
    }
  for (std::size_t i = 0; i < load.size(); ++i)
    if (load[i] > (degree[i / s] + alive - 1) / alive) return false;
  return plan.max_load() == (load.empty() ? 0 : *std::ranges::max_element(load));
}

std::vector<Flow> random_flows(std::uint64_t seed, std::uint32_t leaves, std::size_t count) {
  const Random random(seed, "flows");
  std::vector<Flow> flows;
  for (std::size_t f = 0; f < count; ++f)
    flows.push_back({static_cast<std::uint32_t>(random.below(2 * f, leaves)),
                     static_cast<std::uint32_t>(random.below(2 * f + 1, leaves))});
  return flows;
}

/// The mean of the fullest of `bins` that `balls` fall into, exactly up to rounding: the number of
/// ways without more than k in any is balls! [x^balls] (sum of x^i / i! for i <= k)^bins.
double mean_fullest(int balls, int bins) {
  const auto n = static_cast<std::size_t>(balls);
  double mean = 0;
  for (std::size_t k = 0; k < n; ++k) {  // the mean is the sum of P(fullest > k)
    std::vector<double> ways(n + 1, 0);
    ways[0] = 1;
    for (int bin = 0; bin < bins; ++bin) {
      std::vector<double> next(n + 1, 0);
      for (std::size_t have = 0; have <= n; ++have)
        for (std::size_t more = 0; more <= k && have + more <= n; ++more)
          next[have + more] += ways[have] / std::tgamma(static_cast<double>(more) + 1) *
                               std::pow(1.0 / bins, static_cast<double>(more));
      ways = next;
    }
    mean += 1 - ways[n] * std::tgamma(static_cast<double>(n) + 1);
  }
  return mean;
}

}  // namespace

TEST_CASE("flows of one leaf load no link with more than flows / spines, rounded up") {
  for (std::uint32_t flows = 0; flows <= 40; ++flows)
    for (int spines = 1; spines <= 9; ++spines) {
      const PathPlan plan(std::vector<Flow>(flows, Flow{0, 1}), spines);
      const auto s = static_cast<std::uint32_t>(spines);
      CHECK(plan.max_load() == (flows + s - 1) / s);
    }
}

TEST_CASE("flows between any leaves load no link with more than its leaf's share, rounded up") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto leaves = static_cast<std::uint32_t>(1 + seed % 7);
    const int spines = static_cast<int>(1 + seed % 5);
    const std::vector<Flow> flows = random_flows(seed, leaves, seed % 90);
    const PathPlan plan(flows, spines);
    if (!is_balanced(flows, plan, leaves, spines, static_cast<std::uint32_t>(spines)))
      FAIL("seed " << seed);
  }
}

TEST_CASE(
    "when a spine dies only its flows move, of one leaf's flows, and the least load is kept") {
  for (std::uint32_t count = 1; count <= 40; ++count)
    for (int spines = 2; spines <= 9; ++spines) {
      PathPlan plan(std::vector<Flow>(count, Flow{0, 0}), spines);
      for (std::uint32_t left = static_cast<std::uint32_t>(spines) - 1; left >= 1; --left) {
        const std::vector<std::uint32_t> before(plan.spines().begin(), plan.spines().end());
        std::vector<std::uint32_t> its;
        for (std::uint32_t f = 0; f < count; ++f)
          if (before[f] == left) its.push_back(f);
        REQUIRE(plan.lose(left) == its);
        REQUIRE(plan.max_load() == (count + left - 1) / left);
      }
    }
}

TEST_CASE("when a spine dies the flows of any leaves keep the least load, and few others move") {
  std::size_t dead = 0;
  std::size_t others = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto leaves = static_cast<std::uint32_t>(1 + seed % 7);
    const int spines = static_cast<int>(2 + seed % 5);
    const auto lost = static_cast<std::uint32_t>(seed % static_cast<std::uint64_t>(spines));
    const std::vector<Flow> flows = random_flows(seed, leaves, 1 + seed % 90);
    PathPlan plan(flows, spines);
    const std::vector<std::uint32_t> before(plan.spines().begin(), plan.spines().end());
    const auto moved = plan.lose(lost);
    std::size_t changed = 0;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      REQUIRE(plan.spine(f) != lost);
      changed += plan.spine(f) != before[f] ? 1 : 0;
      dead += before[f] == lost ? 1 : 0;
      others += plan.spine(f) != before[f] && before[f] != lost ? 1 : 0;
    }
    REQUIRE(changed == moved.size());
    if (!is_balanced(flows, plan, leaves, spines, static_cast<std::uint32_t>(spines) - 1))
      FAIL("seed " << seed);
  }
  CAPTURE(dead, others);
  CHECK(others <= dead / 2);  // where both ends are nearly full, others make room
}

TEST_CASE(
    "hashing loads the fullest link 3.078 times the ideal of 16 over 16, 1.970 of 64 over 16") {
  for (const auto& [flows, known] : {std::pair{16, 3.078}, {64, 1.970}}) {
    const double ideal = flows / 16.0;
    const double exact = mean_fullest(flows, 16) / ideal;
    CHECK(std::abs(exact - known) < 0.0005);
    constexpr int seeds = 20000;
    double sum = 0;
    double squares = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      std::vector<int> load(16, 0);
      for (const std::uint32_t spine :
           systems::hash_paths(static_cast<std::size_t>(flows), 16, seed))
        ++load[spine];
      const double fullest = *std::ranges::max_element(load) / ideal;
      sum += fullest;
      squares += fullest * fullest;
    }
    const double mean = sum / seeds;
    const double error = std::sqrt((squares / seeds - mean * mean) / seeds);
    CHECK(std::abs(mean - exact) < 4 * error);
    const PathPlan plan(std::vector<Flow>(static_cast<std::size_t>(flows), Flow{0, 1}), 16);
    CHECK(exact * ideal / plan.max_load() >= 1.9);
  }
}

TEST_CASE("plans without spines are refused") {
  CHECK_THAT(test::message_of<contract_error>([] {
               (void)PathPlan({{0, 1}}, 0);
             }),
             ContainsSubstring("heddle::systems::PathPlan: flows between leaf switches need from 1 "
                               "to 2^20 spine switches "
                               "(0 spines)"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)systems::hash_paths(1, 0, 1); }),
             ContainsSubstring("heddle::systems::hash_paths: flows between leaf switches need at "
                               "least one spine switch"));
  PathPlan plan({{0, 1}}, 2);
  CHECK_THAT(
      test::message_of<contract_error>([&] { (void)plan.lose(2); }),
      ContainsSubstring("heddle::systems::PathPlan::lose: no such live spine (spine 2 of 2)"));
  (void)plan.lose(0);
  CHECK_THAT(test::message_of<contract_error>([&] { (void)plan.lose(0); }),
             ContainsSubstring("no such live spine (spine 0 of 2)"));
  CHECK_THAT(test::message_of<infeasible>([&] { (void)plan.lose(1); }),
             ContainsSubstring("the only live spine cannot be removed (spine 1)"));
}

}  // namespace test_path_plan
