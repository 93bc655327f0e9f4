// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Loops of plain Kokkos and the patterns in examples::Space. What they compute is written down
/// where HEDDLE_RESULTS says: scripts/backends compares the files of all back ends.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/kernel.hpp>
#include <heddle/systems/graph_load_balance/graph_traversal.hpp>

#include "host_copy.hpp"
#include "results.hpp"
#include "space.hpp"

namespace {

namespace hk = heddle::kernel;
using examples::Space;

constexpr int count = 100'003;  // a prime: nothing divides it into equal shares
constexpr int rows = 131;
constexpr int columns = 257;

/// The bits of a linear congruence, and numbers in [0, 1) made of them.
KOKKOS_INLINE_FUNCTION std::int64_t whole(int i) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(i) + 1) * 6364136223846793005u >>
                                   20);
}
KOKKOS_INLINE_FUNCTION double fraction(int i) {
  return static_cast<double>(whole(i)) / 17592186044416.0;  // 2^44
}

struct Fill {
  Kokkos::View<std::int64_t*, Space> integers;
  Kokkos::View<double*, Space> floats;
  KOKKOS_FUNCTION void operator()(int i) const {
    integers(i) = whole(i);
    floats(i) = fraction(i);
  }
};
struct FillGrid {
  Kokkos::View<double**, Kokkos::LayoutRight, Space> grid;
  KOKKOS_FUNCTION void operator()(int row, int column) const {
    grid(row, column) = fraction(row * columns + column);
  }
};
struct Prefix {
  Kokkos::View<std::int64_t*, Space> in, out;
  KOKKOS_FUNCTION void operator()(int i, std::int64_t& sum, bool last) const {
    sum += in(i) % 1000;
    if (last) out(i) = sum;
  }
};
struct Mix {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return a % 1009 * (b % 1013) - (a ^ b) % 101;
  }
};
struct Same {
  template <class T>
  KOKKOS_FUNCTION T operator()(T value) const {
    return value;
  }
};
struct Average {
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    return 0.5 * u(0, 0) + 0.125 * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1));
  }
};

void patterns() {
  const Space space;
  const Kokkos::RangePolicy<Space> all(space, 0, count);
  const Kokkos::View<std::int64_t*, Space> integers("tests::integers", count);
  const Kokkos::View<std::int64_t*, Space> results("tests::results", count);
  const Kokkos::View<double*, Space> floats("tests::floats", count);
  const auto on_host = [&](const auto& view) {
    space.fence("tests::backends");
    return examples::copy_to_host<Space>(view.data(), view.size());
  };
  Kokkos::parallel_for("tests::fill", all, Fill{integers, floats});
  Kokkos::parallel_scan("tests::prefix", all, Prefix{integers, results});
  examples::write_results("scan", on_host(results));
  hk::map(space, Mix{}, results, integers, results);
  examples::write_results("map", on_host(results));

  std::vector<std::int64_t> reduced(2);
  hk::reduce(space, Kokkos::Sum<std::int64_t>(reduced[0]), Same{}, results);
  hk::reduce(space, Kokkos::Max<std::int64_t>(reduced[1]), Same{}, integers);
  examples::write_results("reduce_integers", reduced);

  // In any order n positive numbers add up to within n eps of their sum: 2e-11 here.
  std::vector<double> sum(1);
  hk::reduce(space, Kokkos::Sum<double>(sum[0]), Same{}, floats);
  examples::write_results("reduce_floats", sum, 2e-11);

  // A point is the same four sums everywhere, but a compiler may fuse a product with one of them:
  // a rounding, 1.1e-16, for each of four operations in each of 25 steps.
  Kokkos::View<double**, Kokkos::LayoutRight, Space> now("tests::now", rows, columns);
  Kokkos::View<double**, Kokkos::LayoutRight, Space> next("tests::next", rows, columns);
  Kokkos::parallel_for(
      "tests::fill_grid",
      Kokkos::MDRangePolicy<Space, Kokkos::Rank<2>>(space, {0, 0}, {rows, columns}), FillGrid{now});
  for (int step = 0; step < 25; ++step) {
    hk::stencil(space, 1, Average{}, next, now, {.boundary = hk::Boundary::periodic});
    std::swap(now, next);
  }
  examples::write_results("stencil", on_host(now), 1.2e-14);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  patterns();
}
