// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Migrations between two divisions: bytes and messages by a closed form and by brute force over
// bytes, what each rank holds afterwards, the price of a migration, and refusals.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_migration {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using heddle::test::message_of;

namespace {

/// A pipeline with these numbers of layers; stage s is on rank `ranks[s]`.
Plan pipeline(const std::vector<int>& counts, const std::vector<int>& ranks) {
  Plan plan{.microbatches = 4};
  int layer = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    plan.stages.push_back(
        {.layers = {layer, layer + counts[s]}, .ranks = {Rank{ranks[s]}}, .samples = {1}});
    layer += counts[s];
  }
  return plan;
}

/// The rank of each layer of a pipeline.
std::vector<std::size_t> owners(const Plan& plan) {
  std::vector<std::size_t> result;
  for (const PlanStage& stage : plan.stages)
    for (int l = stage.layers.first; l < stage.layers.last; ++l)
      result.push_back(+stage.ranks.front());
  return result;
}

/// A random division of `layers` layers over some of `ranks` ranks in random order.
Plan random_pipeline(std::mt19937& random, int layers, int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  const int stages = 1 + static_cast<int>(random() % static_cast<unsigned>(ranks));
  std::vector<int> cuts(static_cast<std::size_t>(layers - 1));
  std::iota(cuts.begin(), cuts.end(), 1);
  std::ranges::shuffle(cuts, random);
  cuts.resize(static_cast<std::size_t>(stages - 1));
  cuts.push_back(layers);
  std::ranges::sort(cuts);
  std::vector<int> counts;
  for (int last = 0; const int cut : cuts) {
    counts.push_back(cut - last);
    last = cut;
  }
  return pipeline(counts, order);
}

}  // namespace

TEST_CASE("a migration moves the layers whose owner changes, and nothing else") {
  const std::vector<Bytes> sizes{1, 10, 100, 1000, 10'000, 100'000};
  const Plan before = pipeline({2, 2, 2}, {0, 1, 2}), after = pipeline({3, 1, 2}, {0, 1, 2});
  const Schedule schedule = plan::migration(before, after, sizes);
  CHECK(schedule.ranks() == 3);
  CHECK(plan::moved(schedule) == plan::Moved{100, 1});  // layer 2, from rank 1 to rank 0
  REQUIRE(schedule.size() == 1);
  CHECK(schedule[ActionId{0}].kind == Kind::move);
  CHECK(schedule[schedule[ActionId{0}].queue].from == Rank{1});
  CHECK(schedule[schedule[ActionId{0}].queue].to == Rank{0});

  CHECK(plan::moved(plan::migration(before, before, sizes)) == plan::Moved{0, 0});
  // All three ranks pass their layers on: 11 + 1100 + 110'000 bytes in 3 messages.
  CHECK(plan::moved(plan::migration(before, pipeline({2, 2, 2}, {1, 2, 0}), sizes)) ==
        plan::Moved{111'111, 3});
  // A message of 1100 bytes at 100 bytes a second and a latency of 2 s; another one beside it.
  const Schedule two = plan::migration(before, pipeline({2, 2, 2}, {1, 0, 2}), sizes);
  CHECK(plan::moved(two) == plan::Moved{1111, 2});
  const Machine machine = Machine::uniform(3, {}, {.latency = 2, .bandwidth = 100});
  CHECK_THAT(simulate(two, {}, machine).makespan(), WithinRel(13.0, 1e-12));
}

TEST_CASE("migrations of random pipelines equal the closed form") {
  std::mt19937 random(31);
  for (std::uint64_t c = 0; c < heddle::test::cases(300, 30'000); ++c) {
    const int ranks = 1 + static_cast<int>(random() % 6);
    const int layers = ranks + static_cast<int>(random() % 10);
    std::vector<Bytes> sizes;
    for (int l = 0; l < layers; ++l) sizes.push_back(1 + random() % 1000);
    const Plan before = random_pipeline(random, layers, ranks);
    const Plan after = random_pipeline(random, layers, ranks);
    const auto old = owners(before), now = owners(after);
    plan::Moved expected;
    std::set<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t l = 0; l < sizes.size(); ++l) {
      if (old[l] == now[l]) continue;
      expected.bytes += sizes[l];
      pairs.insert({old[l], now[l]});
    }
    expected.messages = pairs.size();
    const Schedule schedule = plan::migration(before, after, sizes, ranks);
    CAPTURE(c, before, after);
    REQUIRE(plan::moved(schedule) == expected);
    REQUIRE(schedule.size() == expected.messages);
  }
}

TEST_CASE("a rank that joins a stage gets its layers from the rank that has sent least") {
  const std::vector<Bytes> sizes(4, 8);
  Plan before = pipeline({4}, {0});
  before.stages[0].ranks = {Rank{0}, Rank{1}};
  before.stages[0].samples = {1, 1};
  Plan after = before;
  after.stages[0].ranks = {Rank{0}, Rank{1}, Rank{2}, Rank{3}};
  after.stages[0].samples = {1, 1, 1, 1};
  const Schedule schedule = plan::migration(before, after, sizes);
  CHECK(plan::moved(schedule) == plan::Moved{64, 2});
  std::map<std::size_t, Bytes> sent;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    sent[+schedule[schedule[ActionId{i}].queue].from] += plan::moved(schedule).bytes / 2;
  CHECK(sent == std::map<std::size_t, Bytes>{{0, 32}, {1, 32}});
  // Nothing moves to fewer ranks that have it.
  CHECK(plan::moved(plan::migration(after, before, sizes, 4)) == plan::Moved{0, 0});
}

TEST_CASE("ranks that share a sharded stage move their shares of its elements") {
  // Two layers of 3 and 4 elements of 8 bytes. Two ranks have elements 0 to 3 and 4 to 6 of them.
  const std::vector<Bytes> sizes{24, 32};
  const Plan line = pipeline({1, 1}, {0, 1});
  Plan both = pipeline({2}, {0});
  both.stages[0].ranks = {Rank{1}, Rank{0}};
  both.stages[0].samples = {3, 1};
  // Each receives the layer of the other.
  CHECK(plan::moved(plan::migration(line, both, sizes)) == plan::Moved{24 + 32, 2});
  both.sharding = "zero1";
  // Rank 1 gets layer 0 and keeps an element of layer 1. Rank 0 gets three elements of layer 1.
  CHECK(plan::moved(plan::migration(line, both, sizes, 0, 8)) == plan::Moved{24 + 24, 2});
  CHECK(plan::moved(plan::migration(both, line, sizes, 0, 8)) == plan::Moved{24 + 24, 2});
  // By bytes, the shares are 28 bytes each, so rank 0 gets 28 bytes of layer 1.
  CHECK(plan::moved(plan::migration(line, both, sizes)) == plan::Moved{24 + 28, 2});
  // Ranks that divide sequences have the same weights, too.
  both.stages[0].sequence = 2;
  both.stages[0].samples = {1};
  CHECK(plan::moved(plan::migration(line, both, sizes, 0, 8)) == plan::Moved{24 + 24, 2});
}

TEST_CASE("migrations of random plans with replicas and shardings equal brute force") {
  std::mt19937 random(77);
  std::uint64_t sharded = 0, copied = 0;
  const std::uint64_t all = heddle::test::cases(300, 30'000);
  for (std::uint64_t c = 0; c < all; ++c) {
    const int ranks = 2 + static_cast<int>(random() % 5);
    const int layers = ranks + static_cast<int>(random() % 6);
    const Bytes whole = 1 + random() % 8;
    std::vector<Bytes> sizes;
    for (int l = 0; l < layers; ++l) sizes.push_back(whole * (1 + random() % 20));
    const auto any = [&] {
      Plan plan = random_pipeline(random, layers, ranks);
      std::set<std::size_t> used;
      for (const PlanStage& stage : plan.stages) used.insert(+stage.ranks[0]);
      for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
        if (used.contains(r) || random() % 4 == 0) continue;
        PlanStage& stage = plan.stages[random() % plan.stages.size()];
        const auto at = static_cast<std::ptrdiff_t>(random() % (stage.ranks.size() + 1));
        stage.ranks.insert(stage.ranks.begin() + at, Rank{r});
      }
      for (PlanStage& stage : plan.stages) {
        stage.samples.assign(stage.ranks.size(), 1);
        stage.samples[0] = 10 - static_cast<std::int64_t>(stage.ranks.size()) + 1;
      }
      constexpr const char* shardings[] = {"", "zero1", "zero2", "zero3"};
      plan.sharding = shardings[random() % 4];
      return plan;
    };
    const Plan before = any(), after = any();
    // Element by element: who has it, of a rank's place among those of the stage.
    const auto holds = [&](const Plan& plan, std::size_t rank, int layer, Bytes element) {
      for (const PlanStage& stage : plan.stages) {
        if (layer < stage.layers.first || layer >= stage.layers.last) continue;
        const auto found = std::ranges::find(stage.ranks, Rank{rank});
        if (found == stage.ranks.end()) return false;
        if (plan.sharding.empty()) return true;
        Bytes count = 0, at = element;
        for (int l = stage.layers.first; l < stage.layers.last; ++l) {
          const Bytes here = sizes[static_cast<std::size_t>(l)] / whole;
          count += here;
          if (l < layer) at += here;
        }
        const auto place = static_cast<Bytes>(found - stage.ranks.begin());
        const Bytes each = count / stage.ranks.size(), more = count % stage.ranks.size();
        const Bytes first = place * each + std::min<Bytes>(place, more);
        return first <= at && at < first + each + (place < more ? 1 : 0);
      }
      return false;
    };
    Bytes expected = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
      for (int l = 0; l < layers; ++l)
        for (Bytes e = 0; e < sizes[static_cast<std::size_t>(l)] / whole; ++e)
          if (holds(after, r, l, e) && !holds(before, r, l, e)) expected += whole;
    CAPTURE(c, before, after, before.sharding, after.sharding);
    REQUIRE(plan::moved(plan::migration(before, after, sizes, ranks, whole)).bytes == expected);
    sharded += !before.sharding.empty() && !after.sharding.empty() ? 1u : 0u;
    copied += before.sharding.empty() && after.sharding.empty() ? 1u : 0u;
  }
  CHECK(10 * sharded > 3 * all);
  CHECK(50 * copied > all);
}

TEST_CASE("pieces of random parts give each rank what it lacks, once") {
  std::mt19937 random(7);
  constexpr std::int64_t elements = 24;
  for (std::uint64_t c = 0; c < heddle::test::cases(300, 30'000); ++c) {
    const std::size_t ranks = 1 + random() % 5, arrays = 1 + random() % 3;
    std::vector<std::vector<plan::HeldElements>> before(ranks), after(ranks);
    // By rank, array and element: whether it is there.
    using Held = std::vector<std::vector<std::vector<bool>>>;
    const std::vector<bool> none(elements, false);
    Held had(ranks, {arrays, none}), needs = had;
    for (std::size_t a = 0; a < arrays; ++a)
      for (std::int64_t e = 0; e < elements; ++e) {
        const auto at = static_cast<std::size_t>(e);
        had[random() % ranks][a][at] = true;  // somebody has it
        for (std::size_t r = 0; r < ranks; ++r) {
          if (random() % 4 == 0) had[r][a][at] = true;
          if (random() % 3 == 0) needs[r][a][at] = true;
        }
      }
    const auto fill = [&](const Held& from, auto& into) {
      for (std::size_t r = 0; r < ranks; ++r)
        for (std::size_t a = 0; a < arrays; ++a) {
          IndexSet set;
          for (std::int64_t e = 0; e < elements; ++e)
            if (from[r][a][static_cast<std::size_t>(e)]) set.add({e, e + 1});
          into[r].push_back({a, set});
        }
    };
    fill(had, before);
    fill(needs, after);
    const std::vector<Bytes> bytes{4, 8, 2};
    const auto pieces = plan::migration_pieces(before, after, std::span(bytes).first(arrays));
    Bytes expected = 0;
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t a = 0; a < arrays; ++a)
        for (std::size_t e = 0; e < elements; ++e)
          expected += needs[r][a][e] && !had[r][a][e] ? bytes[a] : 0;
    Held got = had;
    for (const plan::StatePiece& piece : pieces)
      for (const Interval& each : piece.elements.intervals())
        for (auto e = static_cast<std::size_t>(each.begin); e < static_cast<std::size_t>(each.end);
             ++e) {
          REQUIRE(had[+piece.from][piece.array][e]);
          REQUIRE_FALSE(got[+piece.to][piece.array][e]);
          got[+piece.to][piece.array][e] = true;
        }
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t a = 0; a < arrays; ++a)
        for (std::size_t e = 0; e < elements; ++e) REQUIRE((!needs[r][a][e] || got[r][a][e]));
    const Schedule schedule =
        plan::migration_schedule(pieces, static_cast<int>(ranks), std::span(bytes).first(arrays));
    REQUIRE(plan::moved(schedule).bytes == expected);
  }
}

TEST_CASE("a migration between plans that do not fit is refused") {
  const std::vector<Bytes> sizes(6, 8);
  const Plan three = pipeline({2, 2, 2}, {0, 1, 2});
  CHECK_THAT(message_of<contract_error>([&] {
               (void)plan::migration(three, pipeline({2, 2, 2}, {0, 1, 3}), sizes, 3);
             }),
             ContainsSubstring("rank 3"));
  CHECK_THAT(message_of<contract_error>([&] {
               (void)plan::migration(three, pipeline({2, 2}, {0, 1}), sizes);
             }),
             ContainsSubstring("layers"));
  Plan tensor = three;
  tensor.stages[2].ranks = {Rank{2}, Rank{3}};
  tensor.stages[2].tensor = 2;
  CHECK_THAT(
      message_of<contract_error>([&] { (void)plan::migration(three, tensor, sizes); }),
      ContainsSubstring("the plan after has tensor degree 2 at stage 2, migration() moves the "
                        "state of degree 1 only"));
  Plan sharded = three;
  sharded.sharding = "three-level";
  CHECK_THAT(message_of<contract_error>([&] { (void)plan::migration(sharded, three, sizes); }),
             ContainsSubstring("the plan before has the sharding 'three-level'") &&
                 ContainsSubstring("use zero1"));
  CHECK_THAT(message_of<contract_error>([&] { (void)plan::migration(three, three, sizes, 0, 3); }),
             ContainsSubstring("layer 0 has 8 bytes, whole = 3"));
  // Rank 1 needs elements 4 to 7, rank 0 has 0 to 5.
  const std::vector<std::vector<plan::HeldElements>> before{{{0, IndexSet(6)}}, {}};
  IndexSet needed;
  needed.add({4, 8});
  const std::vector<std::vector<plan::HeldElements>> after{{}, {{0, needed}}};
  const std::vector<Bytes> bytes{4};
  CHECK_THAT(
      message_of<contract_error>([&] { (void)plan::migration_pieces(before, after, bytes); }),
      ContainsSubstring("rank 1 needs 2 elements of array 0: 6-7"));
}

}  // namespace test_migration
