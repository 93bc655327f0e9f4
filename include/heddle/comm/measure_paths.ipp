// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure_paths.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/measure_paths.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/quantile.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/layout/pack_table.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::vector<StridedPath> paths_from(const BoxMemory& memory) {
  if (memory.on_host) return {StridedPath::datatype, StridedPath::direct};
  std::vector<StridedPath> paths{StridedPath::staged};
  if (memory.kernels_reach_host) paths.push_back(StridedPath::one_shot);
  if (memory.mpi_takes_it) paths.insert(paths.end(), {StridedPath::direct, StridedPath::datatype});
  return paths;
}

/// Throws if the options or the number of ranks are invalid.
HEDDLE_FULL_INLINE void check_path_options(const char* where, const Communicator& comm,
                                           const PathOptions& options) {
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
  expect_valid(options.wait, where);
  const std::size_t shapes = options.sizes.size() * options.runs.size();
  static_cast<void>(PackTable(options.sizes, options.runs, std::vector<double>(shapes, 1.0)));
}

HEDDLE_FULL_INLINE StridedBlock box_in_runs(Bytes bytes, Bytes run) {
  const Bytes length = std::clamp<Bytes>(bytes / 2, 1, run);
  const std::uint64_t count = bytes / length;
  return StridedBlock(length).repeated(count, 2 * static_cast<std::int64_t>(length));
}

HEDDLE_FULL_INLINE std::vector<Seconds> medians(std::vector<std::vector<Seconds>> times) {
  std::vector<Seconds> medians;
  for (std::vector<Seconds>& each : times) medians.push_back(median(each));
  return medians;
}

HEDDLE_FULL_INLINE PathTable measured_paths(const Communicator& comm, const PathOptions& options,
                                            const BoxMemory& memory, PathTimes times) {
  constexpr const char* where = "heddle::measure_paths";
  check_together(
      comm, where, [&] { check_path_options(where, comm, options); },
      [&] {
        return impl::CollectiveCall{where,
                                    {{"rounds", text(options.rounds)},
                                     {"sizes", listed(options.sizes)},
                                     {"runs", listed(options.runs)}}};
      },
      ContractLevel::communication, options.wait.watchdog);
  const std::vector<StridedPath> paths = paths_from(memory);
  auto& transport = comm.attached<MpiTransport>();
  std::vector<std::vector<double>> gains(paths.size());
  for (const Bytes size : options.sizes)
    for (const Bytes run : options.runs) {
      std::vector<Seconds> mine;  // by path
      if (+comm.rank() < 2) mine = times(size, run, paths);
      // After every shape, so that the others never wait for more than one.
      const std::vector<std::vector<Seconds>> all =
          all_gather<Seconds>(transport, std::span<const Seconds>(mine), options.wait);
      const auto slower = [&](std::size_t path) { return std::max(all[0][path], all[1][path]); };
      for (std::size_t p = 0; p < paths.size(); ++p) gains[p].push_back(slower(0) / slower(p));
    }

  std::vector<PathTable::Entry> entries;
  for (std::size_t p = 0; p < paths.size(); ++p)
    entries.push_back({paths[p], PackTable(options.sizes, options.runs, std::move(gains[p]))});
  return PathTable(std::move(entries));
}

}  // namespace heddle::inline v0::impl
