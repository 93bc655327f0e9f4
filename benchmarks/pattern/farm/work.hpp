// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The work of every competitor: numbers from a serial source, an empty work on two threads, and a
/// serial sink that gets the results in order. The peers hand over batches of as many items as a
/// thread of a farm takes at most.

#include <cstdint>
#include <optional>

#include <heddle/core/units.hpp>

namespace farms {

inline constexpr int threads = 2;
inline constexpr std::uint32_t batch = 64;
inline constexpr std::uint32_t lines = 4 * threads;  ///< batches in flight, at most
inline constexpr std::uint64_t items = 320'000;      ///< a multiple of batch

/// The work on an item.
[[nodiscard]] inline std::uint64_t work(std::uint64_t item) { return item + 1; }

/// What the sink gathers: a sum in which every result counts by its place.
struct Gathered {
  std::uint64_t hash = 0;
  std::uint64_t count = 0;
  void operator()(std::uint64_t result) { hash += result * (2 * count++ + 1); }
  friend bool operator==(const Gathered&, const Gathered&) = default;
};

struct Result {
  Gathered gathered;
  heddle::Seconds seconds = 0;
};

/// Empty if the library was not found.
std::optional<Result> by_onetbb();
std::optional<Result> by_taskflow();

}  // namespace farms
