// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// What the emulation costs a loop that computes: parallel_for and parallel_reduce on
/// heddle::Athread with one host thread, beside the same body in a plain loop.
///
/// Both run in the calling thread, so its processor time is compared: what other programs take away
/// is not the emulation's.

#include <cmath>
#include <cstddef>
#include <ctime>
#include <vector>

#include <Kokkos_Core.hpp>
#include <benchmark/benchmark.h>

#include <heddle/device.hpp>

#include "../support.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "device/compute";
constexpr std::size_t items = 100'000;
constexpr int samples = 61;

/// 20 steps of the logistic map: about 60 operations in a row for 8 bytes stored.
KOKKOS_INLINE_FUNCTION double orbit(std::size_t item) {
  double x = 0.1 + 0.8 * static_cast<double>(item) / static_cast<double>(items);
  for (int step = 0; step < 20; ++step) x = 3.7 * x * (1 - x);
  return x;
}

struct Map {
  double* out;
  KOKKOS_FUNCTION void operator()(std::size_t item) const { out[item] = orbit(item); }
};

struct Sum {
  KOKKOS_FUNCTION void operator()(std::size_t item, double& sum) const { sum += orbit(item); }
};

/// The length of the loop, which the compiler must not know any more than that of a kernel.
std::size_t length() {
  std::size_t count = items;
  benchmark::DoNotOptimize(count);
  return count;
}

template <class Functor>
void plain_for(const Functor& functor) {
  const std::size_t count = length();
  for (std::size_t i = 0; i < count; ++i) functor(i);
}
template <class Functor>
double plain_sum(const Functor& functor) {
  const std::size_t count = length();
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) functor(i, sum);
  return sum;
}

void run() {
  const hd::Athread space(hd::CoreGroupOptions{.host_threads = 1});
  const Kokkos::RangePolicy<hd::Athread, Kokkos::IndexType<std::size_t>> policy(space, 0, items);
  std::vector<double> ours(items), plain(items);
  double our_sum = 0, plain_total = 0;

  std::vector<double> our_for, for_loop, our_reduce, reduce_loop;
  for (int i = -2; i < samples; ++i) {  // the first two warm up
    if (i == 0) our_for.clear(), for_loop.clear(), our_reduce.clear(), reduce_loop.clear();
    const auto ours_now = [&] {
      our_for.push_back(bench::processor_seconds_of(
          [&] { Kokkos::parallel_for("map", policy, Map{ours.data()}); }));
      our_reduce.push_back(bench::processor_seconds_of(
          [&] { Kokkos::parallel_reduce("sum", policy, Sum{}, our_sum); }));
    };
    const auto loops_now = [&] {
      for_loop.push_back(bench::processor_seconds_of([&] { plain_for(Map{plain.data()}); }));
      reduce_loop.push_back(bench::processor_seconds_of([&] { plain_total = plain_sum(Sum{}); }));
    };
    if (i % 2 == 0) {
      ours_now();
      loops_now();
    } else {
      loops_now();
      ours_now();
    }
  }
  bench::require_equal("the map", ours == plain, true);
  // Two orders of adding 1e5 numbers below 1: they differ by less than 1e5 roundings of the sum.
  bench::require_equal("the sum", std::abs(our_sum - plain_total) < 1e5 * 0x1p-53 * plain_total,
                       true);
  bench::print_ratio(name, "serial_for", bench::ratios(for_loop, our_for));
  bench::print_ratio(name, "serial_reduce", bench::ratios(reduce_loop, our_reduce));
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of(name, run);
}
