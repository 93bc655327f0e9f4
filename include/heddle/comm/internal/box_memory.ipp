// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of box_memory.hpp.

#include <heddle/comm/internal/box_memory.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/path_table.hpp>

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

}  // namespace heddle::inline v0::impl
