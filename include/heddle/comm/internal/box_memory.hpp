// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BoxMemory: what is known of the memory in which boxes lie, which decides by which StridedPaths
/// they can travel.

#include <Kokkos_Core.hpp>

#include <heddle/comm/gpu_aware.hpp>
#include <heddle/comm/impl/host_memory.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0 {

class PathTable;

namespace impl {

/// Properties of the memory in which boxes lie.
struct BoxMemory {
  bool on_host;             ///< the host reaches it
  bool mpi_takes_it;        ///< pointers to it
  bool kernels_reach_host;  ///< its kernels reach the host's memory that messages pass through
  friend bool operator==(const BoxMemory&, const BoxMemory&) = default;
};

/// A message of boxes in `Memory`, which kernels of `Exec` pack.
template <kernel::ExecutionSpace Exec, class Memory = typename Exec::memory_space>
[[nodiscard]] BoxMemory box_memory() {
  return {Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible, gpu_aware<Memory>(),
          Kokkos::SpaceAccessibility<Exec, HostMemoryBeside<Memory>>::accessible};
}

/// @throws contract_error, from `where`, for a table that has a path which needs pointers that MPI,
/// or kernels, do not take: on all ranks that have it, whatever each of them sends.
void expect_usable(const PathTable& paths, const BoxMemory& memory, const char* where);

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/internal/box_memory.ipp>
#endif
