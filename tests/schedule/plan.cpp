// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks that check() names the first wrong entry of a Plan, that hash() depends on every member,
// and what a Plan prints.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/plan.hpp>

#include "support/complaint.hpp"

namespace test_plan {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using hd::test::message_of;

namespace {

/// 10 layers on 8 ranks: 3 groups of one rank, then 2 groups of two. Rank 5 is left out.
hd::Plan example() {
  return {.stages = {{.layers = {0, 6}, .ranks = {0, 1, 2}, .samples = {3, 3, 2}},
                     {.layers = {6, 10},
                      .ranks = {7, 6, 3, 4},
                      .samples = {4, 4},
                      .tensor = 2,
                      .recompute = true}},
          .microbatches = 4,
          .casts = {hd::Codec{.type = hd::Scalar::i8, .block = 64}}};
}

struct Change {
  const char* error;
  std::function<void(hd::Plan&)> make;
};

}  // namespace

TEST_CASE("a plan knows its samples and its casts") {
  const hd::Plan plan = example();
  CHECK(plan.microbatch_samples() == 8);
  CHECK(plan.batch() == 32);
  CHECK(plan.stages[1].groups() == 2);
  CHECK(plan.stages[0].layers.size() == 6);
  CHECK(plan.cast_after(0) == plan.casts[0]);
  CHECK_FALSE(plan.cast_after(1));
  CHECK(hd::Plan{}.microbatch_samples() == 0);
  CHECK_FALSE(hd::Plan{}.cast_after(0));
  CHECK_NOTHROW(hd::check(plan, 10, 8));
}

TEST_CASE("the first wrong entry of a plan is named") {
  const Change changes[] = {
      {"a plan has at least one stage", [](hd::Plan& p) { p.stages.clear(); }},
      {"microbatches = 0", [](hd::Plan& p) { p.microbatches = 0; }},
      {"a plan names a schedule", [](hd::Plan& p) { p.schedule = ""; }},
      {"buckets = 0", [](hd::Plan& p) { p.buckets = 0; }},
      {"stage 0 begins with layer 1, expected 0",
       [](hd::Plan& p) { p.stages[0].layers.first = 1; }},
      {"stage 1 begins with layer 7, expected 6",
       [](hd::Plan& p) { p.stages[1].layers.first = 7; }},
      {"stage 1 begins with layer 5, expected 6",
       [](hd::Plan& p) { p.stages[1].layers.first = 5; }},
      {"stage 0: layers 0 to 0", [](hd::Plan& p) { p.stages[0].layers.last = 0; }},
      {"stage 1 ends behind 11 of 10 layers", [](hd::Plan& p) { p.stages[1].layers.last = 11; }},
      {"they end behind 9 of 10 layers", [](hd::Plan& p) { p.stages[1].layers.last = 9; }},
      {"stage 1: tensor 0, sequence 1", [](hd::Plan& p) { p.stages[1].tensor = 0; }},
      {"stage 0: tensor 1, sequence -1", [](hd::Plan& p) { p.stages[0].sequence = -1; }},
      {"stage 1 has 4 ranks, expected 2 groups of 3 x 1",
       [](hd::Plan& p) { p.stages[1].tensor = 3; }},
      {"stage 0 has 3 ranks, expected 3 groups of 1 x 2",
       [](hd::Plan& p) { p.stages[0].sequence = 2; }},
      {"stage 0 has 2 ranks, expected 3 groups", [](hd::Plan& p) { p.stages[0].ranks.pop_back(); }},
      {"expected 0 groups", [](hd::Plan& p) { p.stages[0].samples.clear(); }},
      {"stage 0, group 2: samples 0",
       [](hd::Plan& p) {
         p.stages[0].samples = {4, 4, 0};
       }},
      {"stage 0, group 1: samples -3",
       [](hd::Plan& p) {
         p.stages[0].samples = {9, -3, 2};
       }},
      {"stage 1 has 9, stage 0 has 8",
       [](hd::Plan& p) {
         p.stages[1].samples = {4, 5};
       }},
      {"stage 1: rank 8 of 8", [](hd::Plan& p) { p.stages[1].ranks[0] = 8; }},
      {"rank 2 is in stage 0 and again in stage 1", [](hd::Plan& p) { p.stages[1].ranks[2] = 2; }},
      {"rank 1 is in stage 0 and again in stage 0", [](hd::Plan& p) { p.stages[0].ranks[0] = 1; }},
      {"2 casts for 1 cuts", [](hd::Plan& p) { p.casts.emplace_back(); }},
      {"shard_node = -1, shard_pair = 0", [](hd::Plan& p) { p.shard_node = -1; }},
      {"attention = usp", [](hd::Plan& p) { p.attention = hd::SequenceMethod::usp; }},
      {"only one-byte types can have a scale",
       [](hd::Plan& p) { p.casts[0] = hd::Codec{.type = hd::Scalar::f16, .block = 4}; }},
  };
  for (const Change& change : changes) {
    hd::Plan plan = example();
    change.make(plan);
    const std::string error = message_of<hd::contract_error>([&] { hd::check(plan, 10, 8); });
    CHECK_THAT(error, ContainsSubstring(change.error));
  }
  // A plan without casts and one of a single stage are complete.
  hd::Plan plan = example();
  plan.casts.clear();
  CHECK_NOTHROW(hd::check(plan, 10, 8));
  plan.stages.pop_back();
  CHECK_NOTHROW(hd::check(plan, 6, 3));
  CHECK_THROWS_AS(hd::check(plan, 6, 2), hd::contract_error);
}

TEST_CASE("the hash of a plan depends on every member") {
  const std::function<void(hd::Plan&)> changes[] = {
      [](hd::Plan&) {},
      [](hd::Plan& p) { p.microbatches = 5; },
      [](hd::Plan& p) { p.schedule = "gpipe"; },
      [](hd::Plan& p) { p.sharding = "zero1"; },
      [](hd::Plan& p) { p.shard_node = 2; },
      [](hd::Plan& p) { p.shard_pair = 2; },
      [](hd::Plan& p) { p.attention = hd::SequenceMethod::ulysses; },
      [](hd::Plan& p) { p.attention = hd::SequenceMethod::rsa; },
      [](hd::Plan& p) { p.buckets = 2; },
      [](hd::Plan& p) { p.casts.clear(); },
      [](hd::Plan& p) { p.casts[0].reset(); },
      [](hd::Plan& p) { p.casts[0]->type = hd::Scalar::f8e4m3; },
      [](hd::Plan& p) { p.casts[0]->block = 32; },
      [](hd::Plan& p) { p.casts[0]->feedback = true; },
      [](hd::Plan& p) { p.casts[0]->agree = true; },
      [](hd::Plan& p) { p.stages.pop_back(); },
      [](hd::Plan& p) { std::swap(p.stages[0], p.stages[1]); },
      [](hd::Plan& p) { p.stages[0].layers.first = 1; },
      [](hd::Plan& p) { p.stages[0].layers.last = 5; },
      [](hd::Plan& p) { p.stages[0].ranks[2] = 5; },
      [](hd::Plan& p) { std::swap(p.stages[0].ranks[0], p.stages[0].ranks[1]); },
      [](hd::Plan& p) {
        p.stages[0].samples = {3, 2, 3};
      },
      [](hd::Plan& p) { p.stages[1].samples = {8}; },
      [](hd::Plan& p) { p.stages[1].tensor = 1; },
      [](hd::Plan& p) { p.stages[1].sequence = 2; },
      [](hd::Plan& p) { p.stages[1].recompute = false; },
  };
  std::set<std::uint64_t> hashes;
  for (const auto& change : changes) {
    hd::Plan plan = example();
    change(plan);
    hashes.insert(hd::hash(plan));
    CHECK((plan == example()) == (hd::hash(plan) == hd::hash(example())));
    CHECK(hd::hash(plan) == hd::hash(hd::Plan(plan)));
  }
  CHECK(hashes.size() == std::size(changes));
  // The same on every machine: this number must never change.
  CHECK(hd::hash(example()) == 0xd9b3fbe44207999c);
}

TEST_CASE("a prediction is no part of what a plan executes, but it is printed and checked") {
  hd::Plan plan = example(), other = example();
  plan.prediction = hd::PlanPrediction{1.5, {7, 7, 8, 8, 0, 0, 9, 9}};
  other.prediction = hd::PlanPrediction{1.25, {}};
  CHECK(plan == example());
  CHECK(plan == other);
  CHECK(plan.prediction != other.prediction);
  CHECK(hd::hash(plan) == hd::hash(example()));
  CHECK(hd::text(plan) == hd::text(example()) +
                              "\npredicted: a step takes 1.5 s; bytes: ranks 0-1 7, ranks 2-3 8, "
                              "ranks 6-7 9");
  CHECK(hd::text(other) == hd::text(example()) + "\npredicted: a step takes 1.25 s");
  CHECK_NOTHROW(hd::check(plan, 10, 8));
  CHECK_NOTHROW(hd::check(other, 10, 8));
  const auto error = [&](double step, std::vector<hd::Bytes> memory) {
    plan.prediction = hd::PlanPrediction{step, std::move(memory)};
    return message_of<hd::contract_error>([&] { hd::check(plan, 10, 8); });
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double step : {-1.0, infinity, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THAT(error(step, {}), ContainsSubstring("the predicted time of a step"));
  CHECK_THAT(error(1, {1, 2, 3, 4, 5, 6, 7}),
             ContainsSubstring("bytes of 7 ranks; the plan has ranks up to 7"));
}

TEST_CASE("a plan prints a line for each stage") {
  CHECK(hd::text(example()) ==
        "1f1b, 4 microbatches of 8 samples\n"
        "stage 0: layers 0-5, ranks 0-2, samples 3 3 2, sends i8/64\n"
        "stage 1: layers 6-9, ranks 7 6 3-4, samples 4 4, tensor degree 2, recompute");
  CHECK(hd::text(hd::Plan{.stages = {{.layers = {0, 1}, .ranks = {4}, .samples = {1}}},
                          .schedule = "gpipe",
                          .sharding = "zeropp",
                          .shard_node = 4,
                          .shard_pair = 2,
                          .attention = hd::SequenceMethod::ulysses}) ==
        "gpipe, 1 microbatch of 1 sample, sharding zeropp, nodes of 4, pairs of 2, attention "
        "ulysses\nstage 0: layer 0, rank 4, samples 1");
  hd::Plan wide{.stages = {{.layers = {0, 1}, .samples = std::vector<std::int64_t>(9, 1)}}};
  for (std::size_t rank = 0; rank < 9; ++rank) wide.stages[0].ranks.push_back(hd::Rank{rank});
  CHECK_THAT(hd::text(wide), EndsWith("samples 1 (9 ranks)"));
  wide.stages[0].samples = {3, 3, 2, 2, 2, 2, 2, 2, 1};
  CHECK_THAT(hd::text(wide), EndsWith("samples 3 (2 ranks) 2 (6 ranks) 1 (1 rank)"));
  for (std::size_t rank = 9; rank < 18; ++rank) wide.stages[0].ranks.push_back(hd::Rank{rank});
  wide.stages[0].tensor = 2;
  CHECK_THAT(hd::text(wide),
             EndsWith("samples 3 (2 groups) 2 (6 groups) 1 (1 group), tensor degree 2"));
  hd::Plan plan = example();
  plan.buckets = 3;
  CHECK(hd::text(plan).starts_with("1f1b, 4 microbatches of 8 samples, 3 buckets\nstage 0"));
}

TEST_CASE("the buckets of a stage are parts of its layers, as equal as possible") {
  hd::Plan plan = example();
  CHECK(hd::schedule::in_buckets(plan) == plan);
  plan.buckets = 4;  // of 6 layers, and of 4
  const hd::Plan buckets = hd::schedule::in_buckets(plan);
  const std::vector<hd::LayerRange> layers{{0, 2}, {2, 4}, {4, 5}, {5, 6},
                                           {6, 7}, {7, 8}, {8, 9}, {9, 10}};
  REQUIRE(buckets.stages.size() == layers.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    hd::PlanStage expected = plan.stages[s / 4];
    expected.layers = layers[s];
    CHECK(buckets.stages[s] == expected);
    CHECK(buckets.cast_after(s) == (s == 3 ? plan.casts[0] : std::nullopt));
  }
  CHECK(buckets.buckets == 1);
  CHECK(buckets.microbatches == plan.microbatches);
  plan.buckets = 1000;  // stage 1 has 4 layers
  CHECK(plan.bucket_count() == 4);
  CHECK(hd::schedule::in_buckets(plan).stages == buckets.stages);
}

}  // namespace test_plan
