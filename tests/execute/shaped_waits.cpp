// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// An all-reduce over threads whose links have the shape of a Machine takes as long as simulated.
// alone: yes

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/rounds.hpp"

namespace test_shaped_waits {

using namespace heddle;

namespace {

/// Returns the time that an all-reduce takes over threads of this shape, from a moment before which
/// no rank begins until the last one is done. Adds to `wrong` the ranks whose sum is wrong.
Seconds all_reduce_time(const Schedule& schedule, const Shape& shape, std::atomic<int>& wrong) {
  const auto count = static_cast<std::size_t>(schedule.ranks());
  const Seconds start = steady_seconds() + 0.02;
  std::vector<Seconds> end(count);
  run_threads(schedule.ranks(), [&](ThreadTransport& inner) {
    ShapedTransport<ThreadTransport> transport(inner, shape);
    std::vector<float> data;
    std::deque<std::vector<std::byte>> scratch;
    const auto bytes_of = [&](BufferId, const Buffer& buffer) {
      if (buffer.transient) return scratch.emplace_back(buffer.bytes + 1).data();
      data.assign(buffer.bytes / sizeof(float), static_cast<float>(+inner.rank() + 1));
      return reinterpret_cast<std::byte*>(data.data());
    };
    Executor executor(slice(schedule, inner.rank(), bytes_of), transport, {.idle = Idle::nap});
    for (Waiting waiting(Idle::nap); steady_seconds() < start;) waiting();
    executor.step(Handler(combine_on_host));
    executor.drain();
    end[+inner.rank()] = steady_seconds();
    const auto sum = static_cast<float>(count * (count + 1) / 2);
    wrong += std::ranges::any_of(data, [&](float value) { return value != sum; });
  });
  return *std::ranges::max_element(end) - start;
}

}  // namespace

TEST_CASE("an all-reduce over the shape of a Machine takes as long as simulated") {
  using namespace schedule;
  // The whole is on a link for 40 ms, or for 60 from and to rank 2.
  constexpr Bytes bytes = 4000;
  const double slower = GENERATE(1.0, 1.5);
  std::vector links(4, std::vector(4, Link{.latency = 2e-3, .bandwidth = 1e5}));
  for (std::size_t peer = 0; peer < 4; ++peer)
    links[2][peer].bandwidth = links[peer][2].bandwidth = 1e5 / slower;
  const Machine machine = network(links, {});
  const Shape shape = Shape::of(machine);
  Shape apart = shape;
  apart.ports = nullptr;
  std::atomic<int> wrong = 0;
  bool results = true;
  for (const Algorithm algorithm : {Algorithm::star, Algorithm::direct, Algorithm::ring}) {
    const Schedule schedule = collective(Collective::all_reduce, algorithm,
                                         {.ranks = 4, .bytes = bytes, .type = Scalar::f32});
    const Seconds predicted = simulate(schedule, StageCosts{}, machine).makespan();
    int early = 0;
    const auto with_ports = [&] {
      const Seconds measured = all_reduce_time(schedule, shape, wrong);
      early += measured <= 0.999 * predicted;
      return measured;
    };
    std::vector<test::Form> forms{{text(algorithm), with_ports}};
    if (algorithm != Algorithm::ring)  // whose messages do not share ports
      forms.push_back({text(algorithm, " without ports"),
                       [&] { return all_reduce_time(schedule, apart, wrong); }});
    // Up to 6 messages follow one after another, and each is seen late where others have the core:
    // a time slice of 2 ms. The rest of the machine is left a tenth.
    const Seconds most = 1.1 * predicted + 6 * 2e-3, most_apart = predicted / 1.5;
    const auto holds = [&] {
      return forms[0].spread.median() < most &&
             (forms.size() == 1 || forms[1].spread.median() < most_apart);
    };
    const bool result = test::measure_in_rounds(forms, holds);
    INFO(algorithm << ": simulated " << predicted << " s");
    CHECK(early == 0);  // no message may arrive before its time
    if (result) {
      CHECK(forms[0].spread.median() < most);
      if (forms.size() == 2) CHECK(forms[1].spread.median() < most_apart);
    }
    results = results && result;
  }
  CHECK(wrong == 0);
  if (!results) SKIP(test::no_result);
}

}  // namespace test_shaped_waits
