// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4 7 8
// space: its own

// Calls that are large enough for ranks of one host to read each other in place, and the same ones
// by messages: each against the MPI library's own, with even and uneven blocks, again and again in
// other memory.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>

namespace test_shared {

namespace hd = heddle;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<std::int64_t*, Kokkos::HostSpace>;
constexpr std::size_t large = 20011;

/// The whole input of this rank, and room for its output.
struct Memory {
  View in, out;
  Memory(const hd::Communicator& comm, std::size_t input, std::size_t output, int round)
      : in("in", input), out("out", output) {
    for (std::size_t i = 0; i < input; ++i)
      in(i) = static_cast<std::int64_t>(+comm.rank() * 1000003 + i * 7) + round;
  }
};

bool equal(const View& a, const View& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a(i) != b(i)) return false;
  return a.size() == b.size();
}

/// Makes `call` by the library, and by all algorithms of ours in shared memory and by messages;
/// what is in `result` must be equal.
void check(
    Collective collective, std::size_t input, std::size_t output,
    const std::vector<std::size_t>& counts,
    const std::function<void(const Memory&, const hd::Communicator&, const hd::CallOptions&)>& call,
    const std::function<View(const Memory&)>& result) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (std::size_t a = 0; a < hd::schedule::algorithm_count; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    if (!hd::schedule::why_not(collective, algorithm, {.ranks = comm.size()}).empty()) continue;
    for (int round = 0; round < 2; ++round) {
      const Memory library(comm, input, output, round);
      call(library, comm, {.counts = counts});
      for (const bool shared : {true, false}) {
        const Memory ours(comm, input, output, round);
        call(ours, comm, {.algorithm = algorithm, .counts = counts, .shared_memory = shared});
        INFO(collective << " by " << algorithm << (shared ? " in shared memory" : " by messages")
                        << ", round " << round);
        CHECK(equal(result(library), result(ours)));
      }
    }
  }
}

}  // namespace

TEST_CASE("large calls of equal and unequal blocks equal the library's") {
  const hd::Communicator all(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(all.size());
  const auto me = +all.rank();
  const auto in = [](const Memory& memory) { return memory.in; };
  const auto out = [](const Memory& memory) { return memory.out; };
  std::vector<std::size_t> uneven;
  std::size_t sum = 0;
  for (std::size_t r = 0; r < p; ++r) sum += uneven.emplace_back(r == 1 ? 0 : 9000 + 501 * r);
  check(
      Collective::all_reduce, large, 0, {},
      [](const auto& memory, const auto& comm, const auto& options) {
        hd::all_reduce(Exec{}, memory.in, hd::Sum{}, comm, options);
      },
      in);
  check(
      Collective::broadcast, large, 0, {},
      [](const auto& memory, const auto& comm, const auto& options) {
        hd::broadcast(Exec{}, memory.in, hd::Rank{1}, comm, options);
      },
      in);
  check(
      Collective::reduce, large, 0, {},
      [](const auto& memory, const auto& comm, const auto& options) {
        hd::reduce(Exec{}, memory.in, hd::Sum{}, hd::Rank{1}, comm, options);
      },
      [&](const Memory& memory) { return me == 1 ? memory.in : View(); });
  for (const bool counted : {false, true}) {
    const auto counts = counted ? uneven : std::vector<std::size_t>{};
    const std::size_t whole = counted ? sum : p * 8009;
    const std::size_t block = counted ? uneven[me] : 8009;
    check(
        Collective::reduce_scatter, whole, block, counts,
        [](const auto& memory, const auto& comm, const auto& options) {
          hd::reduce_scatter(Exec{}, memory.in, memory.out, hd::Sum{}, comm, options);
        },
        out);
    check(
        Collective::all_gather, block, whole, counts,
        [](const auto& memory, const auto& comm, const auto& options) {
          hd::all_gather(Exec{}, memory.in, memory.out, comm, options);
        },
        out);
    check(
        Collective::gather, block, me == 1 ? whole : 0, counts,
        [](const auto& memory, const auto& comm, const auto& options) {
          hd::gather(Exec{}, memory.in, memory.out, hd::Rank{1}, comm, options);
        },
        out);
    check(
        Collective::scatter, me == 1 ? whole : 0, block, counts,
        [](const auto& memory, const auto& comm, const auto& options) {
          hd::scatter(Exec{}, memory.in, memory.out, hd::Rank{1}, comm, options);
        },
        out);
    // Every rank sends the same counts, so that each receives P of its own.
    check(
        Collective::all_to_all, whole, p * block, counts,
        [](const auto& memory, const auto& comm, const auto& options) {
          hd::all_to_all(Exec{}, memory.in, memory.out, comm, options);
        },
        out);
  }
}

TEST_CASE("a reduction that MPI does not know, in segments of a large View") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  using Partial = hd::WeightedMean::Partial<double>;
  const Kokkos::View<Partial*, Kokkos::HostSpace> view("view", 50021);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < view.size(); ++i)
      view(i) = {1, static_cast<double>(+comm.rank() + i)};
    hd::all_reduce(Exec{}, view, hd::WeightedMean{}, comm);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const double mean = static_cast<double>(i) + (comm.size() - 1) / 2.0;
      // P - 1 roundings of numbers below 1e5.
      wrong += view(i).weight != comm.size() || !(std::abs(view(i).mean - mean) < 1e-10);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("blocks of odd sizes, at odd places, so large that they are copied past the caches") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Kokkos::View<std::int8_t*, Kokkos::HostSpace> ours("ours", 4000037),
      theirs("theirs", 4000037);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < ours.size(); ++i)
      ours(i) = theirs(i) = static_cast<std::int8_t>((i * 7 + +comm.rank() * 31) % 101);
    hd::all_reduce(Exec{}, ours, hd::Max{}, comm, {.algorithm = Algorithm::direct});
    hd::all_reduce(Exec{}, theirs, hd::Max{}, comm);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) wrong += ours(i) != theirs(i);
    CHECK(wrong == 0);
  }
}

}  // namespace test_shared
