// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// weight_pipeline(): every rank computes its microbatches through all stages, the messages and the
// length of a step are those of the closed forms, and no activation is sent.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_weight_pipeline {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::WeightPipelineMessages;
using schedule::WeightPipelineOptions;
using test::Rational;

namespace {

/// Calls visit(options) for all groups of up to `most` ranks and up to 3 rounds.
template <class Visit>
void for_each_shape(int most, const Visit& visit) {
  for (int ranks = 1; ranks <= most; ++ranks)
    for (int groups = 1; groups <= ranks; ++groups)
      for (int rounds = 1; rounds <= 3 && ranks % groups == 0; ++rounds)
        visit(WeightPipelineOptions{
            .ranks = ranks, .groups = groups, .rounds = rounds, .sizes = {.parameters = 1}});
}

/// The passes of a rank, in order.
std::string passes(const Schedule& schedule, int rank) {
  std::string found;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (schedule[action.queue].from == Rank{rank} && action.kind <= Kind::backward)
      found += text(found.empty() ? "" : " ", schedule::action_text(schedule, ActionId{i}));
  }
  return found;
}

}  // namespace

TEST_CASE("weight_pipeline: a legal list that folds, and that threads execute") {
  for_each_shape(4, [](WeightPipelineOptions options) {
    options.sizes = {};
    test::schedule_battery(schedule::weight_pipeline(options));
  });
}

TEST_CASE("weight_pipeline: stages go round-robin over the groups, and ranks compute all of them") {
  const WeightPipelineOptions options{.ranks = 4, .groups = 2, .rounds = 2};
  std::vector<std::size_t> holders;
  for (int s = 0; s < 4; ++s) holders.push_back(+schedule::weight_holder(options, Stage{s}));
  CHECK(holders == std::vector<std::size_t>{0, 2, 1, 3});
  const Schedule schedule = schedule::weight_pipeline(options);
  CHECK(passes(schedule, 1) == "0F1 1F1 2F1 3F1 3B1 2B1 1B1 0B1 0F5 1F5 2F5 3F5 3B5 2B5 1B5 0B5");
}

TEST_CASE("weight_pipeline: messages as many as the closed form says, none with activations") {
  for_each_shape(12, [](const WeightPipelineOptions& options) {
    const Schedule schedule = schedule::weight_pipeline(options);
    const auto each = static_cast<std::size_t>(options.ranks / options.groups);
    WeightPipelineMessages found;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      if (action.kind != Kind::move) continue;
      const Queue& queue = schedule[action.queue];
      ++(+queue.from / each == +queue.to / each ? found.within : found.across);
      REQUIRE(schedule.bytes(schedule.uses(ActionId{i})[0]) == options.sizes.parameters);
      for (const Use& use : schedule.uses(ActionId{i})) {
        const auto& label = schedule[schedule[use.buffer].label];
        REQUIRE((label != role::output && label != role::input_grad && label != role::saved));
      }
    }
    INFO(schedule.name());
    REQUIRE(found == schedule::weight_pipeline_messages(options));
  });
  CHECK(schedule::weight_pipeline_messages({.ranks = 8, .groups = 2, .rounds = 4}) ==
        WeightPipelineMessages{57 + 32, 6 * (57 + 32)});
}

TEST_CASE("weight_pipeline: messages hide behind passes that take twice as long") {
  for_each_shape(8, [](const WeightPipelineOptions& options) {
    const Schedule schedule = schedule::weight_pipeline(options);
    const int each = options.ranks / options.groups;
    for (const int time : {0, 1}) {
      const BasicStageCosts<Rational> costs{.forward = 2, .backward = 4, .per_byte = time};
      const int hops = options.ranks == 1 ? 0 : (each > 1 && options.groups > 1) ? 2 : 1;
      INFO(schedule.name() << ", messages of " << time);
      REQUIRE(simulate(schedule, costs).makespan() ==
              options.rounds * options.ranks * 6 + 2 * hops * time);
    }
    // The weights in use, the next ones and those after them, beside one stage of its own.
    for (const Buffer& buffer : schedule.buffers())
      if (schedule[buffer.label] == schedule::travelling::weights) REQUIRE(buffer.parts == 3);
  });
}

TEST_CASE("weight_pipeline: a rank keeps as many places of a stage's weights as documented") {
  for_each_shape(12, [](const WeightPipelineOptions& options) {
    const Schedule schedule = schedule::weight_pipeline(options);
    // Only the buffers of weights and gradients have bytes.
    std::vector<Bytes> kept(static_cast<std::size_t>(options.ranks));
    for (const Buffer& buffer : schedule.buffers()) kept[+buffer.rank] += buffer.bytes;
    const int arrived = std::max(1, options.ranks / options.groups + options.groups - 2);
    INFO(schedule.name());
    for (const Bytes bytes : kept)
      REQUIRE(bytes == static_cast<Bytes>(8 + arrived) * options.sizes.parameters);
  });
}

TEST_CASE("weight_pipeline: what cannot be divided is named") {
  const auto complaint = []<class E>(E*, int ranks, int groups, int rounds) {
    return test::message_of<E>([&] {
      (void)schedule::weight_pipeline({.ranks = ranks, .groups = groups, .rounds = rounds});
    });
  };
  infeasible* const uneven = nullptr;
  contract_error* const wrong = nullptr;
  CHECK_THAT(complaint(uneven, 6, 4, 1), ContainsSubstring("ranks = 6, groups = 4") &&
                                             ContainsSubstring("smaller number of groups is 3"));
  CHECK_THAT(complaint(uneven, 2, 3, 1), ContainsSubstring("smaller number of groups is 2"));
  CHECK_THAT(complaint(wrong, 2, 0, 1), ContainsSubstring("at least one group"));
  CHECK_THAT(complaint(wrong, 0, 1, 1), ContainsSubstring("at least one stage"));
  CHECK_THAT(complaint(wrong, 2, 1, 0), ContainsSubstring("at least one microbatch"));
  // The closed forms have the same checks.
  const auto of_messages = []<class E>(E*, int ranks, int groups) {
    return test::message_of<E>(
        [&] { (void)schedule::weight_pipeline_messages({.ranks = ranks, .groups = groups}); });
  };
  const auto of_holder = []<class E>(E*, int ranks, int groups, int stage) {
    return test::message_of<E>(
        [&] { (void)schedule::weight_holder({.ranks = ranks, .groups = groups}, Stage{stage}); });
  };
  CHECK_THAT(of_messages(wrong, 2, 0), ContainsSubstring("weight_pipeline_messages") &&
                                           ContainsSubstring("at least one group"));
  CHECK_THAT(of_messages(uneven, 2, 3), ContainsSubstring("smaller number of groups is 2"));
  CHECK_THAT(of_holder(wrong, 2, 0, 0),
             ContainsSubstring("weight_holder") && ContainsSubstring("at least one group"));
  CHECK_THAT(of_holder(uneven, 2, 3, 0), ContainsSubstring("smaller number of groups is 2"));
  CHECK_THAT(of_holder(wrong, 2, 1, 2), ContainsSubstring("stage = 2, ranks = 2"));
}

}  // namespace test_weight_pipeline
