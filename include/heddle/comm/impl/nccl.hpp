// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// NCCL, or RCCL for AMD's devices, which has the same names, with the run-time library of its
/// devices. Empty without the target heddle::nccl, which defines HEDDLE_HAS_NCCL.

#if defined(HEDDLE_HAS_NCCL)

#include <string>
#include <string_view>

#if defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>
/// hipStreamCreate for StreamCreate, and so on.
#define HEDDLE_GPU(name) hip##name
#else
#include <cuda_runtime_api.h>

#include <nccl.h>
/// cudaStreamCreate for StreamCreate, and so on.
#define HEDDLE_GPU(name) cuda##name
#endif

#include <heddle/core/error.hpp>

namespace heddle::inline v0 {
namespace impl {

/// @throws communication_error naming `where` and the library's reason, unless all went well.
inline void check_nccl(ncclResult_t result, std::string_view where) {
  if (result != ncclSuccess) [[unlikely]]
    throw communication_error(
        {std::string(where), "NCCL reports an error", ncclGetErrorString(result)});
}
inline void check_gpu(HEDDLE_GPU(Error_t) result, std::string_view where) {
  if (result != HEDDLE_GPU(Success)) [[unlikely]]
    throw communication_error({std::string(where), "the device's library reports an error",
                               HEDDLE_GPU(GetErrorString)(result)});
}

}  // namespace impl
}  // namespace heddle::inline v0

#endif
