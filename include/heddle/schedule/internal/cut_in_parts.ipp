// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cut_in_parts.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void cut_in_parts(Buffer& buffer, std::vector<Bytes> sizes, bool bound) {
  buffer.parts = static_cast<std::uint32_t>(sizes.size());
  buffer.bytes = 0;
  for (std::size_t part = 0; part < sizes.size(); ++part)
    expects(!__builtin_add_overflow(buffer.bytes, sizes[part], &buffer.bytes), [&] {
      return ErrorInfo{"heddle::Buffer",
                       "the parts of a buffer have more bytes than fit in 64 bits",
                       text("part ", part, " of stage ", buffer.stage, " on rank ", buffer.rank,
                            " has ", sizes[part], " bytes")};
    });
  buffer.ends.reset();
  const bool even = std::ranges::all_of(sizes, [&](Bytes size) { return size == sizes[0]; });
  if (!bound || (even && buffer.bytes != 0)) return;
  std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
  buffer.ends = std::make_shared<const std::vector<Bytes>>(std::move(sizes));
}

}  // namespace heddle::inline v0::impl
