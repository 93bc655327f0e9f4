// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// How fast the linear simulator is: 1F1B with moves at 131 thousand actions, its Timeline reused;
/// and a million actions from orders to timeline, with the memory that takes, for 1F1B and for
/// every schedule of the catalogue. And how long simulate_periodic() takes for a million
/// microbatches.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "../support.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "simulate/linear";
constexpr const char* child_argument = "--million";

// Powers of two: every time is exact, so that the checks below are equalities.
constexpr hd::Seconds forward = 1.0 / 1024;
constexpr hd::Seconds backward = 2.0 / 1024;
constexpr hd::Bytes activation = 1 << 20;
constexpr hd::Link link{.latency = 1.0 / (1 << 20), .bandwidth = 1 << 30};

/// A step of 1F1B whose moves take no time.
hd::Seconds closed_form(int stages, int microbatches) {
  return (microbatches + stages - 1) * (forward + backward);
}

/// 1F1B of 128 stages and 256 microbatches, priced by a formula and by a table.
struct Case {
  hd::Schedule schedule = hd::schedule::one_f_one_b(
      {.ranks = stages, .microbatches = microbatches, .sizes = {.activation = activation}});
  hd::StageCosts formula = {.forward = forward,
                            .backward = backward,
                            .latency = link.latency,
                            .per_byte = 1 / link.bandwidth};
  hd::TableCosts table = hd::TableCosts(hd::Machine::uniform(stages, {}, link), stages);

  Case() {
    for (int s = 0; s < stages; ++s) {
      table.at(hd::Kind::forward, hd::Stage{s}) = forward;
      table.at(hd::Kind::backward, hd::Stage{s}) = backward;
    }
    const hd::Timeline free = hd::simulate(schedule, {.forward = forward, .backward = backward});
    bench::require_equal("the step without transfers and its closed form", free.makespan(),
                         closed_form(stages, microbatches));
    const hd::Timeline by_formula = hd::simulate(schedule, formula);
    const hd::Timeline by_table = hd::simulate(schedule, table);
    for (std::size_t i = 0; i < schedule.size(); ++i)
      bench::require_equal("the end of an action with the formula and with the table",
                           by_formula.spans()[i].arrival, by_table.spans()[i].arrival);
  }

  static constexpr int stages = 128;
  static constexpr int microbatches = 256;
};

/// Million actions a second, one value per iteration of the benchmark.
template <class Costs>
void simulate_again(benchmark::State& state, const hd::Schedule& schedule, const Costs& costs,
                    std::vector<double>& rates) {
  hd::Timeline timeline;
  hd::simulate(schedule, costs, timeline);  // the Timeline has its memory from here on
  for (auto _ : state) {
    const double seconds = bench::seconds_of([&] { hd::simulate(schedule, costs, timeline); });
    benchmark::DoNotOptimize(timeline.spans().data());
    state.SetIterationTime(seconds);
    rates.push_back(static_cast<double>(schedule.size()) / seconds / 1e6);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(schedule.size()));
}

/// What the child process does: a million actions, from orders to timeline. Prints the seconds.
int million() {
  constexpr int stages = 512;
  constexpr int microbatches = 512;
  hd::Timeline timeline;
  const double seconds = bench::seconds_of([&] {
    const hd::Orders orders = hd::schedule::one_f_one_b(stages, microbatches);
    const hd::Schedule schedule = hd::weave(orders);
    timeline = hd::simulate(schedule, {.forward = forward, .backward = backward});
  });
  bench::require_equal("the step and its closed form", timeline.makespan(),
                       closed_form(stages, microbatches));
  if (timeline.schedule().size() < 1'000'000)
    throw hd::contract_error(
        {name, "these are not a million actions", hd::text(timeline.schedule().size())});
  std::cout << seconds << std::endl;
  return 0;
}

/// The same for a schedule of the catalogue, on 64 ranks with as many microbatches as that needs.
int million(std::string_view which) {
  constexpr int ranks = 64;
  constexpr int round = 2 * ranks;  // a number of microbatches that every schedule takes
  const auto& entry = hd::schedule::find_schedule(which);
  const auto orders = [&](int rounds) {
    return entry.orders({.ranks = ranks, .microbatches = rounds * round, .stages_per_rank = 2});
  };
  const std::size_t first = hd::weave(orders(1)).size();
  const std::size_t each = hd::weave(orders(2)).size() - first;
  const auto rounds = 1 + static_cast<int>((1'000'000 - first + each - 1) / each);
  hd::Timeline timeline;
  const double seconds = bench::seconds_of([&] {
    timeline =
        hd::simulate(hd::weave(orders(rounds)),
                     {.forward = forward, .backward_input = forward, .backward_weight = forward});
  });
  if (timeline.schedule().size() < 1'000'000)
    throw hd::contract_error(
        {name, "these are not a million actions", hd::text(timeline.schedule().size())});
  std::cout << seconds << std::endl;
  return 0;
}

struct Spent {
  double seconds = 0;    ///< wall time of orders to timeline
  double processor = 0;  ///< seconds of a core that the whole process took, its start too
  double megabytes = 0;  ///< 10^6 bytes, most that were resident at once
};

/// Runs million(), of `which` schedule if it is not null, in a process of its own, so that its peak
/// is its own.
Spent spawn_million(const char* program, const char* which = nullptr) {
  int ends[2];
  if (pipe(ends) != 0) throw hd::communication_error({name, "no pipe", std::strerror(errno)});
  const pid_t child = fork();
  if (child < 0) throw hd::communication_error({name, "no child process", std::strerror(errno)});
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(program, program, child_argument, which, static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char piece[64];
  for (ssize_t got = 0; (got = read(ends[0], piece, sizeof piece)) > 0;)
    output.append(piece, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0)
    throw hd::communication_error({name, "the child process failed", hd::text("status ", status)});
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {std::stod(output), seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) * 1024 / 1e6};
}

/// The schedule of the catalogue that needs most of something.
struct Worst {
  std::string_view which;
  bench::Summary needs;

  void consider(std::string_view name_of_one, std::vector<double> sample) {
    const bench::Summary summary = bench::summarise(std::move(sample));
    if (which.empty() || needs.median < summary.median) *this = {name_of_one, summary};
  }
};

int run(int& argc, char** argv) {
  // First: a child counts as resident what its parent had when it forked.
  std::vector<double> seconds;
  std::vector<double> processor;
  std::vector<double> megabytes;
  constexpr int children = 11;
  for (int i = 0; i < children; ++i) {
    const Spent spent = spawn_million("/proc/self/exe");
    seconds.push_back(spent.seconds);
    processor.push_back(spent.processor);
    megabytes.push_back(spent.megabytes);
  }

  Worst slowest;
  Worst largest;
  for (const auto& entry : hd::schedule::catalogue()) {
    std::vector<double> times;
    std::vector<double> peaks;
    for (int i = 0; i < 5; ++i) {
      const Spent spent = spawn_million("/proc/self/exe", std::string(entry.name).c_str());
      times.push_back(spent.seconds);
      peaks.push_back(spent.megabytes);
    }
    slowest.consider(entry.name, std::move(times));
    largest.consider(entry.name, std::move(peaks));
  }

  Worst longest;
  for (const char* which : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe-v"}) {
    const auto& entry = hd::schedule::find_schedule(which);
    const auto orders_of = [&](int microbatches) {
      return entry.orders({.ranks = 64, .microbatches = microbatches, .stages_per_rank = 2});
    };
    std::vector<double> times;
    for (int i = 0; i < 3; ++i)
      times.push_back(bench::seconds_of([&] {
        const hd::PeriodicStep step = hd::simulate_periodic(
            orders_of, 1'000'000,
            {.forward = forward, .backward_input = forward, .backward_weight = forward});
        benchmark::DoNotOptimize(step.makespan);
      }));
    longest.consider(which, std::move(times));
  }

  benchmark::Initialize(&argc, argv);
  const Case c;
  std::vector<double> by_formula;
  std::vector<double> by_table;
  constexpr int iterations = 101;
  benchmark::RegisterBenchmark(
      "linear/stage_costs",
      [&](benchmark::State& state) { simulate_again(state, c.schedule, c.formula, by_formula); })
      ->UseManualTime()
      ->Iterations(iterations)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(
      "linear/table_costs",
      [&](benchmark::State& state) { simulate_again(state, c.schedule, c.table, by_table); })
      ->UseManualTime()
      ->Iterations(iterations)
      ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();

  std::cout << "1F1B of " << Case::stages << " stages and " << Case::microbatches
            << " microbatches: " << c.schedule.size() << " actions, Timeline reused; a million in "
            << children << " processes\n";
  if (!by_formula.empty())
    bench::print_value(name, "stage_costs", bench::summarise(by_formula), "million/s");
  if (!by_table.empty())
    bench::print_value(name, "table_costs", bench::summarise(by_table), "million/s");
  bench::print_value(name, "million_end_to_end", bench::summarise(seconds), "s");
  bench::print_value(name, "million_processor_time", bench::summarise(processor), "s");
  bench::print_value(name, "million_peak", bench::summarise(megabytes), "MB");
  std::cout << "a million actions of every schedule of the catalogue: slowest " << slowest.which
            << ", largest " << largest.which << '\n';
  bench::print_value(name, "every_schedule_end_to_end", slowest.needs, "s");
  bench::print_value(name, "every_schedule_peak", largest.needs, "MB");
  std::cout << "64 ranks and a million microbatches, longest for " << longest.which << '\n';
  bench::print_value(name, "periodic_million_microbatches", longest.needs, "s");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2 || std::strcmp(argv[1], child_argument) != 0) return run(argc, argv);
    return argc == 2 ? million() : million(argv[2]);
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 1;
  }
}
