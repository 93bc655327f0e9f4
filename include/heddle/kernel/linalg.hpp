// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The matrix product as a thin adaptor. For the devices of Kokkos it calls cuBLAS or hipBLAS if
/// the build found it (HEDDLE_HAS_DEVICE_BLAS). Otherwise it calls Kokkos Kernels if the build
/// found it (HEDDLE_HAS_KOKKOSKERNELS), else CBLAS for host spaces (HEDDLE_HAS_CBLAS), else
/// `team_gemm`. blas_library() returns the name of the library.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#if defined(HEDDLE_HAS_KOKKOSKERNELS)
#include <KokkosBlas3_gemm.hpp>
#elif defined(HEDDLE_HAS_CBLAS)
#include <cblas.h>
#endif

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/blas_library.hpp>
#include <heddle/kernel/impl/blas_product.hpp>
#include <heddle/kernel/impl/device_blas.hpp>
#include <heddle/kernel/impl/host_exec.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/team_gemm.hpp>
#include <heddle/kernel/transpose.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

/// C = beta C, the product of nothing: BLAS libraries disagree about a depth of zero.
template <ExecutionSpace Exec, class Real>
struct Scale {
  Matrix<Real, Exec> c;
  Real beta;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    c(row, column) = beta == Real(0) ? Real(0) : beta * c(row, column);
  }
};

#if defined(HEDDLE_HAS_CBLAS) && !defined(HEDDLE_HAS_KOKKOSKERNELS)
template <class Real>
void cblas_gemm(const BlasProduct<Real>& p) {
  const auto op = [](Transpose t) { return t == Transpose::yes ? CblasTrans : CblasNoTrans; };
  if constexpr (std::is_same_v<Real, float>) {
    cblas_sgemm(CblasRowMajor, op(p.transpose_a), op(p.transpose_b), p.rows, p.columns, p.depth,
                p.alpha, p.a, p.leading_a, p.b, p.leading_b, p.beta, p.c, p.leading_c);
  } else {
    cblas_dgemm(CblasRowMajor, op(p.transpose_a), op(p.transpose_b), p.rows, p.columns, p.depth,
                p.alpha, p.a, p.leading_a, p.b, p.leading_b, p.beta, p.c, p.leading_c);
  }
}
#endif

/// gemm() on Matrices. Those of the host are compiled once.
template <ExecutionSpace Exec, class Real>
void gemm(const Exec& exec, Transpose transpose_a, Transpose transpose_b, Real alpha,
          Matrix<const Real, Exec> a, Matrix<const Real, Exec> b, Real beta, Matrix<Real, Exec> c) {
  const auto shape = gemm_shape("heddle::kernel::gemm", transpose_a, transpose_b, a, b, c);
  if (shape.rows == 0 || shape.columns == 0) return;
  if (shape.depth == 0 || alpha == Real(0)) {
    for_each_element("heddle::kernel::gemm_scale", exec, shape.rows, shape.columns,
                     Scale<Exec, Real>{c, beta});
    return;
  }
  const Kokkos::Profiling::ScopedRegion region("heddle::kernel::gemm");
#if defined(HEDDLE_HAS_DEVICE_BLAS)
  if constexpr (std::is_same_v<Exec, DeviceBlasExec>) {
    device_gemm(exec, blas_product(transpose_a, transpose_b, alpha, a, b, beta, c).by_columns());
    return;
  }
#endif
#if defined(HEDDLE_HAS_KOKKOSKERNELS)
  if constexpr (!std::is_same_v<Exec, Athread>) {  // it knows the spaces of Kokkos itself
    const auto op = [](Transpose t) { return t == Transpose::yes ? "T" : "N"; };
    // Kokkos Kernels (5.0.2) takes one column of B and C for contiguous, also if it is part of a
    // larger matrix.
    const bool misread = transpose_a == Transpose::no && transpose_b == Transpose::no &&
                         b.extent(1) == 1 && (b.stride(0) != 1 || c.stride(0) != 1);
    if (!misread) {
      KokkosBlas::gemm(exec, op(transpose_a), op(transpose_b), alpha, a, b, beta,
                       Matrix<Real, Exec>(c));
      return;
    }
  }
#elif defined(HEDDLE_HAS_CBLAS)
  if constexpr (runs_on_host<Exec>) {
    exec.fence("heddle::kernel::gemm");
    cblas_gemm(blas_product(transpose_a, transpose_b, alpha, a, b, beta, c));
    return;
  }
#endif
  team_gemm(exec, transpose_a, transpose_b, alpha, a, b, beta, c);
}

}  // namespace impl

/// Computes C = alpha op(A) op(B) + beta C. If beta == 0, C is written without being read. The
/// error of an element is at most (k + 2) eps (|alpha| |op(A)| |op(B)| + |beta C|) with any
/// library; k is the depth of the product. The order of the sums depends on the library.
///
/// Stream order: the product runs after all work that `exec` has queued. A host BLAS runs in the
/// calling thread, so `exec` is fenced first and the product is complete on return. Otherwise the
/// call returns without waiting.
template <ExecutionSpace Exec, MatrixOn<Exec> C>
void gemm(const Exec& exec, Transpose transpose_a, Transpose transpose_b, element<C> alpha,
          Matrix<const std::type_identity_t<element<C>>, Exec> a,
          Matrix<const std::type_identity_t<element<C>>, Exec> b, element<C> beta, const C& c) {
  using Real = element<C>;
  static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>,
                "heddle::kernel::gemm: the elements must be float or double");
  impl::gemm<Exec, Real>(exec, transpose_a, transpose_b, alpha, a, b, beta, c);
}

}  // namespace heddle::inline v0::kernel

#if HEDDLE_DEFINES_KERNEL
#include <heddle/kernel/linalg.ipp>
#else
namespace heddle::inline v0::kernel::impl {
extern template void gemm<HostExec, float>(const HostExec&, Transpose, Transpose, float,
                                           ConstHostMatrix<float>, ConstHostMatrix<float>, float,
                                           HostMatrix<float>);
extern template void gemm<HostExec, double>(const HostExec&, Transpose, Transpose, double,
                                            ConstHostMatrix<double>, ConstHostMatrix<double>,
                                            double, HostMatrix<double>);
}  // namespace heddle::inline v0::kernel::impl
#endif
