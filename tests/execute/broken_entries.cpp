// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Structs of execute/ that programs fill by hand, and the placement of experts: every door rejects
// a broken entry and names it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/execute/mailbox.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/systems/co2/local_updates.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>
#include <heddle/systems/exflow/expert_walk.hpp>

#include "support/broken_entries.hpp"

namespace test_execute_broken_entries {

using namespace heddle;
using systems::ExpertPlacement;
using test::BrokenEntry;
using test::check_broken;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

void walk(const ExpertPlacement& placement, systems::AfterExpert after,
          const ExecuteOptions& wait = {}) {
  run_threads(2, [&](ThreadTransport& transport) {
    std::vector<double> rows(8, 1);
    const systems::ExpertWalkOptions options{.width = 2, .after = after, .wait = wait};
    const auto route = [](std::uint64_t token, std::size_t, std::span<const double>) {
      return static_cast<std::size_t>(token % 2);
    };
    const auto expert = [](std::size_t, std::size_t, std::uint64_t, std::span<double>) {};
    systems::walk_experts(transport, placement, std::span(rows), options, route, expert);
  });
}

}  // namespace

TEST_CASE("every door of a placement of experts names the expert and its rank") {
  const systems::ExpertAffinity affinity({.layers = 2, .experts = 2, .routes = {0, 1, 1, 0}});
  const std::pair<ExpertPlacement, const char*> broken[] = {
      {{2, 2, 2, {1, 2, 1, 2}}, "ranks_of[1], expert 1 of layer 0, is rank 2 of 2"},
      {{2, 2, 2, {0, 1, 9, 1}}, "ranks_of[2], expert 0 of layer 1, is rank 9 of 2"},
      {{2, 2, 2, {0}}, "ranks_of has 1 entries for 2 layers of 2 experts"},
      {{2, 2, 2, {0, 1, 0, 1, 0, 1}}, "ranks_of has 6 entries"},
      {{2, 2, 0, {0, 1, 0, 1}}, "2 layers of 0 experts"},
      {{2, std::size_t{1} << 63, 2, {}}, "ranks_of has 0 entries"},
      {{-1, 2, 2, {0, 1, 0, 1}}, "ranks = -1"},
  };
  std::vector<BrokenEntry> table;
  for (const auto& [each, word] : broken) {
    const ExpertPlacement* const placement = &each;
    for (const systems::AfterExpert after :
         {systems::AfterExpert::comes_home, systems::AfterExpert::stays})
      table.push_back({"walk_experts", [=] { walk(*placement, after); }, {word}});
    table.push_back(
        {"rank_changes", [=, &affinity] { (void)rank_changes(affinity, *placement); }, {word}});
    table.push_back({"of_nodes", [=] { (void)placement->of_nodes(1); }, {word}});
  }
  check_broken(table);
  walk({2, 2, 2, {0, 1, 1, 1}},
       systems::AfterExpert::stays);  // ranks may have different numbers of experts
}

TEST_CASE("the options of executors, mailboxes and local updates are checked") {
  const Schedule schedule =
      schedule::gpipe({.stages = 2, .microbatches = 2, .sizes = {.activation = 8, .saved = 8}});
  const auto run = [&](RunOptions options) {
    return [=, &schedule] {
      run_threads(2, [&](ThreadTransport& transport) {
        const auto model = [](const Task&) {};
        Runner runner(model, Schedule(schedule), transport, options);
        runner.step();
      });
    };
  };
  const auto gather = [](ExecuteOptions options) {
    return [=] {
      run_threads(2, [&](ThreadTransport& transport) {
        (void)all_gather(transport, std::vector<std::byte>(3), options);
      });
    };
  };
  const auto mailbox = [](std::uint32_t peer, MailboxOptions options) {
    return [=] {
      run_threads(3, [&](ThreadTransport& transport) {
        const std::vector<Rank> peers{Rank{peer}};
        Mailbox<ThreadTransport> box(transport, peers, options);
        box.close();
      });
    };
  };
  const auto update = [](systems::OuterUpdate outer) {
    return [=] {
      systems::LocalUpdates<float>(
          {}, [](std::span<float>, std::int64_t) {}, outer);
    };
  };
  check_broken({
      {"watchdog", run({.execute = {.watchdog = -1}}), {"watchdog = -1"}},
      {"watchdog is no number", run({.execute = {.watchdog = nan}}), {"watchdog = nan"}},
      {"grace", run({.execute = {.grace = -1}}), {"grace = -1"}},
      {"grace without end", run({.execute = {.grace = infinity}}), {"grace = inf"}},
      {"watchdog of all_gather", gather({.watchdog = nan}), {"all_gather", "watchdog = nan"}},
      {"watchdog of a walk",
       [] {
         walk({2, 1, 2, {0, 1}}, systems::AfterExpert::stays, {.watchdog = -1});
       },
       {"walk_experts", "watchdog = -1"}},
      {"peer", mailbox(5, {}), {"peer 5", "3 ranks"}},
      {"doing", mailbox(5, {.doing = nullptr}), {"MailboxOptions::doing"}},
      {"watchdog of a mailbox",
       mailbox(5, {.wait = {.watchdog = nan}}),
       {"Mailbox", "watchdog = nan"}},
      {"rate", update({.rate = infinity}), {"rate = inf"}},
      {"momentum", update({.momentum = nan}), {"momentum = nan"}},
      {"step", [] { systems::LocalUpdates<float>({}, nullptr); }, {"the local step"}},
  });
}

TEST_CASE("an Executor rejects a program that names what does not exist") {
  const Schedule schedule =
      schedule::gpipe({.stages = 2, .microbatches = 2, .sizes = {.activation = 8, .saved = 8}});
  std::vector<std::byte> memory(1024);
  const Program good =
      slice(schedule, Rank{0}, [&](BufferId, const Buffer&) { return memory.data(); });
  std::vector<BrokenEntry> table;
  const auto add = [&](const char* word, const std::function<void(Program&)>& change) {
    table.push_back({word,
                     [=, &good] {
                       Program program = good;
                       change(program);
                       run_threads(2, [&](ThreadTransport& transport) {
                         Executor executor(program, transport);
                       });
                     },
                     {word}});
  };
  add("the program has no steps", [](Program& p) { p.steps.clear(); });
  add("rank 7 of 2", [](Program& p) { p.rank = Rank{7}; });
  add("port 0: rank 9 of 2", [](Program& p) { p.ports[0].peer = Rank{9}; });
  add("of 0", [](Program& p) { p.ports.clear(); });
  add("step 0: port 77", [](Program& p) {
    p.steps[0].does = Program::Step::Does::send;
    p.steps[0].port = 77;
  });
  add("step 0: action 999", [](Program& p) { p.steps[0].action = ActionId{999}; });
  add("to 9999 of", [](Program& p) { p.steps.back().first_use = 9999; });
  add("waits", [](Program& p) { p.steps.back().first_wait = 9999; });
  check_broken(table);
}

TEST_CASE("a trail makes no timeline of workers and items that it cannot name") {
  const auto timeline = [](Trail::Event event) {
    return [=] {
      Trail trail;
      trail.add(event);
      (void)trail.timeline();
    };
  };
  check_broken({
      {"worker", timeline({.worker = Worker{4'000'000'000u}}), {"worker 4000000000"}},
      {"item", timeline({.item = -1}), {"item -1"}},
      {"large item", timeline({.item = std::int64_t{1} << 32}), {"item 4294967296"}},
      {"times", timeline({.start = 2, .end = 1}), {"2 to 1"}},
      {"a time", timeline({.start = nan, .end = 1}), {"nan to 1"}},
  });
}

}  // namespace test_execute_broken_entries
