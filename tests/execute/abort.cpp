// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A rank that throws: all ranks end, and say which one failed where.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"

namespace test_abort {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What became of one run in which `thrower` throws at its `call`-th action.
struct Outcome {
  std::string thrown_at;            ///< text of that action; empty where it was not reached
  std::vector<std::string> ranks;   ///< what each rank's error says; empty where it had none
  std::string rethrown;             ///< what run_threads throws
  std::vector<std::string> logged;  ///< told to each rank's log callback
};

template <class Throw>
Outcome run(const Schedule& schedule, Rank thrower, std::uint64_t call, std::size_t steps,
            const Throw& raise, Idle idle = Idle::yield) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  Outcome outcome{{}, std::vector<std::string>(ranks), {}, std::vector<std::string>(ranks)};
  test::Storage storage(schedule, std::byte{0});
  try {
    run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
      const Rank me = transport.rank();
      Program program =
          slice(schedule, me, [&](BufferId id, const Buffer&) { return storage.begin(id); });
      ExecuteOptions options{.idle = idle, .watchdog = 60};
      options.log = [&, me](std::string_view line) { outcome.logged[+me] += line; };
      Executor executor(std::move(program), transport, options);
      std::uint64_t calls = 0;
      try {
        for (std::size_t step = 0; step < steps; ++step)
          executor.step([&](const Task& task) {
            if (me != thrower || calls++ != call) return;
            outcome.thrown_at = text(task.stage(), task.kind(), task.item());
            raise();
          });
        executor.drain();
      } catch (const communication_error& error) {
        outcome.ranks[+me] = text("communication_error: ", error.what());
        throw;
      } catch (const std::exception& error) {
        outcome.ranks[+me] = error.what();
        throw;
      }
    });
  } catch (const std::exception& error) {
    outcome.rethrown = error.what();
  } catch (int number) {
    outcome.rethrown = text("int ", number);
  }
  return outcome;
}

}  // namespace

TEST_CASE("a handler that throws on one rank at a random action: 100 runs, all end") {
  const Random random(11, "abort");
  int others = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    const int p = 2 + static_cast<int>(random.below(4 * n, 3));
    const Schedule pipeline =
        n % 2 == 0
            ? schedule::one_f_one_b({.ranks = p, .microbatches = 5, .sizes = {.activation = 4096}})
            : schedule::fold(schedule::interleaved({.ranks = p,
                                                    .stages_per_rank = 2,
                                                    .microbatches = p,
                                                    .sizes = {.activation = 16}}));
    const Rank thrower{random.below(4 * n + 1, static_cast<std::uint64_t>(p))};
    const std::uint64_t calls = n % 2 == 0 ? 11 : 4 * static_cast<std::uint64_t>(p) + 2;
    const std::uint64_t call = random.below(4 * n + 2, 3 * calls);
    const auto idle = static_cast<Idle>(random.below(4 * n + 3, 3));
    const Outcome outcome = run(
        pipeline, thrower, call, 3, [] { throw std::runtime_error("the sum is not a number"); },
        idle);
    INFO("run " << n << ": rank " << thrower << " of " << p << ", call " << call);
    REQUIRE(outcome.thrown_at != "");
    REQUIRE(outcome.rethrown == "the sum is not a number");
    for (int r = 0; r < p; ++r) {
      const std::string& said = outcome.ranks[static_cast<std::size_t>(r)];
      if (Rank{r} == thrower) {
        REQUIRE(said == "the sum is not a number");
        REQUIRE(outcome.logged[static_cast<std::size_t>(r)] == said);
        continue;
      }
      // A rank may be done before it hears of it. Else it names the rank, the action and the
      // reason.
      if (said.empty()) continue;
      ++others;
      REQUIRE_THAT(said, ContainsSubstring("communication_error: ") &&
                             ContainsSubstring(text("rank ", r, " at ")) &&
                             ContainsSubstring(text("rank ", thrower, " failed at ",
                                                    outcome.thrown_at, " (the sum is not")));
    }
  }
  CHECK(others > 100);
}

TEST_CASE("what is thrown need not be a std::exception") {
  const Schedule pipeline =
      schedule::one_f_one_b({.ranks = 3, .microbatches = 4, .sizes = {.activation = 64}});
  const Outcome outcome = run(pipeline, Rank{1}, 2, 2, [] { throw 42; });
  CHECK(outcome.rethrown == "int 42");
  for (const std::size_t r : {0, 2})
    CHECK_THAT(outcome.ranks[r], ContainsSubstring(text("rank 1 failed at ", outcome.thrown_at,
                                                        " (unknown exception)")));
}

TEST_CASE("an error of one rank alone is its own") {
  const Schedule stream = schedule::stream({.ranks = 1, .microbatches = 3});
  const Outcome outcome = run(stream, Rank{0}, 1, 1, [] {
    throw infeasible({"model", "no such item"});
  });
  CHECK(outcome.rethrown == "model: no such item");
  CHECK(outcome.thrown_at == "0F1");
  CHECK(outcome.logged[0] == "model: no such item");
}

TEST_CASE("an executor that an exception destroys tells the others, which then do not wait") {
  const Schedule pipeline =
      schedule::one_f_one_b({.ranks = 2, .microbatches = 4, .sizes = {.activation = 64}});
  test::Storage storage(pipeline, std::byte{0});
  std::string other;
  const std::string rethrown = test::message_of<std::logic_error>([&] {
    run_threads(2, [&](ThreadTransport& transport) {
      Executor executor(slice(pipeline, transport.rank(),
                              [&](BufferId id, const Buffer&) { return storage.begin(id); }),
                        transport, {.watchdog = 60});
      const auto nothing = [](const Task&) {};
      executor.step(nothing);
      if (transport.rank() == Rank{0}) throw std::logic_error("between two steps");
      try {
        executor.step(nothing);
        executor.drain();
      } catch (const communication_error& error) {
        other = error.what();
        throw;
      }
    });
  });
  CHECK(rethrown == "between two steps");
  CHECK_THAT(other, ContainsSubstring("rank 0 failed at"));
}

}  // namespace test_abort
