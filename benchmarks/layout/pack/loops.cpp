// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstring>

#include "loops.hpp"

namespace bench {

void pack_words(const Blocks& blocks, const double* __restrict from, double* __restrict to) {
  const std::size_t words = blocks.length / sizeof(double), stride = blocks.stride / sizeof(double);
  for (std::size_t b = 0; b < blocks.count; ++b)
    for (std::size_t w = 0; w < words; ++w) to[b * words + w] = from[b * stride + w];
}
void unpack_words(const Blocks& blocks, const double* __restrict from, double* __restrict to) {
  const std::size_t words = blocks.length / sizeof(double), stride = blocks.stride / sizeof(double);
  for (std::size_t b = 0; b < blocks.count; ++b)
    for (std::size_t w = 0; w < words; ++w) to[b * stride + w] = from[b * words + w];
}

void pack_single_words(const Blocks& blocks, const double* __restrict from, double* __restrict to) {
  const std::size_t stride = blocks.stride / sizeof(double);
  for (std::size_t b = 0; b < blocks.count; ++b) to[b] = from[b * stride];
}
void unpack_single_words(const Blocks& blocks, const double* __restrict from,
                         double* __restrict to) {
  const std::size_t stride = blocks.stride / sizeof(double);
  for (std::size_t b = 0; b < blocks.count; ++b) to[b * stride] = from[b];
}

void pack_blocks(const Blocks& blocks, const double* from, double* to) {
  const auto* const source = reinterpret_cast<const char*>(from);
  auto* const target = reinterpret_cast<char*>(to);
  for (std::size_t b = 0; b < blocks.count; ++b)
    std::memcpy(target + b * blocks.length, source + b * blocks.stride, blocks.length);
}
void unpack_blocks(const Blocks& blocks, const double* from, double* to) {
  const auto* const source = reinterpret_cast<const char*>(from);
  auto* const target = reinterpret_cast<char*>(to);
  for (std::size_t b = 0; b < blocks.count; ++b)
    std::memcpy(target + b * blocks.stride, source + b * blocks.length, blocks.length);
}

}  // namespace bench
