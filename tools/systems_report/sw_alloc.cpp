// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// SWAlloc: few large blocks that a training step takes and gives back again and again, from a pool
/// and from malloc(). Times are measured, of the processor.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <time.h>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/stats.hpp>

#include "comparison.hpp"

namespace report {

namespace {

namespace memory = heddle::memory;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Tensors of 1 to 64 MB, their logarithms evenly spread.
std::vector<std::size_t> tensors() {
  std::mt19937_64 random(7);
  std::vector<std::size_t> sizes(50);
  for (std::size_t& bytes : sizes)
    bytes = static_cast<std::size_t>(1e6 *
                                     std::pow(64.0, static_cast<double>(random() >> 11) * 0x1p-53));
  return sizes;
}

/// A step: the forward pass takes all tensors, the backward pass a gradient as large as each, and
/// gives both back. Its processor time, with one byte of every 4 KiB written or none.
template <class Take, class Give>
double step(const std::vector<std::size_t>& sizes, bool touched, Take&& take, Give&& give) {
  const auto taken = [&](std::size_t bytes) {
    auto* const block = static_cast<volatile std::byte*>(take(bytes));
    for (std::size_t at = 0; touched && at < bytes; at += 4096) block[at] = std::byte{1};
    return const_cast<std::byte*>(block);
  };
  const double begin = processor_seconds();
  std::vector<std::byte*> blocks;
  for (const std::size_t bytes : sizes) blocks.push_back(taken(bytes));
  for (std::size_t t = sizes.size(); t-- > 0;) {
    std::byte* const gradient = taken(sizes[t]);
    give(gradient, sizes[t]);
    give(blocks[t], sizes[t]);
  }
  return processor_seconds() - begin;
}

}  // namespace

std::vector<Comparison> sw_alloc() {
  const std::vector<std::size_t> sizes = tensors();
  memory::Stats pages(memory::Pages(memory::HugePages::yes, std::size_t{64} << 30));
  memory::Pool pool(pages);
  const auto by_pool = [&](bool touched) {
    return step(
        sizes, touched, [&](std::size_t bytes) { return pool.allocate(bytes, 64); },
        [&](void* block, std::size_t bytes) { pool.deallocate(block, bytes, 64); });
  };
  const auto by_malloc = [&] {
    return step(
        sizes, true, [](std::size_t bytes) { return std::malloc(bytes); },
        [](void* block, std::size_t) { std::free(block); });
  };
  const auto by_system = [&] {
    memory::Pages each(memory::HugePages::no);
    return step(
        sizes, false, [&](std::size_t bytes) { return each.allocate(bytes, 64); },
        [&](void* block, std::size_t bytes) { each.deallocate(block, bytes, 64); });
  };
  (void)by_pool(true);
  const std::size_t first_step = pages.usage().total_bytes;
  std::array<std::vector<double>, 2> touched, untouched;
  for (int round = 0; round < 3; ++round) {
    touched[0].push_back(by_pool(true));
    touched[1].push_back(by_malloc());
  }
  const std::size_t later_steps = pages.usage().total_bytes - first_step;
  for (int round = 0; round < 11; ++round) {
    untouched[0].push_back(by_pool(false));
    untouched[1].push_back(by_system());
  }
  const auto ratio = [](std::array<std::vector<double>, 2>& times) {
    for (std::vector<double>& of : times)
      std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2),
                       of.end());
    return times[1][times[1].size() / 2] / times[0][times[0].size() / 2];
  };
  const double pages_touched = ratio(touched), calls_only = ratio(untouched);
  return {
      {"bytes that steps after the first ask of the system", "none is said",
       heddle::text(later_steps), "0", verdict(later_steps == 0)},
      {"training step of 50 tensors of 1 to 64 MB, a byte of each page written; malloc() / pool",
       "<= 75,839x for allocation alone, on a Sunway machine whose malloc() maps segments",
       heddle::text(std::round(pages_touched * 10) / 10, "x"), ">= 50x",
       verdict(pages_touched >= 50)},
      {"allocation alone, nothing written; a mapping of the system for each block / pool",
       "<= 75,839x", heddle::text(std::round(calls_only * 10) / 10, "x"), "none",
       "not reproducible: the system of this machine maps pages, in microseconds, not segments"}};
}

}  // namespace report
