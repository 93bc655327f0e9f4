// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The conformance battery of schedules: what every one must satisfy, and what every pipeline must
/// besides. One thread calls it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>

#include "support/execution.hpp"

namespace heddle::test {

[[nodiscard]] inline bool same_edges(const Schedule& a, const Schedule& b) {
  return std::ranges::equal(a.all_after(), b.all_after(), [](const After& x, const After& y) {
    return x.action == y.action && x.mine == y.mine && x.end == y.end;
  });
}

/// A legal list of its own; a value; foldable without a change of what anybody reads; and executed
/// as it is interpreted, on threads.
inline void schedule_battery(const Schedule& schedule) {
  INFO(schedule.name());
  // The Builder accepts the list again, action by action, and derives the same.
  Builder again = Builder::like(schedule, [](const Buffer& buffer) { return buffer; });
  for (std::size_t i = 0; i < schedule.size(); ++i)
    again.add(schedule, ActionId{i}, schedule.uses(ActionId{i}));
  const Schedule rebuilt = std::move(again).build();
  REQUIRE(same_edges(rebuilt, schedule));
  REQUIRE(hash(rebuilt) == hash(schedule));

  const Schedule copy = schedule;
  REQUIRE(hash(copy) == hash(schedule));
  REQUIRE(copy.actions().data() == schedule.actions().data());

  const Schedule sized = with_memory(schedule, 16, Scalar::i64);
  REQUIRE(same_edges(sized, schedule));
  REQUIRE((schedule.buffers().empty() || hash(sized) != hash(schedule)));

  Storage plain(sized, std::byte{1});
  const Log log = interpret(sized, plain, 2);
  for (const std::uint32_t slack : {0, 1, 3}) {
    const Schedule folded = heddle::schedule::fold(sized, slack);
    Storage slots(folded, std::byte{2});
    REQUIRE(folded.size() == sized.size());
    REQUIRE(interpret(folded, slots, 2) == log);
  }
  if (schedule.ranks() <= 4) REQUIRE(difference_from_oracle(sized, 2) == "");
}

/// What a pipeline promises.
struct PipelinePromise {
  Orders orders;
  int stages = 1;
  int microbatches = 1;
  bool trains = true;
  Bytes activation = 0;
};

/// schedule_battery(), and: every rank works in its order; each action is there once; one update
/// per stage and rank that has it, at the end; every move crosses ranks between neighbouring
/// stages; messages and bytes per channel are as many as the chain of stages needs.
inline void pipeline_battery(const Schedule& schedule, const PipelinePromise& promise) {
  schedule_battery(schedule);
  INFO(schedule.name());
  REQUIRE(static_cast<std::size_t>(schedule.ranks()) == promise.orders.ranks.size());
  const auto stages = static_cast<std::size_t>(promise.stages);
  const auto items = static_cast<std::size_t>(promise.microbatches);

  // Where a stage computes a microbatch: the same rank for all of them, or that of a replica.
  std::vector<Rank> home(stages * items);
  std::set<std::pair<Stage, Rank>> copies;
  for (std::size_t r = 0; r < promise.orders.ranks.size(); ++r) {
    for (const Order& order : promise.orders.ranks[r]) {
      home[+order.stage * items + +order.item] = Rank{r};
      copies.insert({order.stage, Rank{r}});
    }
  }

  Orders orders{promise.orders.name, {}, promise.orders.graph};
  orders.ranks.resize(promise.orders.ranks.size());
  std::vector<int> forwards(stages * items, 0);
  std::vector<int> backwards(stages * items, 0);  // for the input
  std::vector<int> weights(stages * items, 0);
  std::set<std::pair<Stage, Rank>> updates;
  std::map<std::pair<Rank, Rank>, std::pair<std::size_t, Bytes>> ledger;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Action& action = schedule[id];
    const Queue& queue = schedule[action.queue];
    REQUIRE(+action.stage < stages);
    if (action.kind == Kind::move) {
      const auto uses = schedule.uses(id);
      const Buffer& from = schedule[uses[0].buffer];
      const Buffer& to = schedule[uses[1].buffer];
      REQUIRE(!queue.local());
      REQUIRE((from.rank == queue.from && to.rank == queue.to));
      const bool gradient = (action.flags & flag::gradient) != 0;
      REQUIRE((gradient ? to.stage.value + 1 == from.stage.value
                        : from.stage.value + 1 == to.stage.value));
      auto& [messages, bytes] = ledger[{queue.from, queue.to}];
      ++messages;
      bytes += schedule.bytes(uses[0]);
    } else if (action.kind == Kind::update) {
      REQUIRE(updates.insert({action.stage, queue.from}).second);
    } else if (action.kind == Kind::group) {
      REQUIRE(promise.orders.graph.replicas);
    } else {
      REQUIRE(action.kind <= Kind::backward);
      REQUIRE(updates.empty());
      const std::size_t which = +action.stage * items + +action.item;
      forwards[which] += action.kind == Kind::forward;
      backwards[which] += action.kind == Kind::backward_input || action.kind == Kind::backward;
      weights[which] += action.kind == Kind::backward_weight || action.kind == Kind::backward;
      orders.ranks[+queue.from].push_back(
          {action.kind, action.stage, action.item, (action.flags & flag::with_next) != 0});
    }
  }
  const auto all = [](const std::vector<int>& counts, int count) {
    return std::ranges::all_of(counts, [count](int n) { return n == count; });
  };
  REQUIRE(all(forwards, 1));
  REQUIRE(all(backwards, promise.trains));
  REQUIRE(all(weights, promise.trains));
  if (promise.trains) REQUIRE(updates == copies);
  REQUIRE(updates.empty() == !promise.trains);
  REQUIRE(orders == promise.orders);

  std::map<std::pair<Rank, Rank>, std::pair<std::size_t, Bytes>> expected;
  for (std::size_t s = 0; s + 1 < stages; ++s) {
    for (std::size_t m = 0; m < items; ++m) {
      const Rank here = home[s * items + m];
      const Rank there = home[(s + 1) * items + m];
      if (here == there) continue;
      for (const bool back : {false, true}) {
        if (back && !promise.trains) continue;
        auto& [messages, bytes] = back ? expected[{there, here}] : expected[{here, there}];
        ++messages;
        bytes += promise.activation;
      }
    }
  }
  REQUIRE(ledger == expected);
}

}  // namespace heddle::test
