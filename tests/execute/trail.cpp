// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Trails: the Schedule and the Timeline of what a loop decided, also of farms, and its price.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/execute/timeline_costs.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/grid.hpp>
#include <heddle/trace/report.hpp>

#include "support/complaint.hpp"

namespace test_trail {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

Timeline priced(const Timeline& recorded) {
  Timeline timeline;
  simulate(recorded.schedule(), TimelineCosts(recorded), timeline);
  return timeline;
}

TEST_CASE("a trail is a schedule whose simulation with its own times gives its spans") {
  Trail trail;
  trail.add({Worker{0}, 0, 10.0, 13.0, false});
  trail.add({Worker{1}, 1, 10.0, 11.0, false});
  trail.add({Worker{1}, 2, 11.5, 12.0, false});
  trail.add({Worker{1}, 3, 13.25, 15.0, true});  // after the end of item 0
  trail.add({Worker{0}, 4, 13.0, 14.0, false});
  const Timeline timeline = trail.timeline("a trail");
  CHECK(timeline.schedule().ranks() == 2);
  CHECK(timeline.schedule().name() == "a trail");
  CHECK(timeline.begin() == 0);
  CHECK(timeline.makespan() == 5);
  // 4 and 3.25 of 2 x 5 are work.
  CHECK(timeline.busy() == std::vector<Seconds>{4, 3.25});
  CHECK(timeline.bubble_ratio() == 0.275);
  const Timeline again = priced(timeline);
  for (std::size_t i = 0; i < timeline.spans().size(); ++i) {
    CHECK(again.spans()[i].start == timeline.spans()[i].start);
    CHECK(again.spans()[i].end == timeline.spans()[i].end);
  }
  // Priced anew: if item 0 takes 2 more, item 3 waits for it, and item 2 does not.
  struct Longer : TimelineCosts {
    using TimelineCosts::TimelineCosts;
    [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
      const bool first = schedule[id].kind == Kind::user && schedule[id].item == Item{0};
      return TimelineCosts::time(schedule, id) + (first ? 2 : 0);
    }
  };
  Timeline longer;
  simulate(timeline.schedule(), Longer(timeline), longer);
  CHECK(longer.makespan() == 7);
  CHECK(trace::time_use(timeline).bubble_ratio() == 0.275);
  CHECK_FALSE(to_grid(timeline).empty());
  CHECK(Trail{}.timeline().makespan() == 0);
  trail.expect_workers(4);  // two of them never work
  CHECK(trail.timeline().schedule().ranks() == 4);
  CHECK(trail.timeline().bubble_ratio() == 1 - 7.25 / 20);
}

TEST_CASE("random trails are priced as they were") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Random random(seed, "trail");
    std::uint64_t n = 0;
    Trail trail;
    const int workers = 1 + static_cast<int>(seed % 5);
    std::vector<Seconds> free(static_cast<std::size_t>(workers), 0);
    Seconds last = 0;
    Seconds busy = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      const auto w = static_cast<std::size_t>(workers * random.uniform(n++));
      const bool waited = random.uniform(n++) < 0.4;
      const Seconds start = free[w] + (waited ? random.uniform(n++) : 1e-4);
      free[w] = start + random.uniform(n++);
      trail.add({Worker{w}, i, start, free[w], waited});
      busy += free[w] - start;
      last = std::max(last, free[w]);
    }
    const Timeline timeline = trail.timeline();
    const Timeline again = priced(timeline);
    Seconds sum = 0;
    for (const Seconds each : timeline.busy()) sum += each;
    CAPTURE(seed);
    CHECK(std::abs(sum - busy) < 1e-9);
    CHECK(std::abs(again.makespan() - timeline.makespan()) < 1e-9);
  }
}

TEST_CASE("wrong events are named") {
  Trail trail;
  CHECK_THAT(test::message_of<contract_error>([&] {
               trail.add({Worker{0}, 7, 2, 1, false});
             }),
             ContainsSubstring("item 7: 2 to 1"));
  trail.add({Worker{0}, 1, 0, 2, false});
  trail.add({Worker{0}, 2, 1, 3, false});
  CHECK_THAT(test::message_of<contract_error>([&] { static_cast<void>(trail.timeline()); }),
             ContainsSubstring("two events of one worker overlap") &&
                 ContainsSubstring("worker 0, item 2"));
}

}  // namespace test_trail
