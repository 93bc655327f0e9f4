// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// What the patterns move on Athread, as its core group counts it.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/device.hpp>
#include <heddle/device/counted.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/reduce.hpp>
#include <heddle/kernel/stencil.hpp>

namespace test_stencil_transfers {

using Catch::Matchers::ContainsSubstring;
namespace hk = heddle::kernel;

namespace {

using heddle::Athread;

Athread with_local_memory(std::size_t bytes) {
  heddle::CoreGroupOptions options;
  options.local_memory = bytes;
  return Athread(options);
}

/// The sum of the neighbours along the axes.
template <std::size_t Rank>
struct Star {
  int radius;
  template <class Neighbourhood>
  KOKKOS_FUNCTION auto operator()(const Neighbourhood& u) const {
    return sum(u, std::make_index_sequence<Rank>{});
  }

 private:
  template <class Neighbourhood, std::size_t... Axis>
  KOKKOS_FUNCTION auto sum(const Neighbourhood& u, std::index_sequence<Axis...>) const {
    auto all = u((0 * static_cast<int>(Axis))...);
    for (int i = 1; i <= radius; ++i) {
      const auto pair = [&](std::size_t axis) {
        return u((Axis == axis ? -i : 0)...) + u((Axis == axis ? i : 0)...);
      };
      all += (pair(Axis) + ...);
    }
    return all;
  }
};

/// The bars: no element is loaded directly, DMA bytes are at most 1.10 of the least possible (the
/// input once, the points once), 90 % of them in requests of 256 bytes and more.
template <class View>
void check_transfers(const Athread& exec, const View& in, const View& out, int radius,
                     hk::Boundary boundary) {
  exec.core_group().reset_counters();
  hk::stencil(exec, static_cast<std::size_t>(radius), Star<View::rank>{radius}, out, in,
              {.boundary = boundary});
  const heddle::CoreGroupCounters counted = exec.core_group().last_launch();
  double points = 1;
  for (std::size_t a = 0; a < View::rank; ++a)
    points *=
        static_cast<double>(in.extent(a)) - (boundary == hk::Boundary::interior ? 2 * radius : 0);
  const double least = (static_cast<double>(in.size()) + points) *
                       static_cast<double>(sizeof(typename View::value_type));
  const auto moved = static_cast<double>(counted.dma_bytes());
  INFO("radius " << radius << ", " << in.extent(0) << " x .., boundary "
                 << static_cast<int>(boundary) << ": " << moved / least
                 << " of the least bytes, counted " << counted);
  REQUIRE(counted.launches == 1);
  REQUIRE(counted.direct_loads == 0);
  REQUIRE(counted.direct_stores == 0);
  REQUIRE(moved >= least);
  REQUIRE(moved <= 1.10 * least);
  REQUIRE(static_cast<double>(counted.long_bytes) >= 0.9 * moved);
}

struct Same {
  KOKKOS_FUNCTION double operator()(double x) const { return x; }
};

template <class T>
using Line = Kokkos::View<T*, Kokkos::HostSpace>;
template <class T>
using Plane = Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::HostSpace>;
template <class T>
using Block = Kokkos::View<T***, Kokkos::LayoutRight, Kokkos::HostSpace>;
template <class T>
using Sheaf = Kokkos::View<T****, Kokkos::LayoutRight, Kokkos::HostSpace>;

}  // namespace

TEST_CASE("a stencil of rank 1 on Athread moves little more than it must", "[stencil]") {
  const Athread exec = with_local_memory(256 * 1024);
  const auto boundary =
      GENERATE(hk::Boundary::interior, hk::Boundary::constant, hk::Boundary::periodic);
  for (const std::size_t n : {20'011, 1'000'003})
    for (const int radius : {1, 4, 15})
      check_transfers(exec, Line<double>("in", n), Line<double>("out", n), radius, boundary);
}

TEST_CASE("a stencil of rank 2 on Athread moves little more than it must", "[stencil]") {
  const Athread exec = with_local_memory(256 * 1024);
  const auto boundary =
      GENERATE(hk::Boundary::interior, hk::Boundary::constant, hk::Boundary::periodic);
  for (const auto& [n, m] : {std::pair{500, 500}, {1024, 1024}, {1009, 2003}, {4096, 257}})
    for (const int radius : {1, 2, 4})
      check_transfers(exec, Plane<double>("in", n, m), Plane<double>("out", n, m), radius,
                      boundary);
  check_transfers(exec, Plane<double>("in", 3001, 2999), Plane<double>("out", 3001, 2999), 8,
                  boundary);
}

TEST_CASE("a stencil of rank 3 on Athread moves little more than it must", "[stencil]") {
  const Athread exec = with_local_memory(256 * 1024);
  const auto boundary =
      GENERATE(hk::Boundary::interior, hk::Boundary::constant, hk::Boundary::periodic);
  check_transfers(exec, Block<double>("in", 128, 128, 128), Block<double>("out", 128, 128, 128), 1,
                  boundary);
  check_transfers(exec, Block<double>("in", 97, 211, 301), Block<double>("out", 97, 211, 301), 1,
                  boundary);
  check_transfers(exec, Block<float>("in", 160, 200, 300), Block<float>("out", 160, 200, 300), 2,
                  boundary);
}

TEST_CASE("a stencil of rank 4 on Athread moves little more than it must", "[stencil]") {
  const Athread exec = with_local_memory(256 * 1024);
  // Periodic ones read the other side of such narrow planes again.
  const auto boundary = GENERATE(hk::Boundary::interior, hk::Boundary::constant);
  // Planes that fit: larger ones are cut along three axes, and move more.
  check_transfers(exec, Sheaf<double>("in", 2003, 6, 7, 96), Sheaf<double>("out", 2003, 6, 7, 96),
                  1, boundary);
  check_transfers(exec, Sheaf<float>("in", 1009, 8, 9, 131), Sheaf<float>("out", 1009, 8, 9, 131),
                  1, boundary);
}

TEST_CASE("the 64 KB of the older chip hold tiles of stencils too", "[stencil]") {
  const Athread exec = with_local_memory(64 * 1024);
  check_transfers(exec, Plane<double>("in", 1024, 1024), Plane<double>("out", 1024, 1024), 1,
                  hk::Boundary::interior);
  check_transfers(exec, Block<float>("in", 150, 160, 170), Block<float>("out", 150, 160, 170), 1,
                  hk::Boundary::interior);
}

namespace {

/// The left neighbour, or -1 where it was not read from a copy.
struct FromACopy {
  const double *begin, *end;  // of the input in main memory
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    if constexpr (requires { u.ring; })
      return u.ring >= begin && u.ring < end ? -1 : u(0, -1);
    else
      return -1;
  }
};

}  // namespace

TEST_CASE("what a stencil's function reads on Athread are copies", "[stencil]") {
  const Athread exec = with_local_memory(256 * 1024);
  const Plane<double> in("in", 301, 203), out("out", 301, 203);
  Kokkos::deep_copy(in, 5.0);
  // Counted Views count what is read and written past the copies.
  hk::stencil(exec, 1, FromACopy{in.data(), in.data() + in.span()}, heddle::counted(out),
              heddle::counted(in), {.boundary = hk::Boundary::periodic});
  const auto counted = exec.core_group().last_launch();
  REQUIRE(counted.direct_loads + counted.direct_stores == 0);
  double least = 0;
  hk::reduce(exec, Kokkos::Min<double>(least), Same{}, heddle::counted(out));
  REQUIRE(least == 5);
  REQUIRE(exec.core_group().last_launch().direct_loads == 0);
}

TEST_CASE("a stencil tile of 82 KB is refused at 64 KB and accepted at 256 KB", "[stencil]") {
  const Plane<double> in("in", 10, 2564), out("out", 10, 2564);
  // Three rows of 2564 elements and one of 2562 points: 82,032 bytes.
  const hk::StencilOptions<double, 2> options{.tile = {4, 2562}};
  REQUIRE_THROWS_WITH(
      hk::stencil(with_local_memory(64 * 1024), 1, Star<2>{1}, out, in, options),
      ContainsSubstring("heddle::kernel::stencil: the tile does not fit into level-0 scratch (with "
                        "its neighbourhood it takes 82032 bytes of "));
  REQUIRE_NOTHROW(hk::stencil(with_local_memory(256 * 1024), 1, Star<2>{1}, out, in, options));
}

TEST_CASE("a radius that no tile can hold is refused", "[stencil]") {
  const Block<double> in("in", 60, 60, 60), out("out", 60, 60, 60);
  REQUIRE_THROWS_WITH(
      hk::stencil(with_local_memory(64 * 1024), 12, Star<3>{12}, out, in),
      ContainsSubstring("heddle::kernel::stencil: not even a tile of one point fits into level-0 "
                        "scratch (with its neighbourhood it takes 125008 bytes of ") &&
          ContainsSubstring("; use a smaller radius"));
}

TEST_CASE("map and reduce on Athread move what they must and load nothing directly", "[map]") {
  struct Twice {
    KOKKOS_FUNCTION double operator()(double x) const { return 2 * x; }
  };
  // The last is cut into blocks that are larger than the local memory.
  for (const auto& [kilobytes, n] :
       {std::pair{256, 1000}, {256, 100'003}, {256, 3'000'001}, {64, 100'003}, {64, 8'000'003}}) {
    const Athread exec = with_local_memory(static_cast<std::size_t>(kilobytes) * 1024);
    const auto count = static_cast<std::uint64_t>(n);
    const Line<double> in("in", count), out("out", count);
    hk::map(exec, Twice{}, out, in);
    heddle::CoreGroupCounters counted = exec.core_group().last_launch();
    INFO(n << " elements, counted " << counted);
    REQUIRE(counted.dma_bytes() == 16 * count);
    REQUIRE(counted.direct_loads + counted.direct_stores == 0);
    REQUIRE(counted.long_bytes * 10 >= 9 * counted.dma_bytes());

    double sum = 0;
    hk::reduce(exec, Kokkos::Sum<double>(sum), Twice{}, in);
    counted = exec.core_group().last_launch();
    REQUIRE(counted.get_bytes == 8 * count);
    REQUIRE(counted.put_bytes <= 8 * 1024);  // a value for each block
    REQUIRE(counted.direct_loads + counted.direct_stores == 0);
  }
}

}  // namespace test_stencil_transfers
