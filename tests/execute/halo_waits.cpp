// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The step of examples/26_heat_mpi over links that take their time: messages of halos hide behind
// the inside, simulated and executed on threads that wait in the place of kernels.
// alone: yes

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/redistribution/halo_exchange.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/rounds.hpp"

namespace test_halo_waits {

using namespace heddle;

namespace {

constexpr int ranks = 3;
constexpr std::uint32_t steps = 8;
constexpr Stage inside{0}, border{1};

/// The times of a step: the kernel of the inside, that of the border, and the message of a halo.
struct Times {
  Seconds inside, border, message;
};

/// The messages of the plate of the example in strips of rows, by their two ranks: bytes.
std::map<std::pair<std::size_t, std::size_t>, Bytes> messages() {
  const Layout strips(MeshShape{{"y", ranks}}, {101, 67}, {Shard{0, {}, 1}});
  std::map<std::pair<std::size_t, std::size_t>, Bytes> all;
  schedule::halo_exchange(strips, ranks, sizeof(double), {.corners = false})
      .for_each_message([&](Rank from, Rank to, Bytes bytes) {
        all[{+from, +to}] += bytes;
      });
  return all;
}

/// The steps: halo.start(), the inside, halo.wait(), the border. Without `hides`, the inside waits
/// for the halo, too. An edge is what a rank sends to one neighbour, and a halo what it receives.
Schedule heat(bool hides) {
  Builder builder("heat", ranks);
  std::map<std::pair<std::size_t, std::size_t>, BufferId> edges, halos;
  for (const auto& [pair, bytes] : messages()) {
    const auto buffer = [&](const char* name, std::size_t rank, bool transient) {
      return builder.add_buffer({.rank = Rank{rank},
                                 .label = builder.label(name),
                                 .type = Scalar::i64,
                                 .transient = transient,
                                 .bytes = bytes});
    };
    edges[pair] = buffer("edge", pair.first, false);
    halos[pair] = buffer("halo", pair.second, true);
  }
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (const auto& [pair, edge] : edges)
      builder.add({.kind = Kind::move,
                   .queue = builder.queue(Rank{pair.first}, Rank{pair.second}),
                   .item = Item{step}},
                  {schedule::read(edge), schedule::write(halos[pair])});
    for (const Stage stage : {inside, border})
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::vector<Use> uses;
        for (const auto& [pair, halo] : halos) {
          if (pair.second == rank && (stage == border || !hides))
            uses.push_back(schedule::read(halo));
          if (pair.first == rank)
            uses.push_back(stage == border ? schedule::update(edges[pair])
                                           : schedule::read(edges[pair]));
        }
        builder.add({.kind = Kind::forward,
                     .queue = builder.local(Rank{rank}),
                     .stage = stage,
                     .item = Item{step}},
                    uses);
      }
  }
  return std::move(builder).build();
}

Machine machine_of(const Times& times) {
  const Bytes bytes = messages().begin()->second;
  return Machine::uniform(ranks, {},
                          {.latency = 0, .bandwidth = static_cast<double>(bytes) / times.message});
}

Seconds simulated(const Schedule& list, const Times& times) {
  TableCosts costs(machine_of(times), 2);
  costs.at(Kind::forward, inside) = times.inside;
  costs.at(Kind::forward, border) = times.border;
  return simulate(list, costs).makespan();
}

/// Runs the steps once and returns their time. The border adds the sum of its halos and 1 to the
/// first word of each of its edges, which a serial loop repeats.
Seconds run(const Schedule& list, const Times& times) {
  std::vector<std::vector<std::int64_t>> memory(list.buffers().size());
  for (std::size_t b = 0; b < memory.size(); ++b)
    memory[b].assign(list[BufferId{b}].bytes / sizeof(std::int64_t), static_cast<std::int64_t>(b));
  const auto add_halos = [&](const Task& task) {
    const auto word = [&](std::size_t u) {
      return reinterpret_cast<std::int64_t*>(task.uses()[u].data);
    };
    const auto uses = list.uses(task.id());
    std::int64_t sum = 1;
    for (std::size_t u = 0; u < uses.size(); ++u)
      if (!uses[u].writes()) sum += *word(u);
    for (std::size_t u = 0; u < uses.size(); ++u)
      if (uses[u].writes()) *word(u) += sum;
  };
  std::array<Seconds, ranks> took{};
  const Shape shape = Shape::of(machine_of(times));
  run_threads(ranks, [&](ThreadTransport& inner) {
    ShapedTransport transport(inner, shape);
    // Counted from the end of the wait before, so that late wake-ups do not add up.
    Seconds due = 0;
    const auto model = [&](const Task& task) {
      const bool of_border = list[task.id()].stage == border;
      const Seconds now = steady_seconds();
      due = (now - due < 2e-3 ? due : now) + (of_border ? times.border : times.inside);
      if (of_border) add_halos(task);
      std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
    };
    Executor executor(slice(list, inner.rank(),
                            [&](BufferId id, const Buffer&) {
                              return reinterpret_cast<std::byte*>(memory[+id].data());
                            }),
                      transport, {.idle = Idle::nap});
    const Seconds start = steady_seconds();
    executor.step(model);
    executor.drain();
    took[+inner.rank()] = steady_seconds() - start;
  });
  // The first words by a serial loop: the buffers alternate between an edge and its halo.
  const auto pairs = messages();
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> now;
  std::int64_t number = 0;
  for (const auto& [pair, bytes] : pairs) now[pair] = 2 * number++;
  for (std::uint32_t step = 0; step < steps; ++step) {
    auto next = now;
    for (auto& [edge, word] : next) {
      word += 1;
      for (const auto& [pair, received] : now)
        if (pair.second == edge.first) word += received;
    }
    now = std::move(next);
  }
  std::size_t b = 0;
  for (const auto& [pair, word] : now) {
    REQUIRE(memory[b][0] == word);
    b += 2;
  }
  return *std::ranges::max_element(took);
}

}  // namespace

TEST_CASE("the halos of a heat equation hide behind the inside, as simulated") {
  const Schedule hidden = heat(true), plain = heat(false);
  for (const Times& times : {Times{36e-3, 8e-3, 24e-3}, Times{16e-3, 8e-3, 28e-3}}) {
    const double all = steps;
    const Seconds step = std::max(times.inside, times.message) + times.border;
    const Seconds expected = simulated(hidden, times);
    const Seconds expected_plain = simulated(plain, times);
    CHECK(std::abs(expected - all * step) < 1e-9);
    CHECK(std::abs(expected_plain - all * (times.inside + times.message + times.border)) < 1e-9);
    std::array forms{test::Form{text("behind the inside, simulated ", expected, " s, executed s"),
                                [&] { return run(hidden, times); }},
                     test::Form{text("before it, simulated ", expected_plain, " s, executed s"),
                                [&] { return run(plain, times); }}};
    const test::Spread &took = forms[0].spread, &took_plain = forms[1].spread;
    const auto holds = [&] {
      return took.median() <= 1.1 * expected && took_plain.median() <= 1.1 * expected_plain;
    };
    if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
    INFO(forms[0].name << ": " << took << "; " << forms[1].name << ": " << took_plain);
    CHECK(took.least() >= 0.97 * expected);
    CHECK(took.median() <= 1.1 * expected);
    CHECK(took_plain.least() >= 0.97 * expected_plain);
    CHECK(took_plain.median() <= 1.1 * expected_plain);
  }
}

}  // namespace test_halo_waits
