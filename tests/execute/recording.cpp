// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_recording {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

using Key = std::pair<Kind, Stage>;

/// Naps 2 ms in a forward and 4 ms in a backward action, and notes how long each really took.
struct Sleeper {
  std::map<Key, std::vector<Seconds>> took;

  void operator()(const Task& task) {
    const Seconds begin = steady_seconds();
    if (task.kind() != Kind::update)
      std::this_thread::sleep_for(std::chrono::milliseconds(task.kind() == Kind::forward ? 2 : 4));
    took[{task.kind(), task.stage()}].push_back(steady_seconds() - begin);
  }
};

/// What one recorded run of 1F1B on three threads left behind.
struct Run {
  Schedule schedule;
  std::vector<Timeline> timelines;  ///< of every rank
  std::vector<std::vector<TableCosts>> costs;
  std::map<Key, std::vector<Seconds>> took;
  Seconds begin = 0, end = 0;  ///< of the last step, on all ranks
  bool stamps_in_order = true;
};

const Run& recorded() {
  static const Run run = [] {
    Run result;
    const Schedule pipeline =
        schedule::one_f_one_b({.stages = 3, .microbatches = 4, .sizes = {.activation = 64}});
    std::vector<Sleeper> models(3);
    std::vector<std::pair<Seconds, Seconds>> walls(3);
    result.timelines.resize(3);
    result.costs.resize(3);
    run_threads(3, [&](ThreadTransport& transport) {
      const std::size_t me = +transport.rank();
      Runner runner(models[me], pipeline, transport,
                    {.execute = {.idle = Idle::nap, .record = true}});
      for (int step = 0; step < 5; ++step) {
        (void)all_gather(transport, {});
        const Seconds begin = steady_seconds();
        runner.step();
        walls[me] = {begin, steady_seconds()};
      }
      result.timelines[me] = runner.timeline();
      result.costs[me].push_back(runner.costs());
      if (me == 0) result.schedule = runner.schedule();
    });
    result.begin = std::min({walls[0].first, walls[1].first, walls[2].first});
    result.end = std::max({walls[0].second, walls[1].second, walls[2].second});
    for (Sleeper& model : models) result.took.merge(model.took);
    return result;
  }();
  return run;
}

/// How exactly the stamps of two threads can be compared: their clocks are read to within a
/// fraction of this.
constexpr Seconds resolution = 5e-6;

}  // namespace

TEST_CASE("a measured timeline is the same on every rank and lies within the wall time") {
  const Run& run = recorded();
  for (const Timeline& timeline : run.timelines)
    CHECK(std::ranges::equal(
        timeline.spans(), run.timelines[0].spans(), [](const Span& a, const Span& b) {
          return a.start == b.start && a.end == b.end && a.arrival == b.arrival;
        }));
  const Timeline& timeline = run.timelines[0];
  REQUIRE(timeline.spans().size() == run.schedule.size());
  CHECK(timeline.begin() >= run.begin - resolution);
  CHECK(timeline.end() <= run.end + resolution);
  // 1F1B of sleeps: no faster than its closed form.
  CHECK(timeline.makespan() >= (4 + 3 - 1) * 0.006);
  CHECK(timeline.bubble_ratio() > 0);
  CHECK(timeline.bubble_ratio() < 1);
}

TEST_CASE("spans run forward, queues keep their order, and messages arrive after they left") {
  const Run& run = recorded();
  const Timeline& timeline = run.timelines[0];
  std::map<QueueId, ActionId> last;
  for (std::size_t i = 0; i < run.schedule.size(); ++i) {
    const ActionId id{i};
    const Span& span = timeline[id];
    INFO(schedule::action_text(run.schedule, id));
    CHECK(span.start <= span.end);
    const bool moves = run.schedule[id].kind == Kind::move;
    if (moves)
      CHECK(span.arrival >= span.start - resolution);
    else
      CHECK(span.arrival == span.end);
    if (const auto [before, first] = last.try_emplace(run.schedule[id].queue, id); !first) {
      const Span& previous = timeline[before->second];
      CHECK(previous.start <= span.start);
      if (moves)
        CHECK(previous.arrival <= span.arrival);
      else
        CHECK(previous.end <= span.start);
      before->second = id;
    }
    // What an action waits for has ended before it starts, as far as two clocks can tell.
    for (const After& after : run.schedule.after(id)) {
      if (moves && after.mine) continue;
      const Span& on = timeline[ActionId{after.action}];
      CHECK((after.end ? on.arrival : on.end) <= span.start + resolution);
    }
  }
}

TEST_CASE("what a fused action made is seen when its partner is done, in measured times too") {
  const Schedule schedule = weave(Orders{"fused",
                                         {{{Kind::forward, Stage{0}, Item{0}},
                                           {Kind::backward, Stage{0}, Item{0}, true},
                                           {Kind::forward, Stage{0}, Item{1}},
                                           {Kind::backward, Stage{0}, Item{1}}}}});
  run_threads(1, [&](ThreadTransport& transport) {
    Sleeper model;
    Runner run(model, schedule, transport, {.execute = {.record = true}});
    run.step();
    const Timeline timeline = run.timeline();
    const Span& first = timeline[ActionId{1}];
    const Span& second = timeline[ActionId{2}];
    CHECK(first.end <= second.start);
    CHECK(second.end - second.start >= 1.9e-3);  // a nap of 2 ms, by two clocks
    CHECK(first.arrival == second.end);
    CHECK(timeline[ActionId{0}].arrival == timeline[ActionId{0}].end);
    CHECK(second.arrival == second.end);
  });
}

TEST_CASE("costs are the medians of what the actions took") {
  const Run& run = recorded();
  for (const auto& costs : run.costs) {
    TableCosts table = costs[0];
    for (const auto& [key, samples] : run.took) {
      std::vector<Seconds> sorted = samples;
      std::ranges::sort(sorted);
      const Seconds median = sorted[sorted.size() / 2];
      const Seconds found = table.at(key.first, key.second);
      INFO(key.second << key.first << ": " << found << " s, slept " << median << " s");
      if (key.first == Kind::update) {
        CHECK(found < 1e-3);
        continue;
      }
      CHECK(found >= (key.first == Kind::forward ? 0.002 : 0.004));
      CHECK(found >= 0.8 * median);
      CHECK(found <= 1.2 * median);
    }
  }
}

TEST_CASE("a fused pair is recorded as one, and a table prices it") {
  const Orders orders{"pair",
                      {{{Kind::forward, Stage{0}, Item{0}},
                        {Kind::forward, Stage{0}, Item{1}, true},
                        {Kind::backward, Stage{0}, Item{0}},
                        {Kind::backward, Stage{0}, Item{1}}},
                       {{Kind::forward, Stage{1}, Item{0}},
                        {Kind::backward, Stage{1}, Item{0}},
                        {Kind::forward, Stage{1}, Item{1}},
                        {Kind::backward, Stage{1}, Item{1}}}}};
  run_threads(2, [&](ThreadTransport& transport) {
    // As where both halves are done at the second call, in less than they take alone.
    const auto nap = [](const Task& task) {
      const Schedule& schedule = task.schedule();
      const bool first = (schedule[task.id()].flags & flag::with_next) != 0;
      const bool second =
          +task.id() > 0 && (schedule[ActionId{+task.id() - 1}].flags & flag::with_next) != 0;
      if (task.kind() == Kind::update || first) return;
      const int milliseconds = second ? 3 : task.kind() == Kind::forward ? 2 : 20;
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    };
    Runner run(nap, weave(orders), transport, {.execute = {.record = true}});
    for (int step = 0; step < 3; ++step) run.step();
    TableCosts costs = run.costs();
    const Seconds pair = costs.at(Kind::forward, Stage{0}, Kind::backward, Stage{0});
    const Seconds halves = costs.at(Kind::forward, Stage{0}) + costs.at(Kind::backward, Stage{0});
    // However late a sleeper is woken, 3 ms are less than 22.
    if (!(pair >= 0.003 && halves >= 0.022 && pair < halves))
      throw contract_error({"pair", "not what was slept", text(pair, " of ", halves)});
    const Timeline predicted = simulate(run.schedule(), costs);
    for (std::size_t i = 0; i + 1 < run.schedule().size(); ++i)
      if (run.schedule()[ActionId{i}].flags & flag::with_next)
        if (std::abs(predicted[ActionId{i}].arrival - predicted[ActionId{i}].start - pair) > 1e-9)
          throw contract_error({"pair", "is not priced as one", text(pair)});
  });
}

namespace {

/// The costs that ranks tell who have recorded `schedule`, an action taking `ticks(kind, stage)`,
/// or `ticks(rank, kind, stage)`, and a pair the sum of its halves: all of it in the second one
/// where both are done at once.
template <class TicksOf>
TableCosts told(const Schedule& schedule, bool at_once, TicksOf&& ticks) {
  std::vector<std::vector<TableCosts>> tables(static_cast<std::size_t>(schedule.ranks()));
  Clock clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  clock.settle();
  run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
    const Program program =
        slice(schedule, transport.rank(), [](BufferId, const Buffer&) { return nullptr; });
    std::vector<Stamp> stamps(program.size());
    Clock::Ticks kept = 0;
    for (std::size_t i = 0; i < stamps.size(); ++i) {
      if (program.steps[i].does != Program::Step::Does::run) continue;
      const Action& action = schedule[program.steps[i].action];
      Clock::Ticks own = std::exchange(kept, 0);
      if constexpr (std::invocable<TicksOf&, Rank, Kind, Stage>)
        own += ticks(transport.rank(), action.kind, action.stage);
      else
        own += ticks(action.kind, action.stage);
      if (at_once && (action.flags & flag::with_next) != 0) kept = std::exchange(own, 0);
      stamps[i].end = own;
    }
    heddle::impl::CostSamples samples;
    samples.add(program, stamps);
    tables[+transport.rank()].push_back(samples.costs(transport, schedule, clock));
  });
  return tables[0][0];
}

/// How many (kind, stage) stand in fused pairs only.
std::size_t never_alone(const Orders& orders) {
  std::set<Key> alone, fused;
  for (const auto& list : orders.ranks)
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool second = i > 0 && list[i - 1].fused;
      (list[i].fused || second ? fused : alone).insert({list[i].kind, list[i].stage});
    }
  return static_cast<std::size_t>(
      std::ranges::count_if(fused, [&](const Key& key) { return !alone.contains(key); }));
}

}  // namespace

TEST_CASE("the first recorded step counts only while it is the only one") {
  const Schedule schedule = schedule::one_f_one_b({.stages = 1, .microbatches = 2});
  Clock clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  clock.settle();
  run_threads(1, [&](ThreadTransport& transport) {
    const Program program =
        slice(schedule, Rank{0}, [](BufferId, const Buffer&) { return nullptr; });
    const auto step = [&](Clock::Ticks each) {
      std::vector<Stamp> stamps(program.size());
      for (Stamp& stamp : stamps) stamp.end = each;
      return stamps;
    };
    heddle::impl::CostSamples samples;
    const auto forward = [&] {
      TableCosts costs = samples.costs(transport, schedule, clock);
      return costs.at(Kind::forward, Stage{0});
    };
    const auto seconds = [&](Clock::Ticks ticks) {
      return clock.seconds(ticks) - clock.seconds(0);
    };
    samples.add(program, step(9'000'000));
    const Seconds cold = forward();
    samples.add(program, step(1'000'000));
    const Seconds second = forward();
    samples.add(program, step(3'000'000));
    samples.add(program, step(2'000'000));
    const Seconds later = forward();
    if (cold != seconds(9'000'000) || second != seconds(1'000'000) || later != seconds(2'000'000))
      throw contract_error(
          {"samples", "the cold step counts", text(cold, ' ', second, ' ', later)});
  });
}

TEST_CASE("a table of pairs prices the schedule without them") {
  using namespace schedule;
  const auto ticks = [](Kind kind, Stage stage) -> Clock::Ticks {
    const Clock::Ticks each = 1'000'000 + 10'000 * static_cast<Clock::Ticks>(+stage);
    return kind == Kind::update ? 0 : kind == Kind::backward ? 2 * each : each;
  };
  std::size_t hidden = 0;
  for (const Orders& plain : {merge_backward(zb_v(3, 7)), merge_backward(one_f_one_b(4, 9)),
                              dualpipe(2, 6), dualpipe(4, 10)}) {
    Orders apart = plain, pairs = fuse(plain);
    for (auto& list : apart.ranks)
      for (Order& order : list) order.fused = false;
    hidden += never_alone(pairs);
    for (const bool at_once : {false, true}) {
      INFO(pairs.name << (at_once ? ", at once" : ", in turn"));
      TableCosts exact = told(weave(apart), false, ticks);
      TableCosts found = told(weave(pairs), at_once, ticks);
      for (const auto& list : pairs.ranks)
        for (const Order& order : list) {
          const double ratio =
              found.at(order.kind, order.stage) / exact.at(order.kind, order.stage);
          INFO(order.kind << " of stage " << order.stage);
          CHECK(std::abs(ratio - 1) < 0.1);
        }
      const Schedule without = weave(apart);
      CHECK(std::abs(simulate(without, found).makespan() / simulate(without, exact).makespan() -
                     1) < 0.05);
    }
  }
  CHECK(hidden > 0);
}

TEST_CASE("ranks of one stage with unequal samples have costs of their own") {
  // Shares 3:1 of a stage, also fused with stage 1; the ticks are those of its samples.
  Builder builder("shares", 2);
  for (const int rank : {0, 1}) {
    const QueueId queue = builder.local(Rank{rank});
    builder.add({.queue = queue, .stage = Stage{0}}, {});
    builder.add({.queue = queue, .stage = Stage{0}, .flags = flag::with_next}, {});
    builder.add({.queue = queue, .stage = Stage{1}}, {});
  }
  const Schedule schedule = std::move(builder).build();
  TableCosts costs = told(schedule, false, [](Rank rank, Kind, Stage) -> Clock::Ticks {
    return rank == Rank{0} ? 3'000'000 : 1'000'000;
  });
  const Seconds one = costs.at(Rank{1}, Kind::user, Stage{0});
  const auto near = [&](Seconds cost, double samples) {
    return std::abs(cost / one - samples) < 1e-4;
  };
  CHECK(one > 0);
  CHECK(near(costs.at(Rank{0}, Kind::user, Stage{0}), 3));
  CHECK(near(costs.at(Kind::user, Stage{0}), 2));
  CHECK(near(costs.at(Rank{0}, Kind::user, Stage{0}, Kind::user, Stage{1}), 6));
  CHECK(near(costs.at(Kind::user, Stage{0}, Kind::user, Stage{1}), 4));
  const Timeline timeline = simulate(schedule, costs);
  CHECK(near(timeline.makespan(), 9));
  CHECK(near(timeline[ActionId{3}].end, 1));
  costs.at(Rank{1}, Kind::user, Stage{0}) = -1;
  CHECK_THAT(
      test::message_of<contract_error>([&] { static_cast<void>(simulate(schedule, costs)); }),
      ContainsSubstring("of stage 0 on rank 1"));
}

TEST_CASE("halves of kinds that are nowhere alone share their pair's time") {
  Builder builder("pair", 1);
  const QueueId queue = builder.local(Rank{0});
  builder.add({.queue = queue, .stage = Stage{0}, .flags = flag::with_next}, {});
  builder.add({.queue = queue, .stage = Stage{1}}, {});
  TableCosts costs =
      told(std::move(builder).build(), true, [](Kind, Stage) -> Clock::Ticks { return 1'000'000; });
  const Seconds half = costs.at(Kind::user, Stage{0});
  CHECK(half > 0);
  CHECK(costs.at(Kind::user, Stage{1}) == half);
  CHECK(std::abs(costs.at(Kind::user, Stage{0}, Kind::user, Stage{1}) - 2 * half) < 1e-9);
}

TEST_CASE("stamps of an executor are in list order; without recording there are none") {
  const Schedule pipeline =
      schedule::one_f_one_b({.stages = 2, .microbatches = 6, .sizes = {.activation = 8}});
  std::vector<int> wrong(2, 0);
  run_threads(2, [&](ThreadTransport& transport) {
    int& errors = wrong[+transport.rank()];
    std::vector<std::vector<std::byte>> memory;
    Executor executor(slice(pipeline, transport.rank(),
                            [&](BufferId, const Buffer& buffer) {
                              return memory.emplace_back(buffer.bytes + 1).data();
                            }),
                      transport, {.record = true});
    const auto nothing = [](const Task&) {};
    for (const bool record : {true, false, true}) {
      executor.record(record);
      executor.step(nothing);
      executor.step(nothing);
      executor.drain();
      const auto stamps = executor.stamps();
      errors += stamps.size() != (record ? executor.program().size() : 0);
      for (std::size_t i = 0; i < stamps.size(); ++i) {
        errors += stamps[i].end < stamps[i].start;
        if (i > 0) errors += stamps[i].start < stamps[i - 1].start;
        if (i > 0 && executor.program().steps[i - 1].does == Program::Step::Does::run)
          errors += stamps[i].start < stamps[i - 1].end;
      }
    }
  });
  CHECK(wrong == std::vector<int>{0, 0});
}

TEST_CASE("recording switches on and off, and costs can be forgotten") {
  const Schedule stream = schedule::stream({.stages = 1, .microbatches = 3});
  ThreadHub hub(1);
  ThreadTransport transport(hub, Rank{0});
  Runner runner([](const Task&) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); },
                stream, transport);
  // Costs of what was never recorded would be made up.
  const auto refusal = [&] {
    return test::message_of<contract_error>([&] { static_cast<void>(runner.costs()); });
  };
  runner.step();
  CHECK_THAT(refusal(), ContainsSubstring("nothing was recorded of F on stage 0"));
  CHECK(runner.timeline().makespan() == 0);
  runner.record(true);
  runner.step();
  CHECK(runner.costs().at(Kind::forward, Stage{0}) >= 0.001);
  CHECK(runner.timeline().makespan() >= 0.003);
  runner.reset_costs();
  CHECK(!refusal().empty());
  runner.record(false);
  runner.step();
  CHECK(!refusal().empty());
}

TEST_CASE("a clock tells the seconds of the steady clock") {
  for (int n = 0; n < 5; ++n) {
    Clock clock;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Seconds before = steady_seconds();
    const Clock::Ticks ticks = Clock::now();
    const Seconds after = steady_seconds();
    clock.settle();
    CHECK(clock.seconds(ticks) >= before - resolution);
    CHECK(clock.seconds(ticks) <= after + resolution);
  }
}

}  // namespace test_recording
