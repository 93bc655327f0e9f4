// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// training RUN: a training over MPI in which no rank dies (RUN is "none"), or in which ranks kill
/// themselves at random calls: RUN draws which, from one to all but one, and where. The ranks that
/// are left go on in the same processes, and print whether all losses are those of a training on
/// one rank. training.sh reads the lines.

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

#include <heddle/comm/environment.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

#include "failure.hpp"
#include "support/mortal_transport.hpp"
#include "support/surviving_training.hpp"

namespace {

namespace hd = heddle;
using hd::test::Fate;
using Mortal = hd::test::MortalTransport<hd::MpiTransport>;

constexpr int steps = 5;

/// Trains over `comm`, and counts the calls in `fate`.
std::vector<double> train(MPI_Comm comm, Fate& fate, int copies) {
  hd::MpiTransport world(comm, {.patience = 2});
  Mortal transport(world, fate);
  hd::test::SurvivingTraining training{.steps = steps, .copies = copies};
  training.at_call = [&] { fate.call("a layer"); };
  training.run(transport, {.idle = hd::Idle::nap, .watchdog = 30});
  return training.losses;
}

void perform(const std::string& number) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Fate alone, counted;
  const std::vector<double> expected = train(MPI_COMM_SELF, alone, 0);
  const bool as_expected = train(MPI_COMM_WORLD, counted, ranks - 1) == expected;
  failing::say(hd::text("rank ", rank, ": losses ", as_expected ? "as expected" : "differ"));
  if (number == "none") {
    hd::MpiTransport transport(MPI_COMM_WORLD);
    try {
      const auto left = transport.survivors(10);
      failing::say(hd::text("rank ", rank, ": ", left.ranks.size(), " ranks are left"));
    } catch (const hd::communication_error& error) {
      failing::say(hd::text("rank ", rank, ": ", error.what()));
    }
    return;
  }
  const hd::Random random(static_cast<std::uint64_t>(std::atoll(number.c_str())), "deaths");
  const auto below = [&](std::uint64_t what, std::uint64_t bound) {
    return random.below(what, bound);
  };
  const auto size = static_cast<std::uint64_t>(ranks);
  const std::uint64_t spared = below(0, size), deaths = 1 + below(1, size - 1);
  Fate fate;
  for (std::uint64_t d = 0; d < deaths; ++d) {  // some ranks are drawn twice
    if ((spared + 1 + below(2 + d, size - 1)) % size != static_cast<std::uint64_t>(rank)) continue;
    if (d == 1)  // while the others agree, ask who is left, or take their state back
      fate.after_agreement = below(10, 4);
    else
      fate.end = below(11 + d, counted.calls);
  }
  fate.leave = [rank](const char* place) {
    failing::say(hd::text("rank ", rank, " leaves at ", place));
    std::raise(SIGKILL);
  };
  const bool goes_on = train(MPI_COMM_WORLD, fate, ranks - 1) == expected;
  failing::say(hd::text("rank ", rank, " goes on: losses ", goes_on ? "as expected" : "differ"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const hd::Environment environment(argc, argv);
    perform(argv[1]);
  } catch (const std::exception& error) {
    failing::say(error.what());
    return 1;
  }
  return 0;
}
