// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A Monitor names the fault that was put into simulated steps, and none in steps without a fault.
// find_hang() names the rank or message at which a step executed by hand stopped.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/monitored_steps.hpp"

namespace test_monitor {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using namespace heddle::monitored;

namespace {

/// The number of `seeds` of which the monitor says exactly what was put in.
std::uint64_t right(std::optional<Finding::Syndrome> fault, double factor, std::uint64_t seeds,
                    bool queued = false) {
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    count += is_named(fault, factor, seed, queued) ? 1u : 0u;
  return count;
}

}  // namespace

TEST_CASE("a monitor names a fault of factor 2 among 8 ranks at 10 % noise") {
  const std::uint64_t seeds = test::cases(200, 2000);
  for (const Finding::Syndrome fault :
       {Finding::Syndrome::slow_link, Finding::Syndrome::slow_sender,
        Finding::Syndrome::slow_receiver, Finding::Syndrome::slow_computer}) {
    const std::uint64_t good = right(fault, 2, seeds);
    INFO(fault << ": " << good << " of " << seeds);
    CHECK(100 * good >= 99 * seeds);
  }
}

TEST_CASE("a monitor raises no alarm without a fault, also if stages are unequal by plan") {
  const std::uint64_t seeds = test::cases(200, 2000);
  const std::uint64_t good = right({}, 1, seeds);
  INFO(good << " of " << seeds);
  CHECK(100 * good >= 99 * seeds);
}

TEST_CASE("a queue of messages on a healthy link raises no alarm, and a slow link is named") {
  const std::uint64_t seeds = test::cases(200, 2000);
  CHECK(right({}, 1, seeds, true) == seeds);
  for (const Finding::Syndrome fault :
       {Finding::Syndrome::slow_link, Finding::Syndrome::slow_sender,
        Finding::Syndrome::slow_receiver}) {
    const std::uint64_t good = right(fault, 2, seeds, true);
    INFO(fault << ": " << good << " of " << seeds);
    CHECK(100 * good >= 99 * seeds);
  }
}

TEST_CASE("a queue on one link only: the link is healthy, or named with its sender and receiver") {
  // Rank 3 sends ten messages at once over one link of a ring; all other messages find theirs free.
  const Schedule around = ring(8), queue = queues(8, {3}, 10);
  std::uint64_t healthy = 0, named = 0;
  const std::uint64_t seeds = test::cases(200, 2000);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    healthy += watch({around, queue, queue}, {}, seed, ring_steps).findings().empty() ? 1u : 0u;
    const std::vector<Finding> found =
        watch({around, queue, queue}, InjectedFault{Finding::Syndrome::slow_link, 3, 4, 2}, seed,
              ring_steps)
            .findings();
    named +=
        found.size() == 1 && found[0].causes.size() == 3 && found[0].rank == 3 && found[0].peer == 4
            ? 1u
            : 0u;
  }
  CHECK(healthy == seeds);
  CHECK(100 * named >= 99 * seeds);
}

TEST_CASE("a queued message counts from the arrival of the message before it") {
  // Three messages at once. Each occupies the link for 1, and has a latency of 1.
  Builder builder("three", 2);
  const BufferId from = builder.add_buffer({.rank = 0, .transient = false, .bytes = 8});
  for (int m = 0; m < 3; ++m)
    builder.add(
        {.kind = Kind::move, .queue = builder.queue(0, 1)},
        {schedule::read(from), schedule::write(builder.add_buffer({.rank = 1, .bytes = 8}))});
  const Schedule three = std::move(builder).build();
  const Timeline planned(three, {{0, 1, 2}, {1, 2, 3}, {2, 3, 4}});
  Monitor healthy(2), slow(2);
  healthy.observe({three, {{0, 0, 2}, {0, 0, 3}, {0, 0, 4}}}, planned);
  CHECK(*healthy.transfer(0, 1) == 1);
  slow.observe({three, {{0, 0, 6}, {0, 0, 9}, {0, 0, 12}}}, planned);
  CHECK(*slow.transfer(0, 1) == 3);
  // The second one was posted late, and found the link free.
  Monitor late(2);
  late.observe({three, {{0, 0, 2}, {5, 5, 7}, {5, 5, 8}}}, planned);
  CHECK(*late.transfer(0, 1) == 1);
}

TEST_CASE("a message behind one that nobody waited for does not count") {
  Builder builder("busy", 2);
  const BufferId from = builder.add_buffer({.rank = 0, .transient = false, .bytes = 8});
  const BufferId own = builder.add_buffer({.rank = 1, .bytes = 8});
  builder.add({.kind = Kind::user, .queue = builder.local(1)}, {schedule::write(own)});
  for (int m = 0; m < 2; ++m) {
    const BufferId to = builder.add_buffer({.rank = 1, .bytes = 8});
    builder.add({.kind = Kind::move, .queue = builder.queue(0, 1)},
                {schedule::read(from), schedule::write(to)});
    builder.add({.kind = Kind::user, .queue = builder.local(1)}, {schedule::read(to)});
  }
  const Schedule busy = std::move(builder).build();
  const Timeline planned(busy, {{0, 1, 1}, {0, 5, 5}, {5, 6, 6}, {5, 10, 10}, {10, 11, 11}});
  // Rank 1 works until 8. The first message has waited for it, and the second one came at 9.
  Monitor monitor(2);
  monitor.observe({busy, {{0, 8, 8}, {0, 0, 8}, {8, 8.5, 8.5}, {0, 0, 9}, {9, 10, 10}}}, planned);
  CHECK_FALSE(monitor.transfer(0, 1).has_value());
}

TEST_CASE("a monitor prints how often it names a fault of factor 1.3") {
  std::string line;
  for (const Finding::Syndrome fault :
       {Finding::Syndrome::slow_link, Finding::Syndrome::slow_sender,
        Finding::Syndrome::slow_receiver, Finding::Syndrome::slow_computer})
    line += text(fault, " ", right(fault, 1.3, 50), " of 50; ");
  WARN("factor 1.3: " << line);
}

TEST_CASE("in one ring, link, sender and receiver cannot be told apart") {
  for (const Finding::Syndrome fault :
       {Finding::Syndrome::slow_link, Finding::Syndrome::slow_sender,
        Finding::Syndrome::slow_receiver}) {
    std::uint64_t good = 0;
    const std::uint64_t seeds = test::cases(200, 2000);
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto place = place_of(seed, true);
      const Monitor monitor =
          watch({ring(8)}, InjectedFault{fault, place.rank, place.peer, 2}, seed, ring_steps);
      const std::vector<Finding> found = monitor.findings();
      // A slow receiver is slow on its one way in, which is here the way from `rank` as well.
      good += found.size() == 1 &&
                      found[0].causes == std::vector{Finding::Syndrome::slow_link,
                                                     Finding::Syndrome::slow_sender,
                                                     Finding::Syndrome::slow_receiver} &&
                      found[0].rank == place.rank && found[0].peer == place.peer
                  ? 1u
                  : 0u;
    }
    INFO(fault << ": " << good << " of " << seeds);
    CHECK(100 * good >= 99 * seeds);
  }
}

TEST_CASE("a finding prints as a sentence") {
  CHECK(to_string(Finding{{Finding::Syndrome::slow_computer}, 3, 3, 2.13}) ==
        "rank 3 computes 2.1 times as long as planned");
  CHECK(to_string(Finding{{Finding::Syndrome::slow_link}, 3, 5, 2}) ==
        "messages from rank 3 to rank 5 take 2 times as long as planned");
  CHECK(to_string(Finding{{Finding::Syndrome::slow_receiver}, 3, 3, 1.5}) ==
        "all messages to rank 3 take 1.5 times as long as planned");
  CHECK(to_string(Finding{{Finding::Syndrome::slow_link, Finding::Syndrome::slow_sender,
                           Finding::Syndrome::slow_receiver},
                          0,
                          1,
                          2}) ==
        "messages from rank 0 to rank 1 take 2 times as long as planned: slow link, slow sender "
        "and slow receiver cannot be told apart, because a rank was seen with one peer only");
  CHECK(to_string(Finding{
            {Finding::Syndrome::hang_outside}, 2, 2, 0, true, "at F0.1 (place 7 of the list)"}) ==
        "rank 2 is silent, outside of communication; it was last seen at F0.1 (place 7 of the "
        "list)");
}

TEST_CASE("a transfer counts only if its receiver waited for it") {
  // Rank 1 works while the message comes, so that its time says nothing of the network.
  Builder builder("late look", 2);
  const BufferId from = builder.add_buffer({.rank = 0, .bytes = 8});
  const BufferId to = builder.add_buffer({.rank = 1, .bytes = 8});
  const BufferId own = builder.add_buffer({.rank = 1, .bytes = 8});
  builder.add({.kind = Kind::user, .queue = builder.local(0)}, {schedule::write(from)});
  builder.add({.kind = Kind::user, .queue = builder.local(1)}, {schedule::write(own)});
  builder.add({.kind = Kind::move, .queue = builder.queue(0, 1)},
              {schedule::read(from), schedule::write(to)});
  builder.add({.kind = Kind::user, .queue = builder.local(1)}, {schedule::read(to)});
  const Schedule late = std::move(builder).build();
  const Timeline planned(late, {{0, 1, 1}, {0, 1, 1}, {1, 2, 2}, {2, 3, 3}});
  Monitor monitor(2);
  monitor.observe({late, {{0, 1, 1}, {0, 9, 9}, {1, 2, 8}, {9, 10, 10}}}, planned);
  CHECK_FALSE(monitor.transfer(0, 1).has_value());
  CHECK(*monitor.compute(1) == 5);  // 9 + 1 instead of 1 + 1
  monitor.observe({late, {{0, 1, 1}, {0, 1, 1}, {1, 2, 4}, {4, 5, 5}}}, planned);
  CHECK(*monitor.transfer(0, 1) == 3);
}

TEST_CASE("a transfer that waited for storage at its receiver does not count") {
  // Rank 1 forwards what it received over a slow link, and receives the next value in its place.
  Builder builder("forward", 3);
  const BufferId from = builder.add_buffer({.rank = 0, .transient = false, .bytes = 8});
  const BufferId slot = builder.add_buffer({.rank = 1, .bytes = 8});
  const BufferId to = builder.add_buffer({.rank = 2, .bytes = 8});
  for (int m = 0; m < 2; ++m) {
    builder.add({.kind = Kind::move, .queue = builder.queue(0, 1)},
                {schedule::read(from), schedule::write(slot)});
    builder.add({.kind = Kind::move, .queue = builder.queue(1, 2)},
                {schedule::read(slot), schedule::write(to)});
  }
  const Schedule schedule = std::move(builder).build();
  const Timeline planned(schedule, {{0, 1, 1}, {1, 2, 2}, {2, 3, 3}, {3, 4, 4}});
  Monitor monitor(3);
  monitor.observe({schedule, {{0, 1, 1}, {1, 9, 9}, {1, 2, 9}, {9, 17, 17}}}, planned);
  CHECK(*monitor.transfer(0, 1) == 1);
  CHECK(*monitor.transfer(1, 2) == 8);
}

TEST_CASE("a hang is found where it began: in an action, before it, or in a message") {
  const std::uint64_t seeds = test::cases(200, 2000);
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    for (const HangKind kind : {HangKind::in_action, HangKind::before_action, HangKind::message}) {
      const Hang hang = hang_of(seed, kind);
      const std::vector<ListPlace> places = run_until_hang(hang);
      const std::vector<Finding> found = schedule::find_hang(hang.schedule, places);
      INFO("seed " << seed << " place " << +hang.action);
      REQUIRE(found.size() == 1);
      REQUIRE(found[0].rank == hang.rank);
      REQUIRE(found[0].peer == hang.peer);
      REQUIRE(found[0].causes == std::vector{kind == HangKind::message
                                                 ? Finding::Syndrome::hang_in_communication
                                                 : Finding::Syndrome::hang_outside});
      REQUIRE(found[0].place.find(text("(place ", +hang.action, " of")) != std::string::npos);
      REQUIRE_FALSE(found[0].silent);
    }
}

TEST_CASE("silent ranks are named with the last action that others know of") {
  const std::uint64_t seeds = test::cases(200, 2000);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Hang hang = hang_of(seed, HangKind::before_action);
    std::vector<ListPlace> places = run_until_hang(hang);
    places[+hang.rank] = {0, 0, false};
    std::size_t last = 0;  // one past its last message that arrived
    for (std::size_t i = 0; i < hang.schedule.size(); ++i) {
      const Queue& queue = hang.schedule[hang.schedule[ActionId{i}].queue];
      if (!queue.local() && queue.from == hang.rank && places[+queue.to].finished > i) last = i + 1;
    }
    const std::vector<Finding> found = schedule::find_hang(hang.schedule, places);
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].silent);
    REQUIRE(found[0].rank == hang.rank);
    const std::string place =
        last == 0 ? "before its first action of this step" : text("(place ", last - 1, " of");
    REQUIRE(found[0].place.find(place) != std::string::npos);
  }
}

TEST_CASE("a group hangs outside of communication in a member that has not started it") {
  Builder builder("group", 3);
  std::vector<Use> uses;
  for (int r = 0; r < 3; ++r)
    uses.push_back(
        schedule::update(builder.add_buffer({.rank = Rank{r}, .transient = false, .bytes = 8})));
  builder.add({.kind = Kind::group, .queue = builder.local(0)}, uses);
  const Schedule schedule = std::move(builder).build();
  const std::vector<Finding> late =
      schedule::find_hang(schedule, std::vector<ListPlace>{{1, 0}, {0, 0}, {1, 0}});
  REQUIRE(late.size() == 1);
  CHECK(late[0].rank == 1);
  CHECK(late[0].causes == std::vector{Finding::Syndrome::hang_outside});
  const std::vector<Finding> stuck =
      schedule::find_hang(schedule, std::vector<ListPlace>(3, {1, 0}));
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].causes == std::vector{Finding::Syndrome::hang_in_communication});
  CHECK_THAT(to_string(stuck[0]), ContainsSubstring("the group of rank 0 does not end: "));
}

TEST_CASE("ranks that have all finished do not hang, and places must fit the schedule") {
  const Schedule schedule = pipeline(4, 4);
  const auto all = static_cast<std::uint32_t>(schedule.size());
  CHECK(schedule::find_hang(schedule, std::vector<ListPlace>(4, {all, all})).empty());
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)schedule::find_hang(schedule, std::vector<ListPlace>(3, {all, all}));
             }),
             ContainsSubstring("every rank of the schedule needs a place (3 places for 4 ranks)"));
}

TEST_CASE("a monitor rejects bad options and timelines that do not fit") {
  CHECK_THAT(test::message_of<contract_error>([] { (void)Monitor(0); }),
             ContainsSubstring("there are no ranks (0 ranks)"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)Monitor(2, {.least = 0.5}); }),
             ContainsSubstring("least 0.5"));
  const Schedule four = pipeline(4, 2);
  Timeline planned = simulate(four, {.forward = 1, .backward = 2, .latency = 1});
  Monitor small(2);
  CHECK_THAT(test::message_of<contract_error>([&] { small.observe(planned, planned); }),
             ContainsSubstring("monitor: 2 ranks"));
  Monitor monitor(4);
  Timeline broken = planned;
  broken.spans()[3].end = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(test::message_of<contract_error>([&] { monitor.observe(broken, planned); }),
             ContainsSubstring("a time is not finite"));
  CHECK_FALSE(monitor.compute(0).has_value());
  CHECK(monitor.findings().empty());
  CHECK_THAT(test::message_of<contract_error>([&] { (void)monitor.transfer(1, 4); }),
             ContainsSubstring("heddle::Monitor::transfer: no such rank (rank 4 of 4)"));
}

}  // namespace test_monitor
