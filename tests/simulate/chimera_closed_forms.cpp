// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_chimera_closed_forms {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

namespace {

using ExactCosts = BasicStageCosts<Rational>;

Rational step(const Orders& orders, const ExactCosts& costs) {
  return simulate(weave(orders), costs).makespan();
}
Rational one_f_one_b(int stages, int microbatches, const ExactCosts& costs) {
  return step(schedule::one_f_one_b(stages, microbatches), costs);
}

}  // namespace

TEST_CASE("Chimera of N = D and B = 2F takes 16, 36, 76, 156 where 1F1B takes 21, 45, 93, 189") {
  const ExactCosts costs{.forward = 1, .backward = 2};
  for (const auto& [d, chimera, plain] :
       {std::tuple{4, 16, 21}, {8, 36, 45}, {16, 76, 93}, {32, 156, 189}}) {
    CHECK(step(schedule::chimera(d, d), costs) == chimera);
    CHECK(one_f_one_b(d, d, costs) == plain);
  }
}

TEST_CASE("at N = 4D the bubble stays for F = B, and B = 2F makes concatenation lose to 1F1B") {
  const ExactCosts equal{.forward = 1, .backward = 1};
  CHECK(step(schedule::chimera(8, 32), equal) == 70);
  CHECK(one_f_one_b(8, 32, equal) == 78);
  const ExactCosts twice{.forward = 1, .backward = 2};
  for (const auto& [d, direct, doubled, plain] :
       {std::tuple{4, 58, 51, 57}, {8, 126, 105, 117}, {16, 262, 213, 237}}) {
    CHECK(step(schedule::chimera(d, 4 * d), twice) == direct);
    CHECK(step(schedule::chimera(d, 4 * d, 1, true), twice) == doubled);
    CHECK(one_f_one_b(d, 4 * d, twice) == plain);
  }
}

TEST_CASE("the bubble of whole units is (D/f - 2)(max(F,B) + (u - 1)|F - B|), exactly") {
  BasicTimeline<Rational> timeline;
  for (int d = 2; d <= 32; d += 2) {
    for (int f = 1; f <= d / 2; ++f) {
      if (d % (2 * f) != 0) continue;
      for (const int units : {1, 2, 3}) {
        const Schedule chimera =
            schedule::chimera({.ranks = d, .microbatches = units * d, .pairs = f});
        for (const auto& [forward, backward] :
             {std::pair<Rational, Rational>{{2, 7}, {5, 3}}, {{5, 3}, {2, 7}}, {1, 1}}) {
          simulate(chimera, ExactCosts{.forward = forward, .backward = backward}, timeline);
          const Rational more = std::max(forward, backward);
          const Rational difference = more - std::min(forward, backward);
          const Rational expected = Rational(units * d) * (forward + backward) +
                                    Rational(d / f - 2) * (more + Rational(units - 1) * difference);
          if (!(timeline.makespan() == expected))
            FAIL(chimera.name() << ": " << timeline.makespan() << " for " << expected);
        }
      }
    }
  }
}

TEST_CASE("doubled forwards have the bubble (D/2 - 1)(F + B) for F <= B <= 2F, exactly") {
  BasicTimeline<Rational> timeline;
  for (int d = 2; d <= 32; d += 2) {
    for (const int units : {1, 2, 3}) {
      const int n = units * 2 * d;
      const Schedule chimera =
          schedule::chimera({.ranks = d, .microbatches = n, .double_forwards = true});
      for (const Rational backward : {Rational(1), Rational(7, 5), Rational(2)}) {
        simulate(chimera, ExactCosts{.forward = 1, .backward = backward}, timeline);
        if (!(timeline.makespan() == Rational(n + d / 2 - 1) * (Rational(1) + backward)))
          FAIL(chimera.name() << ", B = " << backward << ": " << timeline.makespan());
      }
    }
  }
}

TEST_CASE("Chimera keeps D/2 + 1 to D activations, and twice as many with doubled forwards") {
  for (const int d : {2, 4, 8, 16, 32})
    for (const int in_slot : {1, 2})
      for (const int units : {1, 3}) {
        const auto timeline = simulate(
            schedule::chimera(
                {.ranks = d, .microbatches = units * in_slot * d, .double_forwards = in_slot == 2}),
            ExactCosts{.forward = 1, .backward = 2});
        for (int r = 0; r < d; ++r) {
          const int from_end = std::min(r, d - 1 - r);
          CHECK(schedule::peak(timeline, Rank{r}, role::saved).parts ==
                static_cast<std::uint64_t>(in_slot * (d / 2 + 1 + from_end)));
        }
      }
}

TEST_CASE("the orders are those of the slots, of which every one has room for one order") {
  for (int d = 2; d <= 32; d += 2) {
    for (const int units : {1, 2, 4}) {
      const int half = units * d / 2;  // microbatches that go down
      std::vector<std::map<int, Order>> slots(static_cast<std::size_t>(d));
      const auto put = [&](int rank, int slot, Order order) {
        REQUIRE(slots[static_cast<std::size_t>(rank)].emplace(slot, order).second);
      };
      for (int i = 0; i < half; ++i) {
        const int base = 2 * d * (i / (d / 2)) + 2 * (i % (d / 2));
        for (int s = 0; s < d; ++s) {
          put(s, base + s, {Kind::forward, Stage{s}, Item{i}});
          put(s, base + 2 * d - 1 - s, {Kind::backward, Stage{s}, Item{i}});
          put(d - 1 - s, base + s, {Kind::forward, Stage{s}, Item{half + i}});
          put(d - 1 - s, base + 2 * d - 1 - s, {Kind::backward, Stage{s}, Item{half + i}});
        }
      }
      const Orders orders = schedule::chimera(d, units * d);
      for (std::size_t r = 0; r < slots.size(); ++r) {
        std::vector<Order> expected;
        for (const auto& [slot, order] : slots[r]) expected.push_back(order);
        REQUIRE(orders.ranks[r] == expected);
      }
    }
  }
}

TEST_CASE("every microbatch goes its way alone, and the ways divide them evenly") {
  for (const auto& [d, f] : {std::pair{2, 1}, {4, 1}, {4, 2}, {12, 3}}) {
    for (const int n : {1, 2, 3, 7, 12, 13, 25}) {
      for (const bool doubles : {false, true}) {
        const Orders orders = schedule::chimera(d, n, f, doubles);
        REQUIRE(orders.graph.replicas);
        std::map<std::uint32_t, std::vector<std::size_t>> ways;  // of a microbatch: rank of a stage
        for (std::size_t r = 0; r < orders.ranks.size(); ++r)
          for (const Order& order : orders.ranks[r]) {
            auto& way = ways[order.item.value];
            way.resize(static_cast<std::size_t>(d), 999);
            if (order.kind == Kind::forward) way[+order.stage] = r;
          }
        REQUIRE(ways.size() == static_cast<std::size_t>(n));
        std::map<std::vector<std::size_t>, int> users;
        for (const auto& [item, way] : ways) ++users[way];
        REQUIRE(users.size() == static_cast<std::size_t>(std::min(n, 2 * f)));
        for (const auto& [way, count] : users) {
          CHECK((count == n / (2 * f) || count == n / (2 * f) + 1));
          const bool down = way[1] == (way[0] + 1) % static_cast<std::size_t>(d);
          const bool up = way[0] == (way[1] + 1) % static_cast<std::size_t>(d);
          CHECK((down || up));
        }
        CHECK(ways[0][0] == 0);
      }
    }
  }
}

TEST_CASE("Chimera passes the battery, whatever the number of microbatches") {
  constexpr StageSizes sizes{.activation = 24, .saved = 40, .parameters = 16, .type = Scalar::f64};
  for (const int d : {2, 4})
    for (const int n : {1, 2, 3, 4, 5, 9})
      for (const int f : {1, 2})
        if (d % (2 * f) == 0)
          for (const bool doubles : {false, true})
            test::schedule_battery(schedule::chimera({.ranks = d,
                                                      .microbatches = n,
                                                      .pairs = f,
                                                      .double_forwards = doubles,
                                                      .sizes = sizes}));
  // Two copies of every stage, whose gradients are summed once.
  const Schedule chimera = schedule::chimera({.ranks = 4, .microbatches = 4});
  int groups = 0;
  int updates = 0;
  for (const Action& action : chimera.actions()) {
    groups += action.kind == Kind::group;
    updates += action.kind == Kind::update;
  }
  CHECK(groups == 4);
  CHECK(updates == 8);
}

TEST_CASE("of the sums of a rank's two stages an eager one hides behind the other's backwards") {
  for (const int d : {4, 8, 16})
    for (const int units : {1, 2}) {
      const Schedule chimera = schedule::chimera({.ranks = d, .microbatches = units * d});
      const Rational alone = simulate(chimera, ExactCosts{.forward = 1, .backward = 2}).makespan();
      for (const int sum : {1, 2, 4}) {  // as long as the other stage still works: two backwards
        const ExactCosts costs{.forward = 1, .backward = 2, .group = sum};
        CHECK(simulate(schedule::lazy_sums(chimera), costs).makespan() == alone + 2 * sum);
        CHECK(simulate(schedule::eager_sums(chimera), costs).makespan() == alone + sum);
      }
    }
}

TEST_CASE("stages that the pipelines do not divide are infeasible, and the nearest are named") {
  CHECK_THAT(test::message_of<infeasible>(
                 [] { (void)schedule::chimera({.ranks = 5, .microbatches = 4}); }),
             ContainsSubstring("heddle::schedule::chimera") &&
                 ContainsSubstring("stages = 5, pipelines = 2") &&
                 ContainsSubstring("use 4 or 6 stages"));
  CHECK_THAT(test::message_of<infeasible>([] { (void)schedule::chimera(1, 4); }),
             ContainsSubstring("use 2 stages"));
  CHECK_THAT(test::message_of<infeasible>([] { (void)schedule::chimera(8, 4, 3); }),
             ContainsSubstring("pipelines = 6") && ContainsSubstring("use 6 or 12 stages"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)schedule::chimera(4, 4, 0); }),
             ContainsSubstring("at least one pipeline in each direction"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)schedule::chimera(4, 0); }),
             ContainsSubstring("microbatches = 0"));
}

}  // namespace test_chimera_closed_forms
