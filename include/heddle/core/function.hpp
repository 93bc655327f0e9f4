// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HEDDLE_FUNCTION: marks functions that kernels call, in rooms that do not include Kokkos.

#if defined(__CUDACC__) || defined(__HIPCC__)
/// Marks a function that is compiled for the host and for the device.
#define HEDDLE_FUNCTION __host__ __device__
#else
/// Marks a function that is compiled for the host and for the device.
#define HEDDLE_FUNCTION
#endif
