// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// All-reduce and reduce-scatter of two ranks that share memory, in place in blocks of the
/// transport and on memory of their own, against the MPI library's; and against a loop by hand with
/// the least traffic, which is the limit of the machine. Each rank has a core of its own.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <sched.h>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/shared_transport.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "../../support.hpp"

namespace hd = heddle;

namespace {

using hd::Bytes;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

constexpr int pairs = 31;
constexpr int ranks = 2;
constexpr Bytes largest = Bytes{64} << 20;
constexpr Bytes KiB = 1024;

/// Pieces that stay in a core's second cache from one action to the next, and messages through the
/// outbox that do in that of both.
constexpr Bytes segment = 64 * KiB;
constexpr Bytes message = 128 * KiB;

/// Gives this rank a core of its own, as far as there are so many.
void bind_to_core(int rank) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  const int count = CPU_COUNT(&allowed);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank % count) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/// Which MPI this is built with, as bars name it.
std::string library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  const std::string words(version.data(), static_cast<std::size_t>(length));
  if (words.find("Open MPI") != std::string::npos) return "openmpi";
  return words.find("MPICH") != std::string::npos ? "mpich" : "other";
}

hd::Schedule plan(Collective collective, Bytes bytes, const std::vector<std::uint32_t>& domains,
                  bool in_place) {
  const Bytes piece = ranks * (in_place ? segment : message);
  const hd::Schedule schedule = hd::schedule::collective_in_segments(
      collective, Algorithm::direct,
      {.ranks = ranks,
       .bytes = bytes,
       .chunks = static_cast<int>(std::max<Bytes>(bytes / piece, 1))});
  if (in_place) return hd::share_memory(schedule, domains, hd::CopiedBy::sender);
  return hd::fold_to_live(hd::share_memory(hd::copy_out(schedule, domains), domains), 2);
}

/// Memory of this process alone, 64-byte aligned.
struct OwnMemory {
  double* data = static_cast<double*>(std::aligned_alloc(4096, largest));
  OwnMemory() = default;
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory() { std::free(data); }
};

/// What all that is compared works with.
struct Setting {
  hd::SharedTransport transport{MPI_COMM_WORLD};
  hd::SharedBlocks blocks = transport.share(largest);
  hd::SharedBlocks counters = transport.share(64);
  OwnMemory own;
  OwnMemory input;
  OwnMemory output;
  int self = static_cast<int>(+transport.rank());
  std::uint64_t meetings = 0;

  double* shared(int rank) {
    return reinterpret_cast<double*>(blocks.of[static_cast<std::size_t>(rank)]);
  }
  /// Both ranks have come here.
  void meet() {
    const auto counter = [&](int rank) {
      return reinterpret_cast<std::atomic<std::uint64_t>*>(
          counters.of[static_cast<std::size_t>(rank)]);
    };
    counter(self)->store(++meetings, std::memory_order_release);
    hd::Waiting waiting(hd::Idle::yield);
    while (counter(1 - self)->load(std::memory_order_acquire) < meetings) waiting();
  }
};

/// The least traffic: each rank reads both blocks once and writes what it must. Of an all-reduce it
/// stores its half of the sums at both ranks.
void by_hand(Setting& setting, Collective collective, std::size_t count) {
  setting.meet();
  const std::size_t half = count / 2;
  const std::size_t first = setting.self == 0 ? 0 : half;
  double* __restrict const mine = setting.shared(setting.self) + first;
  double* __restrict const theirs = setting.shared(1 - setting.self) + first;
  if (collective == Collective::all_reduce)
    for (std::size_t i = 0; i < half; ++i) mine[i] = theirs[i] = mine[i] + theirs[i];
  else
    for (std::size_t i = 0; i < half; ++i) mine[i] += theirs[i];
  setting.meet();
}

void by_library(const Setting& setting, Collective collective, std::size_t count, bool in_place) {
  const auto all = static_cast<int>(count);
  const void* const from = in_place ? MPI_IN_PLACE : setting.input.data;
  double* const to = in_place ? setting.input.data : setting.output.data;
  if (collective == Collective::all_reduce)
    MPI_Allreduce(from, to, all, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Reduce_scatter_block(from, to, all / 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/// Element i of rank r before the sum; whole numbers, so that every order of adding is exact.
double value(int rank, std::size_t i) {
  return static_cast<double>((i * 7 + 3) % 1013) + 2000.0 * rank;
}

/// Ends the benchmark where `data`, the elements from `first` on, are not the sums.
void require_sums(const char* who, const double* data, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    bench::require_equal(who, data[i], value(0, first + i) + value(1, first + i));
}

/// Seconds of one of `repetitions` calls, of the slower rank. Before each of them, untimed, every
/// rank writes the data that it puts in, as those who sum do: it lies in the cache of its own core,
/// if anywhere. Of zeros, which stay zeros however often they are added.
template <class Work>
double time_of(Setting& setting, int repetitions, double* data, std::size_t count, Work&& work) {
  double seconds = 0;
  for (int i = 0; i < repetitions; ++i) {
    std::fill_n(data, count, 0.0);
    setting.meet();
    seconds += bench::seconds_of(work);
  }
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds / repetitions;
}

std::string size_name(Bytes bytes) {
  return bytes < 1024 * KiB ? hd::text(bytes / KiB, "KiB") : hd::text(bytes / (1024 * KiB), "MiB");
}

void compare(Setting& setting, Collective collective, Bytes bytes) {
  const std::size_t count = bytes / sizeof(double);
  const std::size_t half = count / 2;
  const std::vector<std::uint32_t> domains = setting.transport.domains();
  const hd::ExecuteOptions options{};
  hd::SharedExecutor in_place(
      setting.transport, plan(collective, bytes, domains, true),
      [&](hd::BufferId, const hd::Buffer& buffer) { return setting.blocks.of[+buffer.rank]; },
      options);
  hd::SharedExecutor copied(
      setting.transport, plan(collective, bytes, domains, false),
      [&](hd::BufferId, const hd::Buffer&) {
        return reinterpret_cast<std::byte*>(setting.own.data);
      },
      options);

  const int self = setting.self;
  double* const shared = setting.shared(self);
  const auto refill = [&](double* data) {
    for (std::size_t i = 0; i < count; ++i) data[i] = value(self, i);
  };
  const bool whole = collective == Collective::all_reduce;
  const std::size_t first = whole || self == 0 ? 0 : half;
  const std::size_t mine = whole ? count : half;
  refill(shared);
  in_place.step(&hd::perform_on_host);
  require_sums("in place", shared + first, first, mine);
  refill(shared);
  by_hand(setting, collective, count);
  require_sums("by hand", shared + first, first, mine);
  refill(setting.own.data);
  copied.step(&hd::perform_on_host);
  require_sums("copied out", setting.own.data + first, first, mine);
  refill(setting.input.data);
  by_library(setting, collective, count, false);
  require_sums("the library's", setting.output.data, first, mine);
  by_library(setting, collective, count, true);
  require_sums("the library's in place", setting.input.data, first, mine);

  const int repetitions = static_cast<int>(std::clamp<Bytes>((Bytes{8} << 20) / bytes, 1, 32));
  std::array<std::vector<double>, 5> times;
  for (int round = -2; round < pairs; ++round) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::size_t who = (i + static_cast<std::size_t>(round + 2)) % times.size();
      double* const data =
          who == 0 || who == 2 ? shared : (who == 1 ? setting.own.data : setting.input.data);
      const double seconds = time_of(setting, repetitions, data, count, [&] {
        switch (who) {
          case 0: return in_place.step(&hd::perform_on_host);
          case 1: return copied.step(&hd::perform_on_host);
          case 2: return by_hand(setting, collective, count);
          case 3: return by_library(setting, collective, count, false);
          default: return by_library(setting, collective, count, true);
        }
      });
      if (round >= 0) times[who].push_back(seconds * 1e6);
    }
  }
  if (self != 0) return;
  const std::string name = "collective/shared_" + library();
  const std::string what = hd::text(collective, '_', size_name(bytes));
  // The better one of the library's two forms.
  const auto& theirs =
      bench::summarise(times[3]).median < bench::summarise(times[4]).median ? times[3] : times[4];
  bench::print_ratio(name, what, bench::ratios(theirs, times[0]));
  bench::print_ratio(name, what + "_own_memory", bench::ratios(theirs, times[1]));
  bench::print_value(name, what + "_over_limit", bench::ratios(times[0], times[2]), "x");
  bench::print_value(name, what + "_time", bench::summarise(times[0]), "us");
  bench::print_value(name, what + "_own_memory_time", bench::summarise(times[1]), "us");
  bench::print_value(name, what + "_limit", bench::summarise(times[2]), "us");
  bench::print_value(name, what + "_library", bench::summarise(theirs), "us");
}

void run() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  hd::expects(size == ranks, [&] {
    return hd::Complaint{"collective/shared", "two ranks are compared", hd::text(size, " ranks")};
  });
  Setting setting;
  bind_to_core(setting.self);
  if (setting.self == 0)
    for (const std::string other : {"openmpi", "mpich"})
      if (other != library())
        std::cout << "skip collective/shared_" << other << " this program is built with "
                  << library() << '\n';
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter})
    for (const Bytes bytes : {256 * KiB, 2048 * KiB, 16384 * KiB, largest})
      compare(setting, collective, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = bench::status_of("collective/shared", run);
  MPI_Finalize();
  return status;
}
