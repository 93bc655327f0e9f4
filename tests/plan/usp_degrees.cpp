// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// usp_degrees(): on machines of two levels its closed form picks the heads ranks and ring ranks
// that an exhaustive simulation finds.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_usp_degrees {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using plan::NearAxis;
using plan::TwoLevelNetwork;
using plan::UspCost;
using schedule::AttentionForm;

namespace {

struct Case {
  int node;
  double ratio;   ///< inside over outside
  int kv_heads;   ///< of 24 heads
  double work;    ///< of a rank over the time of its Q within a node
  bool causal;    ///< in zigzag order
  bool training;  ///< forward and backward

  [[nodiscard]] AttentionForm form() const {
    return {.ranks = 8,
            .order = causal ? ShardOrder::zigzag() : ShardOrder::even(),
            .mask = {.causal = causal},
            .backward = training,
            .tokens = 16 * 8,
            .heads = 24,
            .kv_heads = kv_heads,
            .head_width = 4};
  }
  [[nodiscard]] TwoLevelNetwork network() const { return {node, 1e9, 1e9 / ratio}; }
  [[nodiscard]] double product() const {
    const AttentionForm of = form();
    const double queries = 16 * static_cast<double>(of.query_bytes()) / 1e9;
    return work * queries / (2.0 * 128 * 128 / 8);
  }
};

/// The simulated times of what usp_degrees() compares.
std::vector<UspCost> simulated(const Case& each) {
  std::vector<UspCost> all;
  for (const auto& candidate :
       plan::sequence_choice(each.form(), each.network().machine(8), {.product = each.product()}))
    if (candidate.refused.empty() && candidate.ways == 1 &&
        candidate.method != SequenceMethod::rsa && candidate.method != SequenceMethod::token_ring)
      all.push_back({candidate.heads, candidate.ring, candidate.near, candidate.time});
  return all;
}

/// Links of 2:1 to 50:1, and K,V heads that every possible number of heads ranks divides.
std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const int node : {2, 4})
    for (const double ratio : {2, 3, 5, 8, 12, 20, 35, 50})
      for (const int kv_heads : {24, 8, 4, 2, 1})
        for (const double work : {0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0})
          for (const bool causal : {false, true})
            for (const bool training : {false, true})
              all.push_back({node, ratio, kv_heads, work, causal, training});
  return all;
}

bool same(const UspCost& a, const UspCost& b) {
  return a.heads == b.heads && a.ring == b.ring && a.near == b.near;
}

/// The simulated time of what the closed form picks over the least simulated time.
double loss(const Case& each) {
  const UspCost picked = plan::usp_degrees(each.form(), each.network(), each.product()).front();
  double best = std::numeric_limits<double>::infinity(), of_picked = best;
  for (const UspCost& other : simulated(each)) {
    best = std::min(best, other.time);
    if (same(other, picked)) of_picked = other.time;
  }
  return of_picked / best;
}

}  // namespace

TEST_CASE("usp degrees: the closed form picks what exhaustive simulation finds") {
  const std::vector<Case> all = all_cases();
  std::set<std::pair<int, NearAxis>> picked;
  for (std::uint64_t i = 0; i < test::cases(256, all.size()); ++i) {
    const Case& each = all[i * 1009 % all.size()];  // a prime: no case comes twice
    INFO("nodes of " << each.node << ", " << each.ratio << ":1, " << each.kv_heads
                     << " K,V heads, work " << each.work << (each.causal ? ", causal" : "")
                     << (each.training ? ", training" : ""));
    CHECK(loss(each) <= 1 + 1e-9);
    const UspCost best = plan::usp_degrees(each.form(), each.network(), each.product()).front();
    picked.insert({best.heads, best.near});
  }
  // Every number of heads ranks is the best one somewhere.
  for (const int heads : {1, 2, 4, 8})
    CHECK(picked.lower_bound({heads, NearAxis::heads})->first == heads);
}

TEST_CASE("usp degrees: forward times are those of the simulator, if no exchange leaves its node") {
  for (const int node : {2, 4, 8})
    for (const double ratio : {1.0, 7.0, 50.0})
      for (const int kv_heads : {24, 4})
        for (const double work : {0.0, 2.0, 40.0})
          for (const bool causal : {false, true}) {
            const Case each{node, ratio, kv_heads, work, causal, false};
            const auto exact = simulated(each);
            for (const UspCost& cost :
                 plan::usp_degrees(each.form(), each.network(), each.product()))
              for (const UspCost& other : exact) {
                if (!same(cost, other)) continue;
                INFO("nodes of " << node << ", " << ratio << ":1, " << kv_heads << " K,V heads, "
                                 << cost.heads << " x " << cost.ring << ", work " << work
                                 << (cost.near == NearAxis::heads ? "" : ", ring near"));
                const bool inside = cost.heads == 1 ||
                                    (cost.near == NearAxis::heads ? cost.heads <= node
                                                                  : cost.heads * cost.ring <= node);
                if (inside)
                  CHECK_THAT(cost.time, WithinRel(other.time, 1e-9));
                else
                  CHECK_THAT(cost.time, WithinRel(other.time, 0.15));
              }
          }
}

TEST_CASE("usp degrees: if the heads divide unevenly, the pick is at most 15% slower") {
  for (const double ratio : {2, 5, 20, 50})
    for (const double work : {0.0, 0.3, 10.0, 100.0})
      for (const bool training : {false, true})
        CHECK(loss({4, ratio, 3, work, true, training}) <= 1.15);
}

TEST_CASE("usp degrees: a network of two levels is a machine with a port and a card a rank") {
  const Machine machine = TwoLevelNetwork{2, 100, 10}.machine(4);
  Builder builder("messages", 4);
  std::vector<BufferId> buffers;
  for (std::size_t r = 0; r < 4; ++r)
    buffers.push_back(
        builder.add_buffer({.rank = Rank{r}, .parts = 4, .transient = false, .bytes = 400}));
  // Rank 0 sends 100 bytes to rank 1, which take 1 s, and to ranks 2 and 3 through its card.
  for (const std::uint32_t to : {1u, 2u, 3u})
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{to})},
                {schedule::read(buffers[0], to), schedule::write(buffers[to], 0)});
  const Schedule list = std::move(builder).build();
  const Timeline timeline = simulate(list, {}, machine);
  CHECK(timeline[ActionId{0}].arrival == 1);
  CHECK(timeline[ActionId{1}].arrival == 1 + 10);
  CHECK(timeline[ActionId{2}].arrival == 1 + 10 + 10);
}

TEST_CASE("usp degrees: what the formula does not know is rejected") {
  const Case good{4, 10, 24, 1, true, false};
  const auto complaint = [&](const AttentionForm& form, const TwoLevelNetwork& network,
                             double product) {
    return test::message_of<contract_error>(
        [&] { (void)plan::usp_degrees(form, network, product); });
  };
  AttentionForm packed = good.form(), weighted = good.form();
  packed.mask.segments = {0, 5};
  weighted.order = ShardOrder::weighted({1, 1, 1, 1, 1, 1, 1, 2});
  CHECK_THAT(complaint(packed, good.network(), 1), ContainsSubstring("2 segments"));
  CHECK_THAT(complaint(weighted, good.network(), 1), ContainsSubstring("weighted"));
  CHECK_THAT(complaint(good.form(), {3, 10, 1}, 1), ContainsSubstring("8 ranks in nodes of 3"));
  CHECK_THAT(complaint(good.form(), {4, 1, 10}, 1), ContainsSubstring("10 outside"));
  CHECK_THAT(complaint(good.form(), good.network(), -1), ContainsSubstring("product = -1"));
  for (const UspCost& cost :
       plan::usp_degrees(Case{4, 10, 2, 1, true, false}.form(), good.network(), 1))
    CHECK(cost.heads <= 2);
}

}  // namespace test_usp_degrees
