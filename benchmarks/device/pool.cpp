// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// memory::Pool over a GPU's memory beside Kokkos' own allocation there (cudaMalloc, or
/// cudaMallocAsync as Kokkos is configured), in turns and in two patterns: the blocks of a training
/// step, given back in reverse, and 10,000 small blocks. benchmarks/device/peers.py measures others
/// in the same patterns. Without a GPU the case is skipped: on the host memory/churn measures the
/// same.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/from_space.hpp>

#include "../support.hpp"

namespace {

using Memory = Kokkos::DefaultExecutionSpace::memory_space;
constexpr const char* name = "device/pool";
constexpr int warm_up = 2, samples = 11;
constexpr std::size_t alignment = 16;

/// Nanoseconds a block, to allocate all of `sizes` and to give them back.
template <class Allocate, class Release>
double sample(const std::vector<std::size_t>& sizes, bool reverse, const Allocate& allocate,
              const Release& release) {
  std::vector<void*> blocks(sizes.size());
  const double seconds = bench::seconds_of([&] {
    for (std::size_t i = 0; i < sizes.size(); ++i) blocks[i] = allocate(sizes[i]);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t next = reverse ? sizes.size() - 1 - i : i;
      release(blocks[next], sizes[next]);
    }
  });
  std::sort(blocks.begin(), blocks.end());
  const bool distinct = std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end();
  bench::require_equal("that blocks are distinct", distinct, true);
  return seconds / static_cast<double>(sizes.size()) * 1e9;
}

void compare(const std::string& pattern, const std::vector<std::size_t>& sizes, bool reverse) {
  heddle::memory::Pool pool(heddle::memory::FromSpace<Memory>{});
  std::vector<double> ours, kokkos;
  for (int i = -warm_up; i < samples; ++i) {
    if (i == 0) ours = kokkos = {};
    ours.push_back(sample(
        sizes, reverse, [&](std::size_t size) { return pool.allocate(size, alignment); },
        [&](void* block, std::size_t size) { pool.deallocate(block, size, alignment); }));
    kokkos.push_back(sample(
        sizes, reverse, [](std::size_t size) { return Kokkos::kokkos_malloc<Memory>(size); },
        [](void* block, std::size_t) { Kokkos::kokkos_free<Memory>(block); }));
  }
  bench::print_value(name, pattern, bench::summarise(ours), "ns");
  bench::print_ratio(name, "kokkos_malloc_" + pattern, bench::ratios(kokkos, ours));
}

void run() {
  std::vector<std::size_t> step(48), small(10'000);
  for (std::size_t i = 0; i < step.size(); ++i) step[i] = (i * 7919 % 61 + 1) << 16;
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = (i * 7919 % 31 + 1) << 8;
  compare("step", step, true);
  compare("small", small, false);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of(name, [] {
    if (Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible)
      std::cout << "skip " << name << " no GPU in this build: memory is " << Memory::name() << '\n';
    else
      run();
  });
}
