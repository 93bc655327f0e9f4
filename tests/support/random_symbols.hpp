// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fewest_transfers(): the best choice of symbols to spill, by trying all of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/spill.hpp>

namespace heddle::test {

/// The most bytes that live at once of the symbols in the set `stays`, step by step.
inline Bytes peak_of(const std::vector<tier::Symbol>& symbols, unsigned stays) {
  Bytes peak = 0;
  for (std::int64_t step = 0; step < 40; ++step) {
    Bytes live = 0;
    for (std::size_t s = 0; s < symbols.size(); ++s)
      if ((stays >> s & 1) != 0 && symbols[s].first <= step && step <= symbols[s].last)
        live += symbols[s].bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

/// The fewest transferred bytes of all choices.
inline Bytes fewest_transfers(const std::vector<tier::Symbol>& symbols, Bytes capacity) {
  Bytes fewest = ~Bytes{0};
  for (unsigned stays = 0; stays < 1u << symbols.size(); ++stays) {
    Bytes transferred = 0;
    for (std::size_t s = 0; s < symbols.size(); ++s)
      if ((stays >> s & 1) == 0) transferred += symbols[s].transferred;
    if (transferred < fewest && peak_of(symbols, stays) <= capacity) fewest = transferred;
  }
  return fewest;
}

/// Returns up to 12 symbols with up to 20 bytes that live in up to 10 of 40 steps.
inline std::vector<tier::Symbol> random_symbols(const Random& random) {
  std::vector<tier::Symbol> symbols;
  const std::size_t count = 1 + random.below(0, 12);
  for (std::uint64_t s = 0; s < count; ++s) {
    const auto first = static_cast<std::int64_t>(random.below(10 * s + 1, 30));
    symbols.push_back({text("symbol ", s), 1 + random.below(10 * s + 2, 20), first,
                       first + static_cast<std::int64_t>(random.below(10 * s + 3, 10)),
                       random.below(10 * s + 4, 1000)});
  }
  return symbols;
}

}  // namespace heddle::test
