// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The four applications of the metric, in Heddle's patterns: one source for every execution space.
/// All take row-major arrays in host memory and return when the result is there.

#include <cstddef>

namespace portability {

/// n0 x n1 x n2 points; the last index runs fastest.
struct Grid {
  std::size_t n0, n1, n2;
  [[nodiscard]] std::size_t points() const { return n0 * n1 * n2; }
};

inline constexpr double triad_factor = 3;
inline constexpr double centre = 0.4, neighbour = 0.1;  ///< weights of the stencil

/// Instantiated in ours.cpp for the host cores and for heddle::Athread.
template <class Exec>
struct Ours {
  /// out = x + triad_factor * y.
  static void triad(double* out, const double* x, const double* y, std::size_t n);
  /// *out = the sum of x * y.
  static void dot(double* out, const double* x, const double* y, std::size_t n);
  /// out = centre * in + neighbour * (sum of the six neighbours); the border stays as it is.
  static void stencil(double* out, const double* in, const Grid& grid);
  /// out = a b, all n x n, by kernel::gemm.
  static void gemm(double* out, const double* a, const double* b, std::size_t n);
  /// The same by kernel::team_gemm, which needs no BLAS.
  static void team_gemm(double* out, const double* a, const double* b, std::size_t n);
};

}  // namespace portability
