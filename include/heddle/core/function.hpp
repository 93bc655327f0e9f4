// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HEDDLE_FUNCTION: marks what kernels call, in rooms that know nothing of Kokkos.

#if defined(__CUDACC__) || defined(__HIPCC__)
/// Compiled for the host and for the device.
#define HEDDLE_FUNCTION __host__ __device__
#else
/// Compiled for the host and for the device.
#define HEDDLE_FUNCTION
#endif
