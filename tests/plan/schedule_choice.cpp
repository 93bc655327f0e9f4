// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What is learned from steps, and what is chosen by it. The steps are simulated: on a network that
// the choice does not know, and with transfers that show as late as an executor sees them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_schedule_choice {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using hd::Kind;
using hd::Rank;
using hd::Seconds;
using hd::Stage;
using hd::test::message_of;

namespace {

hd::Schedule grouped(int ranks, int microbatches, int k) {
  return hd::schedule::kfkb({.ranks = ranks,
                             .microbatches = microbatches,
                             .group = k,
                             .sizes = {.activation = 1, .saved = 10}});
}

std::vector<hd::Schedule> candidates(int ranks = 4, int microbatches = 16) {
  std::vector<hd::Schedule> result;
  for (const int k : {1, 2, 4}) result.push_back(grouped(ranks, microbatches, k));
  return result;
}

/// F = 1, B = 2, and transfers that differ: `of(from, to)`.
template <class Of>
struct Network {
  using Time = Seconds;
  mutable Of of;  // may draw random numbers

  Seconds time(const hd::Schedule& schedule, hd::ActionId id) const {
    const Kind kind = schedule[id].kind;
    return kind == Kind::forward ? 1 : kind == Kind::backward ? 2 : 0;
  }
  hd::Transfer<Seconds> transfer(const hd::Schedule& schedule, hd::ActionId id) const {
    const hd::Queue& queue = schedule[schedule[id].queue];
    return {of(queue.from, queue.to), 0};
  }
};
/// A step on it, as an executor would record it: a message shows when it is looked for.
template <class Of>
hd::Timeline measured(const hd::Schedule& schedule, Of of) {
  hd::Timeline timeline = hd::simulate(schedule, Network<Of>{of});
  std::map<Rank, Seconds> worked;
  std::vector<bool> seen(schedule.size());
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const hd::Action& action = schedule[hd::ActionId{i}];
    if (action.kind == Kind::move) continue;
    Seconds& until = worked[schedule[action.queue].from];
    for (const hd::After& after : schedule.after(hd::ActionId{i})) {
      if (schedule[hd::ActionId{after.action}].kind != Kind::move || seen[after.action]) continue;
      seen[after.action] = true;
      auto& arrival = timeline.spans()[after.action].arrival;
      arrival = std::max(arrival, until);
    }
    until = timeline.spans()[i].end;
  }
  return timeline;
}

auto same(Seconds c) {
  return [c](Rank, Rank) { return c; };
}

/// The chosen group size on a network with transfers of `c`, after `steps` looks.
std::size_t settle(hd::plan::ScheduleChoice& choice, Seconds c, int steps = 8) {
  for (int step = 0; step < steps; ++step) choice.observe(measured(choice.schedule(), same(c)));
  return choice.current();
}

}  // namespace

TEST_CASE("costs and transfers are learned from a step, whichever group size it had") {
  for (const Seconds c : {0.0, 0.1, 0.5, 0.7}) {
    for (const hd::Schedule& schedule : candidates()) {
      hd::plan::ObservedCosts costs;
      costs.observe(measured(schedule, same(c)));
      for (std::size_t i = 0; i < schedule.size(); ++i) {
        const hd::ActionId id{i};
        const Kind kind = schedule[id].kind;
        if (kind == Kind::forward) CHECK_THAT(costs.time(schedule, id), WithinRel(1.0, 1e-12));
        if (kind == Kind::backward) CHECK_THAT(costs.time(schedule, id), WithinRel(2.0, 1e-12));
        if (kind == Kind::update) CHECK(costs.time(schedule, id) == 0);
        if (kind == Kind::move) {
          CHECK_THAT(costs.transfer(schedule, id).occupancy, WithinAbs(c, 1e-12));
          CHECK(costs.transfer(schedule, id).latency == 0);
        }
      }
    }
  }
}

TEST_CASE("each pair of stages has its own link, the mean of both ways") {
  hd::plan::ObservedCosts costs;
  const auto of = [](Rank from, Rank to) {
    return from == Rank{1} && to == Rank{2} ? 0.5 : to == Rank{3} ? 0.25 : 0.0;
  };
  costs.observe(measured(grouped(4, 16, 1), of));
  CHECK_THAT(costs.between(Stage{1}, Stage{2}), WithinAbs(0.25, 1e-12));
  CHECK(costs.between(Stage{2}, Stage{1}) == costs.between(Stage{1}, Stage{2}));
  CHECK_THAT(costs.between(Stage{3}, Stage{2}), WithinAbs(0.125, 1e-12));
  CHECK_THAT(costs.between(Stage{0}, Stage{1}), WithinAbs(0, 1e-12));
  CHECK(costs.between(Stage{0}, Stage{3}) == 0);  // which nothing passed
}

TEST_CASE("clocks that differ by less than a transfer do not show in what is learned") {
  const hd::Schedule schedule = grouped(4, 16, 2);
  hd::Timeline step = measured(schedule, same(0.25));
  const Seconds ahead[] = {0, 0.1, -0.05, 0.03};
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const hd::Queue& queue = schedule[schedule[hd::ActionId{i}].queue];
    hd::Span& span = step.spans()[i];
    span.start += ahead[+queue.from];
    span.end += ahead[+queue.from];
    span.arrival += ahead[+queue.to];
  }
  hd::plan::ObservedCosts costs;
  costs.observe(step);
  for (std::size_t r = 0; r < 3; ++r)
    CHECK_THAT(costs.between(Stage{r}, Stage{r + 1}), WithinAbs(0.25, 1e-12));
}

TEST_CASE("what is learned is smoothed, and a change is half seen at first") {
  hd::plan::ObservedCosts costs;
  const hd::Schedule schedule = grouped(2, 4, 1);
  CHECK(costs.between(Stage{0}, Stage{1}) == 0);
  CHECK(costs.time(schedule, hd::ActionId{0}) == 0);  // nothing was seen yet
  Seconds expected = 0.5;
  costs.observe(measured(schedule, same(0.5)));
  for (const Seconds c : {0.1, 0.1, 0.75, 0.0}) {
    costs.observe(measured(schedule, same(c)));
    expected =
        hd::plan::ObservedCosts::weight * c + (1 - hd::plan::ObservedCosts::weight) * expected;
    CHECK_THAT(costs.between(Stage{0}, Stage{1}), WithinAbs(expected, 1e-12));
  }
}

TEST_CASE("an empty step and one rank teach nothing of links") {
  hd::plan::ObservedCosts costs;
  costs.observe({});
  const hd::Schedule alone = grouped(1, 3, 1);
  costs.observe(measured(alone, same(1)));
  CHECK(costs.time(alone, hd::ActionId{0}) == 1);
  CHECK(costs.between(Stage{0}, Stage{0}) == 0);
}

TEST_CASE("groups are formed where transfers cost something, and dissolved where they are free") {
  hd::plan::ScheduleChoice choice(candidates());
  CHECK(choice.current() == 0);
  CHECK(settle(choice, 0) == 0);
  for (const Seconds c : {0.1, 0.25, 0.4, 0.7}) {
    CHECK(settle(choice, c) == 1);  // 4 microbatches hide no more than 2
    CHECK(choice.schedule().name() == choice.candidates()[1].name());
    const auto times = choice.predicted();
    CHECK(times[0] > (1 + hd::plan::ScheduleChoice::gain) * times[1]);
    CHECK(settle(choice, 0) == 0);
  }
  // Where a transfer takes longer than a forward and a backward, 4 hide more than 2.
  CHECK(settle(choice, 4) == 2);
}

TEST_CASE("the choice changes at once where a link becomes slow, and is told to the caller") {
  hd::plan::ScheduleChoice choice(candidates());
  CHECK_FALSE(choice.observe(measured(choice.schedule(), same(0))));
  CHECK(choice.observe(measured(choice.schedule(), same(0.5))));
  CHECK(choice.current() == 1);
  CHECK_FALSE(choice.observe(measured(choice.schedule(), same(0.5))));
}

TEST_CASE("between the two thresholds the choice stays what it was") {
  // Two groups gain 2 % from about 0.052 on, and 1 % from 0.025.
  for (const Seconds c : {0.03, 0.04, 0.05}) {
    hd::plan::ScheduleChoice choice(candidates());
    CHECK(settle(choice, c) == 0);
    CHECK(settle(choice, 0.3) == 1);
    CHECK(settle(choice, c, 20) == 1);
    const double gain = choice.predicted()[0] / choice.predicted()[1];
    CHECK(gain > 1 + hd::plan::ScheduleChoice::gain / 2);
    CHECK(gain < 1 + hd::plan::ScheduleChoice::gain);
    CHECK(settle(choice, 0.02, 20) == 0);
  }
}

TEST_CASE("no candidate is chosen that does not fit, and pressure leads back at once") {
  const auto all = candidates();
  hd::plan::ScheduleChoice choice(all);
  const auto needs = choice.needs();
  REQUIRE(needs.size() == 3);
  CHECK(needs[0] < needs[1]);
  CHECK(needs[1] < needs[2]);
  CHECK(settle(choice, 0.5) == 1);
  CHECK_FALSE(choice.limit(needs[1]));
  CHECK(choice.limit(needs[1] - 1));
  CHECK(choice.current() == 0);
  CHECK(settle(choice, 0.7) == 0);
  CHECK(choice.limit(needs[1]));  // room again: what was learned meanwhile counts
  CHECK(choice.current() == 1);
  CHECK(hd::plan::ScheduleChoice(all, needs[0]).current() == 0);

  const auto says_why = [&](const std::string& message) {
    CHECK_THAT(message,
               ContainsSubstring("heddle::plan::ScheduleChoice: no candidate fits the memory") &&
                   ContainsSubstring(hd::text("the least need is ", needs[0])));
  };
  says_why(message_of<hd::infeasible>([&] { choice.limit(needs[0] - 1); }));
  CHECK(choice.current() == 1);
  CHECK_FALSE(choice.observe(measured(choice.schedule(), same(0.5))));  // the old limit holds
  says_why(message_of<hd::infeasible>([&] { hd::plan::ScheduleChoice(all, 5); }));
}

TEST_CASE("candidates whose sizes others know need what they need as they run") {
  const auto all = candidates();
  std::vector<hd::Schedule> unknown;
  std::vector<hd::Schedule> as_run;
  for (const hd::Schedule& candidate : all) {
    unknown.push_back(candidate.with_sizes([](hd::Buffer& buffer) { buffer.bytes = 0; }));
    as_run.push_back(hd::schedule::fold(candidate));
  }
  const hd::plan::ScheduleChoice sized(all);
  const auto needs = sized.needs();
  hd::plan::ScheduleChoice choice({unknown[1], unknown[0]}, needs[0]);
  CHECK(choice.needs()[0] == 0);
  CHECK(choice.current() == 0);
  CHECK(choice.as_run(std::vector{as_run[1], as_run[0]}));
  CHECK(choice.current() == 1);
  CHECK(choice.needs()[0] == needs[1]);
  CHECK(choice.needs()[1] == needs[0]);
  CHECK_THAT(message_of<hd::infeasible>([&] {
               choice.as_run(std::vector{as_run[1], as_run[2]});
             }),
             ContainsSubstring("no candidate fits the memory"));
  CHECK(
      message_of<hd::contract_error>([&] { choice.as_run(as_run); }) ==
      "heddle::plan::ScheduleChoice: every candidate needs one schedule to size it (3 schedules, 2 "
      "candidates)");
}

TEST_CASE("candidates that are none are refused") {
  CHECK_THAT(
      message_of<hd::contract_error>([] { hd::plan::ScheduleChoice({}); }),
      ContainsSubstring("heddle::plan::ScheduleChoice: there is no candidate to choose from"));
  CHECK_THAT(message_of<hd::contract_error>([] {
               hd::plan::ScheduleChoice({grouped(3, 4, 1), grouped(2, 4, 2)});
             }),
             ContainsSubstring("the candidates are for different numbers of ranks") &&
                 ContainsSubstring("'kFkB P=3 M=4 k=1' has 3, 'kFkB P=2 M=4 k=2' has 2"));
}

TEST_CASE("static gains of pairs over 1F1B, at 4 ranks and 16 microbatches") {
  // The published shape: 1.00, 1.04, 1.09, 1.18 and 1.35.
  const auto all = candidates();
  for (const auto& [c, gain] :
       {std::pair{0.0, 1.0}, {0.1, 1.04}, {0.25, 1.09}, {0.5, 1.18}, {1.0, 1.35}}) {
    const auto time = [&](const hd::Schedule& schedule) {
      return measured(schedule, same(c)).makespan();
    };
    CHECK_THAT(time(all[0]) / time(all[1]), WithinAbs(gain, 0.02));
  }
}

TEST_CASE("a network that others use: 0.1 F, or 0.7 F three times of ten, gains 4 to 30 %") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    hd::plan::ScheduleChoice choice(candidates());
    const hd::Schedule fixed = choice.schedule();
    Seconds ours = 0;
    Seconds theirs = 0;
    for (std::uint64_t step = 0; step < 40; ++step) {
      // A transfer of its own for every message, the same for both as far as they send alike.
      const auto network = [&] {
        return [random = hd::Random(seed, "network"), at = 1000 * step](Rank, Rank) mutable {
          return random.uniform(at++) < 0.3 ? 0.7 : 0.1;
        };
      };
      theirs += measured(fixed, network()).makespan();
      const hd::Timeline timeline = measured(choice.schedule(), network());
      ours += timeline.makespan();
      choice.observe(timeline);
    }
    CHECK(theirs / ours >= 1.04);
    CHECK(theirs / ours <= 1.30);
  }
}

}  // namespace test_schedule_choice
