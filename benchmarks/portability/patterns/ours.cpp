// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/device/athread.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/reduce.hpp>
#include <heddle/kernel/stencil.hpp>

#include "ours.hpp"

namespace portability {
namespace {

namespace hk = heddle::kernel;

template <class T>
using Array = Kokkos::View<T, Kokkos::LayoutRight, Kokkos::HostSpace,
                           Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

struct Triad {
  KOKKOS_FUNCTION double operator()(double x, double y) const { return x + triad_factor * y; }
};

struct Product {
  KOKKOS_FUNCTION double operator()(double x, double y) const { return x * y; }
};

struct SevenPoints {
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    return centre * u(0, 0, 0) + neighbour * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) +
                                              u(0, 0, -1) + u(0, 0, 1));
  }
};

}  // namespace

template <class Exec>
void Ours<Exec>::triad(double* out, const double* x, const double* y, std::size_t n) {
  const Exec exec;
  hk::map(exec, Triad{}, Array<double*>(out, n), Array<const double*>(x, n),
          Array<const double*>(y, n));
  exec.fence("portability::triad");
}

template <class Exec>
void Ours<Exec>::dot(double* out, const double* x, const double* y, std::size_t n) {
  hk::reduce(Exec(), Kokkos::Sum<double>(*out), Product{}, Array<const double*>(x, n),
             Array<const double*>(y, n));
}

template <class Exec>
void Ours<Exec>::stencil(double* out, const double* in, const Grid& grid) {
  const Exec exec;
  hk::stencil(exec, 1, SevenPoints{}, Array<double***>(out, grid.n0, grid.n1, grid.n2),
              Array<const double***>(in, grid.n0, grid.n1, grid.n2));
  exec.fence("portability::stencil");
}

template <class Exec>
void Ours<Exec>::gemm(double* out, const double* a, const double* b, std::size_t n) {
  const Exec exec;
  hk::gemm(exec, hk::Transpose::no, hk::Transpose::no, 1, Array<const double**>(a, n, n),
           Array<const double**>(b, n, n), 0, Array<double**>(out, n, n));
  exec.fence("portability::gemm");
}

template <class Exec>
void Ours<Exec>::team_gemm(double* out, const double* a, const double* b, std::size_t n) {
  const Exec exec;
  hk::team_gemm(exec, hk::Transpose::no, hk::Transpose::no, 1, Array<const double**>(a, n, n),
                Array<const double**>(b, n, n), 0, Array<double**>(out, n, n));
  exec.fence("portability::team_gemm");
}

template struct Ours<Kokkos::DefaultHostExecutionSpace>;
template struct Ours<heddle::Athread>;

}  // namespace portability
