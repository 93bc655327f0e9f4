// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What orders can say beyond a chain with one update: stages on several ranks, branches that share
// a loss, fused pairs, and updates of their own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"
#include "support/schedule_battery.hpp"

namespace test_weave_replicas {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr Kind F = Kind::forward, I = Kind::backward_input, W = Kind::backward_weight,
               B = Kind::backward, update = Kind::update;

Order order(Kind kind, int stage, int item) { return {kind, Stage{stage}, Item{item}}; }
Order fused(Kind kind, int stage, int item) { return {kind, Stage{stage}, Item{item}, true}; }

/// Two stages on two ranks each: microbatch 0 goes down, 1 goes up.
Orders two_ways() {
  return {"two ways",
          {{order(F, 0, 0), order(F, 1, 1), order(B, 1, 1), order(B, 0, 0)},
           {order(F, 0, 1), order(F, 1, 0), order(B, 1, 0), order(B, 0, 1)}},
          StageGraph::replicated_chain(2)};
}

/// Asynchronous 1F1B: every backward is followed by an update.
Orders asynchronous(int stages, int microbatches) {
  Orders orders = schedule::one_f_one_b(stages, microbatches);
  for (auto& list : orders.ranks) {
    std::vector<Order> with;
    for (const Order& each : list) {
      with.push_back(each);
      if (each.kind == B) with.push_back({update, each.stage, each.item});
    }
    list = with;
  }
  return orders;
}

std::vector<std::string> uses_of(const Schedule& schedule, Kind kind, Stage stage) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    if (schedule[id].kind != kind || schedule[id].stage != stage) continue;
    std::string line;
    for (const Use& use : schedule.uses(id))
      line += text(" ", "?rwu"[use.mode], ":", schedule[schedule[use.buffer].label], use.first);
    found.push_back(line.substr(1));
  }
  return found;
}

template <class Error = contract_error>
std::string refusal(const Orders& orders) {
  return test::message_of<Error>([&] { (void)weave(orders); });
}

}  // namespace

TEST_CASE("a stage with replicas computes each microbatch on one rank, and sums its gradients") {
  const Schedule woven = weave(two_ways(), {.activation = 3, .saved = 1, .parameters = 8});
  test::schedule_battery(woven);
  // 8 works, 4 moves (there and back, each way), 2 sums, 4 updates.
  CHECK(woven.size() == 8 + 4 + 2 + 4);
  // F 0-1, 1-2, then B 2-4 and 4-6 on both ranks: no bubble at all.
  CHECK(simulate(woven, {.forward = 1, .backward = 2}).bubble_ratio() == 0);
  std::vector<std::pair<Stage, std::size_t>> groups;
  for (std::size_t i = 0; i < woven.size(); ++i)
    if (woven[ActionId{i}].kind == Kind::group)
      groups.emplace_back(woven[ActionId{i}].stage, woven.uses(ActionId{i}).size());
  CHECK(groups == std::vector<std::pair<Stage, std::size_t>>{{Stage{0}, 2}, {Stage{1}, 2}});
  test::schedule_battery(schedule::expand(woven, schedule::CollectiveForm{}));
}

TEST_CASE("replicas within a line and across lines are summed at once") {
  const Schedule woven = weave(two_ways(), {.activation = 3, .saved = 1, .parameters = 24});
  const Schedule lines = schedule::data_parallel(woven, {{"data", 3}, {"pipe", 2}});
  test::schedule_battery(lines);
  std::size_t groups = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[ActionId{i}].kind != Kind::group) continue;
    ++groups;
    CHECK(lines.uses(ActionId{i}).size() == 6);
  }
  CHECK(groups == 2);
  test::schedule_battery(schedule::expand(lines, schedule::CollectiveForm{}));
}

TEST_CASE("a stage may be on several ranks only where the graph says so") {
  Orders orders = two_ways();
  orders.graph.replicas = false;
  CHECK_THAT(refusal(orders), ContainsSubstring("a stage is on two ranks (stage 0 on ranks 0 and"));
  orders = two_ways();
  std::swap(orders.ranks[0].back(), orders.ranks[1].back());
  CHECK_THAT(
      refusal(orders),
      ContainsSubstring("a microbatch of a stage is on two ranks (0F1 on rank 1, and on rank 0)"));
}

TEST_CASE("branches that share a loss exchange what they made, and hand nothing back") {
  // Each rank has one branch of one stage; either backward reads the other's output.
  const StageGraph joint{2, {{Stage{0}, Stage{1}, B}, {Stage{1}, Stage{0}, B}}};
  const Orders orders{
      "joint loss", {{order(F, 0, 0), order(B, 0, 0)}, {order(F, 1, 0), order(B, 1, 0)}}, joint};
  const Schedule woven = weave(orders, {.activation = 4});
  test::schedule_battery(woven);
  CHECK(woven.size() == 4 + 2 + 2);
  CHECK(uses_of(woven, B, Stage{0}) ==
        std::vector<std::string>{"r:saved0 r:exchanged0 r:weights0 w:gradients0"});
  // Stage 1 takes four times as long: the backward of both waits for its forward.
  TableCosts costs(Machine::uniform(2, {}, {}), 2);
  costs.at(F, Stage{0}) = costs.at(B, Stage{0}) = costs.at(B, Stage{1}) = 1;
  costs.at(F, Stage{1}) = 4;
  CHECK(simulate(woven, costs).makespan() == 5);
  // On one rank nothing moves.
  const Orders alone{
      "joint loss",
      {{order(F, 0, 0), order(F, 1, 0), order(I, 0, 0), order(B, 1, 0), order(W, 0, 0)}},
      joint};
  const Schedule local = weave(alone);
  test::schedule_battery(local);
  CHECK(uses_of(local, I, Stage{0}) ==
        std::vector<std::string>{"r:saved0 r:output0 r:weights0 w:delta0"});
  CHECK(uses_of(local, W, Stage{0}) ==
        std::vector<std::string>{"r:saved0 r:output0 r:weights0 r:delta0 w:gradients0"});
}

TEST_CASE("a fused pair starts when both can, and is seen when both are done") {
  // Rank 0 fuses the forward of microbatch 1 with the backward of microbatch 0.
  const Orders orders{"fused",
                      {{order(F, 0, 0), fused(F, 0, 1), order(B, 0, 0), order(B, 0, 1)},
                       {order(F, 1, 0), order(B, 1, 0), order(F, 1, 1), order(B, 1, 1)}}};
  CHECK(to_string(orders) == "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n");
  const Schedule woven = weave(orders, {.activation = 4});
  test::schedule_battery(woven);
  // F 0-1; rank 1 F 1-2, B 2-4; the pair 4-6.5; rank 1 F 6.5-7.5, B 7.5-9.5; B 9.5-11.5.
  const Timeline timeline = simulate(woven, {.forward = 1, .backward = 2, .forward_backward = 2.5});
  CHECK(timeline.makespan() == 11.5);
  CHECK(timeline.busy() == std::vector<Seconds>{5.5, 6});
  // Unfused, the forward of microbatch 1 does not wait: 0-1, 1-2, rank 1 F 1-2 B 2-4, F 4-5 B 5-7.
  CHECK(simulate(schedule::gpipe({.ranks = 2, .microbatches = 2}), {.forward = 1, .backward = 2})
            .makespan() == 9);
  // Lines of a mesh keep the pair together; a fused entry needs a partner.
  test::schedule_battery(schedule::data_parallel(woven, {{"data", 2}, {"pipe", 2}}));
  Orders lonely = orders;
  lonely.ranks[0].back().fused = true;
  CHECK_THAT(refusal(lonely), ContainsSubstring("a fused entry needs one partner") &&
                                  ContainsSubstring("0B1 on rank 0"));
  // A partner that waits for the other's result never comes.
  lonely = orders;
  lonely.ranks[1][0].fused = true;
  CHECK_THAT(refusal<infeasible>(lonely), ContainsSubstring("rank 1 waits at 1B0 for 1F0"));
}

TEST_CASE("updates among the orders give every version of the weights that is in use a part") {
  for (const int stages : {1, 2, 3, 4, 7}) {
    for (const int microbatches : {1, 2, 5, 8, 24}) {
      const Schedule woven = weave(asynchronous(stages, microbatches), {.parameters = 8});
      test::schedule_battery(woven);
      std::vector<std::uint32_t> versions(static_cast<std::size_t>(stages), 0);
      for (const Buffer& buffer : woven.buffers())
        if (woven[buffer.label] == role::weights) versions[+buffer.stage] = buffer.parts;
      for (int s = 0; s < stages; ++s) {
        // As many as microbatches are under way, once there have been enough of them: the first
        // `under_way` all use version 0, and each one after these a version of its own.
        const int under_way = std::min(microbatches, stages - s);
        const int most = std::min(under_way, 2 + microbatches - under_way);
        CHECK(versions[static_cast<std::size_t>(s)] == static_cast<std::uint32_t>(most));
      }
      CHECK(std::count_if(woven.actions().begin(), woven.actions().end(), [](const Action& each) {
              return each.kind == update;
            }) == stages * microbatches);
    }
  }
}

TEST_CASE("a backward pass reads the version that its forward read, the last one lies in part 0") {
  const Schedule woven = weave(asynchronous(2, 4), {.parameters = 8});
  // Stage 0 forwards microbatches 0 and 1 with version 0, 2 with 1, 3 with 2.
  CHECK(uses_of(woven, F, Stage{0}) ==
        std::vector<std::string>{"w:output0 w:saved0 r:weights0", "w:output1 w:saved1 r:weights0",
                                 "w:output2 w:saved2 r:weights1", "w:output3 w:saved3 r:weights0"});
  CHECK(uses_of(woven, update, Stage{0}) ==
        std::vector<std::string>{
            "u:gradients0 r:weights0 w:weights1", "u:gradients0 r:weights1 w:weights0",
            "u:gradients0 r:weights0 w:weights1", "u:gradients0 r:weights1 w:weights0"});
  CHECK(uses_of(woven, update, Stage{1}) == std::vector<std::string>(4, "u:gradients0 u:weights0"));
  // Every backward begins new gradients.
  for (const std::string& uses : uses_of(woven, B, Stage{1}))
    CHECK_THAT(uses, ContainsSubstring("w:gradients0"));
}

TEST_CASE("with vertical sync every stage uses the version of the first one") {
  Orders orders = asynchronous(2, 4);
  orders.vertical_sync = true;
  const Schedule woven = weave(orders, {.parameters = 8});
  test::schedule_battery(woven);
  // Stage 1 has updated once when it computes microbatch 1, which stage 0 began with version 0.
  const auto forwards = uses_of(woven, F, Stage{1});
  CHECK(forwards[0] == "r:input0 w:saved0 r:weights0");
  CHECK(forwards[1] == "r:input1 w:saved1 r:weights0");
  CHECK(forwards[2] == "r:input2 w:saved2 r:weights1");
}

TEST_CASE("updates that cannot be are refused") {
  CHECK_THAT(refusal({"u", {{order(F, 0, 0), order(update, 0, 0), order(B, 0, 0)}}}),
             ContainsSubstring("a microbatch is in flight at the last update (0UPDATE0"));
  CHECK_THAT(refusal({"u",
                      {{order(F, 0, 0), order(I, 0, 0), order(update, 0, 0), order(W, 0, 0),
                        order(update, 0, 0)}}}),
             ContainsSubstring("an update without a gradient (0UPDATE0 on rank 0)"));
  Orders replicas = two_ways();
  replicas.ranks[0].push_back(order(update, 0, 0));
  CHECK_THAT(refusal(replicas),
             ContainsSubstring("a stage on several ranks cannot update on its own"));
}

}  // namespace test_weave_replicas
