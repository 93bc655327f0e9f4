// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Structs of pattern/ that programs fill by hand: every door rejects a broken entry and names it.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern.hpp>
#include <heddle/pattern/farm_forecast.hpp>
#include <heddle/systems/aiperf/farm_search.hpp>
#include <heddle/systems/parallel_prompt/prompt_schema.hpp>
#include <heddle/systems/parscale/parallel_streams.hpp>
#include <heddle/systems/photons/dual_traversal.hpp>

#include "support/broken_entries.hpp"

namespace test_pattern_broken_entries {

using namespace heddle;
using test::check_broken;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most = std::numeric_limits<int>::max();
constexpr std::size_t half = std::size_t{1} << 63;

const std::vector<int> items{1, 2, 3};

struct Trial {
  int point = 0;
  std::optional<double> cost;
};

auto run_farm(const pattern::FarmOptions& options) {
  return [=] { (void)pattern::farm(options, items, [](int item) { return item; }); };
}

auto decide(const pattern::FarmOptions& options) {
  return [=] { pattern::FarmDecider decider(options); };
}

auto forecast(const pattern::FarmOptions& options, pattern::FarmForecast::Attempt made,
              std::int64_t count = 2) {
  return [=] {
    (void)pattern::forecast_farm(options, count,
                                 [=](Worker, const pattern::FarmTask&) { return made; });
  };
}

auto back_off(const pattern::FarmOptions& options, const pattern::FarmTask& task) {
  return [=] { (void)pattern::impl::farm_backoff(options, task); };
}

Equations<double, std::function<double(int, const pattern::ValuesBefore<double>&)>> equations() {
  return {4, 0.0, [](int i, const pattern::ValuesBefore<double>& before) {
            return i == 0 ? 1.0 : 2 * before[i - 1];
          }};
}

auto solve(const pattern::FixedPointOptions& options) {
  return [=] { (void)pattern::fixed_point(equations(), options); };
}

/// Runs on two ranks, of which all have the options, or the last one only.
template <class Call, class Options>
std::function<void()> on_ranks(Call call, Options options, bool last_only = false) {
  return [=] {
    run_threads(2, [&](ThreadTransport& transport) {
      call(transport, last_only && transport.rank() == Rank{0} ? Options{} : options);
    });
  };
}

void farm_on_ranks(ThreadTransport& transport, const pattern::FarmOptions& options) {
  (void)pattern::farm(transport, options, items, [](int item) { return item; });
}

void solve_on_ranks(ThreadTransport& transport, const pattern::FixedPointOptions& options) {
  (void)pattern::fixed_point(transport, equations(), options);
}

void race_on_ranks(ThreadTransport& transport, const pattern::RaceOptions& options) {
  (void)pattern::race(transport, options, [](pattern::Walker& walker) -> std::optional<int> {
    return walker.number();
  });
}

auto run_race(const pattern::RaceOptions& options) {
  return [=] {
    (void)pattern::race(
        options, [](pattern::Walker& walker) -> std::optional<int> { return walker.number(); });
  };
}

}  // namespace

TEST_CASE("a farm rejects options that are none") {
  check_broken({
      {"no worker", run_farm({.workers = 0}), {"workers = 0"}},
      {"a negative number of workers", run_farm({.workers = -3}), {"workers = -3"}},
      {"too many workers", run_farm({.workers = most}), {"workers = 2147483647"}},
      {"workers of chunks", run_farm({.workers = 1 << 26}), {"workers = 67108864"}},
      {"workers of a decider", decide({.workers = most}), {"workers = 2147483647"}},
      {"attempts", run_farm({.attempts = 0}), {"attempts = 0"}},
      {"backoff", run_farm({.backoff = -1}), {"backoff = -1"}},
      {"backoff is no number", run_farm({.backoff = nan}), {"backoff = nan"}},
      {"longest_backoff", run_farm({.longest_backoff = infinity}), {"longest_backoff = inf"}},
      {"in_flight", run_farm({.in_flight = -1}), {"in_flight = -1"}},
      {"lag", decide({.lag = -1}), {"lag = -1"}},
      {"lag without order", decide({.ordered = false, .lag = 1}), {"lag = 1"}},
      {"lease", run_farm({.lease = -0.5}), {"lease = -0.5"}},
      {"lease is no number", run_farm({.lease = nan}), {"lease = nan"}},
      {"prefetch", run_farm({.prefetch = 2}), {"prefetch = 2"}},
      {"attempt of a wait", back_off({}, {.item = 1, .attempt = 1}), {"attempt = 1"}},
      {"negative attempt", back_off({}, {.item = 1, .attempt = -most - 1}), {"attempt = -"}},
      {"item of a wait", back_off({}, {.item = -1, .attempt = 2}), {"item = -1"}},
      {"backoff of a wait", back_off({.backoff = nan}, {0, 2}), {"backoff = nan"}},
      {"longest wait", back_off({.longest_backoff = -1}, {0, 2}), {"longest_backoff = -1"}},
      {"trials",
       [] {
         (void)systems::farm_search<Trial>(
             {.lag = 1}, -1, [](std::size_t, std::span<const Trial>) { return 0; },
             [](int) { return std::optional<double>(1); });
       },
       {"trials = -1"}},
  });
}

TEST_CASE("a lease may be longer than a clock can count") {
  for (const double lease : {1e12, 1e300}) {
    const auto outcomes =
        pattern::farm({.workers = 2, .lease = lease}, std::vector{7}, [](int item) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the other worker waits
          return item;
        });
    CHECK(outcomes[0].value == 7);
  }
}

TEST_CASE("the forecast of a farm rejects times and counts that are none") {
  const std::function<pattern::FarmForecast::Attempt(Worker, const pattern::FarmTask&)> nothing;
  check_broken({
      {"time", forecast({}, {.time = -1}), {"item 0", "-1"}},
      {"time is no number", forecast({}, {.time = nan}), {"item 0", "nan"}},
      {"items", forecast({}, {.time = 1}, -5), {"items = -5"}},
      {"attempt", [=] { (void)pattern::forecast_farm({}, 2, nothing); }, {"`attempt` is empty"}},
      {"sum of times", forecast({}, {.time = 1e308}), {"item 1", "1e+308"}},
      {"sum of waits",
       forecast({.attempts = 5, .backoff = 1.7e308, .longest_backoff = 1.7e308},
                {.time = 0, .succeeded = false}),
       {"item 0", "longest_backoff = 1.7e+308"}},
      {"workers", forecast({.workers = most}, {.time = 1}), {"workers = 2147483647"}},
  });
}

TEST_CASE("a farm on ranks rejects options that are none") {
  const auto with = [](const pattern::FarmOptions& options, bool last_only = false) {
    return on_ranks(farm_on_ranks, options, last_only);
  };
  check_broken({
      {"prefetch", with({.prefetch = 0}), {"prefetch = 0"}},
      {"large prefetch", with({.prefetch = most}), {"prefetch = 2147483647"}},
      {"attempts", with({.attempts = -1}), {"attempts = -1"}},
      {"lease", with({.lease = nan}), {"lease = nan"}},
      {"backoff", with({.backoff = infinity}), {"backoff = inf"}},
      {"in_flight", with({.in_flight = -2}), {"in_flight = -2"}},
      {"idle", with({.wait = {.idle = static_cast<Idle>(9)}}), {"idle = 9"}},
      {"watchdog", with({.wait = {.watchdog = nan}}), {"watchdog = nan"}},
      {"workers", with({.workers = 3}), {"workers = 3"}},
  });
}

TEST_CASE("a chain of equations rejects options that are none") {
  const auto with = [](const pattern::FixedPointOptions& options) {
    return on_ranks(solve_on_ranks, options);
  };
  check_broken({
      {"sweep", solve({.sweep = static_cast<pattern::Sweep>(9)}), {"sweep = 9"}},
      {"threads", solve({.threads = 0}), {"threads = 0"}},
      {"block", solve({.block = -1}), {"block = -1"}},
      {"tolerance", solve({.tolerance = nan}), {"tolerance = nan"}},
      {"most_sweeps", solve({.most_sweeps = -1}), {"most_sweeps = -1"}},
      {"sweep on ranks", with({.sweep = static_cast<pattern::Sweep>(4)}), {"sweep = 4"}},
      {"block on ranks", with({.block = -1}), {"block = -1"}},
      {"tolerance on ranks", with({.tolerance = infinity}), {"tolerance = inf"}},
      {"reach", with({.reach = -3}), {"reach = -3"}},
      {"age", with({.staleness = {.age = -1}}), {"age = -1"}},
      {"warmup", with({.staleness = {.age = 1, .warmup = -1}}), {"warmup = -1"}},
      {"idle", with({.wait = {.idle = static_cast<Idle>(3)}}), {"idle = 3"}},
      {"watchdog", with({.wait = {.watchdog = -1}}), {"watchdog = -1"}},
      {"threads on ranks", with({.threads = 2}), {"threads = 2"}},
      {"age on threads", solve({.staleness = {.age = 1}}), {"age 1"}},
      {"equations",
       [] { Equations(-1, 0.0, [](int, const pattern::ValuesBefore<double>&) { return 0.0; }); },
       {"count = -1"}},
  });
}

TEST_CASE("the largest block has all equations") {
  for (const pattern::Sweep sweep :
       {pattern::Sweep::jacobi_gauss_seidel, pattern::Sweep::gauss_seidel_jacobi})
    for (const int threads : {1, 2}) {
      const auto solved =
          pattern::fixed_point(equations(), {.sweep = sweep, .threads = threads, .block = most});
      CHECK(solved.values == std::vector<double>{1, 2, 4, 8});
      CHECK(solved.converged);
    }
}

TEST_CASE("an age may be larger than the number of sweeps") {
  std::array<pattern::FixedPoint<double>, 2> of_ranks;  // a thread of a rank must not call CHECK
  run_threads(2, [&](ThreadTransport& transport) {
    of_ranks[+transport.rank()] =
        pattern::fixed_point(transport, equations(), {.staleness = {.age = most}});
  });
  for (const auto& solved : of_ranks) {
    CHECK(solved.values == std::vector<double>{1, 2, 4, 8});
    CHECK(solved.converged);
  }
}

TEST_CASE("a race rejects options that are none") {
  const auto order = static_cast<pattern::RaceOptions::Order>(9);
  const auto with = [](const pattern::RaceOptions& options) {
    return on_ranks(race_on_ranks, options);
  };
  check_broken({
      {"walkers", run_race({.walkers = 0}), {"walkers = 0"}},
      {"threads", run_race({.threads = -1}), {"threads = -1"}},
      {"order", run_race({.order = order}), {"order = 9"}},
      {"order on ranks", with({.order = order}), {"order = 9"}},
      {"walkers on ranks", with({.walkers = 2}), {"walkers = 2"}},
      {"threads on ranks", with({.threads = 1}), {"threads = 1"}},
      {"watchdog", with({.wait = {.watchdog = nan}}), {"watchdog = nan"}},
      {"grace", with({.wait = {.grace = -1}}), {"grace = -1"}},
      {"fork_join",
       [] { (void)pattern::fork_join({.threads = 0}, [](pattern::Fork&) { return 0; }); },
       {"threads = 0"}},
      {"balance",
       [] {
         plan::SpeedRatios ratios(2);
         (void)pattern::balance(ratios, -1, [](Worker, plan::ItemRange) {});
       },
       {"items = -1"}},
  });
}

TEST_CASE("parallel streams reject sizes and numbers of a gate that do not fit") {
  const systems::StreamGate gate{
      .streams = 2, .width = 1, .hidden = 1, .first = {1, 1}, .second = {1, 1}};
  const auto change = [=](const std::function<void(systems::StreamGate&)>& with) {
    systems::StreamGate other = gate;
    with(other);
    return [=] { (void)other.weights(std::vector<double>{1, 2}); };
  };
  const auto streams_of = [](const systems::StreamGate& other) {
    return [=] {
      (void)systems::parallel_streams(std::vector<double>{1}, other,
                                      [](std::span<const double>, std::span<double>) {});
    };
  };
  check_broken({
      {"streams", change([](systems::StreamGate& g) { g.streams = 0; }), {"0 streams"}},
      {"width", change([](systems::StreamGate& g) { g.width = 3; }), {"2 streams of 3"}},
      {"hidden", change([](systems::StreamGate& g) { g.hidden = 0; }), {"0 hidden"}},
      {"first", change([](systems::StreamGate& g) { g.first = {1}; }), {"layers of 1 and 2"}},
      {"smoothing", change([](systems::StreamGate& g) { g.smoothing = nan; }), {"smoothing = nan"}},
      {"number", change([](systems::StreamGate& g) { g.second[1] = nan; }), {"second[1] = nan"}},
      {"large number",
       change([](systems::StreamGate& g) { g.first[0] = infinity; }),
       {"first[0] = inf"}},
      {"product",
       [] { (void)systems::StreamGate{.streams = half, .width = 2, .hidden = 2}.weights({}); },
       {"9223372036854775808 streams"}},
      {"streams of a map",
       streams_of({.streams = half, .width = 2, .hidden = 2}),
       {"9223372036854775808 streams"}},
      {"no streams", streams_of({.streams = 0}), {"0 streams"}},
      {"rows",
       [] {
         std::vector<double> inputs(2), outputs;
         (void)systems::multiply_streams(
             half, 1, [&](std::size_t) { return inputs.data(); }, std::span<const double>(inputs),
             std::span<double>(outputs));
       },
       {"9223372036854775808 x 1"}},
  });
}

TEST_CASE("a traversal rejects a step that is none") {
  struct Rule {
    systems::PairStep step;
    systems::PairStep decide(int, int) const { return step; }
    std::vector<int> children(int) const { return {1, 2}; }
    void far(int, int) const {}
    void exact(int, int) const {}
  };
  const Rule rule{static_cast<systems::PairStep>(9)};
  check_broken({
      {"dual", [=] { systems::dual_traversal(0, 3, rule); }, {"decide", "9"}},
      {"self", [=] { systems::self_traversal(0, rule); }, {"decide", "9"}},
  });
}

TEST_CASE("a prompt, a journal and a decider reject numbers that count nothing") {
  const auto count = [](int requests) {
    return [=] {
      systems::PromptSchema schema;
      schema.serial = "s";
      schema.form = "{index}";
      schema.count = requests;
      (void)systems::fill_template(schema);
    };
  };
  check_broken({
      {"count", count(0), {"count", "got 0"}},
      {"large count", count(most), {"count", "got 2147483647"}},
      {"item of a journal",
       [] {
         const std::filesystem::path path =
             std::filesystem::temp_directory_path() / text("heddle-broken-entries-", ::getpid());
         pattern::FarmJournal journal(path, "a farm");
         std::filesystem::remove(path);
         journal.note(-1, 0, {});
       },
       {"number = -1"}},
      {"chunk", [] { pattern::FarmDecider({}).expect_chunks(0); }, {"items = 0"}},
      {"worker", [] { pattern::FarmDecider({}).renew(Worker{7}, 0); }, {"worker 7 of 1"}},
      {"data",
       [] {
         systems::PromptSchema schema;
         schema.serial = "s";
         schema.form = "{data}";
         schema.data = {"a", ""};
         (void)systems::fill_template(schema);
       },
       {"data[1]"}},
  });
}

}  // namespace test_pattern_broken_entries
