// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// The calls all_reduce and reduce_scatter of two ranks that share memory against the MPI
/// library's: on SharedViews, which they find out, and on Views in ordinary memory, where a table
/// of costs leads to shared memory. And against a loop by hand with the least traffic, which is the
/// limit of the machine. Each rank has a core of its own. What a meeting of the two takes, by a
/// cache line each way, tells how far apart these cores are: a virtual machine may find them in one
/// core complex at one time and on two dies at another, and all times follow.
///
/// Both are compared with the faster of the library's two forms, from an input to an output and
/// with MPI_IN_PLACE. Ours of all_reduce is in place, that of reduce_scatter keeps its input.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/machine/network.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>

#include "../../mpi_library.hpp"
#include "../../ranks.hpp"
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

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// A table that leads calls to shared memory.
hd::plan::CostTable table_of_shared_memory() {
  const hd::Link link{1e-6, 1e10};
  hd::plan::CostTable table(hd::network({{link, link}, {link, link}}, {.name = "core"}));
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter})
    table.set(collective, largest,
              {.algorithm = Algorithm::direct, .piece = hd::shared_piece, .shared = true}, 1);
  return table;
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
  hd::Communicator comm{MPI_COMM_WORLD};
  std::shared_ptr<const hd::plan::CostTable> table =
      std::make_shared<const hd::plan::CostTable>(table_of_shared_memory());
  hd::SharedTransport transport{MPI_COMM_WORLD};
  hd::SharedBlocks blocks = transport.share(largest);
  hd::SharedBlocks counters = transport.share(64);
  hd::SharedView<double*> shared_input{comm, largest / sizeof(double)};
  hd::SharedView<double*> shared_output{comm, largest / sizeof(double) / ranks};
  OwnMemory input;
  OwnMemory output;
  int self = static_cast<int>(+transport.rank());
  std::uint64_t meetings = 0;

  double* shared(int rank) const {
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

/// Nanoseconds of a meeting.
double time_of_meeting(Setting& setting) {
  constexpr int meetings = 1000;
  const double seconds = bench::seconds_of([&] {
    for (int i = 0; i < meetings; ++i) setting.meet();
  });
  return seconds * 1e9 / meetings;
}

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

/// From `input` to `output`, or where it lies.
void by_call(const Setting& setting, Collective collective, double* input, double* output,
             std::size_t count, const hd::CallOptions& options) {
  const View data(input, count);
  if (collective == Collective::all_reduce)
    hd::all_reduce(Exec{}, data, hd::Sum{}, setting.comm, options);
  else
    hd::reduce_scatter(Exec{}, data, View(output, count / ranks), hd::Sum{}, setting.comm, options);
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
  const int self = setting.self;
  double* const by_hand_in = setting.shared(self);
  double* const shared = setting.shared_input.view().data();
  double* const shared_result = setting.shared_output.view().data();
  double* const own = setting.input.data;
  double* const result = setting.output.data;
  const bool whole = collective == Collective::all_reduce;
  // Of the sums: those that this rank ends with.
  const std::size_t first = whole || self == 0 ? 0 : count / 2;
  const std::size_t mine = whole ? count : count / 2;
  const std::array<std::function<void()>, 5> ways{
      [&] { by_call(setting, collective, shared, shared_result, count, {}); },
      [&] { by_call(setting, collective, own, result, count, {.costs = setting.table}); },
      [&] { by_hand(setting, collective, count); },
      [&] { by_library(setting, collective, count, true); },
      [&] { by_library(setting, collective, count, false); }};
  const std::array<double*, 5> inputs{shared, own, by_hand_in, own, own};
  const std::array<const double*, 5> outputs{whole ? shared : shared_result, whole ? own : result,
                                             by_hand_in + first, own, result};
  const std::array<const char*, 5> names{"the call on SharedViews", "the call", "by hand",
                                         "the library's in place", "the library's"};
  for (std::size_t who = 0; who < ways.size(); ++who) {
    for (std::size_t i = 0; i < count; ++i) inputs[who][i] = value(self, i);
    setting.meet();  // all data is there
    ways[who]();
    setting.meet();
    require_sums(names[who], outputs[who], first, mine);
  }

  const int repetitions = static_cast<int>(std::clamp<Bytes>((Bytes{8} << 20) / bytes, 1, 32));
  std::array<std::vector<double>, 5> times;
  std::vector<double> meetings;
  for (int round = -2; round < pairs; ++round) {
    meetings.push_back(time_of_meeting(setting));
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::size_t who = (i + static_cast<std::size_t>(round + 2)) % times.size();
      const double seconds = time_of(setting, repetitions, inputs[who], count, ways[who]);
      if (round >= 0) times[who].push_back(seconds * 1e6);
    }
  }
  if (self != 0) return;
  const std::string name = "collective/shared_" + bench::mpi_library();
  const std::string what = hd::text(collective, '_', size_name(bytes));
  const auto& theirs =
      bench::summarise(times[3]).median < bench::summarise(times[4]).median ? times[3] : times[4];
  bench::print_ratio(name, what, bench::ratios(theirs, times[0]));
  bench::print_ratio(name, what + "_own_memory", bench::ratios(theirs, times[1]));
  bench::print_value(name, what + "_over_limit", bench::ratios(times[0], times[2]), "x");
  bench::print_value(name, what + "_time", bench::summarise(times[0]), "us");
  bench::print_value(name, what + "_own_memory_time", bench::summarise(times[1]), "us");
  bench::print_value(name, what + "_limit", bench::summarise(times[2]), "us");
  bench::print_value(name, what + "_meeting", bench::summarise(meetings), "ns");
  bench::print_value(name, what + "_library_in_place", bench::summarise(times[3]), "us");
  bench::print_value(name, what + "_library", bench::summarise(times[4]), "us");
}

void run() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  hd::expects(size == ranks, [&] {
    return hd::ErrorInfo{"collective/shared", "two ranks are compared", hd::text(size, " ranks")};
  });
  Setting setting;
  bench::bind_to_core(setting.self);
  if (setting.self == 0) bench::skip_other_libraries("collective/shared");
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter})
    for (const Bytes bytes : {256 * KiB, 2048 * KiB, 16384 * KiB, largest})
      compare(setting, collective, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const hd::Environment environment(argc, argv);
  return bench::status_of("collective/shared", run);
}
