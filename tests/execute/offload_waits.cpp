// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Activations that park() moves to a slower memory, with stages that wait, on two threads: at a
// limit of 60% of the activations a step takes what it is simulated to take, and the peak of the
// kept activations is the predicted one.
// alone: yes

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/shaped_mover.hpp>
#include <heddle/execute/thread_mover.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator/kfkb.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/park.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/rounds.hpp"

namespace test_offload_waits {

using namespace heddle;

namespace {

constexpr int ranks = 2;
constexpr Seconds forward = 14e-3, backward = 28e-3, moved = 10e-3;  ///< of a microbatch
constexpr Bytes saved = 8 * 1009;                                    ///< that a stage keeps of it

/// The memories of a rank: the link of the second one carries an activation in `moved`.
Device device() {
  return {.memories = {{.name = "memory"},
                       {.name = "host", .link = {0, static_cast<double>(saved) / moved}}}};
}

/// A schedule whose ranks keep 60% of the activations of `orders`, rounded down.
struct Case {
  Schedule schedule;
  std::vector<std::uint64_t> limits;  ///< by rank, in activations
  std::vector<Bytes> buffers;         ///< by rank, of all buffers of the first memory
  Seconds predicted = 0;
};

Case make_case(const Orders& orders) {
  Case made;
  std::vector<Parking> parking;
  for (const std::int64_t live : schedule::live_activations(orders)) {
    const Rank rank{parking.size()};
    const auto limit = static_cast<int>(live * 6 / 10);
    made.limits.push_back(static_cast<std::uint64_t>(limit));
    parking.push_back({rank, rank, Tier{1}, limit});
  }
  const Schedule woven = weave(orders, {.activation = 64, .saved = saved, .type = Scalar::i64});
  made.schedule = schedule::fold(schedule::park(woven, parking), 0);
  made.buffers.resize(made.limits.size());
  for (const Buffer& buffer : made.schedule.buffers())
    if (+buffer.tier == 0) made.buffers[+buffer.rank] += buffer.bytes;
  const Timeline timeline = simulate(made.schedule, {.forward = forward, .backward = backward},
                                     Machine::uniform(ranks, device(), {}));
  made.predicted = timeline.makespan();
  for (std::size_t rank = 0; rank < made.limits.size(); ++rank)
    CHECK(schedule::peak(timeline, Rank{rank}, role::saved).parts == made.limits[rank]);
  return made;
}

/// Waits, and counts the bytes that its Runner allocates. Each forward leaves its number where the
/// backward must find it.
class WaitingModel {
 public:
  Bytes allocated = 0;
  bool right = true;

  std::shared_ptr<std::byte> allocate(Bytes bytes) {
    allocated += bytes;
    return {new std::byte[bytes], std::default_delete<std::byte[]>()};
  }

  void operator()(const Task& task) {
    const bool goes_forward = task.kind() == Kind::forward;
    if (!goes_forward && task.kind() != Kind::backward) return;
    const auto values = task.get<std::uint64_t>(role::saved);
    if (goes_forward) std::ranges::fill(values, +task.item());
    right = right && std::ranges::count(values, +task.item()) == std::ssize(values);
    // A wait ends at a time that counts from the end of the wait before, so that late wake-ups do
    // not add up.
    const Seconds now = steady_seconds();
    m_due = (now - m_due < 2e-3 ? m_due : now) + (goes_forward ? forward : backward);
    std::this_thread::sleep_for(std::chrono::duration<double>(m_due - now));
  }

 private:
  Seconds m_due = 0;
};

/// Runs one step, checks the memory, and returns the time.
Seconds run(const Case& each, bool beside) {
  std::array<Seconds, ranks> took{};
  std::array<Bytes, ranks> allocated{};
  std::array<std::uint64_t, ranks> peaks{};
  std::array<bool, ranks> right{};
  run_threads(ranks, [&](ThreadTransport& transport) {
    const std::size_t rank = +transport.rank();
    ThreadMover thread;
    ShapedMover mover(thread, heddle::impl::mover_shape_of(device()));
    WaitingModel waits;
    // Without a mover of the executor, the model makes each move at its place.
    const auto model = [&](const Task& task) {
      if (task.kind() != Kind::move) return waits(task);
      std::copy_n(task.uses()[0].data, task.uses()[0].bytes, task.uses()[1].data);
      std::this_thread::sleep_for(std::chrono::duration<double>(moved));
    };
    ExecuteOptions options{.idle = Idle::nap, .record = true};
    if (beside) options.mover = mover;
    const auto step = [&](auto& runner) {
      (void)all_gather(transport, {});
      const Seconds start = steady_seconds();
      runner.step();
      took[rank] = steady_seconds() - start;
      const Timeline timeline = runner.timeline();
      peaks[rank] = schedule::peak(timeline, transport.rank(), role::saved).parts;
    };
    if (beside) {
      Runner runner(waits, each.schedule, transport, {.execute = options, .fold = false});
      step(runner);
    } else {
      Runner runner(model, each.schedule, transport, {.execute = options, .fold = false});
      step(runner);
    }
    allocated[rank] = waits.allocated;
    right[rank] = waits.right;
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    REQUIRE(right[rank]);
    REQUIRE(peaks[rank] == each.limits[rank]);
    if (beside) REQUIRE(allocated[rank] == each.buffers[rank]);
  }
  return std::ranges::max(took);
}

}  // namespace

TEST_CASE("at 60% of the activations, a step with offload keeps the predicted peak") {
  for (const Orders& orders : {schedule::gpipe(ranks, 5), schedule::kfkb(ranks, 4, 2)})
    for (const bool beside : {true, false}) (void)run(make_case(orders), beside);
}

TEST_CASE("at 60% of the activations, a step with offload takes what it is simulated to take") {
  const Case each = make_case(schedule::gpipe(ranks, 5));
  const std::string name = text("predicted ", each.predicted, " s, executed s");
  std::array forms{test::Form{name, [&] { return run(each, true); }},
                   test::Form{"moves between the passes, s", [&] { return run(each, false); }}};
  const test::Spread &took = forms[0].spread, &between = forms[1].spread;
  const auto holds = [&] {
    return took.median() <= 1.05 * each.predicted && between.median() > took.median();
  };
  if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
  INFO(name << ": " << took << "; between the passes: " << between);
  CHECK(took.least() >= 0.99 * each.predicted);
  CHECK(took.median() <= 1.05 * each.predicted);
  CHECK(between.median() > took.median());
}

}  // namespace test_offload_waits
