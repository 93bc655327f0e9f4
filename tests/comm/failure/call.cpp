// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// call stop|kill RUN WATCHDOG: as program.cpp, for ranks that call all_reduce(): in memory that
/// they share, by what is usual or in a ring, or by messages. One leaves in the middle of a merge.

#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/comm/communicator.hpp>

#include "failure.hpp"

namespace {

namespace hd = heddle;
using hd::schedule::Algorithm;

/// Of this rank: the merges of two elements that it has made, and when and how it leaves.
std::atomic<std::uint64_t> merges = 0;
std::uint64_t lives_for = std::numeric_limits<std::uint64_t>::max();
int leaves_by = 0;
hd::Rank me;

/// A sum that no MPI library knows.
struct DoomedSum {
  void join(std::int64_t& into, const std::int64_t& from) const {
    if (merges++ == lives_for) failing::leave(me, leaves_by);
    into += from;
  }
  void init(std::int64_t& value) const { value = 0; }
};

void all_reduces(const failing::Run& run) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  me = comm.rank();
  leaves_by = run.signal;
  const hd::Random random(8, "kill");
  const auto draw = [&](std::uint64_t what, std::uint64_t below) {
    return random.below(3 * run.number + what, below);
  };
  const std::uint64_t way = draw(0, 3);
  hd::CallOptions options{
      .shared_memory = way < 2,
      .wait = {.watchdog = run.watchdog,
               .log = [](std::string_view reason) { failing::name(me, reason); }}};
  if (way > 0) options.algorithm = Algorithm::ring;
  const Kokkos::View<std::int64_t*, Kokkos::HostSpace> data("data", 20011);
  const auto call = [&] {
    hd::all_reduce(Kokkos::DefaultHostExecutionSpace{}, data, DoomedSum{}, comm, options);
  };
  // The first call counts the merges of one. The last misses the rank, whoever it is.
  failing::let_others_speak([&] {
    call();
    if (+me == draw(1, static_cast<std::uint64_t>(comm.size())))
      lives_for = merges + draw(2, 2 * merges);
    for (int again = 0; again < 3; ++again) call();
  });
}

}  // namespace

int main(int argc, char** argv) { return failing::status_of(argc, argv, &all_reduces); }
