// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of strided_message.hpp.

#include <cstdint>
#include <vector>

#include <heddle/comm/impl/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void expect_usable(const PathTable& paths, const BoxMemory& memory,
                                      const char* where) {
  for (const PathTable::Entry& entry : paths.entries()) {
    const StridedPath path = entry.path;
    const auto refused = [&](const char* what) {
      return ErrorInfo{where, what, text("the table has ", path),
                       "measure the table with the MPI library and memory of this program"};
    };
    expects(
        memory.mpi_takes_it || (path != StridedPath::datatype && path != StridedPath::direct),
        [&] { return refused("this MPI does not accept pointers to the memory of the boxes"); });
    expects(memory.kernels_reach_host || path != StridedPath::one_shot,
            [&] { return refused("kernels cannot access the host memory of messages"); });
  }
}

HEDDLE_FULL_INLINE StridedPath path_of(const std::vector<StridedBlock>& blocks,
                                       const PathTable& paths) {
  Bytes bytes = 0;
  std::uint64_t runs = 0;
  bool backwards = false;  // which some MPIs walk in another order
  for (const StridedBlock& block : blocks) {
    bytes += block.bytes();
    runs += block.bytes() / block.run();
    for (const StridedLoop& loop : block.loops()) backwards = backwards || loop.stride < 0;
  }
  const StridedPath path = paths.choose(bytes, bytes / runs);
  const bool packs = path != StridedPath::datatype && !(path == StridedPath::direct && runs == 1);
  if (packs) return path;  // one run is in one piece
  return !backwards && bytes < MpiOptions{}.max_message ? StridedPath::datatype
                                                        : StridedPath::direct;
}

}  // namespace heddle::inline v0::impl
