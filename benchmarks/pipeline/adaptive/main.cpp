// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// AdaptiveRunner against 1F1B where the network becomes slow and free again: 4 stages of waits.
///
/// - pipeline/adaptive: threads with shaped links between them.
/// - pipeline/adaptive_network: MPI ranks in the emulated network whose script HEDDLE_NETLAB names
///   (it needs root); the rates of its links are cut and restored while the ranks run.
///
/// There is nothing to iterate over that Google Benchmark could time: steps belong to all ranks.

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <unistd.h>

#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>

#include "compare.hpp"

namespace hd = heddle;

namespace {

constexpr hd::Bytes message = 48 * 1024;  // below what MPIs send at once over TCP

void threads() {
  constexpr hd::Seconds forward = 4e-3;
  std::atomic<double> slowness = 0;
  std::barrier<> meeting(adaptive::ranks);
  std::array<double, adaptive::ranks> values{};
  hd::run_threads(adaptive::ranks, [&](hd::ThreadTransport& inner) {
    // All of it rate: a link that carries one message carries no other.
    hd::ShapedTransport transport(inner, {.link = [&](hd::Rank, hd::Rank, hd::Seconds) -> hd::Link {
                                    const double c = slowness;
                                    return c == 0 ? hd::Link{}
                                                  : hd::Link{.bandwidth = message / (c * forward)};
                                  }});
    const auto slow = [&](double c) {
      meeting.arrive_and_wait();
      slowness = c;
      meeting.arrive_and_wait();
    };
    const auto slowest = [&](double mine) {
      values[+transport.rank()] = mine;
      meeting.arrive_and_wait();
      const double most = *std::max_element(values.begin(), values.end());
      meeting.arrive_and_wait();
      return most;
    };
    adaptive::compare("pipeline/adaptive", transport, forward, message, slow, slowest);
  });
}

/// Runs `command`. @throws error where it does not succeed.
void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0)
    throw hd::communication_error({"pipeline/adaptive", "a command failed", command});
}

/// One rank of the emulated network, on a node of its own.
void network(int argc, char** argv, const std::string& script) {
  constexpr hd::Seconds forward = 20e-3;  // a tenth of it is long for the emulation, too
  hd::Environment env(argc, argv);
  hd::MpiTransport transport(MPI_COMM_WORLD);
  const auto slow = [&](double c) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (transport.rank() == hd::Rank{0}) {
      const auto bits = static_cast<long>(8 * message / (c * forward));
      const std::string rate = c == 0 ? "none" : hd::text(bits / 1000, "kbit");
      for (int node = 0; node < adaptive::ranks; ++node)
        shell(hd::text("'", script, "' rate -L \"$NETLAB_LAB\" ", node, ' ', rate));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  };
  const auto slowest = [&](double mine) {
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return mine;
  };
  adaptive::compare("pipeline/adaptive_network", transport, forward, message, slow, slowest);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const script = std::getenv("HEDDLE_NETLAB");
  const bool has_script = script != nullptr && std::filesystem::exists(script);
  try {
    const bool is_rank = argc == 2 && std::string_view(argv[1]) == "network";
    hd::expects(argc == 1 || (is_rank && has_script), [] {
      return hd::ErrorInfo{"pipeline/adaptive", "it takes no arguments",
                           "and starts itself with one in the network of HEDDLE_NETLAB"};
    });
    if (is_rank) {
      network(argc, argv, script);
    } else {
      threads();
      if (has_script)
        shell(hd::text("'", script, "' run -L hd", getpid() % 100000, " -n ", adaptive::ranks,
                       " -- '", std::filesystem::read_symlink("/proc/self/exe").string(),
                       "' network"));
      else
        std::cout << "skip pipeline/adaptive_network HEDDLE_NETLAB does not name the script of an "
                     "emulated network\n";
    }
  } catch (const std::exception& error) {
    std::cerr << "pipeline/adaptive: " << error.what() << '\n';
    int is_up = 0;
    MPI_Initialized(&is_up);
    if (is_up != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
  }
}
