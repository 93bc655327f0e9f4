# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Finds the BLAS of the devices that Kokkos has, which must have been found: target DeviceBLAS::DeviceBLAS,
# variables DeviceBLAS_FOUND, DeviceBLAS_TARGET (CUDA::cublas or roc::hipblas) and DeviceBLAS_VERSION.

set(DeviceBLAS_TARGET)
if("CUDA" IN_LIST Kokkos_DEVICES)
  find_package(CUDAToolkit QUIET)
  set(DeviceBLAS_TARGET CUDA::cublas)
  set(DeviceBLAS_VERSION "${CUDAToolkit_VERSION}")
elseif("HIP" IN_LIST Kokkos_DEVICES)
  find_package(hipblas QUIET CONFIG)
  set(DeviceBLAS_TARGET roc::hipblas)
  set(DeviceBLAS_VERSION "${hipblas_VERSION}")
endif()
if(NOT TARGET "${DeviceBLAS_TARGET}")
  set(DeviceBLAS_TARGET)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DeviceBLAS REQUIRED_VARS DeviceBLAS_TARGET
                                             VERSION_VAR DeviceBLAS_VERSION)
if(DeviceBLAS_FOUND AND NOT TARGET DeviceBLAS::DeviceBLAS)
  add_library(DeviceBLAS::DeviceBLAS INTERFACE IMPORTED)
  target_link_libraries(DeviceBLAS::DeviceBLAS INTERFACE ${DeviceBLAS_TARGET})
endif()
