// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_paths(): measures the fastest path of strided messages between two ranks.
/// StridedExchange, Halo and redistribute() use the resulting table. One measurement per machine is
/// enough.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/comm/strided_exchange.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/layout/pack_table.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

/// The options of measure_paths().
struct PathOptions {
  std::vector<Bytes> sizes = {1024, 16384, 262144, 4194304};  ///< message sizes, ascending
  std::vector<Bytes> runs = {
      8, 64, 512, 4096};        ///< run lengths in bytes; gaps between runs have the same length
  int rounds = 7;               ///< rounds, of which the median counts; paths alternate
  ExecuteOptions execute = {};  ///< how ranks wait
};

namespace impl {

/// Returns all paths that exist for memory of one kind.
[[nodiscard]] std::vector<StridedPath> paths_from(const BoxMemory& memory);

/// Returns, for each path, the median time in which this rank and a peer exchange a box of `bytes`
/// bytes in runs of `run` bytes.
template <kernel::ExecutionSpace Exec>
[[nodiscard]] std::vector<Seconds> path_times(const Communicator& comm, Bytes bytes, Bytes run,
                                              std::span<const StridedPath> paths,
                                              const PathOptions& options) {
  const Bytes length = std::clamp<Bytes>(bytes / 2, 1, run);  // a shorter one is in two runs
  const std::uint64_t count = bytes / length;
  const StridedBlock block =
      StridedBlock(length).repeated(count, 2 * static_cast<std::int64_t>(length));
  const Kokkos::View<std::byte*, typename Exec::memory_space> from("heddle::comm::paths_from",
                                                                   2 * bytes),
      to("heddle::comm::paths_to", 2 * bytes);
  const std::vector<StridedMove> moves{{Rank{comm.rank() == Rank{0} ? 1 : 0}, block}};
  const Exec exec{};
  std::deque<StridedExchange<Exec>> exchanges;
  for (const StridedPath path : paths) {
    auto& exchange = exchanges.emplace_back(comm, moves, moves,
                                            StridedOptions{PathTable(path), options.execute});
    exchange(exec, from.data(), to.data());  // connections are made here, and memory touched
  }
  std::vector<std::vector<Seconds>> times(paths.size());
  for (int round = 0; round < options.rounds; ++round)
    for (std::size_t p = 0; p < paths.size(); ++p) {
      const Seconds begin = steady_seconds();
      exchanges[p](exec, from.data(), to.data());
      times[p].push_back(steady_seconds() - begin);
    }
  std::vector<Seconds> medians;
  for (std::vector<Seconds>& each : times) {
    const auto middle = each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2);
    std::nth_element(each.begin(), middle, each.end());
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace impl

/// Measures by every available path the exchange of strided boxes in memory of `Exec` between ranks
/// 0 and 1 of `comm`. Returns a table with the fastest path for every size and run. The other ranks
/// wait. The call is collective, and the result is the same on all ranks. Place ranks 0 and 1 like
/// the ranks that will send messages, because only these two are measured.
/// @throws contract_error on every rank if there are fewer than two ranks, or if the options of a
///         rank are invalid.
/// @throws communication_error if a rank does not answer. The watchdog's time must cover all rounds
///         of the slowest shape, because the other ranks wait for them.
template <kernel::ExecutionSpace Exec>
[[nodiscard]] PathTable measure_paths(const Communicator& comm, const PathOptions& options = {}) {
  constexpr const char* where = "heddle::measure_paths";
  const auto check = [&] {
    expects(comm.size() >= 2, [&] {
      return ErrorInfo{where, "two ranks are needed", text("there is ", comm.size())};
    });
    expects(options.rounds >= 1, [&] {
      return ErrorInfo{where, "the number of rounds must be at least 1",
                       text("rounds = ", options.rounds)};
    });
    for (const Bytes size : options.sizes)
      expects(size <= Bytes{1} << 40, [&] {
        return ErrorInfo{where, "a message has at most 1 TiB", text("sizes has ", size, " bytes")};
      });
    expect_valid(options.execute, where);
    const std::size_t shapes = options.sizes.size() * options.runs.size();
    static_cast<void>(PackTable(options.sizes, options.runs, std::vector<double>(shapes, 1.0)));
  };
  check_together(
      comm, where, check,
      [&] {
        return CollectiveCall{where,
                              {{"rounds", text(options.rounds)},
                               {"sizes", impl::listed(options.sizes)},
                               {"runs", impl::listed(options.runs)}}};
      },
      ContractLevel::communication, options.execute.watchdog);
  const std::vector<StridedPath> paths = impl::paths_from(impl::box_memory<Exec>());
  auto& transport = comm.attached<MpiTransport>();
  std::vector<std::vector<double>> gains(paths.size());
  for (const Bytes size : options.sizes)
    for (const Bytes run : options.runs) {
      std::vector<Seconds> mine;  // by path
      if (+comm.rank() < 2) mine = impl::path_times<Exec>(comm, size, run, paths, options);
      // After every shape, so that the others never wait for more than one.
      const std::vector<std::vector<Seconds>> all =
          all_gather_values<Seconds>(transport, std::span<const Seconds>(mine), options.execute);
      const auto slower = [&](std::size_t path) { return std::max(all[0][path], all[1][path]); };
      for (std::size_t p = 0; p < paths.size(); ++p) gains[p].push_back(slower(0) / slower(p));
    }

  std::vector<PathTable::Entry> entries;
  for (std::size_t p = 0; p < paths.size(); ++p)
    entries.push_back({paths[p], PackTable(options.sizes, options.runs, std::move(gains[p]))});
  return PathTable(std::move(entries));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/measure_paths.ipp>
#endif
