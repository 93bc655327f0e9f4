// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gpu_aware.hpp.

#include <mpi.h>

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <heddle/comm/gpu_aware.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE bool impl::mpi_says(Vendor vendor) {
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

}  // namespace heddle::inline v0
