// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of copy_past_caches.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <heddle/collective/impl/copy_past_caches.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void copy_past_caches(const std::byte* from, std::byte* into, Bytes bytes) {
#if defined(__SSE2__)
  constexpr Bytes width = sizeof(__m128i);
  const Bytes ahead = std::min(bytes, (0 - reinterpret_cast<std::uintptr_t>(into)) % width);
  std::memcpy(into, from, ahead);
  Bytes done = ahead;
  for (; done + width <= bytes; done += width)
    _mm_stream_si128(reinterpret_cast<__m128i*>(into + done),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done)));
  std::memcpy(into + done, from + done, bytes - done);
  _mm_sfence();
#else
  std::memcpy(into, from, bytes);
#endif
}

}  // namespace heddle::inline v0::impl
