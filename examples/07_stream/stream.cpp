// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A pipeline of four plain functions over two threads. Its input are numbers, and its output is the
// longest of their Collatz sequences. Needs neither MPI nor Kokkos.

#include <cstdint>
#include <iostream>
#include <optional>

#include <heddle/execute/stream.hpp>

namespace hd = heddle;

struct Length {
  std::uint64_t number;
  std::uint32_t steps;
};

int main() {
  constexpr std::uint64_t end = 300'000;
  std::uint64_t next = 1;
  Length longest{1, 0};
  std::uint64_t even = 0;
  const std::uint64_t tokens = hd::stream(
      {.threads = 2, .batch = 256},
      [&]() -> std::optional<std::uint64_t> {  // the source: numbers from 1 on
        if (next == end) return std::nullopt;
        return next++;
      },
      [](std::uint64_t number) {  // how many steps to 1?
        std::uint32_t steps = 0;
        for (std::uint64_t n = number; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        return Length{number, steps};
      },
      [&](const Length& found) {
        even += found.steps % 2 == 0;
        return found;
      },
      [&](const Length& found) {
        if (found.steps > longest.steps) longest = found;
      });
  std::cout << tokens << " numbers, " << even
            << " with an even number of steps; the longest way: " << longest.steps << " steps from "
            << longest.number << '\n';
}
