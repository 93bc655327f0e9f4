// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// program: its own

// A training step over ranks that are threads, in which one allocation fails, or all from there on:
// for every allocation of every rank the run ends, nothing leaks, and the other ranks name the rank
// that failed.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/failing_allocations.hpp"

namespace test_allocation_failures {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::for_good;
using test::left;
using test::live;
using test::never;

namespace {

/// A model that holds its weights and allocates in each of its tasks.
struct Model {
  std::vector<std::byte> weights = {};
  std::string seen = {};

  Schedule prepare(const Schedule& schedule, ThreadTransport&, const ExecuteOptions&) {
    return schedule.with_sizes([](Buffer& buffer) { buffer.bytes = 64 * buffer.parts; });
  }
  std::byte* memory(const Schedule& schedule, BufferId id) {
    if (schedule[schedule[id].label] != role::weights) return nullptr;
    weights.resize(static_cast<std::size_t>(schedule[id].bytes));
    return weights.data();
  }
  void operator()(const Task& task) { seen += text(task.stage(), task.kind(), task.item(), ' '); }
};

/// What became of a run.
struct Outcome {
  bool failed = false;              ///< whether the allocation was reached
  std::string thrown;               ///< what run_threads() throws
  std::vector<std::string> others;  ///< what the errors of the ranks say whose allocations succeed
  std::vector<std::string> seen;    ///< the tasks of each rank that ended
};

/// Two steps of `schedule`, in which allocation `n` of rank `failing` fails.
Outcome run(const Schedule& schedule, Rank failing, std::int64_t n, bool all_later) {
  Outcome outcome;
  outcome.others.resize(static_cast<std::size_t>(schedule.ranks()));
  outcome.seen.resize(static_cast<std::size_t>(schedule.ranks()));
  std::atomic<bool> failed = false;
  try {
    run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
      const bool mine = transport.rank() == failing;
      if (mine) for_good = all_later, left = n;
      try {
        Model model;
        Runner runner(model, schedule, transport, {.execute = {.watchdog = 60}});
        runner.step();
        runner.step();
        runner.drain();
        if (mine) failed = left == never || left < 0;
        left = never;
        outcome.seen[+transport.rank()] = model.seen;
      } catch (const std::exception& error) {
        if (mine) failed = true;
        if (!mine) outcome.others[+transport.rank()] = error.what();
        throw;
      }
    });
  } catch (const std::exception& error) {
    outcome.thrown = error.what();
  }
  outcome.failed = failed;
  return outcome;
}

/// Whether the run threw the error of the failing rank, and the other ranks name it. If it threw
/// none, nobody needed the memory, or the allocation was not reached: then it did all its tasks.
bool is_right(const Outcome& outcome, const Outcome& undisturbed, Rank failing) {
  if (outcome.thrown.empty()) return outcome.seen == undisturbed.seen;
  const std::string name = text("rank ", failing, " failed at ");
  return outcome.failed && outcome.thrown.find("bad_alloc") != std::string::npos &&
         std::ranges::all_of(outcome.others, [&](const std::string& other) {
           return other.empty() || (other.find(name) != std::string::npos &&
                                    (other.find("bad_alloc") != std::string::npos ||
                                     other.find("out of memory") != std::string::npos));
         });
}

/// Fails every allocation of a rank, or `most` of them that are spread evenly.
void fail_each(const Schedule& schedule, Rank failing, bool all_later, std::int64_t most) {
  // How many there are: the first number that no allocation has.
  std::int64_t count = 1;
  while (run(schedule, failing, count, all_later).failed) count *= 2;
  const std::int64_t stride = std::max<std::int64_t>(1, count / most);
  // How many differs from run to run: `count` itself may be reached.
  const Outcome undisturbed = run(schedule, failing, never - 1, all_later);
  REQUIRE_FALSE(undisturbed.failed);
  std::int64_t tried = 0;
  for (std::int64_t n = 0;; n += stride, ++tried) {
    // Nothing else allocates between both looks at `live`.
    const std::int64_t before = live;
    std::string wrong;
    bool done = false;
    {
      const Outcome outcome = run(schedule, failing, n, all_later);
      done = !outcome.failed;
      if (!is_right(outcome, undisturbed, failing)) {
        wrong = "the run threw '" + outcome.thrown + "', its ranks";
        for (const std::string& other : outcome.others) wrong += "\n" + other;
      }
    }
    const std::int64_t leaked = live - before;
    INFO("rank " << failing << ", allocation " << n << (all_later ? " and all later ones" : ""));
    if (!wrong.empty()) FAIL(wrong);
    REQUIRE(leaked == 0);
    if (done) break;
  }
  CHECK(tried >= std::min<std::int64_t>(most / 4, count / 2));
}

}  // namespace

TEST_CASE("a step in which an allocation fails ends, and nothing leaks") {
  const auto most = static_cast<std::int64_t>(test::cases(60, 1'000'000));
  const Schedule pipeline = schedule::one_f_one_b({.ranks = 3, .microbatches = 4});
  for (std::size_t rank = 0; rank < 3; ++rank)
    for (const bool all_later : {false, true}) fail_each(pipeline, Rank{rank}, all_later, most);
}

TEST_CASE("a rank without memory for the text of its error still tells the others that it failed") {
  std::string told;
  std::byte byte{};
  try {
    run_threads(2, [&](ThreadTransport& transport) {
      try {
        if (transport.rank() == Rank{0})
          throw out_of_memory({"a model", "its activations do not fit into the memory"});
        ThreadTransport::Request request = transport.receive(Rank{0}, Lane{0}, &byte, 1);
        impl::await(
            transport, request, Idle::nap, 60, [] { return std::string("rank 1"); },
            [] {
              return ErrorInfo{"rank 1", "it waits"};
            });
      } catch (const communication_error& error) {
        told = error.what();
        throw;
      } catch (const out_of_memory&) {
        for_good = true, left = 0;
        throw;
      }
    });
    FAIL("nothing was thrown");
  } catch (const out_of_memory&) {
  }
  CHECK_THAT(told, ContainsSubstring("rank 0 failed at its body (out of memory)"));
}

TEST_CASE("a rank without memory for the transport of the ranks that are left ends the others") {
  int failures = 0;
  for (std::int64_t n = 0; n < 12; ++n) {
    std::atomic<bool> failed = false;
    std::vector<std::string> told(3);
    run_threads(3, [&](ThreadTransport& transport) {
      const std::size_t self = +transport.rank();
      // If rank 1 fails before the others know that it takes part, they wait for the first
      // watchdog.
      if (self == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      try {
        if (self == 1) left = n;
        const auto survivors = transport.survivors(5);
        left = never;
        (void)all_gather(*survivors.transport, {}, {.watchdog = 60});
      } catch (const std::bad_alloc&) {
        failed = true;
        told[self] = "out of memory";
      } catch (const communication_error& error) {
        told[self] = error.what();
      }
    });
    INFO("allocation " << n << ": " << told[0] << "; " << told[1] << "; " << told[2]);
    if (failed) ++failures;
    for (const std::string& error : told) {
      CHECK(error.empty() != failed);
      CHECK(error.find("watchdog after 60 s") == std::string::npos);
    }
  }
  CHECK(failures > 0);
}

}  // namespace test_allocation_failures
