// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// park(): every action reads what it read before, ranks keep no more than their limits, transfers
// hide where there is time for them, and threads do what the list says.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
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

namespace test_park {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;
using test::Rational;
using ExactCosts = BasicStageCosts<Rational>;

namespace {

/// Every rank keeps `limit` values and parks the others in its second tier.
std::vector<Parking> offload(int ranks, int limit) {
  std::vector<Parking> parking;
  for (int r = 0; r < ranks; ++r) parking.push_back({Rank{r}, Rank{r}, Tier{1}, limit});
  return parking;
}

bool touches(const Schedule& schedule, ActionId id, std::string_view label) {
  return std::ranges::any_of(schedule.uses(id), [&](const Use& use) {
    return schedule[schedule[use.buffer].label] == label;
  });
}

std::size_t moves_of(const Schedule& schedule) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    count += touches(schedule, ActionId{i}, role::parked);
  return count;
}

/// The actions other than those of park() read the same values in the same order.
void reads_the_same(const Schedule& plain, const Schedule& parked) {
  const Schedule before = test::with_memory(plain, 16, Scalar::i64);
  const Schedule after = test::with_memory(parked, 16, Scalar::i64);
  test::Storage one(before, std::byte{1}), two(after, std::byte{1});
  const test::Log expected = test::interpret(before, one, 1),
                  found = test::interpret(after, two, 1);
  std::size_t i = 0;
  for (std::size_t j = 0; j < after.size(); ++j) {
    if (touches(after, ActionId{j}, role::parked)) continue;
    const Rank rank = before[before[ActionId{i}].queue].from;
    REQUIRE(schedule::action_text(after, ActionId{j}) ==
            schedule::action_text(before, ActionId{i}));
    const auto was = expected.find(test::log_key(0, rank, ActionId{i}));
    const auto is = found.find(test::log_key(0, rank, ActionId{j}));
    REQUIRE((was == expected.end()) == (is == found.end()));
    if (was != expected.end()) REQUIRE(was->second == is->second);
    ++i;
  }
  REQUIRE(i == before.size());
}

/// The saved values of a rank's own, of which it has memory for as many as its parts, and those
/// that it parks for another rank.
std::uint64_t kept(const BasicTimeline<Rational>& timeline, int rank) {
  std::uint64_t parts = 0;
  for (const Buffer& buffer : timeline.schedule().buffers())
    if (buffer.rank == Rank{rank} && timeline.schedule()[buffer.label] == role::saved)
      parts += buffer.parts;
  return std::min(parts, schedule::peak(timeline, Rank{rank}, role::saved).parts) +
         schedule::peak(timeline, Rank{rank}, role::parked).parts;
}

}  // namespace

TEST_CASE("BPipe keeps ceil((P + 2) / 2) activations on every rank, as fast as 1F1B") {
  for (int p = 1; p <= 10; ++p)
    for (const int m : {p, 2 * p, 3 * p + 1}) {
      const Schedule plain = schedule::one_f_one_b({.ranks = p, .microbatches = m});
      const Schedule parked = schedule::park(plain, Parking::bpipe(p));
      INFO(plain.name());
      const ExactCosts costs{.forward = 1, .backward = 2};
      const auto timeline = simulate(parked, costs);
      const auto most = static_cast<std::uint64_t>((p + 3) / 2);
      for (int r = 0; r < p; ++r) CHECK(kept(timeline, r) <= most);
      CHECK(timeline.makespan() == simulate(plain, costs).makespan());
      // 1F1B keeps P on the first rank.
      CHECK((moves_of(parked) > 0) == (static_cast<std::uint64_t>(std::min(p, m)) > most));
    }
}

TEST_CASE("a limited rank keeps no more than its limit, and more memory costs no more time") {
  for (const int p : {1, 2, 4, 7}) {
    const int m = 2 * p;
    for (const Orders& orders :
         {schedule::gpipe(p, m), schedule::one_f_one_b(p, m), schedule::zb_h2(p, m)}) {
      const Schedule plain = weave(orders);
      const ExactCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1};
      INFO(plain.name());
      for (int limit = 2; limit <= m; ++limit) {
        const auto timeline = simulate(schedule::park(plain, offload(p, limit)), costs);
        for (int r = 0; r < p; ++r)
          CHECK(schedule::peak(timeline, Rank{r}, role::saved).parts <=
                static_cast<std::uint64_t>(limit));
        // Transfers without cost.
        CHECK(timeline.makespan() == simulate(plain, costs).makespan());
      }
      CHECK(moves_of(schedule::park(plain, offload(p, m))) == 0);
    }
  }
}

TEST_CASE(
    "1F1B with 3 activations on every rank takes no longer while a transfer hides behind a B") {
  struct Prices {
    using Time = Rational;
    Rational transfer_time;
    [[nodiscard]] Rational time(const Schedule& schedule, ActionId id) const {
      const Kind kind = schedule[id].kind;
      return kind == Kind::forward ? 1 : kind == Kind::backward ? 2 : 0;
    }
    [[nodiscard]] Transfer<Rational> transfer(const Schedule& schedule, ActionId id) const {
      return {touches(schedule, id, role::parked) ? transfer_time : Rational(0), 0};
    }
  };
  for (int p = 4; p <= 10; ++p) {
    const Schedule plain = schedule::one_f_one_b({.ranks = p, .microbatches = 4 * p});
    const auto step = [&](const std::vector<Parking>& parking, Rational transfer_time) {
      return simulate(schedule::park(plain, parking), Prices{transfer_time}).makespan();
    };
    const Rational before = (4 * p + p - 1) * 3;
    for (const Rational time : {Rational(1, 2), Rational(1), Rational(2)}) {
      CHECK(step(offload(p, 3), time) == before);
      CHECK(step(Parking::bpipe(p), time) == before);
    }
    CHECK(step(offload(p, 2), 1) == before);
    // A transfer in each direction for every microbatch then keeps the lanes busy all the time.
    CHECK(before < step(offload(p, 3), 3));
    CHECK(before < step(Parking::bpipe(p), 3));
  }
}

TEST_CASE("parked values are those that are needed last") {
  const Schedule parked =
      schedule::park(schedule::gpipe({.ranks = 1, .microbatches = 4}), offload(1, 2));
  std::string list;
  for (std::size_t i = 0; i < parked.size(); ++i) {
    if (!list.empty()) list += ' ';
    list +=
        touches(parked, ActionId{i}, role::parked)
            ? text(touches(parked, ActionId{i}, role::saved) &&
                           parked[parked[parked.uses(ActionId{i})[0].buffer].label] == role::saved
                       ? "out"
                       : "back",
                   parked[ActionId{i}].item)
            : schedule::action_text(parked, ActionId{i});
  }
  CHECK(list == "0F0 0F1 out1 0F2 out2 0F3 0B0 back1 0B1 back2 0B2 0B3 0UPDATE0");
}

TEST_CASE("parking changes no value that an action reads") {
  for (const int p : {1, 2, 4})
    for (const auto& entry : schedule::catalogue()) {
      if (p == 1 && entry.name != "1f1b" && entry.name != "zb-v") continue;
      try {
        const Schedule plain = weave(entry.orders({.ranks = p, .microbatches = 4 * p}));
        INFO(plain.name());
        reads_the_same(plain, schedule::park(plain, offload(p, 3)));
        reads_the_same(schedule::recompute(plain),
                       schedule::park(schedule::recompute(plain), offload(p, 3)));
        reads_the_same(plain, schedule::park(plain, Parking::bpipe(p)));
      } catch (const infeasible&) {  // not for this shape
      }
    }
}

TEST_CASE("schedules with parked values pass the battery, which runs them on threads") {
  for (const int p : {2, 3, 4}) {
    const int m = 2 * p;
    test::schedule_battery(
        schedule::park(schedule::gpipe({.ranks = p, .microbatches = m}), Parking::bpipe(p)));
    test::schedule_battery(
        schedule::park(schedule::one_f_one_b({.ranks = p, .microbatches = m}), Parking::bpipe(p)));
    for (const int limit : {2, 3}) {
      test::schedule_battery(
          schedule::park(schedule::zb_h1({.ranks = p, .microbatches = m}), offload(p, limit)));
      test::schedule_battery(
          schedule::park(schedule::zb_v({.ranks = p, .microbatches = m}), offload(p, limit)));
      test::schedule_battery(
          schedule::park(schedule::dualpipe_v({.ranks = p, .microbatches = m}), offload(p, limit)));
    }
  }
}

TEST_CASE("places that cannot be are refused") {
  const Schedule plain = schedule::dualpipe_v({.ranks = 2, .microbatches = 4});
  const auto said = [&](std::vector<Parking> parking) {
    return message_of<contract_error>([&] { (void)schedule::park(plain, parking); });
  };
  CHECK_THAT(said({{Rank{2}, Rank{0}}}),
             ContainsSubstring("heddle::schedule::park: a rank does not exist") &&
                 ContainsSubstring("from = 2, to = 0") && ContainsSubstring("ranks = 2"));
  CHECK_THAT(said({{Rank{0}, Rank{0}}}), ContainsSubstring("cannot park where its values are"));
  CHECK_THAT(said({{Rank{0}, Rank{1}, {}, 0}}), ContainsSubstring("limit = 0"));
  CHECK_THAT(said({{Rank{0}, Rank{1}}, {Rank{0}, Rank{1}}}), ContainsSubstring("named twice"));
  CHECK_THAT(message_of<infeasible>([&] { (void)schedule::park(plain, offload(2, 1)); }),
             ContainsSubstring("needs more saved values than its rank keeps") &&
                 ContainsSubstring("limit = 1"));
  CHECK_THAT(message_of<contract_error>([] { (void)Parking::bpipe(0); }),
             ContainsSubstring("ranks = 0"));
}

}  // namespace test_park
