// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2
// space: its own
// program: its own
// timeout: 120

// Steps over MPI in which one allocation of a rank fails, or all from there on, for a sample of its
// allocations: no rank hangs, nothing leaks, and the other rank names the rank that failed. The
// form with threads, in execute/, fails every allocation.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/failing_allocations.hpp"
#include "support/world.hpp"

namespace test_allocation_failures {

namespace hd = heddle;
using hd::test::for_good;
using hd::test::left;
using hd::test::live;
using hd::test::never;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

/// What became of a run on this rank.
struct Outcome {
  bool reached = false;  ///< whether this rank failed, or would have
  std::string told;      ///< the error
  std::string seen;      ///< the tasks that ended
};

/// Two steps, in which allocation `n` of this rank fails unless it is `never`.
Outcome run(const hd::Schedule& schedule, hd::DeviceMesh& mesh, std::int64_t n, bool all_later) {
  Outcome outcome;
  for_good = all_later;
  left = n;
  try {
    std::string seen;
    const auto model = [&](const hd::Task& task) {
      seen += hd::text(task.stage(), task.kind(), task.item(), ' ');
    };
    hd::Runner runner(model, schedule, mesh, {.execute = {.watchdog = 60}});
    runner.step();
    runner.step();
    runner.drain();
    outcome.reached = n != never && (left == never || left < 0);
    left = never;
    outcome.seen = seen;
  } catch (const std::exception& error) {
    outcome.reached = n != never && (left == never || left < 0);
    left = never;
    outcome.told = error.what();
  }
  return outcome;
}

bool is_out_of_memory(const std::string& told) {
  return told.find("bad_alloc") != std::string::npos ||
         told.find("out of memory") != std::string::npos;
}

/// Whether all ranks say yes.
bool on_all(bool mine) {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

}  // namespace

TEST_CASE("a step over MPI in which an allocation fails ends, and nothing leaks") {
  const hd::Schedule schedule =
      hd::schedule::one_f_one_b({.ranks = world_size(),
                                 .microbatches = 3,
                                 .sizes = {.activation = 64, .saved = 64, .parameters = 8}});
  // Each failure takes a second, for which the ranks wait for each other's last messages.
  const auto factor =
      std::max<std::int64_t>(2, 40 / static_cast<std::int64_t>(hd::test::cases(1, 20)));
  for (int failing = 0; failing < world_size(); ++failing)
    for (const bool all_later : {false, true}) {
      std::string usual;
      std::int64_t tried = 0;
      for (std::int64_t n = -1;; n = factor * (n + 1)) {
        const bool mine = world_rank() == failing && n >= 0;
        const std::int64_t before = live;
        bool reached = false;
        {
          hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
          const double begin = MPI_Wtime();
          const Outcome outcome = run(schedule, mesh, mine ? n : never, all_later);
          if (MPI_Wtime() - begin > 30)
            FAIL("rank " << failing << ", allocation " << n
                         << (all_later ? " and all later ones" : "")
                         << ": a rank waits for its watchdog; " << outcome.told);
          if (n < 0) usual = outcome.seen;
          const std::string name = hd::text("rank ", failing, " failed at ");
          const bool good = outcome.told.empty()
                                ? outcome.seen == usual
                                : is_out_of_memory(outcome.told) &&
                                      (mine || outcome.told.find(name) != std::string::npos);
          if (!good)
            FAIL("rank " << failing << ", allocation " << n
                         << (all_later ? " and all later ones: " : ": ") << outcome.told);
          reached = on_all(world_rank() != failing || outcome.reached);
        }
        const std::int64_t leaked = live - before;
        if (n >= 0) REQUIRE(leaked == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        tried += n >= 0 ? 1 : 0;
        if (n >= 0 && !reached) break;
      }
      CHECK(tried >= 3);
    }
}

}  // namespace test_allocation_failures
