// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// What the executor costs per action where there is nothing to send: one rank, stages that only
/// count, beside the loop that one would write by hand and a list of std::function.
///
/// The competitors take turns in a loop of our own, not in Google Benchmark, which runs each of
/// them to its end before the next: on a busy machine the ratio would then be one of two moments.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <vector>

#include <benchmark/benchmark.h>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "../support.hpp"

namespace hd = heddle;

namespace {

constexpr int microbatches = 4096;
constexpr int walks = 16;  ///< over the list, per sample
constexpr int samples = 61;
constexpr const char* name = "execute/overhead";

/// The stage of all competitors. Not inlined, as a stage that does something would not be: what is
/// left of a loop whose body the compiler sees is not a loop over stages.
class NullStage {
 public:
  [[gnu::noinline]] void forward(hd::Item m) { m_sum += 2 * m.value + 1; }
  [[gnu::noinline]] void backward(hd::Item m) { m_sum += 3 * m.value + 2; }
  [[gnu::noinline]] void update() { m_sum ^= 1; }
  /// A sum over all calls made so far.
  [[nodiscard]] std::uint64_t sum() const { return m_sum; }

 private:
  std::uint64_t m_sum = 0;
};

/// Through an Executor, over a transport that has nobody to talk to.
class Ours {
 public:
  explicit Ours(bool record)
      : m_schedule(hd::schedule::one_f_one_b({.ranks = 1, .microbatches = microbatches})),
        m_hub(1),
        m_transport(m_hub, hd::Rank{0}),
        m_executor(hd::slice(m_schedule, hd::Rank{0},
                             [](hd::BufferId, const hd::Buffer&) -> std::byte* { return nullptr; }),
                   m_transport, {.record = record}) {}

  void walk() { m_executor.step(m_handler); }
  [[nodiscard]] std::uint64_t sum() const { return m_handler.stage.sum(); }
  [[nodiscard]] std::size_t actions() const { return m_schedule.size(); }

 private:
  struct CountingHandler {
    NullStage stage;
    void operator()(const hd::Task& task) {
      const hd::Action& action = task.action();
      if (action.kind == hd::Kind::forward)
        stage.forward(action.item);
      else if (action.kind == hd::Kind::backward)
        stage.backward(action.item);
      else
        stage.update();
    }
  };

  hd::Schedule m_schedule;
  hd::ThreadHub m_hub;
  hd::ThreadTransport m_transport;
  CountingHandler m_handler;
  hd::Executor<hd::ThreadTransport> m_executor;
};

/// The loop nest that the schedule comes to on one rank.
class HandLoop {
 public:
  void walk() {
    for (int m = 0; m < microbatches; ++m) {
      m_stage.forward(hd::Item{m});
      m_stage.backward(hd::Item{m});
    }
    m_stage.update();
  }
  [[nodiscard]] std::uint64_t sum() const { return m_stage.sum(); }

 private:
  NullStage m_stage;
};

/// A list of closures: the quick way to make the order of the actions data.
class FunctionList {
 public:
  FunctionList() {
    for (int m = 0; m < microbatches; ++m) {
      m_list.emplace_back([this, m] { m_stage.forward(hd::Item{m}); });
      m_list.emplace_back([this, m] { m_stage.backward(hd::Item{m}); });
    }
    m_list.emplace_back([this] { m_stage.update(); });
  }
  FunctionList(const FunctionList&) = delete;
  FunctionList& operator=(const FunctionList&) = delete;

  void walk() {
    for (const auto& function : m_list) function();
  }
  [[nodiscard]] std::uint64_t sum() const { return m_stage.sum(); }

 private:
  NullStage m_stage;
  std::vector<std::function<void()>> m_list;
};

/// Nanoseconds per action of `walks` walks.
template <class Competitor>
double sample(Competitor& competitor, std::size_t actions) {
  const double seconds = bench::seconds_of([&] {
    for (int i = 0; i < walks; ++i) competitor.walk();
    benchmark::ClobberMemory();
  });
  return seconds * 1e9 / (static_cast<double>(actions) * walks);
}

void run() {
  Ours unrecorded(false);
  Ours recorded(true);
  HandLoop loop;
  FunctionList functions;
  const std::size_t actions = unrecorded.actions();

  const auto same_work = [&] {
    bench::require_equal("the sum over all calls, recorded", unrecorded.sum(), recorded.sum());
    bench::require_equal("the sum over all calls, hand loop", unrecorded.sum(), loop.sum());
    bench::require_equal("the sum over all calls, std::function", unrecorded.sum(),
                         functions.sum());
  };
  std::vector<double> plain, stamped, by_hand, by_function;
  for (int i = -2; i < samples; ++i) {  // the first two warm up
    if (i == 0) plain.clear(), stamped.clear(), by_hand.clear(), by_function.clear();
    plain.push_back(sample(unrecorded, actions));
    by_hand.push_back(sample(loop, actions));
    by_function.push_back(sample(functions, actions));
    stamped.push_back(sample(recorded, actions));
    same_work();
  }
  std::cout << actions << " actions on one rank, " << walks << " walks a sample, " << samples
            << " interleaved samples\n";
  bench::print_value(name, "unrecorded", bench::summarise(plain), "ns");
  bench::print_value(name, "recorded", bench::summarise(stamped), "ns");
  bench::print_value(name, "hand_loop", bench::summarise(by_hand), "ns");
  bench::print_value(name, "std_function", bench::summarise(by_function), "ns");
  bench::print_ratio(name, "hand_loop", bench::ratios(by_hand, plain));
  bench::print_ratio(name, "std_function", bench::ratios(by_function, plain));
}

}  // namespace

int main() { return bench::status_of(name, run); }
