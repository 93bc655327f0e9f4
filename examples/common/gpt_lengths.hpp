// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The lengths of the sequences that the example GPT learns from: f(seed, step, sequence), so that
/// every division of the work sees the same data.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

namespace examples {

/// A distribution of lengths from 1 to the context.
enum class Lengths : std::uint8_t {
  equal,     ///< every sequence is as long as the context
  uniform,   ///< every length is as likely
  long_tail  ///< log-normal: few sequences are long; those beyond the context are cut off
};

/// Returns the length of sequence `number` of all sequences of a step. The logarithm of a length
/// of the long tail has a deviation of 1.2, about as in the corpora that FlexSP was measured with;
/// the median is an eighth of the context.
[[nodiscard]] inline std::int64_t draw_length(Lengths lengths, int context, std::uint64_t seed,
                                              int step, int number) {
  if (lengths == Lengths::equal) return context;
  const heddle::Random random(seed, heddle::text("lengths.", step));
  const auto at = static_cast<std::uint64_t>(number);
  if (lengths == Lengths::uniform)
    return 1 + static_cast<std::int64_t>(random.below(at, static_cast<std::uint64_t>(context)));
  const double length = context / 8.0 * std::exp(1.2 * random.normal(at));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(length), 1, context);
}

}  // namespace examples
