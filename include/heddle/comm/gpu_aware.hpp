// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gpu_aware(): whether the MPI library accepts pointers to device memory. If it does not, messages
/// must be copied to host memory first.

#include <cstdint>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

enum class Vendor : std::uint8_t { cuda, hip };

/// Asks the MPI library, which must be initialized, about device pointers. Open MPI has one
/// function per vendor and a macro that says if the function exists. MPICH and its derivatives have
/// one function with a number per vendor. Returns false for any other MPI, because it cannot be
/// asked.
[[nodiscard]] bool mpi_says(Vendor vendor);

/// Returns true if MPI accepts pointers to memory of `MemorySpace`. It always does if the host can
/// access that memory; otherwise MPI is asked at run time. MPI must be initialized.
template <class MemorySpace>
[[nodiscard]] bool gpu_aware() {
  static_assert(Kokkos::is_memory_space_v<MemorySpace>,
                "heddle: a View's memory has to be a Kokkos memory space");
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible) return true;
#if defined(KOKKOS_ENABLE_CUDA)
  else if constexpr (std::is_same_v<typename MemorySpace::execution_space, Kokkos::Cuda>)
    return impl::mpi_says(impl::Vendor::cuda);
#endif
#if defined(KOKKOS_ENABLE_HIP)
  else if constexpr (std::is_same_v<typename MemorySpace::execution_space, Kokkos::HIP>)
    return impl::mpi_says(impl::Vendor::hip);
#endif
  else
    return false;
}

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/gpu_aware.ipp>
#endif
