// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// braid() and exchange_sums(): the order of the units, the sums that hide behind the other pass in
// closed form, and the same execution on threads as in the serial list.

#include <cstddef>
#include <tuple>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/layout/mesh_shape.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_braid {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;
using test::Rational;

namespace {

/// One stage: a forward, then pairs of the next forward and a backward, then a backward.
Orders one_stage(int microbatches, bool fused) {
  Orders orders{"one stage", {{}}, StageGraph::chain(1)};
  auto& list = orders.ranks[0];
  list.push_back({Kind::forward, Stage{0}, Item{0}});
  for (int m = 0; m < microbatches; ++m) {
    if (fused && m + 1 < microbatches) list.push_back({Kind::forward, Stage{0}, Item{m + 1}, true});
    list.push_back({Kind::backward, Stage{0}, Item{m}});
    if (!fused && m + 1 < microbatches) list.push_back({Kind::forward, Stage{0}, Item{m + 1}});
  }
  return orders;
}

/// The orders on `lines` ranks for each rank, with the sums of two units of each stage.
Schedule with_sums(const Orders& orders, int lines) {
  const auto ranks = static_cast<int>(orders.ranks.size());
  const Schedule woven = weave(schedule::braid(orders, 2), {.activation = 1});
  const MeshShape mesh({{"pipe", ranks}, {"tensor", lines}});
  return schedule::exchange_sums(schedule::data_parallel(woven, mesh, "pipe", {"tensor"}), lines);
}

/// A pass of a stage takes `f` or `b`, a message of a sum `s`, and a message to another stage
/// nothing.
struct SumCosts {
  using Time = Rational;
  Rational f, b, s;
  std::size_t lines;  ///< ranks of a stage

  [[nodiscard]] Rational time(const Schedule& schedule, ActionId id) const {
    const Kind kind = schedule[id].kind;
    if (kind == Kind::forward) return f / Rational(2);
    return kind == Kind::backward ? b / Rational(2) : Rational(0);
  }
  [[nodiscard]] Transfer<Rational> transfer(const Schedule& schedule, ActionId id) const {
    const Queue& queue = schedule[schedule[id].queue];
    const bool sums = +queue.from / lines == +queue.to / lines;
    return {sums ? s : Rational(0), Rational(0)};
  }
};

Rational time_of(const Schedule& schedule, int lines, int f, int b, int s) {
  return simulate(schedule, SumCosts{f, b, s, static_cast<std::size_t>(lines)}).makespan();
}

}  // namespace

TEST_CASE("braid: the units of a fused pair alternate, and other passes stay whole") {
  CHECK(to_string(schedule::braid(one_stage(2, true), 2)) == "0F0,1F0,0F1,1B0,1F1,0B0,1B1,0B1\n");
  CHECK(to_string(schedule::braid(one_stage(1, true), 3)) == "0F0,1F0,2F0,2B0,1B0,0B0\n");
  const Orders chain = schedule::braid(schedule::one_f_one_b(2, 2), 2);
  CHECK(chain.graph ==
        StageGraph{4, {{Stage{1}, Stage{2}}, {Stage{0}, Stage{1}}, {Stage{2}, Stage{3}}}});
}

TEST_CASE("braided sums hide behind the other pass, as the closed form says") {
  for (const int microbatches : {1, 2, 7})
    for (const int lines : {2, 3})
      for (const auto& [f, b, s] : {std::tuple{2, 4, 1}, {4, 4, 2}, {6, 10, 3}, {2, 4, 0}}) {
        INFO(microbatches << " microbatches, F " << f << ", B " << b << ", sum " << s);
        CHECK(time_of(with_sums(one_stage(microbatches, true), lines), lines, f, b, s) ==
              microbatches * (f + b) + 2 * s);
        CHECK(time_of(with_sums(one_stage(microbatches, false), lines), lines, f, b, s) ==
              microbatches * (f + b + 2 * s));
      }
}

TEST_CASE("braided pipelines gain no sum with a microbatch more") {
  constexpr int f = 4, b = 8, s = 2, per_rank = 2;
  for (const int ranks : {2, 4}) {
    const auto braided = [&](int microbatches) {
      return time_of(with_sums(schedule::combined_1f1b(ranks, per_rank, microbatches), 2), 2, f, b,
                     s);
    };
    const Orders plain = schedule::interleaved(ranks, per_rank, 5 * ranks);
    CHECK(braided(5 * ranks) - braided(4 * ranks) == ranks * per_rank * (f + b));
    CHECK(braided(5 * ranks) < time_of(with_sums(plain, 2), 2, f, b, s));
  }
}

TEST_CASE("exchange_sums: threads execute what the list says, and copies are needed") {
  test::schedule_battery(with_sums(one_stage(3, true), 2));
  test::schedule_battery(with_sums(one_stage(3, true), 3));
  test::schedule_battery(with_sums(schedule::combined_1f1b(2, 2, 4), 2));
  const Schedule alone = weave(schedule::gpipe(2, 2));
  CHECK_THAT(message_of<contract_error>([&] { (void)schedule::exchange_sums(alone, 3); }),
             ContainsSubstring("0F0, lines = 3") && ContainsSubstring("data_parallel()"));
  CHECK_THAT(message_of<contract_error>([&] { (void)schedule::exchange_sums(alone, 0); }),
             ContainsSubstring("at least one rank"));
  CHECK_THAT(message_of<contract_error>([] { (void)schedule::braid(schedule::gpipe(1, 1), 0); }),
             ContainsSubstring("at least one unit") && ContainsSubstring("such as 2"));
  CHECK_THAT(message_of<contract_error>([] { (void)schedule::braid(schedule::zb_h1(2, 2), 2); }),
             ContainsSubstring("split backwards") && ContainsSubstring("combined_1f1b()"));
}

}  // namespace test_braid
