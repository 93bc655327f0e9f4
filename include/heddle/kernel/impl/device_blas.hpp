// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Matrix products by the BLAS of a device, cuBLAS or hipBLAS. Empty unless the build found it for
/// the devices of Kokkos (HEDDLE_HAS_DEVICE_BLAS).

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>

#if defined(HEDDLE_HAS_DEVICE_BLAS)

#include <string>

#include <heddle/kernel/impl/blas_product.hpp>

namespace heddle::inline v0::kernel::impl {

/// The execution space whose products the BLAS of the device computes, and the library's name.
#if defined(KOKKOS_ENABLE_CUDA)
using DeviceBlasExec = Kokkos::Cuda;
inline constexpr const char* device_blas_name = "cuBLAS";
#else
using DeviceBlasExec = Kokkos::HIP;
inline constexpr const char* device_blas_name = "hipBLAS";
#endif

/// Queues the product of column-major matrices in the stream of `exec`. The handle of the library
/// is created at the first product of an instance, and Kokkos::finalize destroys it.
/// @throws out_of_memory if the library has no memory for the handle or the product.
/// @throws communication_error if the library reports another error.
void device_gemm(const DeviceBlasExec& exec, const BlasProduct<float>& product);
void device_gemm(const DeviceBlasExec& exec, const BlasProduct<double>& product);

/// Returns the version of the library; empty if it does not tell it.
[[nodiscard]] std::string device_blas_version();

}  // namespace heddle::inline v0::kernel::impl

#if HEDDLE_DEFINES_KERNEL
#include <heddle/kernel/impl/device_blas.ipp>
#endif

#endif
