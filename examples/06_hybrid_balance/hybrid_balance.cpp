// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A range divided between two unequal threads by their measured speed. The ratio of the speeds
// differs from kernel to kernel, as on a CPU with two kinds of core, so each kernel has ratios of
// its own.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

#include <heddle/pattern.hpp>

namespace hd = heddle;

namespace {

constexpr std::int64_t items = 30'000;
using Values = std::vector<std::uint64_t>;

/// Computes one item. Worker 1 emulates a small core: it computes each item `times` times.
std::uint64_t value_of(std::int64_t item, int times) {
  volatile std::uint64_t x = 0;
  for (int k = 0; k < times; ++k) {
    x = static_cast<std::uint64_t>(item);
    for (int j = 0; j < 200; ++j) x = x * 6364136223846793005u + 1442695040888963407u;
  }
  return x;
}

/// Runs rounds of one kernel that takes `slower` times as long on worker 1.
void run(const char* kernel, int slower) {
  hd::plan::SpeedRatios ratios(2, 16);  // shares begin at multiples of 16 items
  for (int round = 0; round < 5; ++round) {
    Values values(items);
    const auto work = [&](hd::Worker worker, hd::plan::ItemRange range) {
      for (std::int64_t i = range.first; i < range.last; ++i)
        values[static_cast<std::size_t>(i)] = value_of(i, worker == hd::Worker{1} ? slower : 1);
    };
    const auto [ranges, times] = hd::pattern::balance(ratios, items, work);
    std::cout << kernel << ", round " << round << ": " << ranges[0].size() << " items in "
              << times[0] * 1e3 << " ms, " << ranges[1].size() << " in " << times[1] * 1e3
              << " ms\n";
    std::uint64_t wrong = 0;
    for (std::int64_t i = 0; i < items; ++i)
      wrong += values[static_cast<std::size_t>(i)] != value_of(i, 1);
    if (wrong != 0) std::cout << wrong << " items are wrong\n";
  }
  std::cout << kernel << ": the first worker is " << ratios.values()[0] / ratios.values()[1]
            << " times as fast\n";
}

}  // namespace

int main() {
  run("arithmetic", 3);
  run("memory", 1);
}
