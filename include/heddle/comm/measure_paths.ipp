// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure_paths.hpp.

#include <vector>

#include <heddle/comm/impl/strided_message.hpp>
#include <heddle/comm/measure_paths.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/path_table.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE std::vector<StridedPath> impl::paths_from(const BoxMemory& memory) {
  if (memory.on_host) return {StridedPath::datatype, StridedPath::direct};
  std::vector<StridedPath> paths{StridedPath::staged};
  if (memory.kernels_reach_host) paths.push_back(StridedPath::one_shot);
  if (memory.mpi_takes_it) paths.insert(paths.end(), {StridedPath::direct, StridedPath::datatype});
  return paths;
}

}  // namespace heddle::inline v0
