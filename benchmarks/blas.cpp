// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Prints the library that multiplies matrices in the benchmarks; scripts/bench starts it first.

#include <iostream>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/blas_library.hpp>
#include <heddle/kernel/linalg.hpp>

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  using Exec = Kokkos::DefaultExecutionSpace;
  // A product, so that the linker keeps the library.
  const Kokkos::View<double**, Kokkos::LayoutRight, Exec> one("one", 1, 1);
  using heddle::kernel::Transpose;
  heddle::kernel::gemm(Exec{}, Transpose::no, Transpose::no, 1.0, one, one, 0.0, one);
  std::cout << heddle::kernel::blas_library<Exec>() << '\n';
}
