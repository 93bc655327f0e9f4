// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// shared stop|kill RUN WATCHDOG: as program.cpp, for ranks that read each other's memory in place
/// and wait for each other's progress: there is no message that could fail to come.

#include <cstdint>
#include <string_view>

#include <mpi.h>

#include <heddle/comm/shared_transport.hpp>
#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "failure.hpp"

namespace {

namespace hd = heddle;

void sums(const failing::Run& run) {
  hd::SharedTransport transport(MPI_COMM_WORLD, {.messages = {.patience = 1}});
  const auto ranks = static_cast<std::uint64_t>(transport.size());
  const hd::Random random(7, "kill");
  const hd::Rank victim{random.below(2 * run.number, ranks)};
  constexpr hd::Bytes bytes = 8 * 6000;
  const hd::SharedBlocks data = transport.share(bytes);
  hd::SharedExecutor executor(
      transport,
      hd::schedule::share_memory(
          hd::schedule::impl::collective_in_segments(
              hd::schedule::Collective::all_reduce, hd::schedule::Algorithm::ring,
              {.ranks = transport.size(), .bytes = bytes, .chunks = 3}),
          transport.domains()),
      [&](hd::BufferId, const hd::Buffer& buffer) { return data.of[+buffer.rank]; },
      {.watchdog = run.watchdog,
       .log = [&](std::string_view reason) { failing::name(transport.rank(), reason); }});
  // A rank has as many actions in a step as any other; the last step misses the one that left.
  constexpr std::uint64_t steps = 3;
  const std::uint64_t each = executor.schedule().size() / ranks;
  std::uint64_t left = random.below(2 * run.number + 1, (steps - 1) * each);
  failing::let_others_speak([&] {
    for (std::uint64_t step = 0; step < steps; ++step)
      executor.step([&](const hd::Task& task) {
        if (transport.rank() == victim && left-- == 0) failing::leave(victim, run.signal);
        hd::perform_on_host(task);
      });
  });
}

}  // namespace

int main(int argc, char** argv) { return failing::status_of(argc, argv, &sums); }
