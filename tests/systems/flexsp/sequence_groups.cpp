// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// plan_sequence_groups(): its plans keep memory and have every sequence once; they are compared
// with exact assignment and with static degrees.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/sequence_batches.hpp"

namespace test_sequence_groups {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using systems::plan_sequence_groups;
using systems::SequenceCosts;
using systems::SequencePlan;

namespace {

using Lengths = std::vector<std::int64_t>;

/// The costs of the release on 76 GB devices.
SequenceCosts release(int ranks) { return systems::flexsp_costs(systems::flexsp_7b, ranks, 76); }

/// Random costs of 8 ranks in which wider groups are slower a rank, with little or much memory.
SequenceCosts random_costs(const Random& random) {
  SequenceCosts costs;
  costs.ranks = 8;
  costs.tokens_per_rank = 500 + static_cast<std::int64_t>(random.below(0, 3000));
  const double fixed = random.below(1, 3) == 0 ? 0 : 0.2 * random.uniform(2);
  double slower = 1;
  for (int degree = random.below(3, 2) == 0 ? 1 : 2; degree <= 8; degree *= 2) {
    costs.degrees.push_back({degree, fixed, 1e-3 * slower / degree, 1e-7 / degree});
    slower *= 1 + random.uniform(10 + static_cast<std::uint64_t>(degree));
  }
  return costs;
}

/// 6 to 12 sequences that fit in 8 ranks.
Lengths random_lengths(const Random& random, const SequenceCosts& costs) {
  const std::size_t count = 6 + random.below(100, 7);
  const double deviation = 0.4 + 1.2 * random.uniform(101);
  const std::int64_t longest = 8 * costs.tokens_per_rank;
  Lengths lengths;
  for (std::size_t i = 0; i < count; ++i)
    lengths.push_back(std::clamp<std::int64_t>(
        static_cast<std::int64_t>(0.6 * static_cast<double>(costs.tokens_per_rank) *
                                  std::exp(deviation * random.normal(200 + i))),
        1, longest));
  return lengths;
}

/// Number of ways to write `ranks` as a sum of powers of two from `least` on: a recurrence, not a
/// list.
std::uint64_t binary_partitions(std::uint64_t ranks, std::uint64_t least) {
  std::vector<std::uint64_t> ways(ranks + 1, 0);
  ways[0] = 1;
  for (std::uint64_t part = least; part <= ranks; part *= 2)
    for (std::uint64_t sum = part; sum <= ranks; ++sum) ways[sum] += ways[sum - part];
  return ways[ranks];
}

/// The least of the largest sums over all divisions into consecutive ranges, by a plain programme.
std::int64_t least_largest_sum(const Lengths& lengths, std::size_t count) {
  constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> best(lengths.size() + 1, infinite);
  best[0] = 0;
  for (std::size_t range = 0; range < count; ++range)
    for (std::size_t end = lengths.size(); end > 0; --end) {
      std::int64_t sum = 0;
      for (std::size_t begin = end; begin-- > 0;) {
        sum += lengths[begin];
        if (best[begin] != infinite) best[end] = std::min(best[end], std::max(best[begin], sum));
      }
    }
  return best[lengths.size()];
}

}  // namespace

TEST_CASE("there are 202 compositions of 64 ranks, and as many as the recurrence says") {
  for (const int least : {1, 2})
    for (int ranks = least; ranks <= 64; ++ranks) {
      std::vector<int> degrees;
      for (int degree = least; degree <= ranks; degree *= 2) degrees.push_back(degree);
      const auto all = systems::group_compositions(ranks, degrees);
      const auto wanted =
          binary_partitions(static_cast<std::uint64_t>(ranks), static_cast<std::uint64_t>(least));
      bool good = all.size() == wanted;
      for (const std::vector<int>& sizes : all)
        good = good && std::accumulate(sizes.begin(), sizes.end(), 0) == ranks &&
               std::ranges::is_sorted(sizes, std::greater<>());
      auto sorted = all;
      std::ranges::sort(sorted);
      good = good && std::ranges::adjacent_find(sorted) == sorted.end();
      if (!good) FAIL_CHECK("ranks " << ranks << ", from " << least);
    }
  CHECK(systems::group_compositions(64, std::vector<int>{2, 4, 8, 16, 32, 64}).size() == 202);
}

TEST_CASE("consecutive ranges have the least largest sum") {
  std::size_t bad = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed, "ranges");
    Lengths lengths(random.below(0, 15));
    for (std::size_t i = 0; i < lengths.size(); ++i)
      lengths[i] = 1 + static_cast<std::int64_t>(random.below(2 + i, 50));
    std::ranges::sort(lengths, std::greater<>());
    const std::size_t count = 1 + random.below(1, 6);
    const std::vector<std::size_t> ends = systems::divide_evenly(lengths, count);
    std::int64_t largest = 0;
    std::size_t begin = 0;
    bool good =
        ends.size() == count && std::ranges::is_sorted(ends) && ends.back() == lengths.size();
    for (const std::size_t end : ends) {
      if (!good) break;
      std::int64_t sum = 0;
      for (; begin < end; ++begin) sum += lengths[begin];
      largest = std::max(largest, sum);
    }
    if (!good || largest != least_largest_sum(lengths, count)) ++bad;
  }
  CHECK(bad == 0);
}

TEST_CASE("the costs of the release follow its formula") {
  const SequenceCosts costs = release(64);
  // (76 * 1024 - 16 * 7 * 1024 / 64) / 4.48 = 16971.4
  CHECK(costs.tokens_per_rank == 16971);
  REQUIRE(costs.degrees.size() == 6);
  // A sequence of 100,000 tokens on 16 ranks, in ms: 5.128e-6 * 1e10 / 16 = 3205,
  // 0.18396 * 1e5 / 16 = 1149.75, 629.36, and 4 * 2 * 32 * 4096 * 1e5 * 2 / 2^20 / 16 = 12500 MB at
  // 10.3 GB/s = 1213.5922.
  CHECK(std::abs(test::group_time(costs.of(16), {100'000}) - 6.1977022) < 1e-6);
  CHECK(release(8).degrees.size() == 3);
}

namespace {

/// How much longer microbatches take than the exact assignment of their sequences.
struct Gaps {
  std::size_t compared = 0, over_2 = 0, over_5 = 0, below = 0, bad = 0, several = 0;
  double worst = 0, sum = 0;

  Gaps(std::uint64_t count, std::int64_t nodes) {
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      const Random random(seed, "exact");
      const SequenceCosts costs = seed % 3 == 0 ? release(8) : random_costs(random);
      const Lengths lengths = random_lengths(random, costs);
      const SequencePlan plan = plan_sequence_groups(lengths, costs, {.counts = 1, .nodes = nodes});
      if (test::fault_of(plan, costs)) ++bad;
      several += plan.microbatches.size() > 1 ? 1u : 0u;
      for (const systems::SequenceMicrobatch& microbatch : plan.microbatches) {
        Lengths own;
        for (const systems::SequenceGroup& group : microbatch.groups)
          for (const std::size_t sequence : group.sequences) own.push_back(lengths[sequence]);
        const double gap = microbatch.time / test::ExactAssignment(own, costs).time() - 1;
        ++compared;
        sum += gap;
        worst = std::max(worst, gap);
        over_2 += gap > 0.02 ? 1u : 0u;
        over_5 += gap > 0.05 ? 1u : 0u;
        below += gap < -1e-9 ? 1u : 0u;  // or the reference is not exact
      }
    }
  }
  [[nodiscard]] std::string to_text() const {
    return text(compared, " microbatches: mean ", 100 * sum / static_cast<double>(compared),
                "%, worst ", 100 * worst, "%, ", over_2, " above 2%, ", over_5, " above 5%");
  }
};

}  // namespace

TEST_CASE("plans are near the exact assignment: within 5% in all cases, 2% in 95%") {
  const std::uint64_t count = test::cases(150, 1000);
  const Gaps searched(count, systems::SequenceGroupOptions{}.nodes), greedy(count, 0);
  INFO("with search: " << searched.to_text());
  INFO("without: " << greedy.to_text());
  for (const Gaps& gaps : {searched, greedy}) {
    CHECK(gaps.bad == 0);
    CHECK(gaps.below == 0);
    CHECK(gaps.several > 0);
    CHECK(20 * gaps.over_2 <= gaps.compared);
  }
  CHECK(searched.over_5 == 0);
}

TEST_CASE("groups of several sizes beat every static degree on long-tailed batches") {
  const SequenceCosts costs = release(64);
  for (const test::LengthDistribution& distribution : test::length_distributions)
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      INFO("mean " << distribution.mean << ", seed " << seed);
      const Lengths lengths = test::draw_lengths(distribution, seed, 512);
      const SequencePlan plan = plan_sequence_groups(lengths, costs);
      CHECK_FALSE(test::fault_of(plan, costs));
      const test::StaticTimes fixed = test::static_times(lengths, costs, distribution.longest);
      CHECK(fixed.best_fit >= 1.4 * plan.time);
      CHECK(fixed.balanced >= 1.15 * plan.time);
      CHECK(fixed.adaptive >= plan.time);
    }
}

TEST_CASE("a plan keeps memory and has every sequence once, however tight it is") {
  std::size_t bad = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Random random(seed, "tight");
    SequenceCosts costs = random_costs(random);
    costs.ranks = static_cast<int>(2 * (1 + random.below(50, 8)));  // also 6, 10, 12 and 14
    costs.tokens_per_rank = 40 + static_cast<std::int64_t>(random.below(51, 100));
    Lengths lengths(random.below(52, 80));
    const auto widest =
        std::min<std::int64_t>(8, 1 << (std::bit_width(static_cast<unsigned>(costs.ranks)) - 1));
    for (std::size_t i = 0; i < lengths.size(); ++i)
      lengths[i] = 1 + static_cast<std::int64_t>(random.below(
                           300 + i, static_cast<std::uint64_t>(widest * costs.tokens_per_rank)));
    const SequencePlan plan = plan_sequence_groups(lengths, costs);
    if (test::fault_of(plan, costs)) ++bad;
  }
  CHECK(bad == 0);
}

TEST_CASE("a plan prints") {
  SequenceCosts costs{4, 100, {{1, 0, 1, 0}, {2, 0, 0.5, 0}, {4, 0, 0.4, 0}}};
  const SequencePlan plan = plan_sequence_groups({50, 150, 50}, costs);
  CHECK(text(plan) ==
        "3 sequences, 250 tokens, 4 ranks: 1 microbatch, 75 s\n"
        "microbatch 0: 75 s\n"
        "  ranks 0-1: 1 sequence, 150 tokens, 75 s\n"
        "  ranks 2-3: 2 sequences, 100 tokens, 50 s");
  const SequencePlan one = plan_sequence_groups({7}, {1, 100, {{1, 0, 1, 0}}});
  CHECK(text(one) ==
        "1 sequence, 7 tokens, 1 rank: 1 microbatch, 7 s\nmicrobatch 0: 7 s\n"
        "  rank 0: 1 sequence, 7 tokens, 7 s");
  CHECK(plan_sequence_groups({}, costs).microbatches.empty());
}

TEST_CASE("measured times give the costs that they follow") {
  const systems::DegreeCost truth{8, 0.6, 2e-5, 3e-10};
  std::vector<systems::DegreeSample> samples;
  for (const std::int64_t length : {1000, 5000, 20000, 100000})
    for (const std::size_t count : {1u, 3u}) {
      const Lengths lengths(count, length);
      samples.push_back({lengths, test::group_time(truth, lengths)});
    }
  const systems::DegreeCost found = systems::fit_degree_cost(8, samples);
  CHECK(std::abs(found.fixed / truth.fixed - 1) < 1e-6);
  CHECK(std::abs(found.per_token / truth.per_token - 1) < 1e-6);
  CHECK(std::abs(found.per_square / truth.per_square - 1) < 1e-6);
  // A time that falls with the tokens has no negative coefficient.
  const systems::DegreeCost odd = systems::fit_degree_cost(
      2, std::vector<systems::DegreeSample>{{{10}, 3}, {{20}, 2}, {{30}, 1}});
  CHECK((odd.fixed >= 0 && odd.per_token >= 0 && odd.per_square >= 0));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)systems::fit_degree_cost(3, samples); }),
             ContainsSubstring("degree 3"));
}

TEST_CASE("a sequence that no group holds is named with the degree that it needs") {
  const std::string message = test::message_of<infeasible>([] {
    (void)plan_sequence_groups({1000, 1'100'000, 5}, release(64));
  });
  // 1,100,000 / 16,971 = 64.8
  CHECK_THAT(message, ContainsSubstring("sequence 1 of 1100000 tokens") &&
                          ContainsSubstring("needs degree 128") &&
                          ContainsSubstring("the widest group has 64"));
  // At a static degree that is too narrow.
  CHECK_THAT(test::message_of<infeasible>(
                 [] { (void)plan_sequence_groups({100'000}, release(64), {.degree = 4}); }),
             ContainsSubstring("needs degree 8, the widest group has 4"));
  CHECK_THAT(test::message_of<infeasible>([] {
               SequenceCosts costs = release(64);
               costs.ranks = 7;
               (void)plan_sequence_groups({10}, costs);
             }),
             ContainsSubstring("7 ranks"));
}

TEST_CASE("what plan_sequence_groups() rejects") {
  const auto rejects = [](const Lengths& lengths, const SequenceCosts& costs,
                          const systems::SequenceGroupOptions& options = {}) {
    return test::message_of<contract_error>(
        [&] { (void)plan_sequence_groups(lengths, costs, options); });
  };
  const SequenceCosts good = release(8);
  CHECK_THAT(rejects({5, 0}, good), ContainsSubstring("sequence 1 has 0"));
  CHECK_THAT(rejects({5}, {}), ContainsSubstring("0 degrees"));
  CHECK_THAT(rejects({5}, good, {.counts = 0}), ContainsSubstring("counts = 0"));
  CHECK_THAT(rejects({5}, good, {.degree = 16}), ContainsSubstring("degree 16"));
  SequenceCosts bad = good;
  bad.degrees[1].degree = 3;
  CHECK_THAT(rejects({5}, bad), ContainsSubstring("degree 3 at place 1"));
  bad = good;
  bad.tokens_per_rank = std::int64_t{1} << 62;
  CHECK_THAT(rejects({5}, bad), ContainsSubstring("tokens of all ranks"));
  CHECK_THAT(rejects({std::int64_t{1} << 62, std::int64_t{1} << 62}, good),
             ContainsSubstring("tokens of the batch"));
  CHECK_THAT(rejects({5}, good, {.nodes = -1}), ContainsSubstring("nodes = -1"));
  bad = good;
  bad.degrees[0].per_token = -1;
  CHECK_THAT(rejects({5}, bad), ContainsSubstring("degree 2: -1"));
}

}  // namespace test_sequence_groups
