// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_costs {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// One action of every kind but move, on one rank, over buffers of 6 bytes.
Schedule one_of_each() {
  Builder builder("each", 1);
  const BufferId a =
      builder.add_buffer({.label = builder.label("a"), .transient = false, .bytes = 6});
  const BufferId b =
      builder.add_buffer({.label = builder.label("b"), .transient = false, .bytes = 6});
  for (const Kind kind :
       {Kind::forward, Kind::backward_input, Kind::backward_weight, Kind::backward, Kind::combine,
        Kind::cast, Kind::group, Kind::update, Kind::user})
    builder.add({.kind = kind, .queue = builder.local(Rank{0})},
                {schedule::read(a), schedule::update(b)});
  return std::move(builder).build();
}

std::vector<double> durations(const Timeline& timeline) {
  std::vector<double> found;
  for (const Span& span : timeline.spans()) found.push_back(span.end - span.start);
  return found;
}

}  // namespace

TEST_CASE("stage costs price every kind; combine and cast by the byte") {
  const Timeline t = simulate(one_of_each(), {.forward = 1,
                                              .backward_input = 2,
                                              .backward_weight = 4,
                                              .backward = 8,
                                              .combine = 16,
                                              .cast = 32,
                                              .group = 64,
                                              .update = 128,
                                              .user = 256});
  CHECK(durations(t) == std::vector<double>{1, 2, 4, 8, 96, 192, 64, 128, 256});
  // What counts as the model's work: not combine, cast and group.
  CHECK(t.busy() == std::vector<double>{1 + 2 + 4 + 8 + 128 + 256});
  CHECK(t.bubble_ratio() == 1 - 399.0 / 751.0);
}

TEST_CASE("B costs as much as I and W together unless it is given") {
  CHECK(StageCosts{.backward_input = 2, .backward_weight = 3}.backward == 5);
  CHECK(StageCosts{.backward_input = 2, .backward_weight = 3, .backward = 4}.backward == 4);
}

TEST_CASE("a table has a cost per kind and stage, and refuses stages that it lacks") {
  TableCosts table(Machine::uniform(2, {}, {.latency = 3, .bandwidth = 4}), 2);
  table.at(Kind::forward, Stage{0}) = 1;
  table.at(Kind::forward, Stage{1}) = 2;
  table.at(Kind::backward, Stage{0}) = 10;
  table.at(Kind::backward, Stage{1}) = 20;
  table.at(Kind::update, Stage{1}) = 100;
  const Schedule pipeline =
      schedule::gpipe({.ranks = 2, .microbatches = 1, .sizes = {.activation = 8}});
  // F 0-1, move 1-3, arrives 6, F 6-8, B 8-28, move 28-30, arrives 33, B 33-43, update 0;
  // rank 1's update 28-128.
  const Timeline t = simulate(pipeline, table);
  CHECK(t.busy() == std::vector<double>{11, 122});
  CHECK(t.makespan() == 128);
  table.at(Kind::update, Stage{1}) = 0;
  CHECK(simulate(pipeline, table).makespan() == 43);
  // Another machine for the transfers: 8 bytes in 8, no latency.
  const Machine slow = Machine::uniform(2, {}, {.latency = 0, .bandwidth = 1});
  CHECK(simulate(pipeline, table, slow).makespan() == 1 + 8 + 2 + 20 + 8 + 10);
  CHECK(simulate(pipeline, table).makespan() == 43);
  table.set_machine(slow);
  CHECK(simulate(pipeline, table, Sending::rendezvous).makespan() == 49);
  CHECK(table.machine().link(Rank{0}, Rank{1}).bandwidth == 1);

  CHECK_THAT(test::message_of<contract_error>([&] { (void)table.at(Kind::forward, Stage{2}); }),
             ContainsSubstring("heddle::TableCosts") && ContainsSubstring("stage 2 of 2"));
  table.set_machine(Machine::uniform(3, {}, {}));
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)simulate(schedule::gpipe({.ranks = 3, .microbatches = 1}), table); }),
             ContainsSubstring("no such stage") && ContainsSubstring("stage 2 of 2"));
}

TEST_CASE("a table prices a fused pair as one where it has a cost for it") {
  const Schedule pair = weave(Orders{"pair",
                                     {{{Kind::forward, Stage{0}, Item{0}},
                                       {Kind::forward, Stage{0}, Item{1}, true},
                                       {Kind::backward, Stage{0}, Item{0}},
                                       {Kind::backward, Stage{0}, Item{1}}}}});
  TableCosts table(Machine::uniform(1, {}, {}), 1);
  table.at(Kind::forward, Stage{0}) = 1;
  table.at(Kind::backward, Stage{0}) = 2;
  CHECK(simulate(pair, table).makespan() == 6);
  CHECK(table.at(Kind::forward, Stage{0}, Kind::backward, Stage{0}) ==
        3);  // reading makes nothing free
  CHECK(simulate(pair, table).makespan() == 6);
  table.at(Kind::backward, Stage{0}, Kind::forward, Stage{0}) = 100;  // of the other order
  CHECK(simulate(pair, table).makespan() == 6);
  table.at(Kind::forward, Stage{0}, Kind::backward, Stage{0}) = 2.5;
  CHECK(simulate(pair, table).makespan() == 5.5);
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)table.at(Kind::forward, Stage{0}, Kind::backward, Stage{1}); }),
             ContainsSubstring("no such stage") && ContainsSubstring("stage 1 of 1"));
}

TEST_CASE("a machine with fewer ranks than the schedule is refused") {
  const TableCosts table(Machine::uniform(1, {}, {}), 3);
  const Schedule pipeline = schedule::gpipe({.ranks = 3, .microbatches = 1});
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)simulate(pipeline, table, Machine::uniform(2, {}, {})); }),
             ContainsSubstring("the machine has too few ranks") &&
                 ContainsSubstring("'GPipe P=3 M=1' has 3 ranks, the machine 2"));
  CHECK_NOTHROW(simulate(pipeline, table, Machine::uniform(4, {}, {})));
}

TEST_CASE("an unlimited link takes no time, whatever the size") {
  const TableCosts table(Machine::uniform(2, {}, {}), 2);
  const Schedule pipeline =
      schedule::gpipe({.ranks = 2, .microbatches = 3, .sizes = {.activation = Bytes{1} << 40}});
  CHECK(simulate(pipeline, table).makespan() == 0);
}

}  // namespace test_costs
