// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of device_blas.hpp.

#include <heddle/kernel/impl/device_blas.hpp>

#if defined(HEDDLE_HAS_DEVICE_BLAS)

#include <map>
#include <mutex>
#include <string>
#include <utility>

// The two libraries have the same functions.
#if defined(KOKKOS_ENABLE_CUDA)
#include <cublas_v2.h>
#define HEDDLE_BLAS(name) cublas##name
#define HEDDLE_BLAS_VALUE(name) CUBLAS_##name
#else
#include <hipblas/hipblas.h>
#define HEDDLE_BLAS(name) hipblas##name
#define HEDDLE_BLAS_VALUE(name) HIPBLAS_##name
#endif

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::kernel::impl {

HEDDLE_FULL_INLINE void check_device_blas(HEDDLE_BLAS(Status_t) status, const std::string& what) {
  if (status == HEDDLE_BLAS_VALUE(STATUS_SUCCESS)) return;
#if defined(KOKKOS_ENABLE_CUDA)
  const char* const reason = cublasGetStatusString(status);
#else
  const char* const reason = hipblasStatusToString(status);
#endif
  const ErrorInfo info{"heddle::kernel::gemm", text(device_blas_name, " reports an error"),
                       text(reason, "; ", what)};
  if (status == HEDDLE_BLAS_VALUE(STATUS_ALLOC_FAILED)) throw out_of_memory(info);
  throw communication_error(info);
}

/// A handle for each stream. A handle must not be used by two threads at once.
struct DeviceBlasHandles {
  std::mutex mutex;
  std::map<std::pair<int, void*>, HEDDLE_BLAS(Handle_t)> of_stream;  // by device and stream

  [[nodiscard]] HEDDLE_BLAS(Handle_t) get(const DeviceBlasExec& exec) {
#if defined(KOKKOS_ENABLE_CUDA)
    const int device = exec.cuda_device();
    const auto stream = exec.cuda_stream();
    static_cast<void>(cudaSetDevice(device));  // a handle is of the thread's device
#else
    const int device = exec.hip_device();
    const auto stream = exec.hip_stream();
    static_cast<void>(hipSetDevice(device));  // a handle is of the thread's device
#endif
    if (of_stream.empty()) Kokkos::push_finalize_hook([this] { clear(); });
    const auto [found, made] = of_stream.try_emplace({device, stream});
    if (made) {
      const auto status = HEDDLE_BLAS(Create)(&found->second);
      if (status != HEDDLE_BLAS_VALUE(STATUS_SUCCESS)) of_stream.erase(found);
      check_device_blas(status, "no handle could be created");
    }
    // At each product, because a stream may be destroyed and another one get its address.
    check_device_blas(HEDDLE_BLAS(SetStream)(found->second, stream), "the stream cannot be used");
    return found->second;
  }

  void clear() {
    const std::lock_guard lock(mutex);
    for (const auto& entry : of_stream) static_cast<void>(HEDDLE_BLAS(Destroy)(entry.second));
    of_stream.clear();
  }
};

/// Returns the handles of the process. They are never destroyed; Kokkos::finalize empties them.
HEDDLE_FULL_INLINE DeviceBlasHandles& device_blas_handles() {
  static DeviceBlasHandles& handles = *new DeviceBlasHandles;
  return handles;
}

/// Calls the function of the library for the type of the elements.
template <class Real, class Function>
void call_device_gemm(const DeviceBlasExec& exec, const BlasProduct<Real>& p,
                      const Function& function) {
  DeviceBlasHandles& handles = device_blas_handles();
  const auto op = [](Transpose transpose) {
    return transpose == Transpose::yes ? HEDDLE_BLAS_VALUE(OP_T) : HEDDLE_BLAS_VALUE(OP_N);
  };
  const std::lock_guard lock(handles.mutex);
  const auto status =
      function(handles.get(exec), op(p.transpose_a), op(p.transpose_b), p.rows, p.columns, p.depth,
               &p.alpha, p.a, p.leading_a, p.b, p.leading_b, &p.beta, p.c, p.leading_c);
  if (status != HEDDLE_BLAS_VALUE(STATUS_SUCCESS))
    check_device_blas(status, text("C is ", p.columns, " x ", p.rows, ", the depth ", p.depth));
}

HEDDLE_FULL_INLINE void device_gemm(const DeviceBlasExec& exec, const BlasProduct<float>& product) {
  call_device_gemm(exec, product,
                   [](auto... arguments) { return HEDDLE_BLAS(Sgemm)(arguments...); });
}
HEDDLE_FULL_INLINE void device_gemm(const DeviceBlasExec& exec,
                                    const BlasProduct<double>& product) {
  call_device_gemm(exec, product,
                   [](auto... arguments) { return HEDDLE_BLAS(Dgemm)(arguments...); });
}

HEDDLE_FULL_INLINE std::string device_blas_version() {
#if defined(KOKKOS_ENABLE_CUDA)
  int major = 0, minor = 0, patch = 0;
  check_device_blas(cublasGetProperty(MAJOR_VERSION, &major), "it does not tell its version");
  check_device_blas(cublasGetProperty(MINOR_VERSION, &minor), "it does not tell its version");
  check_device_blas(cublasGetProperty(PATCH_LEVEL, &patch), "it does not tell its version");
  return text(major, '.', minor, '.', patch);
#else
  return {};
#endif
}

}  // namespace heddle::inline v0::kernel::impl

#undef HEDDLE_BLAS
#undef HEDDLE_BLAS_VALUE
#endif
