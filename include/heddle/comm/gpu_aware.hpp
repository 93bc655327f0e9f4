// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gpu_aware(): whether the MPI library accepts pointers to device memory. If it does not, messages
/// must be copied to host memory first.

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

/// Asks the MPI library, which must be initialized, about device pointers. Open MPI has one
/// function per vendor and a macro that says if the function exists. MPICH and its derivatives have
/// one function with a number per vendor. Returns false for any other MPI, because it cannot be
/// asked.
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

/// Returns true if MPI accepts pointers to memory of `MemorySpace`. It always does if the host can
/// access that memory; otherwise MPI is asked at run time. MPI must be initialized.
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
