// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// map and reduce beside what one writes without them: Kokkos::parallel_for and parallel_reduce
/// over the same Views, in the same space. Competitors take turns of some milliseconds, so that a
/// machine whose speed changes does so for all; on one thread they are compared by the processor
/// time that the system gave them.

#include <cmath>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/map.hpp>
#include <heddle/kernel/reduce.hpp>

#include "../support.hpp"

namespace hk = heddle::kernel;

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Numbers = Kokkos::View<double*, Exec::memory_space>;
constexpr const char* name = "kernel/patterns";
constexpr int warm_up = 3;
constexpr int samples = 61;

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

struct Arrays {
  Numbers a, b, c;
  explicit Arrays(std::size_t n)
      : a("heddle::bench::a", n), b("heddle::bench::b", n), c("heddle::bench::c", n) {
    Kokkos::deep_copy(b, 1.5);
    Kokkos::deep_copy(c, 0.25);
  }
  [[nodiscard]] std::size_t size() const { return a.extent(0); }

  void map() const { hk::map(Exec{}, Triad{}, a, b, c); }
  void raw_for() const {
    Kokkos::parallel_for("heddle::bench::triad", Kokkos::RangePolicy<Exec>(0, size()),
                         RawTriad{a, b, c});
  }
  [[nodiscard]] double reduce() const {
    double dot = 0;
    hk::reduce(Exec{}, Kokkos::Sum<double>(dot), Product{}, b, c);
    return dot;
  }
  [[nodiscard]] double raw_reduce() const {
    double dot = 0;
    Kokkos::parallel_reduce("heddle::bench::dot", Kokkos::RangePolicy<Exec>(0, size()),
                            RawDot{b, c}, Kokkos::Sum<double>(dot));
    return dot;
  }
};

/// Seconds of `repeats` calls.
template <class Call>
double sample(int repeats, const Call& call) {
  const auto calls = [&] {
    for (int r = 0; r < repeats; ++r) call();
    Exec{}.fence("heddle::bench::patterns");
  };
  return Exec().concurrency() == 1 ? bench::processor_seconds_of(calls) : bench::seconds_of(calls);
}

struct Pair {
  std::vector<double> ours, theirs;
};

/// Samples of both in turns, each first in every other pair: they leave different things in the
/// cache.
template <class Ours, class Theirs>
Pair compare(int repeats, const Ours& ours, const Theirs& theirs) {
  Pair pair;
  for (int i = -warm_up; i < samples; ++i) {
    if (i == 0) pair = {};
    if (i % 2 == 0) pair.ours.push_back(sample(repeats, ours));
    pair.theirs.push_back(sample(repeats, theirs));
    if (i % 2 != 0) pair.ours.push_back(sample(repeats, ours));
  }
  return pair;
}

/// Arrays of `n` numbers each, worked on `repeats` times for one sample.
void run(const std::string& what, std::size_t n, int repeats) {
  const Arrays arrays(n);
  const auto checksum = [&] {
    double sum = 0;
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, arrays.a);
    for (std::size_t i = 0; i < n; ++i) sum += host(i) * static_cast<double>(i % 7);
    Kokkos::deep_copy(arrays.a, 0.0);
    return sum;
  };
  arrays.map();
  Exec{}.fence("heddle::bench::patterns");
  const double ours = checksum();
  arrays.raw_for();
  Exec{}.fence("heddle::bench::patterns");
  bench::require_equal("the result of the triad", ours, checksum());
  // Terms of 0.375, whose sums are exact in every order.
  bench::require_equal("the dot product", arrays.reduce(), arrays.raw_reduce());

  const Pair map = compare(
      repeats, [&] { arrays.map(); }, [&] { arrays.raw_for(); });
  const Pair reduce = compare(
      repeats, [&] { static_cast<void>(arrays.reduce()); },
      [&] { static_cast<void>(arrays.raw_reduce()); });
  std::vector<double> rate;
  for (const double seconds : map.ours)
    rate.push_back(24e-9 * static_cast<double>(n) * repeats / seconds);
  bench::print_value(name, "triad_rate_" + what, bench::summarise(rate), "GB/s");
  bench::print_ratio(name, "map_" + what, bench::ratios(map.theirs, map.ours));
  bench::print_ratio(name, "reduce_" + what, bench::ratios(reduce.theirs, reduce.ours));
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  std::cout << Exec().concurrency() << " threads, " << samples << " interleaved samples\n";
  return bench::status_of(name, [] {
    run("memory", std::size_t{1} << 21, 1);   // 16 MB each: from memory
    run("cache", std::size_t{1} << 14, 100);  // 128 KB each: from the cache
  });
}
