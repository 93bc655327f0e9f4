// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Unified programming model: one source on every space, a rewrite at each level that is predicted
/// and measured, and what the scheduler costs. Ranks are threads; stages that only wait stand for
/// work where more threads than cores must not matter.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/text.hpp>
#include <heddle/device/athread.hpp>
#include <heddle/execute.hpp>
#include <heddle/kernel.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"
#include "support/simulated_workers.hpp"
#include "support/unequal_threads.hpp"

namespace hd = heddle;
namespace hk = heddle::kernel;

namespace report {

namespace {

double median(std::vector<double> sample) {
  std::sort(sample.begin(), sample.end());
  return sample[sample.size() / 2];
}

// --- One source, every space.

using Whole = std::int64_t;

struct Hash {
  KOKKOS_FUNCTION Whole operator()(Whole x) const { return x * 31 % 1009 - 500; }
};
struct Laplace {
  template <class Neighbourhood>
  KOKKOS_FUNCTION Whole operator()(const Neighbourhood& u) const {
    return u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0);
  }
};
struct Weigh {
  KOKKOS_FUNCTION Whole operator()(Whole x, Whole y) const { return x * (y % 7); }
};

constexpr std::size_t rows = 97, columns = 131;

/// A map, a stencil and a reduction, written once.
template <class Space>
Whole patterns() {
  using Grid = Kokkos::View<Whole**, Kokkos::LayoutRight, typename Space::memory_space>;
  const Grid x("heddle::report::x", rows, columns), y("heddle::report::y", rows, columns);
  const auto host = Kokkos::create_mirror_view(x);
  for (std::size_t i = 0; i < rows * columns; ++i) host.data()[i] = static_cast<Whole>(i);
  Kokkos::deep_copy(x, host);
  const Space space;
  hk::map(space, Hash{}, x, x);
  Kokkos::deep_copy(space, y, x);
  hk::stencil(space, 1, Laplace{}, y, x);
  Whole sum = 0;
  hk::reduce(space, Kokkos::Sum<Whole>(sum), Weigh{}, x, y);
  return sum;
}

/// The same by loops.
Whole loops() {
  std::vector<Whole> x(rows * columns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = Hash{}(static_cast<Whole>(i));
  std::vector<Whole> y = x;
  for (std::size_t i = columns; i < x.size() - columns; ++i)
    if (i % columns != 0 && i % columns != columns - 1)
      y[i] = x[i - columns] + x[i + columns] + x[i - 1] + x[i + 1] - 4 * x[i];
  Whole sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += Weigh{}(x[i], y[i]);
  return sum;
}

Comparison every_space() {
  const Whole expected = loops();
  std::string names;
  bool equal = true;
  const auto compare = [&]<class Space>(const Space&) {
    names += (names.empty() ? "" : ", ") + std::string(Space::name());
    equal = equal && patterns<Space>() == expected;
  };
  compare(Kokkos::DefaultExecutionSpace{});
#ifdef KOKKOS_ENABLE_SERIAL
  if constexpr (!std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::Serial>)
    compare(Kokkos::Serial{});
#endif
  if constexpr (!std::is_same_v<Kokkos::DefaultExecutionSpace, hd::Athread>) compare(hd::Athread{});
  return {"map, stencil and reduction of whole numbers, one source, against loops", "(no figure)",
          names + (equal ? ": equal" : ": different"), "equal", verdict(equal)};
}

// --- A rewrite at each level.

/// What a rewrite brings, simulated and executed: time before / time after. It holds if at least
/// 0.8 of the predicted gain is there when executed; the gain of 1.16x is 0.16.
Comparison rewrite(const char* what, double simulated, double executed) {
  constexpr double part = 0.8;
  const double least = 1 + part * (simulated - 1);
  return {hd::text("time before / after a rewrite, ", what), "(no figure)",
          hd::text("simulated ", simulated, ", executed ", executed),
          hd::text(part, " of the predicted gain: executed at least ", least),
          verdict(simulated > 1 && executed >= least)};
}

/// Stages that wait for as long as `costs` says.
struct WaitingModel {
  const hd::StageCosts* costs;

  void operator()(const hd::Task& task) const {
    const hd::Seconds time = costs->time(task.schedule(), task.id());
    if (time > 0) std::this_thread::sleep_for(std::chrono::duration<hd::Seconds>(time));
  }
};

/// The median of the measured steps of `schedule`.
double executed(const hd::Schedule& schedule, const hd::StageCosts& costs) {
  std::vector<double> steps;
  hd::run_threads(schedule.ranks(), [&](hd::ThreadTransport& transport) {
    WaitingModel model{&costs};
    hd::Runner run(model, schedule, transport,
                   {.execute = {.idle = hd::Idle::nap, .record = true}});
    for (int step = 0; step < 6; ++step) {
      run.step();
      const double makespan = run.timeline().makespan();
      if (step > 0 && transport.rank() == hd::Rank{0}) steps.push_back(makespan);
    }
  });
  return median(steps);
}

/// Orders: stages cut in two and interleaved, so that the pipeline fills sooner.
Comparison interleaving() {
  constexpr int ranks = 4, microbatches = 8;
  const hd::StageCosts whole{.forward = 4e-3, .backward = 8e-3};
  const hd::StageCosts half{.forward = 2e-3, .backward = 4e-3};
  const auto before = hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = microbatches});
  const auto after = hd::schedule::interleaved(
      {.ranks = ranks, .stages_per_rank = 2, .microbatches = microbatches});
  return rewrite("orders: interleaved 1F1B for 1F1B",
                 hd::simulate(before, whole).makespan() / hd::simulate(after, half).makespan(),
                 executed(before, whole) / executed(after, half));
}

/// A sum that every rank sends to the first, which adds and sends back.
struct SumAtFirst {
  [[nodiscard]] std::uint32_t parts(std::size_t) const { return 1; }

  void operator()(hd::Builder& builder, std::span<const hd::Use> members, hd::Stage stage) const {
    using hd::schedule::read, hd::schedule::write, hd::schedule::update;
    const hd::BufferId sum = members[0].buffer;
    const hd::Rank first = builder[sum].rank;
    const auto send = [&](hd::BufferId from, hd::BufferId to) {
      const hd::QueueId queue = builder.queue(builder[from].rank, builder[to].rank);
      builder.add({.kind = hd::Kind::move, .queue = queue, .stage = stage},
                  {read(from), write(to)});
    };
    for (const hd::Use& member : members.subspan(1)) {
      hd::Buffer scratch = builder[sum];
      scratch.label = builder.label("scratch");
      scratch.transient = true;
      const hd::BufferId arrived = builder.add_buffer(scratch);
      send(member.buffer, arrived);
      builder.add({.kind = hd::Kind::combine, .queue = builder.local(first), .stage = stage},
                  {read(arrived), update(sum)});
    }
    for (const hd::Use& member : members.subspan(1)) send(sum, member.buffer);
  }
};

/// Schedule: one action for a sum over 4 ranks, expanded in one way and in another.
Comparison expansion() {
  constexpr int ranks = 4;
  constexpr hd::Bytes bytes = 4096;
  hd::Builder builder("sum", ranks);
  std::vector<hd::Use> members;
  for (int rank = 0; rank < ranks; ++rank)
    members.push_back(hd::schedule::update(builder.add_buffer({.rank = hd::Rank{rank},
                                                               .label = builder.label("data"),
                                                               .type = hd::Scalar::f64,
                                                               .transient = false,
                                                               .bytes = bytes})));
  builder.add({.kind = hd::Kind::group, .queue = builder.local(hd::Rank{0})}, members);
  const hd::Schedule sum = std::move(builder).build();
  const hd::Schedule before = hd::schedule::expand(sum, SumAtFirst{});
  const hd::Schedule after = hd::schedule::expand(sum, hd::schedule::CollectiveForm{});
  const hd::StageCosts costs{.combine = 16e-3 / bytes};
  return rewrite("schedule: a sum around the ring for a sum at one rank",
                 hd::simulate(before, costs).makespan() / hd::simulate(after, costs).makespan(),
                 executed(before, costs) / executed(after, costs));
}

struct Scale {
  KOKKOS_FUNCTION double operator()(double x) const { return 3 * x; }
};
struct Shift {
  KOKKOS_FUNCTION double operator()(double x) const { return x + 1; }
};
struct ScaleShift {
  KOKKOS_FUNCTION double operator()(double x) const { return 3 * x + 1; }
};

/// What an action takes that is bound by memory: a second for each byte it reads or writes.
struct TrafficCosts {
  using Time = double;

  [[nodiscard]] Time time(const hd::Schedule& schedule, hd::ActionId id) const {
    double bytes = 0;
    for (const hd::Use& use : schedule.uses(id)) bytes += static_cast<double>(schedule.bytes(use));
    return bytes;
  }
  [[nodiscard]] hd::Transfer<Time> transfer(const hd::Schedule&, hd::ActionId) const { return {}; }
};

/// Kernels: two maps, or one that does the work of both and moves half the bytes.
Comparison fused_maps() {
  constexpr std::size_t elements = 8'000'000;
  const auto simulated = [](bool fused) {
    hd::Builder builder("maps", 1);
    const auto buffer = [&](bool transient) {
      return builder.add_buffer(
          {.type = hd::Scalar::f64, .transient = transient, .bytes = elements * sizeof(double)});
    };
    const hd::BufferId x = buffer(false), y = buffer(true), z = buffer(true);
    const hd::ActionSpec map{.queue = builder.local(hd::Rank{0})};
    using hd::schedule::read, hd::schedule::write;
    if (fused) {
      builder.add(map, {read(x), write(z)});
    } else {
      builder.add(map, {read(x), write(y)});
      builder.add(map, {read(y), write(z)});
    }
    return hd::simulate(std::move(builder).build(), TrafficCosts{}).makespan();
  };
  using Space = Kokkos::DefaultExecutionSpace;
  const Kokkos::View<double*, Space> x("heddle::report::x", elements),
      y("heddle::report::y", elements), z("heddle::report::z", elements);
  const Space space;
  const auto seconds = [&](auto&& work) {
    const hd::Seconds begin = hd::steady_seconds();
    work();
    space.fence("heddle::report::fused_maps");
    return hd::steady_seconds() - begin;
  };
  std::vector<double> gains;
  for (int i = -1; i < 15; ++i) {
    const double two = seconds([&] {
      hk::map(space, Scale{}, y, x);
      hk::map(space, Shift{}, z, y);
    });
    const double one = seconds([&] { hk::map(space, ScaleShift{}, z, x); });
    if (i >= 0) gains.push_back(two / one);
  }
  return rewrite("kernels: one map for two", simulated(false) / simulated(true), median(gains));
}

/// Run time: shares by measured speed for equal ones.
Comparison shares() {
  std::vector<double> simulated, executed;
  for (std::uint64_t seed = 0; seed < 15; ++seed)
    simulated.push_back(hd::test::simulate_run({3, 1}, 0.05, seed).gain);
  hd::plan::SpeedRatios ratios(2);
  for (int i = 0; i < 3; ++i) hd::test::UnequalThreads::run(ratios);
  for (int i = 0; i < 15; ++i) {
    hd::plan::SpeedRatios equal(2);
    const double before = hd::test::UnequalThreads::run(equal).wall;
    executed.push_back(before / hd::test::UnequalThreads::run(ratios).wall);
  }
  return rewrite("run time: shares by measured speed", median(simulated), median(executed));
}

// --- What the scheduler adds.

constexpr hd::Seconds task_time = 100e-6;

/// Computes until 100 us have passed.
void compute(const hd::Task&) {
  const hd::Seconds begin = hd::steady_seconds();
  while (hd::steady_seconds() - begin < task_time) {
  }
}

/// Executor and thread transport on two ranks, against the makespan of the tasks alone. Only steps
/// in which other programs took at most a twentieth of a core from both threads are counted: steps
/// are shorter than a slice of the operating system's, so there are some on a busy machine too.
Comparison overhead() {
  Comparison line{"makespan of a stream on 2 threads over that of its tasks of 100 us alone",
                  "lightweight", "", "at most 5% more", ""};
  constexpr std::size_t wanted = 15;
  constexpr hd::Seconds most_time = 15;
  const auto schedule =
      hd::schedule::stream({.ranks = 2, .microbatches = 8, .sizes = {.activation = 4096}});
  const double alone = hd::simulate(schedule, hd::StageCosts{.forward = task_time}).makespan();
  std::vector<double> added;
  if (std::thread::hardware_concurrency() >= 2) {
    hd::run_threads(2, [&](hd::ThreadTransport& transport) {
      hd::Runner run(compute, schedule, transport,
                     {.execute = {.idle = hd::Idle::spin, .record = true}});
      const hd::Seconds first = hd::steady_seconds();
      std::size_t undisturbed = 0;
      for (hd::Seconds elapsed = 0; undisturbed < wanted && elapsed < most_time;) {
        const hd::Seconds begin = hd::steady_seconds();
        const hd::Seconds processor_begin = hd::test::processor_seconds();
        run.step();
        const hd::Seconds end = hd::steady_seconds();
        const double mine[] = {(hd::test::processor_seconds() - processor_begin) / (end - begin),
                               end - first};
        const double makespan = run.timeline().makespan();
        double core = 1;
        for (const auto& each : hd::all_gather<double>(transport, mine)) {
          core = std::min(core, each[0]);
          elapsed = std::max(elapsed, each[1]);
        }
        if (core < 0.95) continue;
        ++undisturbed;
        if (transport.rank() == hd::Rank{0}) added.push_back(makespan / alone - 1);
      }
    });
  }
  if (added.size() < wanted) {
    line.ours = hd::text(added.size(), " undisturbed steps");
    line.verdict = "skipped: it needs two cores that no other program uses";
    return line;
  }
  const double percent = 100 * median(added);
  line.ours = hd::text(percent, "% more, median of ", added.size(), " undisturbed steps");
  line.verdict = verdict(percent <= 5);
  return line;
}

}  // namespace

std::vector<Comparison> unified() {
  return {
      every_space(), native_fraction(), interleaving(), expansion(),
      fused_maps(),  shares(),          overhead(),
  };
}

}  // namespace report
