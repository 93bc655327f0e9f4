// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Stages that are no chain, several stages on a rank, and split backward passes, with makespans
// worked out by hand.

#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/schedule_battery.hpp"

namespace test_weave_graphs {

using namespace heddle;

namespace {

Order order(Kind kind, int stage, int item) { return {kind, Stage{stage}, Item{item}}; }

constexpr Kind F = Kind::forward, I = Kind::backward_input, W = Kind::backward_weight,
               B = Kind::backward;

const StageGraph diamond{
    4, {{Stage{0}, Stage{1}}, {Stage{0}, Stage{2}}, {Stage{1}, Stage{3}}, {Stage{2}, Stage{3}}}};

/// Every rank one stage of the diamond: two forwards, two backwards.
Orders diamond_orders() {
  Orders orders{"diamond", {}, diamond};
  for (int s = 0; s < 4; ++s)
    orders.ranks.push_back({order(F, s, 0), order(F, s, 1), order(B, s, 0), order(B, s, 1)});
  return orders;
}

std::string uses_text(const Schedule& schedule, std::size_t id) {
  std::string line;
  for (const Use& use : schedule.uses(ActionId{id}))
    line += text(" ", "?rwu"[use.mode], ":", schedule[schedule[use.buffer].label]);
  return line;
}

}  // namespace

TEST_CASE("a diamond of stages is woven, runs and takes what it takes by hand") {
  const Schedule woven = weave(diamond_orders(), {.activation = 1});
  test::schedule_battery(woven);
  // 16 actions, 8 moves forward, 8 back, 4 updates.
  CHECK(woven.size() == 36);
  // Free transfers, F = 1, B = 2: stage 3 runs F 2-4 and B 4-8, stages 1 and 2 B 6-10, stage 0
  // 8-12.
  CHECK(simulate(woven, {.forward = 1, .backward = 2}).makespan() == 12);
  // Latency 1/2: stage 3 F 3-5, B 5-9; stages 1 and 2 B 7.5-11.5; stage 0 B 10-12 and 12-14.
  CHECK(simulate(woven, {.forward = 1, .backward = 2, .latency = 0.5}).makespan() == 14);
  // The join reads both branches, forwards and backwards; the fork sums two gradients itself.
  for (std::size_t i = 0; i < woven.size(); ++i) {
    const Action& action = woven[ActionId{i}];
    if (action.stage == Stage{3} && action.kind == F)
      CHECK(uses_text(woven, i) == " r:input r:input w:saved r:weights");
    if (action.stage == Stage{0} && action.kind == B)
      CHECK(uses_text(woven, i).starts_with(" r:saved r:output_grad r:output_grad r:weights"));
  }
}

TEST_CASE("a diamond on two ranks moves only what crosses") {
  // Stages 0 and 1 on rank 0, 2 and 3 on rank 1: the edges 0 -> 2 and 1 -> 3 cross.
  const Orders orders{"folded diamond",
                      {{order(F, 0, 0), order(F, 1, 0), order(B, 1, 0), order(B, 0, 0)},
                       {order(F, 2, 0), order(F, 3, 0), order(B, 3, 0), order(B, 2, 0)}},
                      diamond};
  const Schedule woven = weave(orders, {.activation = 5});
  test::schedule_battery(woven);
  CHECK(woven.size() == 8 + 4 + 4);
  // F: 0-1, then 1-2 on both; 3 at 2-3. B: 3 at 3-5, then 5-7 on both, 0 at 7-9.
  CHECK(simulate(woven, {.forward = 1, .backward = 2}).makespan() == 9);
}

TEST_CASE("without backward passes nothing moves to where only those would read it") {
  // Two stages whose outputs the backward pass of the other reads, as for a joint loss.
  StageGraph joint{3, {{Stage{0}, Stage{1}}}};
  joint.edges.push_back({Stage{1}, Stage{2}, B});
  joint.edges.push_back({Stage{2}, Stage{1}, B});
  const Orders forward{"joint", {{order(F, 0, 0)}, {order(F, 1, 0)}, {order(F, 2, 0)}}, joint};
  const Schedule woven = weave(forward, {.activation = 1});
  test::schedule_battery(woven);
  CHECK(woven.size() == 3 + 1);
  for (const Buffer& buffer : woven.buffers()) CHECK(woven[buffer.label] != role::exchanged);
  // With them each output goes to the rank of the other.
  Orders training = forward;
  for (int s = 0; s < 3; ++s) training.ranks[static_cast<std::size_t>(s)].push_back(order(B, s, 0));
  CHECK(weave(training).size() == 6 + 4 + 3);
}

TEST_CASE("split backward passes: W fills the bubble") {
  // Rank 1: F0 1-2, I0 2-3, F1 3-4, I1 4-5, W0 5-6, W1 6-7.
  // Rank 0: F0 0-1, F1 1-2, I0 3-4, W0 4-5, I1 5-6, W1 6-7.
  const Orders split{"split",
                     {{order(F, 0, 0), order(F, 0, 1), order(I, 0, 0), order(W, 0, 0),
                       order(I, 0, 1), order(W, 0, 1)},
                      {order(F, 1, 0), order(I, 1, 0), order(F, 1, 1), order(I, 1, 1),
                       order(W, 1, 0), order(W, 1, 1)}}};
  const Schedule woven = weave(split, {.activation = 4, .delta = 8});
  test::schedule_battery(woven);
  const Timeline timeline =
      simulate(woven, {.forward = 1, .backward_input = 1, .backward_weight = 1});
  CHECK(timeline.makespan() == 7);
  CHECK(timeline.bubble_ratio() == 1 - 12.0 / 14.0);
  // The same work with B = I + W at once: rank 1 F0 1-2 B0 2-4 F1 4-5 B1 5-7, rank 0 B1 7-9.
  CHECK(simulate(schedule::one_f_one_b({.ranks = 2, .microbatches = 2}),
                 {.forward = 1, .backward_input = 1, .backward_weight = 1})
            .makespan() == 9);
}

TEST_CASE("stages of a split and of a whole backward pass go together") {
  const Orders mixed{
      "mixed",
      {{order(F, 0, 0), order(B, 0, 0)}, {order(F, 1, 0), order(I, 1, 0), order(W, 1, 0)}}};
  const Schedule woven = weave(mixed);
  test::schedule_battery(woven);
  // 0 F, I send the gradient on; W does not delay it: F 0-1, F 1-2, I 2-5, B 5-7; W 5-12.
  const Timeline timeline =
      simulate(woven, {.forward = 1, .backward_input = 3, .backward_weight = 7, .backward = 2});
  CHECK(timeline.makespan() == 12);
}

TEST_CASE("the uses of an action come in the order that weave() states") {
  const Orders one{
      "one", {{order(F, 0, 0), order(B, 0, 0)}, {order(F, 1, 0), order(I, 1, 0), order(W, 1, 0)}}};
  const Schedule woven = weave(one);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < woven.size(); ++i)
    if (woven[ActionId{i}].kind != Kind::move)
      found.push_back(text(woven[ActionId{i}].stage, woven[ActionId{i}].kind, uses_text(woven, i)));
  CHECK(found ==
        std::vector<std::string>{"0F w:output w:saved r:weights", "1F r:input w:saved r:weights",
                                 "1I r:input r:saved r:weights w:input_grad w:delta",
                                 "0B r:saved r:output_grad r:weights w:gradients",
                                 "1W r:input r:saved r:weights r:delta w:gradients",
                                 "0UPDATE u:gradients u:weights", "1UPDATE u:gradients u:weights"});
}

TEST_CASE("a stage writes its gradients once and continues them afterwards") {
  const Schedule pipeline = schedule::one_f_one_b({.ranks = 2, .microbatches = 3});
  std::vector<std::vector<Access>> accesses(2);
  for (std::size_t i = 0; i < pipeline.size(); ++i)
    if (pipeline[ActionId{i}].kind == Kind::backward)
      accesses[+pipeline[ActionId{i}].stage].push_back(pipeline.uses(ActionId{i}).back().access());
  for (const auto& found : accesses)
    CHECK(found == std::vector<Access>{Access::write, Access::update, Access::update});
}

}  // namespace test_weave_graphs
