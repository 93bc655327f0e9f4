// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_shape.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/fits.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/sequence/sequence_shape.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const SequenceShape& shape) {
  out << shape.sequences << " x " << shape.context << " positions, " << shape.heads.heads << " / "
      << shape.heads.kv_heads << " heads of " << shape.heads.head_width;
  if (shape.mask.causal) out << ", causal";
  if (!shape.mask.segments.empty()) out << ", segments at";
  for (const std::int64_t begin : shape.mask.segments) out << ' ' << begin;
  return out;
}

HEDDLE_FULL_INLINE void impl::expect_valid(const SequenceShape& shape, const char* where) {
  const std::size_t heads = shape.heads.heads, head_width = shape.heads.head_width;
  expects(shape.context >= 0, [&] {
    return ErrorInfo{where, "the context must have at least 0 positions",
                     text("context = ", shape.context)};
  });
  kernel::impl::expect_attention_heads(where, shape.heads);
  constexpr std::size_t most = std::numeric_limits<int>::max();
  expects(heads <= most && head_width <= most &&
              impl::product_fits({3, shape.sequences, static_cast<std::uint64_t>(shape.context),
                                  heads, head_width}),
          [&] {
            return ErrorInfo{where, "the elements of Q, K and V do not fit in 63 bits",
                             text("sequences = ", shape.sequences, ", context = ", shape.context,
                                  ", heads = ", heads, ", head_width = ", head_width)};
          });
  shape.mask.expect_valid(where);
}

}  // namespace heddle::inline v0
