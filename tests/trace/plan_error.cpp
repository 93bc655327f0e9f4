// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the errors of a prediction against numbers computed by hand: the step, the medians and the
// worst action of each stage and of each pair of ranks, and the table.

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace.hpp>

#include "support/complaint.hpp"

namespace test_plan_error {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using test::message_of;

namespace {

/// Two stages, two microbatches, all forwards first: per stage two F of 1 s, two B of 2 s, an
/// update of no time; messages of 0.5 s.
Timeline predicted() {
  return simulate(schedule::gpipe({.ranks = 2, .microbatches = 2}),
                  StageCosts{.forward = 1, .backward = 2, .latency = 0.5});
}

/// The actions of the timeline that `chosen` selects, in order.
template <class Chosen>
std::vector<std::size_t> actions(const Timeline& timeline, Chosen&& chosen) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < timeline.schedule().size(); ++i) {
    const Action& action = timeline.schedule()[ActionId{i}];
    if (chosen(action, timeline.schedule()[action.queue])) found.push_back(i);
  }
  return found;
}

}  // namespace

TEST_CASE("equal timelines have no error") {
  const Timeline timeline = predicted();
  const trace::PlanError error = trace::plan_error(timeline, timeline);
  CHECK(error.step() == 0);
  CHECK(error.predicted == timeline.makespan());
  REQUIRE(error.stages.size() == 2);
  REQUIRE(error.moves.size() == 2);
  for (const auto& each : error.stages) {
    CHECK(each.errors.actions == 4);  // the update has no predicted time
    CHECK(each.errors.median == 0);
    CHECK(each.errors.worst == 0);
  }
  CHECK(error.moves[0].from == Rank{0});
  CHECK(error.moves[1].from == Rank{1});
}

TEST_CASE("errors are by step, by stage and by pair of ranks") {
  const Timeline plan = predicted();
  Timeline run = plan;
  // Stage 1: +10%, +50%, -60% and 0%, so that the median is between 0% and 10%.
  const auto of_stage_1 = actions(plan, [](const Action& action, const Queue&) {
    return schedule::is_work(action.kind) && action.kind != Kind::update &&
           action.stage == Stage{1};
  });
  REQUIRE(of_stage_1.size() == 4);
  const double changes[] = {0.1, 0.5, -0.6, 0};
  for (std::size_t k = 0; k < 4; ++k) {
    Span& span = run.spans()[of_stage_1[k]];
    span.end = span.start + (span.end - span.start) * (1 + changes[k]);
  }
  // The second message from rank 1 to rank 0 arrives after 2 s instead of 0.5 s.
  const auto back = actions(plan, [](const Action& action, const Queue& queue) {
    return action.kind == Kind::move && queue.from == Rank{1};
  });
  REQUIRE(back.size() == 2);
  run.spans()[back[1]].arrival += 1.5;
  // The step ends a tenth later.
  const auto updates =
      actions(plan, [](const Action& action, const Queue&) { return action.kind == Kind::update; });
  run.spans()[updates[0]].arrival = plan.begin() + 1.1 * plan.makespan();

  const trace::PlanError error = trace::plan_error(plan, run);
  CHECK_THAT(error.step(), WithinAbs(0.1, 1e-12));
  CHECK(error.stages[0].errors.worst == 0);
  CHECK_THAT(error.stages[1].errors.median, WithinAbs(0.05, 1e-12));
  CHECK_THAT(error.stages[1].errors.worst, WithinAbs(-0.6, 1e-12));
  CHECK(+error.stages[1].errors.worst_action == of_stage_1[2]);
  CHECK(error.moves[0].errors.worst == 0);
  CHECK_THAT(error.moves[1].errors.median, WithinAbs(1.5, 1e-12));
  CHECK_THAT(error.moves[1].errors.worst, WithinAbs(3, 1e-12));
  CHECK(+error.moves[1].errors.worst_action == back[1]);

  const std::string table = to_string(error);
  CHECK_THAT(table, ContainsSubstring("(+10%)"));
  CHECK_THAT(table, ContainsSubstring("stage 1                 4       +5%      -60%\n"));
  CHECK_THAT(table, ContainsSubstring("rank 1 to 0             2     +150%     +300%\n"));
}

TEST_CASE("errors are by the bytes of a rank, too") {
  const Timeline plan = predicted();
  const std::vector<Bytes> expected{1000, 0}, needed{1100, 8}, short_one{1};
  const trace::PlanError error = trace::plan_error(plan, plan, expected, needed);
  REQUIRE(error.bytes.size() == 2);
  CHECK_THAT(error.bytes[0].error(), WithinAbs(0.1, 1e-12));
  CHECK(error.bytes[1].error() == 0);
  CHECK_THAT(to_string(error),
             ContainsSubstring("rank 0                      1000            1100      +10%\n"));
  CHECK(to_string(trace::plan_error(plan, plan)).find("bytes") == std::string::npos);
  CHECK_THAT(
      message_of<contract_error>([&] { (void)trace::plan_error(plan, plan, expected, short_one); }),
      ContainsSubstring("measured on 1, the schedule has 2"));
}

TEST_CASE("the prediction of a plan is compared by the step and the bytes of the ranks") {
  const Timeline measured = predicted();
  const Seconds step = measured.makespan();
  trace::PlanError error = trace::plan_error(PlanPrediction{step / 2, {}}, measured);
  CHECK(error.predicted == step / 2);
  CHECK(error.step() == 1);
  CHECK(error.bytes.empty());
  CHECK(error.stages.empty());
  const std::string lines = trace::to_string(error);
  CHECK_THAT(lines, ContainsSubstring("(+100%)\n") && !ContainsSubstring("median"));
  // The machine of the prediction had a rank that the plan leaves out.
  const std::vector<Bytes> bytes = {150, 100};
  error = trace::plan_error(PlanPrediction{step, {100, 100, 0}}, measured, bytes);
  REQUIRE(error.bytes.size() == 2);
  CHECK(error.bytes[0].error() == 0.5);
  CHECK(error.bytes[1].error() == 0);
  CHECK_THROWS_AS(
      trace::plan_error(PlanPrediction{step, {100, 100}}, measured, std::vector<Bytes>{150}),
      contract_error);
}

TEST_CASE("plan_error() rejects timelines of different schedules") {
  const Timeline plan = predicted();
  const Timeline other = simulate(schedule::one_f_one_b({.ranks = 2, .microbatches = 3}),
                                  StageCosts{.forward = 1, .backward = 2});
  CHECK_THAT(message_of<contract_error>([&] { (void)trace::plan_error(plan, other); }),
             ContainsSubstring("different schedules") && ContainsSubstring("measured"));
  // The same number of actions in another order.
  const Timeline order = simulate(schedule::one_f_one_b({.ranks = 2, .microbatches = 2}),
                                  StageCosts{.forward = 1, .backward = 2});
  REQUIRE(order.schedule().size() == plan.schedule().size());
  CHECK_THAT(message_of<contract_error>([&] { (void)trace::plan_error(plan, order); }),
             ContainsSubstring("as predicted"));
  Timeline endless = plan;
  endless.spans()[0].end = std::numeric_limits<Seconds>::infinity();
  CHECK_THROWS_AS(trace::plan_error(plan, endless), contract_error);
  CHECK(trace::plan_error(Timeline{}, Timeline{}).step() == 0);
}

}  // namespace test_plan_error
