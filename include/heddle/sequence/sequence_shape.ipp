// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_shape.hpp.

#include <cstdint>
#include <ostream>

#include <heddle/core/linkage.hpp>
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

}  // namespace heddle::inline v0
