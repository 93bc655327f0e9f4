// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Cuts a buffer into parts of any sizes. Generators and passes that make buffers use it.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0::impl {

/// Returns true if the sizes of a buffer are known. A buffer without bytes and without ends has
/// unknown sizes.
[[nodiscard]] inline bool is_bound(const Buffer& buffer) noexcept {
  return buffer.bytes != 0 || buffer.ends != nullptr;
}

/// Cuts `buffer` into parts of these sizes. If it is not `bound`, only the number of sizes counts.
/// `ends` is set only if the sizes differ or are all zero.
void cut_in_parts(Buffer& buffer, std::vector<Bytes> sizes, bool bound = true);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/internal/cut_in_parts.ipp>
#endif
