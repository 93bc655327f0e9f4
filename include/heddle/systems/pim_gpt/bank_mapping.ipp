// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of bank_mapping.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE void check(const DramGrid& grid, const Gemv& gemv) {
  constexpr const char* where = "heddle::systems::DramGrid";
  expects(grid.channels >= 1 && grid.banks >= 1, [&] {
    return ErrorInfo{where, "the memory has no banks",
                     text("channels = ", grid.channels, ", banks = ", grid.banks)};
  });
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  expects(std::int64_t{grid.channels} * grid.banks <= most, [&] {
    return ErrorInfo{where, "the banks do not fit in an int",
                     text("channels = ", grid.channels, ", banks = ", grid.banks)};
  });
  expects(grid.burst >= 1 && grid.row >= grid.burst && grid.row % grid.burst == 0 &&
              grid.vector >= grid.burst && grid.vector % grid.burst == 0,
          [&] {
            return ErrorInfo{
                where, "a row and a vector consist of bursts",
                text("burst = ", grid.burst, ", row = ", grid.row, ", vector = ", grid.vector)};
          });
  expects(gemv.outputs >= 1 && gemv.inputs >= 1 && gemv.heads >= 1, [&] {
    return ErrorInfo{
        "heddle::systems::Gemv", "the matrix has no elements, or there is no vector",
        text("outputs = ", gemv.outputs, ", inputs = ", gemv.inputs, ", heads = ", gemv.heads)};
  });
  const std::int64_t longest = std::max(gemv.inputs, gemv.reserved);
  std::int64_t vectors = 0;
  std::int64_t reads = 0;
  std::int64_t bytes = 0;
  expects(!__builtin_mul_overflow(longest, gemv.heads, &vectors) &&
              !__builtin_mul_overflow(vectors, gemv.outputs, &reads) &&
              !__builtin_mul_overflow(reads, std::max<Bytes>(gemv.element, 8), &bytes),
          [&] {
            return ErrorInfo{"heddle::systems::Gemv",
                             "the bytes of the elements do not fit in 63 bits",
                             text("outputs = ", gemv.outputs, ", inputs = ", gemv.inputs,
                                  ", reserved = ", gemv.reserved, ", heads = ", gemv.heads)};
          });
  expects(gemv.element >= 1 && grid.burst % gemv.element == 0, [&] {
    return ErrorInfo{"heddle::systems::Gemv", "a burst consists of elements",
                     text("element = ", gemv.element, ", burst = ", grid.burst)};
  });
  expects(gemv.reserved == 0 || (gemv.layout == BankLayout::dealt && gemv.reserved >= gemv.inputs),
          [&] {
            return ErrorInfo{"heddle::systems::Gemv",
                             "only dealt outputs have room, for at least their inputs",
                             text("reserved = ", gemv.reserved, ", inputs = ", gemv.inputs)};
          });
}

HEDDLE_INLINE std::vector<BankWork> bank_work(const DramGrid& grid, const Gemv& gemv) {
  struct Last {
    std::int64_t row = -1, output = -1, segment = -1;
  };
  check(grid, gemv);
  const auto banks = static_cast<std::size_t>(grid.all_banks());
  std::vector<BankWork> work(banks);
  std::vector<Last> last(banks);
  for_each_bank_read(grid, gemv, [&](const BankRead& read) {
    const auto bank = static_cast<std::size_t>(read.bank);
    BankWork& own = work[bank];
    ++own.bursts;
    own.activations += read.row != last[bank].row;
    own.results += read.output != last[bank].output || read.segment != last[bank].segment;
    last[bank] = {read.row, read.output, read.segment};
  });
  return work;
}

HEDDLE_INLINE double row_hit_rate(std::span<const BankWork> work) {
  std::int64_t bursts = 0;
  std::int64_t activations = 0;
  for (const BankWork& own : work) {
    bursts += own.bursts;
    activations += own.activations;
  }
  return bursts == 0 ? 1 : 1 - static_cast<double>(activations) / static_cast<double>(bursts);
}

HEDDLE_INLINE double bank_imbalance(std::span<const BankWork> work) {
  std::int64_t most = 0;
  std::int64_t sum = 0;
  for (const BankWork& own : work) {
    most = std::max(most, own.bursts);
    sum += own.bursts;
  }
  return sum == 0 ? 1
                  : static_cast<double>(most) * static_cast<double>(work.size()) /
                        static_cast<double>(sum);
}

}  // namespace heddle::inline v0::systems
