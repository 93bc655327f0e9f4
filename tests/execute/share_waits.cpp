// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Ranks of speeds 1, 1, 0.4 and 0.4 (threads) that wait instead of computing: shares by speed over
// equal shares gain nearly what simulate() predicts.
// alone: yes

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/share_costs.hpp>

#include "support/rounds.hpp"

namespace test_share_waits {

using namespace heddle;

namespace {

constexpr int microbatches = 4;
constexpr std::array<double, 4> speeds{1, 1, 0.4, 0.4};
/// The forward pass of one sample at speed 1. The shortest wait is that of 4 samples at 0.4, or 7
/// at 1: 7 ms or more.
constexpr Seconds sample = 1e-3;
constexpr int samples = 28;

/// Costs of a whole microbatch on each rank.
class WaitCosts {
 public:
  using Time = Seconds;
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Kind kind = schedule[id].kind;
    if (kind != Kind::forward && kind != Kind::backward) return 0;
    return samples * sample * (kind == Kind::forward ? 1 : 2) /
           speeds[+schedule[schedule[id].queue].from];
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule&, ActionId) const { return {}; }
};

struct Case {
  Schedule schedule;
  Seconds predicted = 0;
};

Case make_case(const std::vector<std::int64_t>& shares) {
  Case made;
  const Orders orders = schedule::in_shares(schedule::one_f_one_b(1, microbatches),
                                            {.samples = samples, .stages = {shares}});
  constexpr Bytes each = 8 * samples;
  made.schedule = schedule::expand(
      weave(orders, {.activation = each, .saved = each, .parameters = 64, .type = Scalar::i64}),
      schedule::CollectiveForm{});
  made.predicted = simulate(made.schedule, ShareCosts(WaitCosts{}, samples)).makespan();
  return made;
}

/// Returns the time of one step on four threads. A wait ends at a time that counts from the end of
/// the wait before, so that late wake-ups do not add up.
Seconds run(const Case& each) {
  const ShareCosts costs(WaitCosts{}, samples);
  std::array<Seconds, 4> took{};
  run_threads(4, [&](ThreadTransport& transport) {
    Seconds due = 0;
    const auto model = [&](const Task& task) {
      if (task.kind() == Kind::combine) return combine_on_host(task);
      const Seconds wait = costs.time(task.schedule(), task.id());
      if (wait == 0) return;
      const Seconds now = steady_seconds();
      due = (now - due < 2e-3 ? due : now) + wait;
      std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
    };
    Runner runner(model, each.schedule, transport, {.execute = {.idle = Idle::nap}});
    (void)all_gather(transport, {});
    const Seconds start = steady_seconds();
    runner.step();
    took[+transport.rank()] = steady_seconds() - start;
  });
  return std::ranges::max(took);
}

}  // namespace

TEST_CASE("shares by speed gain 1.65 over equal shares where 1.75 are predicted") {
  const Case equal = make_case({7, 7, 7, 7});
  const Case shared = make_case({10, 10, 4, 4});
  REQUIRE(equal.predicted / shared.predicted > 1.7499);
  REQUIRE(equal.predicted / shared.predicted < 1.7501);
  std::array forms{test::Form{"shares 7:7:7:7, s", [&] { return run(equal); }},
                   test::Form{"shares 10:10:4:4, s", [&] { return run(shared); }}};
  const auto& [equal_took, shared_took] = forms;
  const auto gain = [&] { return forms[0].spread.median() / forms[1].spread.median(); };
  const auto holds = [&] {
    return forms[0].spread.median() <= 1.05 * equal.predicted &&
           forms[1].spread.median() <= 1.05 * shared.predicted && gain() >= 1.65;
  };
  if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
  std::cout << "shares 10:10:4:4 over 7:7:7:7: predicted " << equal.predicted / shared.predicted
            << ", executed " << gain() << '\n';
  INFO("predicted " << equal.predicted << " s over " << shared.predicted << " s, executed "
                    << equal_took.spread << ", " << shared_took.spread);
  CHECK(equal_took.spread.least() >= equal.predicted);
  CHECK(shared_took.spread.least() >= shared.predicted);
  CHECK(equal_took.spread.median() <= 1.05 * equal.predicted);
  CHECK(shared_took.spread.median() <= 1.05 * shared.predicted);
  CHECK(gain() >= 1.65);
}

}  // namespace test_share_waits
