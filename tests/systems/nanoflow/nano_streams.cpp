// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Nano-batches executed on streams, which are threads that share memory: whole numbers are those of
// operations that are not cut, and waits take the predicted time.
// alone: yes

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <map>
#include <span>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>
#include <heddle/systems/nanoflow/nano_search.hpp>

#include "support/rounds.hpp"
#include "support/serving_layer.hpp"

namespace test_nano_streams {

using namespace heddle;
using systems::NanoLayer;
using systems::NanoPlan;
using Values = std::vector<std::int64_t>;

namespace {

constexpr std::size_t width = 3;  ///< whole numbers of a sample

/// What operation o makes of one sample of all its inputs. It overflows, which is exact.
std::int64_t combined(std::uint64_t o, std::uint64_t sum, std::size_t column) {
  sum = sum * (2 * o + 3) + column + o;
  return static_cast<std::int64_t>(sum ^ (sum >> 7));
}

Values first_input(std::int64_t samples) {
  Values values(static_cast<std::size_t>(samples) * width);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(i * 2654435761u + 12345u);
  return values;
}

/// The outputs that nobody reads, by operation, from operations that are not cut.
std::map<std::uint32_t, Values> reference(const NanoLayer& layer) {
  std::map<std::uint32_t, Values> all;
  const Values input = first_input(layer.samples);
  for (std::uint32_t o = 0; o < layer.operations.size(); ++o) {
    Values& output = all[o];
    output.resize(input.size());
    for (std::size_t i = 0; i < input.size(); ++i) {
      std::uint64_t sum = 0;
      for (const std::uint32_t each : layer.operations[o].inputs)
        sum = 5 * sum + static_cast<std::uint64_t>(all[each][i]);
      if (layer.operations[o].inputs.empty()) sum = static_cast<std::uint64_t>(input[i]);
      output[i] = combined(o, sum, i % width);
    }
  }
  for (const systems::NanoOperation& operation : layer.operations)
    for (const std::uint32_t each : operation.inputs) all.erase(each);
  return all;
}

/// One layer and its plan as streams.
struct Streams {
  NanoLayer layer;
  Schedule schedule;
  Seconds predicted = 0;

  Streams(const NanoLayer& of, const NanoPlan& plan) : layer(of) {
    const Timeline timeline =
        simulate(systems::nano_schedule(of, plan), systems::InterferenceCosts(of));
    schedule = systems::in_streams(timeline, of.units);
    predicted = timeline.makespan();
  }

  /// Runs them once; returns the time and keeps the outputs in `results`. Waits take `second` for
  /// a second of the plan.
  Seconds run(double second, std::map<std::uint32_t, Values>& results) const {
    std::map<std::uint32_t, Values> memory;  // by buffer
    for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
      const Buffer& buffer = schedule[BufferId{b}];
      if (!buffer.transient) memory[static_cast<std::uint32_t>(b)].resize(buffer.bytes / 8 + 1);
      if (schedule[buffer.label] == "input")
        memory[static_cast<std::uint32_t>(b)] = first_input(layer.samples);
    }
    const systems::InterferenceCosts costs(layer);
    std::vector<Seconds> took(static_cast<std::size_t>(schedule.ranks()));
    run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
      Seconds due = 0;
      const auto work = [&](const Task& task) {
        const Seconds wait = second * costs.time(task.schedule(), task.id());
        const std::span<const BoundUse> uses = task.uses();
        const std::size_t inputs =
            std::max<std::size_t>(layer.operations[+task.stage()].inputs.size(), 1);
        for (std::size_t i = 0; i < uses[inputs].bytes / 8; ++i) {
          std::uint64_t sum = 0;
          for (std::size_t in = 0; in < inputs; ++in) {
            std::uint64_t value = 0;
            std::memcpy(&value, uses[in].data + 8 * i, 8);
            sum = 5 * sum + value;
          }
          const std::int64_t value = combined(+task.stage(), sum, i % width);
          std::memcpy(uses[inputs].data + 8 * i, &value, 8);
        }
        if (wait == 0) return;
        const Seconds now = steady_seconds();
        due = (now - due < 2e-3 ? due : now) + wait;
        std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
      };
      SharedExecutor executor(
          transport, schedule,
          [&](BufferId id, const Buffer&) {
            return reinterpret_cast<std::byte*>(memory.at(static_cast<std::uint32_t>(+id)).data());
          },
          {.idle = Idle::nap});
      (void)all_gather(transport, {});
      const Seconds start = steady_seconds();
      executor.step(work);
      took[+transport.rank()] = steady_seconds() - start;
    });
    results.clear();
    for (auto& [b, values] : memory) {
      const Buffer& buffer = schedule[BufferId{b}];
      if (schedule[buffer.label] != "output") continue;
      values.resize(buffer.bytes / 8);
      results[static_cast<std::uint32_t>(+buffer.stage)] = values;
    }
    return std::ranges::max(took);
  }
};

}  // namespace

TEST_CASE("results in pieces equal those of whole operations, bit by bit") {
  NanoLayer layer = test::serving_layer();
  layer.sample_bytes = 8 * width;
  layer.samples = 29;
  // Two branches that join, and an output that nobody reads.
  layer.operations.push_back({"gate", test::memory, {0}, 1e-4});
  layer.operations.push_back({"join", test::compute, {4, 5}, 1e-4});
  layer.operations.push_back({"probe", test::network, {1, 0}, 1e-4});
  const std::map<std::uint32_t, Values> expected = reference(layer);
  REQUIRE(expected.size() == 2);
  std::map<std::uint32_t, Values> results;
  NanoPlan uneven = systems::serial_nano_plan(layer, {29});
  uneven.order.clear();
  uneven.pieces.stages = {{29}, {1, 28}, {13, 3, 13}, {13, 16}, {4, 25}, {29}, {14, 15}, {28, 1}};
  for (std::uint32_t o = 0; o < layer.operations.size(); ++o)
    for (std::uint32_t p = 0; p < uneven.pieces.stages[o].size(); ++p)
      uneven.order.push_back({o, p, static_cast<std::uint16_t>(1 + (o + p) % 10)});
  for (const NanoPlan& plan :
       {systems::serial_nano_plan(layer, {29}), uneven,
        systems::search_nano_plan(layer, {.divisions = {{9, 20}}, .restarts = 1}).plan}) {
    (void)Streams(layer, plan).run(0, results);
    CHECK(results == expected);
  }
}

TEST_CASE("streams of waits take the predicted time, and overlapped pieces gain 1.07") {
  NanoLayer layer = test::serving_layer();
  layer.sample_bytes = 8 * width;
  const Streams serial(layer, systems::serial_nano_plan(layer, {2048}));
  const Streams overlapped(layer,
                           systems::search_nano_plan(layer, {.divisions = {{640, 1408}}}).plan);
  constexpr double second = 150;  // the serial layer waits for 0.35 s
  std::map<std::uint32_t, Values> results, pieces;
  std::array forms{test::Form{"serial layer, s", [&] { return serial.run(second, results); }},
                   test::Form{"nano-batches, s", [&] {
                                const Seconds took = overlapped.run(second, pieces);
                                REQUIRE(results == pieces);
                                return took;
                              }}};
  const test::Spread &whole = forms[0].spread, &divided = forms[1].spread;
  const auto gain = [&] { return whole.median() / divided.median(); };
  const auto holds = [&] {
    return whole.median() <= 1.04 * second * serial.predicted &&
           divided.median() <= 1.04 * second * overlapped.predicted && gain() >= 1.07;
  };
  if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
  std::cout << "nano-batches over the serial layer: predicted "
            << serial.predicted / overlapped.predicted << ", executed " << gain() << '\n';
  CHECK(whole.least() >= second * serial.predicted);
  CHECK(divided.least() >= second * overlapped.predicted);
  CHECK(whole.median() <= 1.04 * second * serial.predicted);
  CHECK(divided.median() <= 1.04 * second * overlapped.predicted);
  CHECK(gain() >= 1.07);
}

}  // namespace test_nano_streams
