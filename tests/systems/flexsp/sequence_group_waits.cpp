// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A batch of sequences on 4 ranks (threads) that wait instead of computing: groups of several sizes
// over the best static degree gain what the cost formula predicts, within 10%.
// alone: yes

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>

#include "support/rounds.hpp"
#include "support/sequence_batches.hpp"

namespace test_sequence_groups_executed {

using namespace heddle;
using systems::SequencePlan;

namespace {

constexpr int ranks = 4;
/// The item of an action that computes no sequence, but ends a microbatch.
constexpr std::uint32_t nothing = 0xffffff;
/// More than any degree.
constexpr std::uint32_t wide = 8;

/// 2 ranks are near each other, 4 are not: a token costs nearly twice as much rank time there.
systems::SequenceCosts costs() {
  return {ranks,
          1000,
          {{1, 2e-3, 4e-5, 2e-9}, {2, 2e-3, 1.05 * 4e-5 / 2, 1e-9}, {4, 2e-3, 4e-5 / 2, 5e-10}}};
}

/// What each rank does in each microbatch: an action for every sequence of its group, whose item is
/// the sequence, and whose stage tells microbatch and degree; then all ranks wait for each other by
/// way of rank 0.
Schedule to_schedule(const SequencePlan& plan) {
  Builder builder("sequence groups", ranks);
  const auto buffer = [&](std::size_t rank) {
    return builder.add_buffer({.rank = Rank{rank}, .bytes = 8});
  };
  std::vector<BufferId> begin;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    begin.push_back(buffer(rank));
    builder.add({.kind = Kind::user, .queue = builder.local(Rank{rank}), .item = Item{nothing}},
                {schedule::write(begin[rank])});
  }
  for (std::size_t m = 0; m < plan.microbatches.size(); ++m) {
    for (const systems::SequenceGroup& group : plan.microbatches[m].groups)
      for (std::size_t rank = +group.first;
           rank < +group.first + static_cast<std::size_t>(group.degree); ++rank)
        for (const std::size_t sequence : group.sequences)
          builder.add({.kind = Kind::user,
                       .queue = builder.local(Rank{rank}),
                       .stage = Stage{m * wide + static_cast<std::size_t>(group.degree)},
                       .item = Item{sequence}},
                      {schedule::update(begin[rank])});
    std::vector<Use> all{schedule::update(begin[0])};
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      const BufferId arrived = buffer(0);
      builder.add({.kind = Kind::move, .queue = builder.queue(Rank{rank}, Rank{0})},
                  {schedule::read(begin[rank]), schedule::write(arrived)});
      all.push_back(schedule::read(arrived));
    }
    builder.add({.kind = Kind::user, .queue = builder.local(Rank{0}), .item = Item{nothing}}, all);
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      const BufferId next = buffer(rank);
      builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{rank})},
                  {schedule::read(begin[0]), schedule::write(next)});
      begin[rank] = next;
    }
  }
  return std::move(builder).build();
}

/// The time of one batch on 4 threads, by the waits of the formula.
Seconds executed(const SequencePlan& plan) {
  const Schedule schedule = to_schedule(plan);
  const systems::SequenceCosts of = costs();
  std::vector<Seconds> took(ranks);
  run_threads(ranks, [&](ThreadTransport& transport) {
    std::vector<std::uint64_t> memory(schedule.buffers().size());
    const auto bind = [&](BufferId id, const Buffer&) {
      return reinterpret_cast<std::byte*>(&memory[+id]);
    };
    // Waits of a microbatch add up from its begin, so that no wait makes the next ones late.
    Seconds due = 0;
    std::uint32_t microbatch = nothing;
    const auto handler = [&](const Task& task) {
      if (task.item() == Item{nothing}) return;
      const systems::DegreeCost& cost = of.of(static_cast<int>(task.stage().value % wide));
      if (std::exchange(microbatch, task.stage().value / wide) != task.stage().value / wide)
        due = steady_seconds() + cost.fixed;
      due += test::group_time({cost.degree, 0, cost.per_token, cost.per_square},
                              {plan.lengths[+task.item()]});
      const Seconds left = due - steady_seconds();
      if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
    };
    const Program program = slice(schedule, transport.rank(), bind);
    (void)all_gather(transport, {});
    const Seconds start = steady_seconds();
    execute(program, handler, transport, {.idle = Idle::nap});
    took[+transport.rank()] = steady_seconds() - start;
  });
  return std::ranges::max(took);
}

}  // namespace

TEST_CASE("groups of several sizes gain on 4 ranks what the formula predicts") {
  // Long-tailed: one sequence needs all ranks, one needs two, most need one.
  const std::vector<std::int64_t> lengths{3400, 1500, 900, 800, 700, 650, 600, 500,
                                          450,  400,  350, 300, 250, 200, 150, 100};
  const SequencePlan flexible = plan_sequence_groups(lengths, costs());
  const SequencePlan fixed = plan_sequence_groups(lengths, costs(), {.degree = 4});
  REQUIRE_FALSE(test::fault_of(flexible, costs()));
  REQUIRE_FALSE(test::fault_of(fixed, costs()));
  const double predicted = fixed.time / flexible.time;
  REQUIRE(predicted > 1.2);
  std::array forms{test::Form{"groups of several sizes, s", [&] { return executed(flexible); }},
                   test::Form{"groups of 4, s", [&] { return executed(fixed); }}};
  const test::Spread &ours = forms[0].spread, &theirs = forms[1].spread;
  const auto gain = [&] { return theirs.median() / ours.median(); };
  const auto holds = [&] { return gain() >= 0.9 * predicted && gain() <= 1.1 * predicted; };
  if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
  INFO("predicted " << fixed.time << " s over " << flexible.time << " s = " << predicted
                    << ", executed " << theirs << " over " << ours << " = " << gain());
  CHECK(ours.least() >= flexible.time);
  CHECK(theirs.least() >= fixed.time);
  CHECK(gain() >= 0.9 * predicted);
  CHECK(gain() <= 1.1 * predicted);
}

}  // namespace test_sequence_groups_executed
