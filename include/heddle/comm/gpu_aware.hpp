// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gpu_aware: what this MPI says about pointers to a device's memory. For whoever must choose
/// between handing one to MPI and copying to the host first.

#include <cstdint>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace heddle::inline v0 {
namespace impl {

enum class Vendor : std::uint8_t { cuda, hip };

/// Asks MPI, which must be up. Open MPI has a function for each vendor, with a macro where it is
/// there; MPICH and what derives from it have one function, and a number for each vendor. Any other
/// MPI cannot be asked: false.
[[nodiscard]] inline bool mpi_says(Vendor vendor) {
  int says = 0;
  switch (vendor) {
    case Vendor::cuda:
#if defined(MPIX_CUDA_AWARE_SUPPORT)
      says = MPIX_Query_cuda_support();
#elif defined(MPIX_GPU_SUPPORT_CUDA)
      MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &says);
#endif
      break;
    case Vendor::hip:
#if defined(MPIX_ROCM_AWARE_SUPPORT)
      says = MPIX_Query_rocm_support();
#elif defined(MPIX_GPU_SUPPORT_HIP)
      MPIX_GPU_query_support(MPIX_GPU_SUPPORT_HIP, &says);
#endif
      break;
  }
  return says == 1;
}

}  // namespace impl

/// True when this MPI takes pointers to memory of `MemorySpace`: always where the host reaches that
/// memory, else where MPI says so at run time. MPI must be up.
template <class MemorySpace>
[[nodiscard]] bool gpu_aware() {
  static_assert(Kokkos::is_memory_space_v<MemorySpace>,
                "heddle::gpu_aware: name a Kokkos memory space");
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

}  // namespace heddle::inline v0
