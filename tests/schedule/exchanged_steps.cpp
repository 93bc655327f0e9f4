// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Steps with an exchange between them that may be used when it is old: what is sent, what a step
// waits for, how long that takes; and the bytes of DistriFusion's and PCPP's exchanges.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"

namespace test_exchanged_steps {

using namespace heddle;
using schedule::exchanged_steps;
using schedule::Staleness;

namespace {

constexpr std::int64_t tokens = 40;  ///< of a patch
constexpr Bytes each = 16;           ///< bytes of a token

/// Patches in a row, each with `width` tokens of those beside it.
schedule::BlockExchange patches(int ranks, std::int64_t width) {
  const Layout layout(MeshShape{{"patches", ranks}}, {ranks * tokens}, {Shard{0, {}, width}});
  return schedule::halo_exchange(layout, ranks, each);
}

/// Bytes that rank `rank` receives.
Bytes received(const schedule::BlockExchange& exchange, std::size_t rank) {
  Bytes sum = 0;
  exchange.for_each_message([&](Rank, Rank to, Bytes bytes) { sum += +to == rank ? bytes : 0; });
  return sum;
}

/// Bytes that all messages of a Schedule carry.
Bytes sent(const Schedule& schedule) {
  Bytes sum = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[ActionId{i}].kind == Kind::move)
      sum += schedule.bytes(schedule.uses(ActionId{i})[0]);
  return sum;
}

}  // namespace

TEST_CASE("whole patches of all, of both neighbours, and strips of them: bytes to the last one") {
  for (int ranks = 2; ranks <= 12; ++ranks) {
    const auto p = static_cast<Bytes>(ranks);
    const schedule::BlockExchange all = patches(ranks, (ranks - 1) * tokens);
    const schedule::BlockExchange whole = patches(ranks, tokens);
    for (std::size_t r = 0; r < p; ++r) {
      const Bytes neighbours = r == 0 || r + 1 == p ? 1 : 2;
      CHECK(received(all, r) == (p - 1) * tokens * each);
      // 2 / (P - 1) of it within the row, half of that at its ends.
      CHECK(received(whole, r) * (p - 1) == neighbours * received(all, r));
    }
    CHECK(whole.bytes() * p == 2 * all.bytes());  // 2 / P of it on average
    for (const std::int64_t strip : {std::int64_t{0}, std::int64_t{1}, std::int64_t{12}})
      CHECK(patches(ranks, strip).bytes() * tokens == whole.bytes() * static_cast<Bytes>(strip));
  }
}

TEST_CASE("a step waits for as old an exchange as it may, and all of them are made") {
  for (const int ranks : {1, 2, 3, 5})
    for (const Staleness staleness : {Staleness{}, Staleness{1, 0}, Staleness{1, 4},
                                      Staleness{2, 1}, Staleness{3, 9}, Staleness{0, 5}})
      for (const int steps : {0, 1, 2, 9}) {
        const schedule::BlockExchange exchange = patches(ranks, 7);
        const Schedule schedule = exchanged_steps(exchange, steps, staleness);
        INFO(schedule.name() << " on " << ranks);
        CHECK(sent(schedule) == exchange.bytes() * static_cast<Bytes>(std::max(steps - 1, 0)));
        CHECK(test::difference_from_oracle(schedule, 2) == "");
        const double compute = 1, transfer = 0.75;
        const double makespan =
            simulate(schedule, StageCosts{.forward = compute, .per_byte = transfer / (7 * each)})
                .makespan();
        // What is waited for stands between two steps; the rest goes on beside the next ones.
        double waits = 0;
        for (int call = 1; call < steps; ++call)
          waits += ranks > 1 && staleness.of_call(call) == 0 ? transfer : 0;
        CHECK(makespan == steps * compute + waits);
      }
}

TEST_CASE("messages that take longer than a step follow each other without a gap") {
  const Schedule schedule = exchanged_steps(patches(4, 7), 40, {.age = 1});
  // The first exchange is waited for, between steps 0 and 1; the other 38 are one behind the other.
  CHECK(simulate(schedule, StageCosts{.forward = 1, .per_byte = 3.0 / (7 * each)}).makespan() ==
        1 + 3 + 1 + 38 * 3.0);
}

TEST_CASE("an age below 0 is refused, as are steps") {
  using test::message_of;
  const schedule::BlockExchange exchange = patches(2, 1);
  CHECK(message_of<contract_error>([&] { (void)exchanged_steps(exchange, -1); }) ==
        "heddle::schedule::exchanged_steps: the number of steps must be at least 0 (steps = -1)");
  CHECK(message_of<contract_error>([&] { (void)exchanged_steps(exchange, 3, {.age = -2}); }) ==
        "heddle::schedule::exchanged_steps: an age must be at least 0 (age = -2); use 0 to wait "
        "for new data");
  CHECK(message_of<contract_error>([&] {
          (void)exchanged_steps(exchange, 3, {1, -1});
        }) ==
        "heddle::schedule::exchanged_steps: a warm-up must be at least 0 calls (warmup = -1); use "
        "0 for "
        "no warm-up beyond the age");
  schedule::BlockExchange two = exchange;
  two.steps.push_back({"again", true, {}});
  CHECK(message_of<contract_error>([&] { (void)exchanged_steps(two, 3); }) ==
        "heddle::schedule::exchanged_steps: the exchange must have one step (got 2)");
  schedule::BlockExchange merging = exchange;
  merging.steps.front().deliveries.front().parts = 2;
  CHECK(message_of<contract_error>([&] { (void)exchanged_steps(merging, 3); }) ==
        "heddle::schedule::exchanged_steps: the exchange must not merge data of several ranks (a "
        "delivery merges 2 parts, expected 1)");
}

}  // namespace test_exchanged_steps
