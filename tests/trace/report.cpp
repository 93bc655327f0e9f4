// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/schedule/generator/theory.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/report.hpp>

#include "support/moves_only.hpp"

namespace test_report {

using namespace heddle;

TEST_CASE("the closed form is what 1F1B, GPipe and interleaved 1F1B simulate to") {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const int microbatches : {1, 2, 5, 8, 13}) {
      const double theory = schedule::bubble_ratio(ranks, microbatches);
      const schedule::PipelineOptions options{.ranks = ranks, .microbatches = microbatches};
      for (const auto& schedule : {schedule::one_f_one_b(options), schedule::gpipe(options)})
        CHECK(simulate(schedule, {.forward = 1, .backward = 2}).bubble_ratio() ==
              Catch::Approx(theory).margin(1e-12));
    }
  }
  CHECK(schedule::bubble_ratio(4, 8) == 3.0 / 11.0);
  CHECK(schedule::bubble_ratio(1, 1) == 0);
  for (const auto& [ranks, microbatches, chunks] : {std::tuple{4, 8, 2}, {3, 6, 3}, {2, 4, 4}}) {
    const auto schedule = schedule::interleaved(
        {.ranks = ranks, .stages_per_rank = chunks, .microbatches = microbatches});
    CHECK(simulate(schedule, {.forward = 1, .backward = 2}).bubble_ratio() ==
          Catch::Approx(schedule::bubble_ratio(ranks, microbatches, chunks)).margin(1e-12));
  }
  CHECK_THROWS_AS(schedule::bubble_ratio(0, 1), contract_error);
  CHECK_THROWS_AS(schedule::bubble_ratio(1, 0), contract_error);
  CHECK_THROWS_AS(schedule::bubble_ratio(1, 1, 0), contract_error);
}

TEST_CASE("the time of 1F1B goes where the drawing says") {
  // P = 4, M = 8, F = 1, B = 2: rank r starts at r, ends at 33 - 2 r and works 24.
  const Timeline timeline = simulate(schedule::one_f_one_b({.ranks = 4, .microbatches = 8}),
                                     {.forward = 1, .backward = 2});
  const trace::TimeUse use = trace::time_use(timeline);
  CHECK(use.makespan == 33);
  REQUIRE(use.ranks.size() == 4);
  for (std::size_t r = 0; r < 4; ++r) {
    const trace::TimeUse::RankTime& rank = use.ranks[r];
    const auto number = static_cast<double>(r);
    CHECK(rank.busy == 24);
    CHECK(rank.warm_up == number);
    CHECK(rank.receive == 2 * (3 - number));  // from its last warm-up forward to its first backward
    CHECK(rank.send == 0);
    CHECK(rank.other == 0);
    CHECK(rank.drain == 3 - number);  // an F's length between any two of its last 4 - r backwards
    CHECK(rank.tail == 2 * number);
    CHECK(rank.whole() == 33);
    CHECK(rank.bubble_ratio() == 9.0 / 33.0);
  }
  CHECK(use.bubble_ratio() == Catch::Approx(timeline.bubble_ratio()).margin(1e-15));
}

TEST_CASE("a gap belongs to what came last") {
  // Rank 0 computes, sends, and overwrites what it sent; rank 1 computes in two lanes.
  Builder builder("gaps", 2);
  const LabelId label = builder.label("data");
  const BufferId sent = builder.add_buffer({.rank = Rank{0}, .label = label});
  const BufferId got = builder.add_buffer({.rank = Rank{1}, .label = label});
  const BufferId own = builder.add_buffer({.rank = Rank{1}, .label = label});
  const BufferId more = builder.add_buffer({.rank = Rank{1}, .label = label});
  const QueueId first = builder.local(Rank{0});
  const QueueId second = builder.local(Rank{1});
  const QueueId aside = builder.local(Rank{1}, Lane{1});
  using namespace schedule;
  builder.add({.kind = Kind::forward, .queue = first}, {write(sent)});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {read(sent), write(got)});
  builder.add({.kind = Kind::forward, .queue = first}, {write(sent)});
  builder.add({.kind = Kind::user, .queue = second}, {});
  builder.add({.kind = Kind::cast, .queue = aside}, {write(own)});
  builder.add({.kind = Kind::user, .queue = second}, {read(own)});
  builder.add({.kind = Kind::forward, .queue = second}, {read(got)});
  // Waits for the cast and for the message, which is there long since.
  builder.add({.kind = Kind::cast, .queue = aside}, {write(more)});
  builder.add({.kind = Kind::forward, .queue = second}, {read(more), read(got)});
  const Timeline timeline(std::move(builder).build(), {{0, 2, 2},
                                                       {2, 5, 10},
                                                       {5, 6, 6},
                                                       {1, 3, 3},
                                                       {0, 4, 4},
                                                       {4, 7, 7},
                                                       {10.5, 11, 11},
                                                       {4, 12, 12},
                                                       {12, 13, 13}});
  const trace::TimeUse use = trace::time_use(timeline);
  const trace::TimeUse::RankTime& sender = use.ranks[0];
  CHECK(sender.busy == 3);
  CHECK(sender.send == 3);
  CHECK(sender.receive + sender.other + sender.warm_up == 0);
  CHECK(sender.drain == 0);
  CHECK(sender.tail == 7);
  const trace::TimeUse::RankTime& receiver = use.ranks[1];
  CHECK(receiver.warm_up == 1);
  CHECK(receiver.busy == 6.5);
  CHECK(receiver.other == 2);      // from 3 to 4 and from 11 to 12, the casts
  CHECK(receiver.receive == 3.5);  // from 7 to 10.5, the message
  CHECK(receiver.drain == 0);
  CHECK(receiver.tail == 0);
  CHECK(receiver.whole() == use.makespan);
}

TEST_CASE("the pipeline drains until the last backward, and the tail is for sums and others") {
  // Two ranks compute one microbatch each, sum their gradients and update.
  Builder builder("tail", 2);
  const BufferId first = builder.add_buffer({.rank = Rank{0}});
  const BufferId second = builder.add_buffer({.rank = Rank{1}});
  const auto work = [&](Kind kind, int rank, const Use& use) {
    builder.add({.kind = kind, .queue = builder.local(Rank{rank})}, {use});
  };
  using namespace schedule;
  work(Kind::forward, 0, write(first));
  work(Kind::forward, 1, write(second));
  work(Kind::backward, 0, update(first));
  work(Kind::backward_weight, 0, update(first));
  work(Kind::backward, 1, update(second));
  builder.add({.kind = Kind::group, .queue = builder.local(Rank{0}, Lane{1})},
              {update(first), update(second)});
  work(Kind::update, 0, read(first));
  work(Kind::update, 1, read(second));
  const Timeline timeline(std::move(builder).build(), {{0, 2, 2},
                                                       {1, 3, 3},
                                                       {3, 4, 4},
                                                       {6, 7, 7},
                                                       {3, 8, 8},
                                                       {8, 10, 10},
                                                       {10, 11, 11},
                                                       {10.5, 12, 12}});
  const trace::TimeUse use = trace::time_use(timeline);
  CHECK(use.ranks[0].busy == 5);
  CHECK(use.ranks[0].drain == 3);  // from 2 to 3 and from 4 to 6
  CHECK(use.ranks[0].tail == 4);   // from 7 to 10 for the sum, from 11 to 12 for the other rank
  CHECK(use.ranks[1].warm_up == 1);
  CHECK(use.ranks[1].busy == 8.5);
  CHECK(use.ranks[1].drain == 0);
  CHECK(use.ranks[1].tail == 2.5);
  for (const trace::TimeUse::RankTime& rank : use.ranks) CHECK(rank.whole() == 12);
}

TEST_CASE("a fused pair waits for what either of the two waits for") {
  Builder builder("pair", 2);
  const BufferId sent = builder.add_buffer({.rank = Rank{0}});
  const BufferId got = builder.add_buffer({.rank = Rank{1}});
  const BufferId own = builder.add_buffer({.rank = Rank{1}});
  const QueueId queue = builder.local(Rank{1});
  using namespace schedule;
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, {write(sent)});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {read(sent), write(got)});
  builder.add({.kind = Kind::forward, .queue = queue}, {write(own)});
  builder.add({.kind = Kind::forward, .queue = queue, .flags = flag::with_next}, {read(own)});
  builder.add({.kind = Kind::backward, .queue = queue}, {read(got)});
  builder.add({.kind = Kind::forward, .queue = queue}, {});
  const Timeline timeline(std::move(builder).build(),
                          {{0, 1, 1}, {1, 2, 4}, {0, 1, 1}, {4, 6, 7}, {4, 7, 7}, {7, 8, 8}});
  const trace::TimeUse::RankTime rank = trace::time_use(timeline).ranks[1];
  CHECK(rank.busy == 5);
  CHECK(rank.receive == 3);
  CHECK(rank.whole() == 8);
}

TEST_CASE("a pipeline without backwards does not drain") {
  const Timeline timeline =
      simulate(schedule::stream({.ranks = 3, .microbatches = 4}), {.forward = 1, .latency = 0.5});
  const trace::TimeUse use = trace::time_use(timeline);
  for (std::size_t r = 0; r < 3; ++r) {
    const auto number = static_cast<double>(r);
    CHECK(use.ranks[r].warm_up == 1.5 * number);
    CHECK(use.ranks[r].drain == 0);
    CHECK(use.ranks[r].tail == 1.5 * (2 - number));
  }
}

TEST_CASE("work in two lanes at once is busy once") {
  Builder builder("lanes", 1);
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, {});
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0}, Lane{1})}, {});
  const Timeline timeline(std::move(builder).build(), {{0, 3, 3}, {1, 2, 2}});
  CHECK(trace::time_use(timeline).ranks[0].busy == 3);
  CHECK(trace::time_use(timeline).bubble_ratio() == 0);
}

TEST_CASE("the report is a table with theory, simulation and measurement") {
  const auto schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  const Timeline simulated = simulate(schedule, {.forward = 1e-3, .backward = 2e-3});
  const Timeline measured =
      simulate(schedule, {.forward = 1e-3, .backward = 2e-3, .latency = 0.25e-3});
  const auto report = trace::bubble_report(simulated, measured, schedule::bubble_ratio(2, 2));
  std::ostringstream out;
  out << report;
  CHECK(out.str() ==
        "bubble ratio of 1F1B P=2 M=2: theory 33.3%, simulated 33.3%, measured 36.8%\n"
        "makespan: simulated 9 ms, measured 9.5 ms (+5.6%)\n"
        "                        busy    warm-up    receive       send      other      drain"
        "       tail     bubble\n"
        "rank 0  simulated       6 ms       0 ms       0 ms       0 ms       0 ms       3 ms"
        "       0 ms      33.3%\n"
        "        measured        6 ms       0 ms       0 ms       0 ms       0 ms     3.5 ms"
        "       0 ms      36.8%\n"
        "rank 1  simulated       6 ms       1 ms       0 ms       0 ms       0 ms       0 ms"
        "       2 ms      33.3%\n"
        "        measured        6 ms    1.25 ms       0 ms       0 ms       0 ms       0 ms"
        "    2.25 ms      36.8%\n"
        "all     simulated      12 ms       1 ms       0 ms       0 ms       0 ms       3 ms"
        "       2 ms      33.3%\n"
        "        measured       12 ms    1.25 ms       0 ms       0 ms       0 ms     3.5 ms"
        "    2.25 ms      36.8%\n");
  CHECK(report.theory == 1.0 / 3.0);
  CHECK(report.measured->ranks[1].warm_up == Catch::Approx(1.25e-3));
  const std::string alone = to_string(trace::bubble_report(simulated));
  CHECK(alone.starts_with(
      "bubble ratio of 1F1B P=2 M=2: simulated 33.3%\nmakespan: simulated 9 ms\n"));
  CHECK(alone.find("measured") == std::string::npos);
  CHECK(alone.find("theory") == std::string::npos);
}

TEST_CASE("odd timelines have reports") {
  CHECK(trace::time_use(Timeline{}).ranks.empty());
  CHECK(trace::time_use(Timeline{}).bubble_ratio() == 0);
  CHECK(to_string(trace::bubble_report(Timeline{})).starts_with("bubble ratio: simulated 0%\n"));
  CHECK(to_string(trace::BubbleReport{}).starts_with("bubble ratio:\n"));

  const auto one = schedule::one_f_one_b({.ranks = 1, .microbatches = 1});
  CHECK(trace::time_use(simulate(one, {.forward = 1, .backward = 2})).ranks[0].busy == 3);
  const auto still = trace::time_use(simulate(one, {}));
  CHECK(still.ranks[0].whole() == 0);
  CHECK(still.bubble_ratio() == 0);

  const Timeline moves = simulate(test::moves_only(3, 8), {.latency = 2});
  const auto idle = trace::time_use(moves);
  CHECK(idle.ranks[0].tail == 2);  // a rank that never works waits for the others all the time
  CHECK(idle.bubble_ratio() == 1);

  Timeline bad = simulate(one, {.forward = 1});
  bad.spans()[0].end = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(trace::time_use(bad), contract_error);
}

}  // namespace test_report
