// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the makespan and the waits of a window of weights against the published conditions, and
// its memory against closed forms.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/schedule_battery.hpp"

namespace test_prefetch_window {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The two kinds of blocks of a transformer in turns: bytes that take as many seconds to load, and
/// the seconds of a use.
struct Blocks {
  Bytes attention_load = 18, mlp_load = 30;
  Seconds attention = 25, mlp = 31;
  std::size_t count = 160;

  [[nodiscard]] std::vector<Bytes> objects() const {
    std::vector<Bytes> sizes;
    for (std::size_t k = 0; k < count; ++k) sizes.push_back(k % 2 == 0 ? attention_load : mlp_load);
    return sizes;
  }
  [[nodiscard]] Timeline run(const Schedule& schedule) const {
    const Device device{.memories = {{"memory"}, {"file", 0, {.latency = 0, .bandwidth = 1}}}};
    const Machine machine = Machine::uniform(1, device, {});
    TableCosts costs(machine, static_cast<int>(count));
    for (std::size_t k = 0; k < count; ++k)
      costs.at(Kind::forward, Stage{k}) = k % 2 == 0 ? attention : mlp;
    return simulate(schedule, costs, Sending::rendezvous);
  }
};

/// The seconds that each use waits for its load, and the most objects that are loaded, in whole or
/// in part, and not yet used for the last time.
struct Observed {
  std::vector<Seconds> waits;
  int resident = 0;

  [[nodiscard]] Seconds after_warm_up() const {
    return std::accumulate(waits.begin() + 2, waits.end(), Seconds{0});
  }
};

Observed observe(const Timeline& timeline) {
  const Schedule& schedule = timeline.schedule();
  Observed result;
  std::vector<std::pair<Seconds, int>> changes;
  Seconds free = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto& span = timeline.spans()[i];
    if (schedule[ActionId{i}].kind == Kind::move) {
      changes.emplace_back(span.start, +1);
    } else {
      result.waits.push_back(span.start - free);
      free = span.end;
      changes.emplace_back(span.end, -1);
    }
  }
  std::ranges::sort(changes);  // at one time, what ends comes first
  int now = 0;
  for (const auto& [at, change] : changes)
    result.resident = std::max(result.resident, now += change);
  return result;
}

}  // namespace

TEST_CASE("the published example of a window takes 4898 with 395 of waits, or 4503 with none") {
  const Blocks blocks;  // t = (11, 17, 14), and loads of (18, 30)
  for (int window = 2; window <= 6; ++window) {
    const Schedule schedule =
        schedule::prefetch_window({.objects = blocks.objects(), .window = window});
    const Timeline timeline = blocks.run(schedule);
    const Observed observed = observe(timeline);
    CHECK(timeline.makespan() == (window == 2 ? 4898 : 4503));
    CHECK(observed.after_warm_up() == (window == 2 ? 395 : 0));
    CHECK(observed.waits[0] + observed.waits[1] == 23);
    CHECK(observed.resident <= window);
    if (window <= 3) CHECK(observed.resident == window);
  }
  const Timeline alone = blocks.run(schedule::prefetch_window({blocks.objects(), 1}));
  CHECK(alone.makespan() == 80 * (25 + 31 + 18 + 30));
}

TEST_CASE("a window of 2 never waits if it is tight, one of 3 if loads take no longer than uses") {
  const Random random(32, "windows");
  std::size_t tight_ones = 0, loose_ones = 0;
  const std::uint64_t count = test::cases(500, 20'000);
  for (std::uint64_t c = 0; c < count; ++c) {
    const auto draw = [&](std::uint64_t i) { return 1 + random.below(8 * c + i, 40); };
    const Bytes reduce = draw(0);
    const Blocks blocks{.attention_load = draw(1),
                        .mlp_load = draw(2),
                        .attention = static_cast<Seconds>(draw(3) + reduce / 2),
                        .mlp = static_cast<Seconds>(draw(4) + reduce / 2),
                        .count = 160};
    const bool tight = blocks.attention >= static_cast<Seconds>(blocks.mlp_load) &&
                       blocks.mlp >= static_cast<Seconds>(blocks.attention_load);
    const bool loose = blocks.attention + blocks.mlp >=
                       static_cast<Seconds>(blocks.attention_load + blocks.mlp_load);
    tight_ones += tight;
    loose_ones += loose;
    for (const int window : {2, 3, 5}) {
      const Observed observed =
          observe(blocks.run(schedule::prefetch_window({blocks.objects(), window})));
      INFO("case " << c << ", window " << window);
      REQUIRE(observed.resident <= window);
      // A window of 5 holds an early lead for longer, so it may not have waited yet.
      if (window < 5 || loose)
        REQUIRE((observed.after_warm_up() == 0) == (window == 2 ? tight : loose));
    }
  }
  CHECK((tight_ones > count / 20 && tight_ones < loose_ones && loose_ones < count));
}

TEST_CASE("passes go on where the one before ended, and a window of all objects loads them once") {
  const Blocks blocks{.count = 4};
  const Blocks unrolled{.count = 20};
  for (int window = 1; window <= 3; ++window) {
    const Schedule cyclic =
        schedule::prefetch_window({.objects = blocks.objects(), .window = window, .passes = 5});
    const Schedule flat = schedule::prefetch_window({unrolled.objects(), window});
    CHECK(blocks.run(cyclic).makespan() == unrolled.run(flat).makespan());
    REQUIRE(cyclic.size() == 40);
    for (std::size_t i = 0, use = 0; i < cyclic.size(); ++i) {
      const Action& action = cyclic[ActionId{i}];
      if (action.kind != Kind::forward) continue;
      CHECK((+action.stage == use % 4 && +action.item == use / 4));
      CHECK(cyclic.bytes(cyclic.uses(ActionId{i})[0]) == blocks.objects()[use++ % 4]);
    }
  }
  for (const int window : {4, 9}) {
    const Schedule all = schedule::prefetch_window({blocks.objects(), window, 5});
    CHECK(all.size() == 4 + 20);
    CHECK(schedule::PrefetchWindowOptions{blocks.objects(), window, 5}.slot_bytes() ==
          2 * (18 + 30));
  }
}

TEST_CASE("an even window needs w / 2 blocks of each kind, and one of 3 of 160 under a tenth") {
  const Blocks blocks;
  const std::vector<Bytes> objects = blocks.objects();
  const Bytes whole = std::accumulate(objects.begin(), objects.end(), Bytes{0});
  for (int window = 1; window <= 9; ++window) {
    const schedule::PrefetchWindowOptions options{.objects = objects, .window = window};
    const Schedule schedule = schedule::prefetch_window(options);
    const auto w = static_cast<Bytes>(window);
    CHECK(options.slot_bytes() == (w % 2 == 0 ? w / 2 * (18 + 30) : w * 30));
    CHECK(schedule[BufferId{1}].bytes == options.slot_bytes());
    // What is live, slots or not.
    CHECK(schedule::peak(blocks.run(schedule), Rank{0}).bytes <= w / 2 * 18 + (w + 1) / 2 * 30);
  }
  CHECK(schedule::PrefetchWindowOptions{.objects = objects, .window = 3}.slot_bytes() * 10 <=
        whole);
  CHECK(schedule::peak(blocks.run(schedule::prefetch_window({objects, 3})), Rank{0}).bytes ==
        18 + 2 * 30);
}

TEST_CASE("every use reads the object that it names, also on threads and in a second step") {
  const Random random(32, "uses");
  for (std::uint64_t c = 0; c < test::cases(30, 2000); ++c) {
    schedule::PrefetchWindowOptions options;
    for (std::uint64_t k = 0; k < 1 + random.below(64 * c, 7); ++k)
      options.objects.push_back(1 + random.below(64 * c + 1 + k, 5));
    options.window = 1 + static_cast<int>(random.below(64 * c + 20, 8));
    options.passes = 1 + static_cast<int>(random.below(64 * c + 21, 4));
    const Schedule schedule = schedule::prefetch_window(options);
    INFO(schedule.name());
    test::Storage storage(schedule, std::byte{1});
    const test::Log log = test::interpret(schedule, storage, 2);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      if (action.kind != Kind::forward) continue;
      const auto object = static_cast<std::uint32_t>(+action.stage);
      std::byte* const begin =
          storage.begin(BufferId{0}) + schedule::part_offset(schedule[BufferId{0}], object);
      const test::Operand source{begin, options.objects[object], Access::read};
      const std::uint64_t expected = test::perform(action, Scalar::byte, {&source, 1});
      for (const std::size_t step : {0u, 1u})
        REQUIRE(log.at(test::log_key(step, Rank{0}, ActionId{i})) == expected);
    }
    REQUIRE(test::difference_from_oracle(schedule, 2) == "");
    std::ranges::fill(options.objects, 3);
    test::schedule_battery(schedule::prefetch_window(options));
  }
}

TEST_CASE("windows that cannot be are refused, with a remedy") {
  const auto complaint = [](schedule::PrefetchWindowOptions options) {
    return test::message_of<contract_error>([&] { (void)schedule::prefetch_window(options); });
  };
  CHECK_THAT(complaint({{4, 5}, 0}),
             ContainsSubstring("window = 0") && ContainsSubstring("2 loads"));
  CHECK_THAT(complaint({{4, 5}, 2, 0}), ContainsSubstring("passes = 0"));
  CHECK_THAT(complaint({{}, 2}), ContainsSubstring("there is no object"));
  CHECK_THAT(complaint({{4, 0}, 2}), ContainsSubstring("object 1 is empty"));
  const auto lacks = [](schedule::PrefetchWindowOptions options) {
    return test::message_of<infeasible>([&] { (void)schedule::prefetch_window(options); });
  };
  CHECK_THAT(lacks({{4, 9, 5}, 2, 1, 8}),
             ContainsSubstring("object 1 is larger than the fast tier") &&
                 ContainsSubstring("9 bytes, the tier 8") &&
                 ContainsSubstring("divide the object"));
  CHECK_THAT(lacks({{4, 4, 4, 4, 4, 4}, 5, 1, 15}),
             ContainsSubstring("window of 5") && ContainsSubstring("20 bytes, the tier 15") &&
                 ContainsSubstring("largest window that fits is 3"));
  CHECK_NOTHROW(schedule::prefetch_window({{4, 4, 4, 4, 4, 4}, 3, 1, 12}));
}

}  // namespace test_prefetch_window
