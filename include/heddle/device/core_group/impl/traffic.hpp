// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counts the DMA requests of an emulated core by what they ask of the memory.

#include <cstddef>
#include <cstdint>

#include <heddle/device/core_group/counters.hpp>

namespace heddle::inline v0::emulated::impl {

/// A request for `bytes` in pieces of `piece` bytes, `gap` bytes apart, from `memory` on.
struct Request {
  const void* memory;
  std::size_t bytes;
  std::size_t piece;
  std::size_t gap;
};

/// The memory works in segments of 128 bytes.
inline constexpr std::size_t segment = 128;

/// Calls body(offset) for each piece that starts off a segment, with its offset in it.
template <class Body>
void for_each_misaligned(const Request& request, const Body& body) {
  std::size_t offset = reinterpret_cast<std::uintptr_t>(request.memory) % segment;
  const std::size_t step = (request.piece + request.gap) % segment;
  if (offset == 0 && step == 0) return;
  for (std::size_t done = 0; done < request.bytes; done += request.piece) {
    if (offset != 0) body(offset);
    offset = (offset + step) % segment;
  }
}

inline void count_pieces(CoreGroupCounters& counters, const Request& request, bool misaligned) {
  if (request.piece < 2 * segment)
    ++counters.short_requests;
  else
    counters.long_bytes += request.bytes;
  if (misaligned) ++counters.misaligned_requests;
}

inline void count_get(CoreGroupCounters& counters, const Request& request) {
  std::size_t misaligned = 0;
  for_each_misaligned(request, [&](std::size_t) { misaligned += request.piece; });
  ++counters.get_requests;
  counters.get_bytes += request.bytes;
  counters.misaligned_get_bytes += misaligned;
  count_pieces(counters, request, misaligned > 0);
}

inline void count_put(CoreGroupCounters& counters, const Request& request) {
  std::size_t partial = 0;
  for_each_misaligned(request, [&](std::size_t offset) {
    const std::size_t end = offset + request.piece;
    partial += end > segment && end % segment != 0 ? 2 : 1;
  });
  ++counters.put_requests;
  counters.put_bytes += request.bytes;
  counters.misaligned_put_segments += partial;
  count_pieces(counters, request, partial > 0);
}

}  // namespace heddle::inline v0::emulated::impl
