// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Passes that split a backward, merge it and move its W: with every schedule of the catalogue.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_backward_passes {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;

namespace {

constexpr Kind F = Kind::forward, I = Kind::backward_input, W = Kind::backward_weight,
               B = Kind::backward;

constexpr Order order(Kind kind, int stage, int item, bool fused = false) {
  return {kind, Stage{stage}, Item{item}, fused};
}

/// Every schedule of the catalogue without updates of its own, in a few shapes, as far as it exists
/// for them.
std::vector<Orders> all_orders() {
  std::vector<Orders> all;
  for (const auto& entry : schedule::catalogue()) {
    if (!entry.synchronous) continue;
    for (const auto& [ranks, microbatches, stages_per_rank] :
         {std::tuple{1, 1, 1}, {2, 1, 2}, {2, 4, 2}, {3, 7, 1}, {4, 8, 2}, {5, 13, 1}}) {
      try {
        all.push_back(entry.orders({ranks, microbatches, stages_per_rank}));
      } catch (const infeasible&) {  // not for this shape
      }
    }
  }
  return all;
}

/// How often every rank does what: its B counts as I and W.
std::map<std::tuple<std::size_t, Kind, Stage, Item>, int> work(const Orders& orders) {
  std::map<std::tuple<std::size_t, Kind, Stage, Item>, int> result;
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank) {
    for (const Order& each : orders.ranks[rank]) {
      if (each.kind == Kind::backward) {
        ++result[{rank, Kind::backward_input, each.stage, each.item}];
        ++result[{rank, Kind::backward_weight, each.stage, each.item}];
      } else {
        ++result[{rank, each.kind, each.stage, each.item}];
      }
    }
  }
  return result;
}

bool holds(const Orders& orders, Kind kind) {
  return std::ranges::any_of(orders.ranks, [kind](const auto& list) {
    return std::ranges::any_of(list, [kind](const Order& each) { return each.kind == kind; });
  });
}

/// What is left of the lists without W.
std::vector<std::vector<Order>> without_weights(Orders orders) {
  for (auto& list : orders.ranks)
    std::erase_if(list, [](const Order& each) { return each.kind == Kind::backward_weight; });
  return orders.ranks;
}

}  // namespace

TEST_CASE("split and merged, every schedule computes what it did") {
  for (const Orders& before : all_orders()) {
    INFO(before.name);
    const Orders split = schedule::split_backward(before);
    CHECK(!holds(split, Kind::backward));
    CHECK(work(split) == work(before));
    CHECK_NOTHROW((void)weave(split));
    CHECK(schedule::split_backward(split) == split);
    const Orders merged = schedule::merge_backward(before);
    CHECK(work(merged) == work(before));
    CHECK_NOTHROW((void)weave(merged));
    CHECK(schedule::merge_backward(split) == merged);
    if (!holds(before, Kind::backward_input)) CHECK(merged == before);
  }
}

TEST_CASE("a split backward stands where the whole one stood, a fused pair stays one") {
  const Orders before{"by hand",
                      {{order(F, 0, 0), order(F, 0, 1, true), order(B, 0, 0), order(B, 0, 1, true),
                        order(F, 0, 2), order(B, 0, 2)}}};
  const Orders split = schedule::split_backward(before);
  CHECK(split.ranks[0] == std::vector<Order>{order(F, 0, 0), order(F, 0, 1, true), order(I, 0, 0),
                                             order(W, 0, 0), order(I, 0, 1, true), order(F, 0, 2),
                                             order(W, 0, 1), order(I, 0, 2), order(W, 0, 2)});
  // The W of a pair's first action is beyond the second: it stays apart.
  CHECK(schedule::merge_backward(split).ranks[0] ==
        std::vector<Order>{order(F, 0, 0), order(F, 0, 1, true), order(B, 0, 0),
                           order(I, 0, 1, true), order(F, 0, 2), order(W, 0, 1), order(B, 0, 2)});
}

TEST_CASE("only an I and its own W are merged") {
  const Orders apart{"by hand",
                     {{order(F, 0, 0), order(F, 0, 1), order(I, 0, 0), order(I, 0, 1),
                       order(W, 0, 0), order(W, 0, 1)}}};
  CHECK(schedule::merge_backward(apart) == apart);
  CHECK(schedule::merge_backward(Orders{}) == Orders{});
  CHECK(schedule::split_backward(Orders{}) == Orders{});
}

TEST_CASE(
    "filled, every schedule keeps its order but for W, within the cap, and computes the same") {
  for (const Orders& before : all_orders()) {
    INFO(before.name);
    const Orders split = schedule::split_backward(before);
    const int most = std::ranges::max(schedule::live_activations(split));
    for (const int cap : {0, most}) {
      const Orders filled = schedule::fill_idle_with_weights(split, {.cap = cap});
      CHECK(without_weights(filled) == without_weights(split));
      CHECK(work(filled) == work(before));
      CHECK(filled.graph == before.graph);
      CHECK_NOTHROW((void)weave(filled));
      if (cap > 0) CHECK(std::ranges::max(schedule::live_activations(filled)) <= cap);
    }
  }
}

TEST_CASE(
    "a W goes where its rank waits as long as it takes, at the latest before memory is short") {
  const Orders split = schedule::split_backward(schedule::one_f_one_b(2, 3));
  // Rank 0 has 0F0 0F1 at 2, waits for 1I0 until 3, then 0I0, 0F2; 1I1 is done at 5: no gap. With
  // 0I1 done at 6 it waits for 1I2 until 7: one gap, for the oldest W.
  const Orders free = schedule::fill_idle_with_weights(split);
  CHECK(to_string(free) ==
        "0F0,0F1,0I0,0F2,0I1,0W0,0I2,0W1,0W2\n"
        "1F0,1I0,1F1,1I1,1F2,1I2,1W0,1W1,1W2\n");
  CHECK(free.name == "1F1B P=2 M=3, idle time filled");
  // A W that takes longer than the gap stays out of it.
  CHECK(to_string(schedule::fill_idle_with_weights(
            split, {.price =
                        [](const Order& each) {
                          return each.kind == Kind::backward_weight ? 1.5 : 1.0;
                        }})) ==
        "0F0,0F1,0I0,0F2,0I1,0I2,0W0,0W1,0W2\n"
        "1F0,1I0,1F1,1I1,1F2,1I2,1W0,1W1,1W2\n");
  // It may be told to go into a gap that holds two thirds of it.
  CHECK(to_string(schedule::fill_idle_with_weights(
            split,
            {.price =
                 [](const Order& each) { return each.kind == Kind::backward_weight ? 1.5 : 1.0; },
             .share = 0.5})) == to_string(free));
  // A transfer of 1: rank 1 is done with 1I1 at 6 and has what 0F2 made at 8, room for two; rank 0
  // is done with 0I1 at 8 and has what 1I2 made at 11.
  CHECK(to_string(schedule::fill_idle_with_weights(split, {.transfer = 1})) ==
        "0F0,0F1,0I0,0F2,0I1,0W0,0W1,0I2,0W2\n"
        "1F0,1I0,1F1,1I1,1W0,1W1,1F2,1I2,1W2\n");
  // With two activations rank 0 lets one go before its third forward, which ends at 6 then; that
  // opens gaps on rank 1 from 5 and on rank 0 from 7 on.
  CHECK(to_string(schedule::fill_idle_with_weights(split, {.cap = 2})) ==
        "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n"
        "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2\n");
  // As with two of stage 0 that count twice.
  CHECK(schedule::fill_idle_with_weights(split, {.cap = 4, .activations = {2, 1}}) ==
        schedule::fill_idle_with_weights(split, {.cap = 2}));
}

TEST_CASE("what cannot be filled is refused") {
  const Orders split = schedule::split_backward(schedule::one_f_one_b(3, 4));
  const auto said = [](const Orders& orders, const schedule::FillOptions& options = {}) {
    return message_of<error>([&] { (void)schedule::fill_idle_with_weights(orders, options); });
  };
  CHECK_THAT(said(split, {.cap = 2}),
             ContainsSubstring("fill_idle_with_weights(1F1B P=3 M=4)") &&
                 ContainsSubstring("a cap of 2 activations is too small") &&
                 ContainsSubstring("rank 0 keeps 2 activations at 0F2"));
  try {
    (void)schedule::fill_idle_with_weights(split, {.cap = 2});
    FAIL("nothing was thrown");
  } catch (const blocked_order& wrong) {
    CHECK(wrong.fault().rank == Rank{0});
    CHECK(wrong.fault().entry == 2);
    CHECK_THAT(wrong.complaint().why, ContainsSubstring("rank 0, cell 3: '0F2', rank 0 keeps 2"));
    CHECK_THAT(wrong.grid(), ContainsSubstring("rank 0   0F0    0F1  > 0F2 <"));
  }
  CHECK_THAT(said(split, {.cap = -1}), ContainsSubstring("cap = -1"));
  CHECK_THAT(said(split, {.activations = {1, 1}}),
             ContainsSubstring("every stage needs a number of kept activations") &&
                 ContainsSubstring("2 numbers for 3 stages"));
  CHECK_THAT(said(split, {.share = 1.5}), ContainsSubstring("the share must be between 0 and 1") &&
                                              ContainsSubstring("share = 1.5"));
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK_THAT(said(split, {.transfer = bad}), ContainsSubstring(text("(transfer = ", bad, ")")));
    CHECK_THAT(said(split, {.price =
                                [bad](const Order& each) {
                                  return each.kind == Kind::backward_weight ? bad : 1;
                                }}),
               ContainsSubstring("fill_idle_with_weights(1F1B P=3 M=4): a cost is negative") &&
                   ContainsSubstring(text("(price of 1W0 = ", bad, ")")));
  }
  Orders reversed = split;
  std::ranges::reverse(reversed.ranks[0]);
  CHECK_THAT(said(reversed), ContainsSubstring("the orders cannot progress") &&
                                 ContainsSubstring("rank 0 keeps 0 activations at 0I3"));
  // Not by the cap, though there is one.
  CHECK_THAT(said(reversed, {.cap = 9}), ContainsSubstring("the orders cannot progress"));
  Orders fewer = split;
  fewer.ranks[1].pop_back();
  CHECK_THAT(said(fewer), ContainsSubstring("every I needs exactly one W on its rank") &&
                              ContainsSubstring("1I3 on rank 1 has no W"));
  // As many of the one as of the other, but not of the same microbatches.
  Orders others = split;
  others.ranks[1].back().item = Item{2};
  CHECK_THAT(said(others), ContainsSubstring("1W2 on rank 1 has no I"));
  others.ranks[1].back() = order(Kind::backward_weight, 1, 0);
  CHECK_THAT(said(others), ContainsSubstring("1W0 on rank 1 has no I"));
  Orders more = split;
  more.ranks[1].push_back(order(Kind::backward_weight, 1, 3));
  CHECK_THAT(said(more), ContainsSubstring("1W3 on rank 1 has no I"));
  Orders updates = split;
  updates.ranks[2].push_back(order(Kind::update, 2, 0));
  CHECK_THAT(said(updates), ContainsSubstring("found 2UPDATE0 on rank 2"));
  Orders fused = split;
  fused.ranks[0].back().fused = true;
  CHECK_THAT(said(fused), ContainsSubstring("a fused W cannot be moved"));
  fused = schedule::split_backward(schedule::gpipe(1, 1));
  fused.ranks[0][1].fused = true;  // so that its W is the partner
  CHECK_THAT(said(fused), ContainsSubstring("a fused W cannot be moved") &&
                              ContainsSubstring("found 0W0 on rank 0"));
  Orders beyond = split;
  beyond.graph = StageGraph::chain(2);
  CHECK_THAT(said(beyond), ContainsSubstring("2F0 on rank 2, stages 0 to 1"));
}

}  // namespace test_backward_passes
