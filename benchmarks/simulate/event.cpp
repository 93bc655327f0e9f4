// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// How fast the simulator is where queues share something: 1F1B with moves at 131 thousand actions,
/// its Timeline reused, on machines whose ranks have one port in each direction, whose nodes have
/// one more, and whose devices count their units.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "../support.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "simulate/event";
constexpr int stages = 128;
constexpr int microbatches = 256;

// Powers of two: every time is exact, so that the checks below are equalities.
constexpr hd::StageCosts local{.forward = 1.0 / 1024, .backward = 2.0 / 1024};
constexpr hd::Bytes activation = 1 << 20;
constexpr hd::Link link{.latency = 1.0 / (1 << 20), .bandwidth = 1 << 30};

/// A machine of 16 nodes; the ports of ranks and of nodes are so fast.
hd::Machine machine(hd::Ports rank, hd::Ports node, int units = 0) {
  return hd::Machine::hierarchical(std::vector<hd::Device>(stages, {.units = units}),
                                   {{.name = "rank", .link = link, .ports = rank},
                                    {.name = "node", .ranks = 8, .link = link, .ports = node},
                                    {.name = "cluster", .ranks = stages, .link = link}});
}

struct Case {
  std::string what;
  hd::MachineCosts costs;
  std::vector<double> rates = {};  ///< million actions a second, one for each iteration
};

void check(const hd::Schedule& schedule) {
  const hd::Timeline linear = hd::simulate(schedule, local, machine({}, {}));
  // Ports as fast as the links: each serves one queue of 1F1B in each direction, and none waits.
  const hd::Timeline event =
      hd::simulate(schedule, local, machine({link.bandwidth, link.bandwidth}, {}));
  const hd::Timeline units = hd::simulate(schedule, local, machine({}, {}, 4));
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    bench::require_equal("the end of an action with units that suffice and without",
                         linear.spans()[i].arrival, units.spans()[i].arrival);
    if (event.spans()[i].arrival < linear.spans()[i].arrival)
      throw hd::contract_error({name, "an action ends earlier with ports than without"});
  }
}

int run(int& argc, char** argv) {
  const hd::Schedule schedule = hd::schedule::one_f_one_b(
      {.ranks = stages, .microbatches = microbatches, .sizes = {.activation = activation}});
  check(schedule);
  const hd::Ports port{.out = 1 << 30, .in = 1 << 30};
  const hd::Ports uplink{.out = 1 << 29, .in = 1 << 29};
  std::vector<Case> cases;
  cases.push_back({"ports", {local, machine(port, {})}});
  cases.push_back({"ports_and_uplinks", {local, machine(port, uplink)}});
  cases.push_back({"ports_uplinks_and_units", {local, machine(port, uplink, 4)}});

  benchmark::Initialize(&argc, argv);
  for (Case& one : cases)
    benchmark::RegisterBenchmark(
        ("event/" + one.what).c_str(),
        [&](benchmark::State& state) {
          hd::Timeline timeline;
          hd::simulate(schedule, one.costs, timeline);  // the Timeline has its memory from here on
          for (auto _ : state) {
            const double seconds =
                bench::seconds_of([&] { hd::simulate(schedule, one.costs, timeline); });
            benchmark::DoNotOptimize(timeline.spans().data());
            state.SetIterationTime(seconds);
            one.rates.push_back(static_cast<double>(schedule.size()) / seconds / 1e6);
          }
          state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(schedule.size()));
        })
        ->UseManualTime()
        ->Iterations(51)
        ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();

  std::cout << "1F1B of " << stages << " stages and " << microbatches
            << " microbatches: " << schedule.size() << " actions, Timeline reused\n";
  for (const Case& one : cases)
    if (!one.rates.empty())
      bench::print_value(name, one.what, bench::summarise(one.rates), "million/s");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::status_of(name, [&] { run(argc, argv); });
}
