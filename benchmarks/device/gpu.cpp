// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// map, reduce and pack on a GPU beside kernels of Kokkos written by hand over the same arrays, in
/// turns; and the rates of gemm, by cuBLAS or hipBLAS if the build has it, and of team_gemm.
/// Without a GPU the case is skipped: on the host kernel/patterns and layout/pack measure the same.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/blas_library.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/kernel/reduce.hpp>
#include <heddle/kernel/team_gemm.hpp>
#include <heddle/layout/strided_block.hpp>

#include "../support.hpp"

namespace hd = heddle;

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Numbers = Kokkos::View<double*, Exec::memory_space>;
constexpr const char* name = "device/gpu";
constexpr std::size_t side = 256, size = side * side * side;  // doubles: 128 MiB an array
constexpr int warm_up = 3, samples = 61, repeats = 10;

struct Triad {
  KOKKOS_FUNCTION double operator()(double b, double c) const { return b + 3.0 * c; }
};
struct RawTriad {
  Numbers a, b, c;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { a(i) = b(i) + 3.0 * c(i); }
};
struct Product {
  KOKKOS_FUNCTION double operator()(double x, double y) const { return x * y; }
};
struct RawDot {
  Numbers x, y;
  KOKKOS_FUNCTION void operator()(std::size_t i, double& sum) const { sum += x(i) * y(i); }
};
struct Count {
  Numbers numbers;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { numbers(i) = static_cast<double>(i); }
};
/// The points of the k-face of a cube, which lie apart, one after the other.
struct RawFace {
  Numbers cube, packed;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { packed(i) = cube(i * side); }
};

template <class Call>
double sample(const Call& call) {
  return bench::seconds_of([&] {
    for (int r = 0; r < repeats; ++r) call();
    Exec{}.fence("heddle::bench::gpu");
  });
}

/// Samples of both in turns, each first in every other pair.
template <class Ours, class Theirs>
void compare(const char* what, const Ours& ours, const Theirs& theirs) {
  std::vector<double> our_times, their_times;
  for (int i = -warm_up; i < samples; ++i) {
    if (i == 0) our_times = their_times = {};
    if (i % 2 == 0) our_times.push_back(sample(ours));
    their_times.push_back(sample(theirs));
    if (i % 2 != 0) our_times.push_back(sample(ours));
  }
  bench::print_ratio(name, what, bench::ratios(their_times, our_times));
}

struct AsDouble {
  template <class Real>
  KOKKOS_FUNCTION double operator()(Real x) const {
    return x;
  }
};

/// Prints the rates of products of 4096 x 4096 matrices, as benchmarks/device/peers.py does. With
/// no library, gemm is team_gemm and has one line.
template <class Real>
void products(const std::string& type) {
  constexpr std::size_t n = 4096;
  constexpr int products = 4;  // one to warm up
  using Matrix = Kokkos::View<Real**, Kokkos::LayoutRight, Exec::memory_space>;
  const Matrix a("heddle::bench::a", n, n), b("heddle::bench::b", n, n),
      c("heddle::bench::c", n, n);
  Kokkos::deep_copy(a, Real(0.5));
  Kokkos::deep_copy(b, Real(0.25));
  const Exec exec;
  const auto measure = [&](const std::string& what, const auto& product) {
    std::vector<double> rates;
    for (int i = 0; i < products; ++i) {
      const double seconds = bench::seconds_of([&] {
        product();
        exec.fence("heddle::bench::gpu");
      });
      if (i > 0) rates.push_back(2e-9 * static_cast<double>(n * n * n) / seconds);
    }
    double sum = 0;  // of elements of n / 8
    hd::kernel::reduce(exec, Kokkos::Sum<double>(sum), AsDouble{}, c);
    bench::require_equal("the sum of a product", sum, static_cast<double>(n * n * n) / 8);
    Kokkos::deep_copy(c, Real(0));
    bench::print_value(name, what + "_" + type, bench::summarise(rates), "GFLOP/s");
  };
  constexpr auto no = hd::kernel::Transpose::no;
  measure("gemm", [&] { hd::kernel::gemm(exec, no, no, Real(1), a, b, Real(0), c); });
#if defined(HEDDLE_HAS_DEVICE_BLAS) || defined(HEDDLE_HAS_KOKKOSKERNELS)
  measure("team_gemm", [&] { hd::kernel::team_gemm(exec, no, no, Real(1), a, b, Real(0), c); });
#endif
}

double sum_of(const Numbers& numbers) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, numbers);
  double sum = 0;
  for (std::size_t i = 0; i < host.extent(0); ++i) sum += host(i) * static_cast<double>(i % 7);
  Kokkos::deep_copy(numbers, 0.0);
  return sum;
}

void run() {
  const Numbers a("heddle::bench::a", size), b("heddle::bench::b", size),
      c("heddle::bench::c", size), face("heddle::bench::face", side * side);
  Kokkos::deep_copy(b, 1.5);
  Kokkos::deep_copy(c, 0.25);
  const Exec exec;
  const auto map = [&] { hd::kernel::map(exec, Triad{}, a, b, c); };
  const auto raw_map = [&] {
    Kokkos::parallel_for("heddle::bench::triad", Kokkos::RangePolicy<Exec>(exec, 0, size),
                         RawTriad{a, b, c});
  };
  map();
  exec.fence("heddle::bench::gpu");
  const double mapped = sum_of(a);
  raw_map();
  exec.fence("heddle::bench::gpu");
  bench::require_equal("the result of the triad", mapped, sum_of(a));
  compare("map", map, raw_map);

  double dot = 0, raw_dot = 0;  // of terms of 0.375, whose sums are exact in every order
  const auto reduce = [&] { hd::kernel::reduce(exec, Kokkos::Sum<double>(dot), Product{}, b, c); };
  const auto raw_reduce = [&] {
    Kokkos::parallel_reduce("heddle::bench::dot", Kokkos::RangePolicy<Exec>(exec, 0, size),
                            RawDot{b, c}, Kokkos::Sum<double>(raw_dot));
  };
  reduce();
  raw_reduce();
  bench::require_equal("the dot product", dot, raw_dot);
  compare("reduce", reduce, raw_reduce);

  const hd::StridedBlock block =
      hd::StridedBlock(sizeof(double)).repeated(side * side, sizeof(double) * std::int64_t{side});
  const auto pack = [&] {
    hd::kernel::pack(exec, block, reinterpret_cast<const std::byte*>(c.data()),
                     reinterpret_cast<std::byte*>(face.data()));
  };
  const auto raw_pack = [&] {
    Kokkos::parallel_for("heddle::bench::face", Kokkos::RangePolicy<Exec>(exec, 0, side * side),
                         RawFace{c, face});
  };
  Kokkos::parallel_for("heddle::bench::number", Kokkos::RangePolicy<Exec>(exec, 0, size), Count{c});
  pack();
  exec.fence("heddle::bench::gpu");
  const double packed = sum_of(face);
  raw_pack();
  exec.fence("heddle::bench::gpu");
  bench::require_equal("the packed face", packed, sum_of(face));
  compare("pack_k_face", pack, raw_pack);

  std::cout << "# gemm by " << hd::kernel::blas_library<Exec>() << '\n';
  products<float>("float");
  products<double>("double");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of(name, [] {
    if (Kokkos::SpaceAccessibility<Kokkos::HostSpace, Exec::memory_space>::accessible)
      std::cout << "skip " << name << " no GPU in this build: kernels run on " << Exec::name()
                << '\n';
    else
      run();
  });
}
