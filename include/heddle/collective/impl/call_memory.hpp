// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a collective call does with memory of a memory space, whatever its execution space is.

#include <memory>

#include <Kokkos_Core.hpp>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

class MpiTransport;

namespace impl {

class Performer;
struct PerformerKey;

/// Returns memory of zeros.
template <class MemorySpace>
[[nodiscard]] Room zeroed_room(const char* label, Bytes bytes);

/// Returns true if MPI gets the address `data` itself.
template <class MemorySpace>
[[nodiscard]] bool mpi_takes(const std::byte* data);

/// Returns a PerformerIn.
template <class MemorySpace>
[[nodiscard]] std::shared_ptr<Performer> performer_in(const PerformerKey& key,
                                                      MpiTransport& transport,
                                                      const CallMemory& of);

}  // namespace impl
}  // namespace heddle::inline v0

// The definitions for host memory are compiled in heddle::compiled. Devices have other memory.
#if HEDDLE_DEFINES_COLLECTIVE || defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || \
    defined(KOKKOS_ENABLE_SYCL) || defined(KOKKOS_ENABLE_OPENACC) ||                          \
    defined(KOKKOS_ENABLE_OPENMPTARGET) || defined(KOKKOS_ENABLE_NEXTSILICON)
#include <heddle/collective/impl/call_memory.ipp>
#endif
