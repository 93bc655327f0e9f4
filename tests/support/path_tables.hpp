// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Tables of paths for tests of what asks them.

#include <cstdint>
#include <vector>

#include <heddle/comm/measure_paths.hpp>
#include <heddle/core/index.hpp>
#include <heddle/layout/path_table.hpp>

namespace heddle::test {

/// Runs of more than 11 bytes by datatypes, shorter ones packed.
inline PathTable by_length_of_runs() {
  return PathTable({{StridedPath::datatype, PackTable({1}, {1}, {1.0})},
                    {StridedPath::direct, PackTable({1}, {8, 16}, {2.0, 0.5})}});
}

/// Of test number `seed`, in such memory: each path that there is alone, two by the length of runs,
/// or on each rank another one.
inline PathTable path_table(std::uint64_t seed, Rank rank, const impl::BoxMemory& memory) {
  std::vector<StridedPath> all = impl::paths_from(memory);
  if (memory.on_host) all.insert(all.end(), {StridedPath::one_shot, StridedPath::staged});
  const std::uint64_t which = seed % (all.size() + 2);
  if (which < all.size()) return PathTable(all[which]);
  return which == all.size() && memory.mpi_takes_it ? by_length_of_runs()
                                                    : PathTable(all[(+rank + seed) % all.size()]);
}

}  // namespace heddle::test
