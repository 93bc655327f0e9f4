// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// AdaptiveRunner over threads: what it computes does not depend on what it chooses, all ranks
// choose alike, and a slow network is seen. What is chosen by which costs is in tests/plan.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/plan/schedule_choice.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_adaptive_runner {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr StageSizes sizes{.activation = sizeof(double), .saved = sizeof(double)};

Schedule grouped(int ranks, int microbatches, int k) {
  return schedule::kfkb({.ranks = ranks, .microbatches = microbatches, .group = k, .sizes = sizes});
}

std::vector<Schedule> candidates(int ranks, int microbatches) {
  return {grouped(ranks, microbatches, 1), grouped(ranks, microbatches, 2)};
}

/// Adds one to every item at every stage, and takes it back on the way up: what arrives above is
/// the number of the step and of the microbatch, if all memory was right.
struct Counting {
  int ranks;
  double step = 0;
  double sum = 0;

  void begin_step(int number) {
    step = 100 * number;
    sum = 0;
  }
  template <Transport T>
  double end_step(T& transport, const ExecuteOptions& options) const {
    double total = 0;
    for (const auto& each : all_gather<double>(transport, std::span(&sum, 1), options))
      total += each[0];
    return total;
  }
  void operator()(const Task& task) {
    if (task.kind() == Kind::update) return;
    const bool first = +task.stage() == 0;
    const bool last = +task.stage() + 1 == static_cast<std::size_t>(ranks);
    double& saved = task.get<double>(role::saved)[0];
    if (task.kind() == Kind::forward) {
      saved =
          first ? step + static_cast<double>(+task.item()) : task.get<const double>(role::input)[0];
      if (!last) task.get<double>(role::output)[0] = saved + 1;
      return;
    }
    const double above = last ? saved + 1 : task.get<const double>(role::output_grad)[0];
    if (above != saved + 1) sum += 1e9;
    if (first)
      sum += saved;
    else
      task.get<double>(role::input_grad)[0] = saved;
  }
};

}  // namespace

TEST_CASE("what is computed does not depend on what is chosen") {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    constexpr int microbatches = 6;
    std::atomic<int> wrong = 0;
    run_threads(ranks, [&](ThreadTransport& transport) {
      Counting model{ranks};
      AdaptiveRunner run(model, plan::ScheduleChoice(candidates(ranks, microbatches)), transport,
                         {.every = 2});
      const Bytes least = run.choice().needs()[0];
      for (int step = 0; step < 12; ++step) {
        // Room for all, for the first only, and so on.
        if (step % 3 == 0) run.limit(step % 2 == 0 ? 1'000'000 : least);
        wrong += run.step(step) != microbatches * 100 * step + 15;
        wrong += run.runner().schedule().name() != run.choice().schedule().name();
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("the rank that has least memory decides, for all ranks") {
  std::atomic<int> wrong = 0;
  std::array<std::string, 3> messages;
  run_threads(3, [&](ThreadTransport& transport) {
    const std::size_t me = +transport.rank();
    Counting model{3};
    // The other way round, so that the first choice is the larger.
    auto all = candidates(3, 4);
    std::swap(all[0], all[1]);
    AdaptiveRunner run(model, plan::ScheduleChoice(all), transport);
    const auto needs = run.choice().needs();
    run.step(0);
    wrong += run.choice().current() != 0;
    run.limit(me == 1 ? needs[0] - 1 : needs[0]);
    wrong += run.choice().current() != 1;
    wrong += run.step(1) != 406;
    messages[me] =
        test::message_of<infeasible>([&] { run.limit(me == 2 ? needs[1] - 1 : needs[0]); });
    wrong += run.step(2) != 806;  // and goes on as before
  });
  CHECK(wrong == 0);
  for (const std::string& message : messages)
    CHECK_THAT(message, ContainsSubstring("no candidate fits the memory"));
}

TEST_CASE("a limit counts with the sizes that only the model knows") {
  /// Knows the sizes of its buffers, which the candidates lack.
  struct Sizing : Counting {
    Schedule prepare(const Schedule& schedule, ThreadTransport&, const ExecuteOptions&) const {
      return schedule.with_sizes(
          [](Buffer& buffer) { buffer.bytes = sizeof(double) * buffer.parts; });
    }
  };
  std::atomic<int> wrong = 0;
  std::array<std::string, 3> messages;
  run_threads(3, [&](ThreadTransport& transport) {
    std::vector<Schedule> unsized;
    for (const int k : {2, 1})
      unsized.push_back(schedule::kfkb({.ranks = 3, .microbatches = 4, .group = k}));
    Sizing model{{3}};
    AdaptiveRunner run(model, plan::ScheduleChoice(unsized), transport);
    const std::vector<Bytes> needs(run.choice().needs().begin(), run.choice().needs().end());
    wrong += !(needs[0] > needs[1] && needs[1] > 0);
    Bytes most = 0;
    for (std::size_t r = 0; r < 3; ++r) {
      Bytes rank = 0;
      for (const Buffer& buffer : run.runner().schedule().buffers())
        if (buffer.transient && buffer.rank == Rank{r}) rank += buffer.bytes;
      most = std::max(most, rank);
    }
    wrong += needs[0] != most;
    wrong += run.step(0) != 6;
    run.limit(needs[0] - 1);
    wrong += run.choice().current() != 1;
    wrong += run.step(1) != 406;
    // From the beginning, too.
    AdaptiveRunner small(model, plan::ScheduleChoice(unsized, needs[1]), transport);
    wrong += small.choice().current() != 1;
    messages[+transport.rank()] = test::message_of<infeasible>([&] {
      AdaptiveRunner none(model, plan::ScheduleChoice(unsized, needs[1] - 1), transport);
    });
  });
  CHECK(wrong == 0);
  for (const std::string& message : messages)
    CHECK_THAT(message, ContainsSubstring("no candidate fits the memory"));
}

TEST_CASE("a slow network is seen, and all ranks change alike") {
  using std::chrono::milliseconds;
  std::array<std::vector<std::size_t>, 3> choices;
  run_threads(3, [&](ThreadTransport& inner) {
    // Three forwards long, so that no noise of the machine hides it.
    ShapedTransport transport(inner,
                              {.link = [](Rank, Rank, Seconds) { return Link{.latency = 6e-3}; }});
    const auto model = [](const Task& task) {
      if (task.kind() == Kind::forward) std::this_thread::sleep_for(milliseconds(2));
      if (task.kind() == Kind::backward) std::this_thread::sleep_for(milliseconds(4));
    };
    AdaptiveRunner run(model, plan::ScheduleChoice(candidates(3, 8)), transport,
                       {.run = {.execute = {.idle = Idle::nap}}, .every = 2});
    for (int step = 0; step < 7; ++step) {
      run.step();
      choices[+transport.rank()].push_back(run.choice().current());
    }
  });
  CHECK(choices[0] == std::vector<std::size_t>{0, 0, 1, 1, 1, 1, 1});
  CHECK(choices[1] == choices[0]);
  CHECK(choices[2] == choices[0]);
}

TEST_CASE("an adaptive runner that never looks is refused") {
  ThreadHub hub(1);
  ThreadTransport transport(hub, Rank{0});
  Counting model{1};
  CHECK_THAT(
      test::message_of<contract_error>([&] {
        AdaptiveRunner run(model, plan::ScheduleChoice(candidates(1, 2)), transport, {.every = 0});
      }),
      ContainsSubstring("heddle::AdaptiveRunner: AdaptiveOptions::every must be at least 1 step") &&
          ContainsSubstring("every = 0"));
}

}  // namespace test_adaptive_runner
