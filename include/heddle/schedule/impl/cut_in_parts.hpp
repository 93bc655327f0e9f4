// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Giving a buffer parts of any sizes. For generators and passes that make buffers.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0::impl {

/// Whether the sizes of a buffer are known: no bytes and no ends mean that they are not yet.
[[nodiscard]] inline bool is_bound(const Buffer& buffer) noexcept {
  return buffer.bytes != 0 || buffer.ends != nullptr;
}

/// Cuts `buffer` in parts of these sizes; of one that is not `bound` only their number counts. Says
/// where parts end only where they differ, or have no bytes.
inline void cut_in_parts(Buffer& buffer, std::vector<Bytes> sizes, bool bound = true) {
  buffer.parts = static_cast<std::uint32_t>(sizes.size());
  buffer.bytes = std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
  buffer.ends.reset();
  const bool even = std::ranges::all_of(sizes, [&](Bytes size) { return size == sizes[0]; });
  if (!bound || (even && buffer.bytes != 0)) return;
  std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
  buffer.ends = std::make_shared<const std::vector<Bytes>>(std::move(sizes));
}

}  // namespace heddle::inline v0::impl
