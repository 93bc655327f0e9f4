// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// shared stop|kill RUN WATCHDOG: as program.cpp, for ranks that read each other's memory in place
/// and wait for each other's progress: there is no message that could fail to come.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <mpi.h>

#include <heddle/comm/environment.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

namespace {

namespace hd = heddle;

/// One write, so that the lines of several ranks do not mix.
void say(std::string line) {
  line += '\n';
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

void run(int signal, std::uint64_t number, double watchdog) {
  hd::SharedTransport transport(MPI_COMM_WORLD, {.messages = {.patience = 1}});
  const auto ranks = static_cast<std::uint64_t>(transport.size());
  const hd::Random random(7, "kill");
  const hd::Rank victim{random.below(2 * number, ranks)};
  constexpr hd::Bytes bytes = 8 * 6000;
  const hd::SharedBlocks data = transport.share(bytes);
  hd::SharedExecutor executor(
      transport,
      hd::share_memory(hd::schedule::collective_in_segments(
                           hd::schedule::Collective::all_reduce, hd::schedule::Algorithm::ring,
                           {.ranks = transport.size(), .bytes = bytes, .chunks = 3}),
                       transport.domains()),
      [&](hd::BufferId, const hd::Buffer& buffer) { return data.of[+buffer.rank]; },
      {.watchdog = watchdog, .log = [&](std::string_view reason) {
         say(hd::text("rank ", transport.rank(), " named at ", hd::steady_seconds(), ": ", reason));
       }});
  // A rank has as many actions in a step as any other; the last step misses the one that left.
  constexpr std::uint64_t steps = 3;
  const std::uint64_t each = executor.schedule().size() / ranks;
  std::uint64_t left = random.below(2 * number + 1, (steps - 1) * each);
  try {
    for (std::uint64_t step = 0; step < steps; ++step)
      executor.step([&](const hd::Task& task) {
        if (transport.rank() == victim && left-- == 0) {
          say(hd::text("rank ", victim, " leaves at ", hd::steady_seconds()));
          std::raise(signal);
        }
        hd::perform_on_host(task);
      });
  } catch (const std::exception&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the job ends with the first
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const hd::Environment environment(argc, argv);
    run(std::string_view(argv[1]) == "stop" ? SIGSTOP : SIGKILL,
        static_cast<std::uint64_t>(std::atoll(argv[2])), std::atof(argv[3]));
  } catch (const std::exception&) {  // it has been said
    return 1;
  }
  return 0;
}
