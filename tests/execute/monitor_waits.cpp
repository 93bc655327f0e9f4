// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// alone: yes

// A Monitor names the fault of executed steps within three looks: four threads wait instead of
// computing, over shaped links. If a rank or a message hangs, all ranks name it.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/thread_transport.hpp>

#include "support/cases.hpp"
#include "support/monitored_waits.hpp"

namespace test_monitor_waits {

using namespace heddle;
using namespace heddle::monitored;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a monitor of executed steps names each class of faults within three looks") {
  const std::uint64_t runs = test::cases(1, 20);
  for (std::uint64_t run = 0; run < runs; ++run)
    for (const auto& fault : executed_faults(run, 4)) {
      std::array<int, 4> looks{};
      run_threads(4, [&](ThreadTransport& transport) {
        looks[+transport.rank()] = looks_until_named(transport, fault);
      });
      if (looks[0] == no_result)
        SKIP("other programs disturb too many steps: no result from run " << run << " on");
      INFO("run " << run << ", " << (fault ? to_string(fault->syndrome) : "no fault"));
      CHECK(looks[0] >= 1);
      for (const int each : looks) CHECK(each == looks[0]);
    }
}

namespace {

/// Sleeps in one action.
struct SleepingModel {
  bool sleeps = false;

  void operator()(const Task& task) const {
    if (sleeps && task.kind() == Kind::forward && +task.item() == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  }
};

/// The errors of four ranks. One of them sleeps, or a link delivers nothing.
std::array<std::string, 4> errors_of(int sleeper, int from) {
  std::array<std::string, 4> errors;
  try {
    run_threads(4, [&](ThreadTransport& inner) {
      bool began = false;  // links deliver what the Runner sends while it is made
      ShapedTransport<ThreadTransport> transport(
          inner, {.link = [&](Rank source, Rank, Seconds) {
            return Link{began && static_cast<int>(source.value) == from ? 1e6 : 0, 1e9};
          }});
      SleepingModel model{static_cast<int>(inner.rank().value) == sleeper};
      try {
        Runner run(model, schedule::one_f_one_b({.ranks = 4, .microbatches = 3}), transport,
                   {.execute = {.idle = Idle::nap, .watchdog = 0.2, .grace = 0.3}});
        began = true;
        for (int step = 0; step < 2; ++step) run.step();
      } catch (const communication_error& error) {
        errors[+inner.rank()] = error.what();
        throw;
      }
    });
  } catch (const communication_error&) {  // the error of the first rank
  }
  return errors;
}

}  // namespace

TEST_CASE("all ranks name a rank that sleeps in an action, and where it was last seen") {
  for (int sleeper = 0; sleeper < 4; ++sleeper) {
    const auto errors = errors_of(sleeper, -1);
    std::string said;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == sleeper) continue;
      const std::string& error = errors[static_cast<std::size_t>(rank)];
      const std::size_t at = error.find(
          text("rank ", sleeper, " is silent, outside of communication; it was last seen "));
      INFO("rank " << rank << ": " << error);
      REQUIRE(at != std::string::npos);
      const std::string words = error.substr(at, error.find(')', at) - at);
      if (said.empty()) said = words;
      CHECK(words == said);
    }
  }
}

TEST_CASE("all ranks name a message that does not arrive") {
  const auto errors = errors_of(-1, 1);
  for (const std::string& error : errors) {
    INFO(error);
    CHECK_THAT(error, ContainsSubstring("the message from rank 1 to rank 2 does not arrive"));
  }
}

}  // namespace test_monitor_waits
