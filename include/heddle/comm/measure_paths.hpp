// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_paths(): measures the fastest path of strided messages between two ranks.
/// StridedExchange, Halo and redistribute() use the resulting table. One measurement per machine is
/// enough.

#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/strided_exchange.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

/// The options of measure_paths().
struct PathOptions {
  std::vector<Bytes> sizes = {1024, 16384, 262144, 4194304};  ///< message sizes, ascending
  std::vector<Bytes> runs = {
      8, 64, 512, 4096};     ///< run lengths in bytes; gaps between runs have the same length
  int rounds = 7;            ///< rounds, of which the median counts; paths alternate
  ExecuteOptions wait = {};  ///< how ranks wait
};

namespace impl {

/// Returns all paths that exist for memory of one kind.
[[nodiscard]] std::vector<StridedPath> paths_from(const BoxMemory& memory);

/// Returns a box of `bytes` bytes in runs of `run` bytes, but in two runs at least.
[[nodiscard]] StridedBlock box_in_runs(Bytes bytes, Bytes run);

/// Returns the median of each list.
[[nodiscard]] std::vector<Seconds> medians(std::vector<std::vector<Seconds>> times);

/// Returns, for each path, the median time in which this rank and a peer exchange a box of `bytes`
/// bytes in runs of `run` bytes.
template <kernel::ExecutionSpace Exec>
[[nodiscard]] std::vector<Seconds> path_times(const Communicator& comm, Bytes bytes, Bytes run,
                                              std::span<const StridedPath> paths,
                                              const PathOptions& options) {
  const Kokkos::View<std::byte*, typename Exec::memory_space> from("heddle::comm::paths_from",
                                                                   2 * bytes),
      to("heddle::comm::paths_to", 2 * bytes);
  const std::vector<StridedMove> moves{
      {Rank{comm.rank() == Rank{0} ? 1 : 0}, box_in_runs(bytes, run)}};
  const Exec exec{};
  std::deque<StridedExchange<Exec>> exchanges;
  for (const StridedPath path : paths) {
    auto& exchange =
        exchanges.emplace_back(comm, moves, moves, StridedOptions{PathTable(path), options.wait});
    exchange(exec, from.data(), to.data());  // connections are made here, and memory touched
  }
  std::vector<std::vector<Seconds>> times(paths.size());
  for (int round = 0; round < options.rounds; ++round)
    for (std::size_t p = 0; p < paths.size(); ++p) {
      const Seconds begin = steady_seconds();
      exchanges[p](exec, from.data(), to.data());
      times[p].push_back(steady_seconds() - begin);
    }
  return medians(std::move(times));
}

/// Returns the path_times() of this rank for a size and a run.
using PathTimes =
    FunctionRef<std::vector<Seconds>(Bytes size, Bytes run, std::span<const StridedPath> paths)>;

/// Implements measure_paths().
[[nodiscard]] PathTable measured_paths(const Communicator& comm, const PathOptions& options,
                                       const BoxMemory& memory, PathTimes times);

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
  return impl::measured_paths(comm, options, impl::box_memory<Exec>(),
                              [&](Bytes size, Bytes run, std::span<const StridedPath> paths) {
                                return impl::path_times<Exec>(comm, size, run, paths, options);
                              });
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/measure_paths.ipp>
#endif
