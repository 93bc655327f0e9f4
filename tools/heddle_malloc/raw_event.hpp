// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What libheddle_malloc.so writes of a program's calls.

#include <cstdint>
#include <string_view>

namespace heddle_malloc {

/// One call, as it lies in the file. Where a program ended before it had written it, `alignment` is
/// 0, because it is written last.
struct RawEvent {
  std::uint64_t block;  ///< its address
  std::uint64_t bytes;  ///< 0 of a block that comes back
  std::uint32_t microseconds;  ///< modulo 2^32
  std::uint32_t alignment;  ///< a power of two, of larger ones 2^31
};

/// What a file begins with.
inline constexpr std::string_view raw_magic = "heddle malloc events: 1\n";
static_assert(raw_magic.size() == sizeof(RawEvent));

}  // namespace heddle_malloc
