// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceShape: the sizes of an attention layer over a sharded sequence.

#include <cstddef>
#include <cstdint>
#include <iosfwd>

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/layout/attention_mask.hpp>

namespace heddle::inline v0 {

/// The sizes of an attention layer, for all ranks together. The rows of a rank's matrices are
/// sequence * own positions + own position. The columns of Q | K | V are all heads of Q, then all
/// heads of K, then all heads of V.
struct SequenceShape {
  std::size_t sequences = 1;     ///< sequences of one microbatch
  std::int64_t context = 0;      ///< positions of each sequence, over all ranks
  kernel::AttentionHeads heads;  ///< all heads
  AttentionMask mask = {};       ///< the mask of each sequence

  /// Columns of Q | K | V.
  [[nodiscard]] std::size_t qkv_columns() const {
    return heads.query_columns() + 2 * heads.kv_columns();
  }

  friend bool operator==(const SequenceShape&, const SequenceShape&) = default;

  /// Prints the sizes, such as "2 x 1024 positions, 8 / 4 heads of 64, causal".
  friend std::ostream& operator<<(std::ostream& out, const SequenceShape& shape);
};

namespace impl {

/// Checks the numbers of a shape on behalf of the function `where`.
/// @throws contract_error if the context is negative, if the heads are not those of an attention
///         (see kernel::AttentionHeads), if the segments of the mask do not ascend, or if
///         63 bits do not hold the number of elements of Q | K | V.
void expect_valid(const SequenceShape& shape, const char* where);

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SEQUENCE
#include <heddle/sequence/sequence_shape.ipp>
#endif
