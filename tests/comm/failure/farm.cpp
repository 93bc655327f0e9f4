// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// farm kill|continue RUN WATCHDOG JOURNAL: as program.cpp, for the ranks of a farm with a journal.
/// `kill`: a rank, which may be the one that gives the items out, leaves at one of its messages, in
/// the work on an item, or in the sink. `continue`: the same farm goes on from the journal. Its
/// status is 0 if the sink gets every item exactly once, with its result, and if no rank works on
/// an item that the journal has. It prints how many items that were.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/rank_farm.hpp>

#include "doomed.hpp"
#include "failure.hpp"

namespace {

namespace hd = heddle;

constexpr int count = 120;

/// The result for an item. Some do not fit into one message.
std::string result_of(int item) {
  return hd::text(item, std::string(static_cast<std::size_t>(item % 90), '.'));
}

/// One farm over all ranks. What happens to this rank in work and sink is `doom`'s.
hd::pattern::FarmReport farm(const failing::Run& run, hd::MpiTransport& inner,
                             failing::Doom& messages, failing::Doom& calls,
                             std::vector<int>& delivered, bool& right) {
  failing::DoomedTransport transport(inner, messages);
  int next = 0;
  return hd::pattern::farm(
      transport,
      {.ordered = run.number % 2 == 0,
       .prefetch = 1 + static_cast<int>(run.number / 2 % 2),
       .journal = run.journal,
       .wait = {.idle = hd::Idle::nap, .watchdog = run.watchdog}},
      [&] { return next < count ? std::optional<int>(next++) : std::nullopt; },
      [&](int item) {
        std::this_thread::sleep_for(std::chrono::microseconds(500));
        calls.act();
        return result_of(item);
      },
      [&](std::int64_t number, hd::pattern::FarmOutcome<std::string>&& outcome) {
        calls.act();
        ++delivered[static_cast<std::size_t>(number)];
        right = right && outcome.value == result_of(static_cast<int>(number));
      });
}

void farms(const failing::Run& run) {
  hd::MpiTransport transport(MPI_COMM_WORLD, {.patience = 1});
  const hd::Rank me = transport.rank();
  const auto ranks = static_cast<std::uint64_t>(transport.size());
  const hd::Random random(11, "kill");
  const auto draw = [&](std::uint64_t what, std::uint64_t below) {
    return random.below(4 * run.number + what, below);
  };
  failing::Doom messages(me), calls(me);
  const std::uint64_t victim = draw(0, ranks);
  if (run.signal != 0 && +me == victim) {
    // Rank 0 calls the sink for every item, the others share the work. Each item is a message to a
    // rank and one from it.
    const std::uint64_t least = +me == 0 ? count : count / ranks / 2;
    if (draw(1, 2) == 0)
      messages.arm(run.signal, draw(2, 2 * least), draw(3, 3));
    else
      calls.arm(run.signal, draw(2, least), 0);
  }
  std::vector<int> delivered(count, 0);
  bool right = true;
  failing::let_others_speak([&] {
    try {
      const hd::pattern::FarmReport report =
          farm(run, transport, messages, calls, delivered, right);
      if (run.signal != 0) {
        // It got fewer items than were expected.
        if (+me == victim) failing::leave(me, run.signal);
        static_cast<void>(farm(run, transport, messages, calls, delivered, right));
        return;
      }
      if (+me != 0) return;
      const bool once = std::count(delivered.begin(), delivered.end(), 1) == count;
      failing::say(hd::text("the journal had ", report.known, " of ", report.items, " items"));
      if (!once || !right || report.items != count || report.failed != 0 ||
          report.attempts != count - report.known)
        throw std::runtime_error(
            hd::text("once: ", once, ", right: ", right, ", attempts: ", report.attempts));
    } catch (const std::exception& error) {
      failing::name(me, error.what());
      throw;
    }
  });
}

}  // namespace

int main(int argc, char** argv) { return failing::status_of(argc, argv, &farms); }
