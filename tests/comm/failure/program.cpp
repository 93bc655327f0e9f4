// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// program stop|kill RUN WATCHDOG: runs a schedule over MPI, and one rank sends itself SIGSTOP or
/// SIGKILL at one of its actions: before or after it, or while its messages are under way. RUN
/// draws the transport (messages, or memory that is shared), the schedule, the rank and the moment.
/// That rank prints when it leaves, every other one when it notices and what it waits for, by one
/// clock. A program of its own, because the job ends with it.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "doomed.hpp"
#include "failure.hpp"

namespace {

namespace hd = heddle;

static_assert(hd::SharesMemory<failing::DoomedTransport<hd::SharedTransport>>);
static_assert(hd::ReportsPlaces<failing::DoomedTransport<hd::MpiTransport>>);

/// Pipelines and sums, of messages that MPI sends at once and of those that wait for the receiver.
hd::Schedule schedule_of(std::uint64_t kind, int ranks) {
  const hd::Bytes bytes = kind % 2 == 0 ? 512 : 400'000;
  if (kind / 2 == 0)
    return hd::schedule::one_f_one_b(
        {.ranks = ranks, .microbatches = 6, .sizes = {.activation = bytes, .saved = bytes}});
  return hd::schedule::collective(hd::schedule::Collective::all_reduce,
                                  hd::schedule::Algorithm::ring,
                                  {.ranks = ranks, .bytes = bytes * 8, .chunks = 2});
}

/// What ranks do in one run.
struct Steps {
  failing::Run run;
  hd::Random random{5, "kill"};

  [[nodiscard]] std::uint64_t draw(std::uint64_t what, std::uint64_t below) const {
    return random.below(5 * run.number + what, below);
  }
  [[nodiscard]] hd::ExecuteOptions options(hd::Rank rank) const {
    return {.watchdog = run.watchdog,
            .log = [rank](std::string_view reason) { failing::name(rank, reason); }};
  }

  /// Steps in one of which a rank leaves. The last one misses it, whoever it is.
  template <class Executor>
  void perform(Executor& executor, failing::Doom& doom, hd::Rank rank, int ranks) const {
    const auto act = [&](const hd::Task&) { doom.act(); };
    executor.step(act);
    if (+rank == draw(1, static_cast<std::uint64_t>(ranks)))
      doom.arm(run.signal, draw(2, 2 * doom.acts()), draw(3, 3));
    failing::let_others_speak([&] {
      for (int step = 0; step < 3; ++step) executor.step(act);
    });
  }

  /// By messages.
  void operator()(hd::MpiTransport& transport) const {
    failing::Doom doom(transport.rank());
    failing::DoomedTransport doomed(transport, doom);
    std::vector<std::vector<std::byte>> memory;
    hd::Executor executor(hd::slice(schedule_of(draw(0, 4), transport.size()), transport.rank(),
                                    [&](hd::BufferId, const hd::Buffer& buffer) {
                                      return memory.emplace_back(buffer.bytes + 1).data();
                                    }),
                          doomed, options(transport.rank()));
    perform(executor, doom, transport.rank(), transport.size());
  }

  /// In place.
  void operator()(hd::SharedTransport& transport) const {
    failing::Doom doom(transport.rank());
    failing::DoomedTransport doomed(transport, doom);
    const hd::Schedule schedule = hd::schedule::share_memory(
        schedule_of(2 + draw(0, 2), transport.size()), transport.domains());
    const hd::SharedBlocks data = transport.share(8 * 400'000);
    hd::SharedExecutor executor(
        doomed, schedule,
        [&](hd::BufferId, const hd::Buffer& buffer) { return data.of[+buffer.rank]; },
        options(transport.rank()));
    perform(executor, doom, transport.rank(), transport.size());
  }
};

}  // namespace

int main(int argc, char** argv) {
  return failing::status_of(argc, argv, [](const failing::Run& run) {
    const Steps steps{run};
    if (steps.draw(4, 3) == 0) {
      hd::SharedTransport transport(MPI_COMM_WORLD, {.messages = {.patience = 1}});
      steps(transport);
    } else {
      hd::MpiTransport transport(MPI_COMM_WORLD, {.patience = 1});
      steps(transport);
    }
  });
}
