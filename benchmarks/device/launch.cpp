// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// What it costs to launch a kernel that does nothing on the emulated core group, with two host
/// threads and back to back: through CoreGroup, through Kokkos on heddle::Athread, and with cores
/// that may wait for each other. And how much of two host threads a kernel gets that works 1 us on
/// every core.

#include <chrono>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/device.hpp>

#include "../support.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "device/launch";
constexpr int launches = 200;  ///< a sample
constexpr int samples = 61;

/// Counts what ran, one number per core.
struct Count {
  std::uint64_t* counts;
  void operator()(hd::Core& core) const { ++counts[core.index()]; }
  KOKKOS_FUNCTION void operator()(int item) const { ++counts[item]; }
};

/// Keeps each core busy for 1 us.
struct Busy {
  std::uint64_t* counts;
  void operator()(hd::Core& core) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(1);
    while (std::chrono::steady_clock::now() < end) {
    }
    ++counts[core.index()];
  }
};

/// Microseconds per call of `call`.
template <class Call>
double sample(int calls, const Call& call) {
  return bench::seconds_of([&] {
           for (int i = 0; i < calls; ++i) call();
         }) /
         calls * 1e6;
}

void run() {
  const hd::Athread space(hd::CoreGroupOptions{.host_threads = 2});
  hd::CoreGroup& group = space.core_group();
  const Kokkos::RangePolicy<hd::Athread> policy(space, 0, hd::CoreGrid::cores);
  std::vector<std::uint64_t> direct(hd::CoreGrid::cores), kokkos(hd::CoreGrid::cores),
      together(hd::CoreGrid::cores), busy(hd::CoreGrid::cores);

  std::vector<double> by_group, by_kokkos, by_fibres, by_busy;
  for (int i = -2; i < samples; ++i) {  // the first two warm up
    if (i == 0) by_group.clear(), by_kokkos.clear(), by_fibres.clear(), by_busy.clear();
    by_group.push_back(sample(launches, [&] { group.launch("count", Count{direct.data()}); }));
    by_kokkos.push_back(
        sample(launches, [&] { Kokkos::parallel_for("count", policy, Count{kokkos.data()}); }));
    by_fibres.push_back(sample(
        launches, [&] { group.launch("count", Count{together.data()}, hd::Cooperative::yes); }));
    by_busy.push_back(sample(launches / 10, [&] { group.launch("busy", Busy{busy.data()}); }));
  }
  bench::require_equal("the work through Kokkos", direct == kokkos, true);
  bench::require_equal("the work of cooperative launches", direct == together, true);
  bench::require_equal("launches of busy cores", busy[63] * 10, direct[63]);
  bench::print_value(name, "core_group", bench::summarise(by_group), "us");
  bench::print_value(name, "athread", bench::summarise(by_kokkos), "us");
  bench::print_value(name, "cooperative", bench::summarise(by_fibres), "us");
  for (double& time : by_busy) time = hd::CoreGrid::cores / 2 / time * 100;
  bench::print_value(name, "two_threads_used", bench::summarise(by_busy), "%");
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of(name, run);
}
