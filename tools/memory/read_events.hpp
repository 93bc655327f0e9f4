// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What libheddle_malloc.so writes while a program runs, and the trace that is made of it
/// afterwards.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/trace/trace.hpp>

#include "../heddle_malloc/raw_event.hpp"

namespace memory_tool {

/// Returns the trace of the events in the file `path`. A block that is freed but was never
/// allocated is left out.
/// @throws format_error if the file cannot be read, has no events, or has an event whose alignment
/// is not a power of two.
[[nodiscard]] inline heddle::memory::Trace read_events(const std::string& path) {
  const std::string content = heddle::read_file(path);
  constexpr std::string_view magic = heddle_malloc::raw_magic;
  if (!content.starts_with(magic))
    throw heddle::format_error({"memory import", heddle::text("'", path, "' has no events"),
                                "it does not begin as libheddle_malloc.so begins them"});
  heddle::memory::Trace trace;
  std::map<std::uint64_t, std::uint32_t> out;
  std::uint64_t microseconds = 0;
  heddle_malloc::RawEvent event;
  for (std::size_t at = magic.size(); content.size() - at >= sizeof event; at += sizeof event) {
    std::memcpy(&event, content.data() + at, sizeof event);
    if (event.alignment == 0) continue;
    if (!std::has_single_bit(event.alignment))
      throw heddle::format_error(
          {"memory import", heddle::text("'", path, "' is damaged at byte ", at),
           heddle::text("an alignment must be a power of two, got ", event.alignment),
           "run the program again with libheddle_malloc.so"});
    // The rest of it is in what comes before. Threads may be out of order, by less than a minute.
    const std::uint32_t later = event.microseconds - static_cast<std::uint32_t>(microseconds);
    if (later < std::uint32_t{0} - 60'000'000u) microseconds += later;
    const heddle::Seconds time = 1e-6 * static_cast<double>(microseconds);
    const auto found = out.find(event.block);
    if (found != out.end()) {
      trace.give(time, found->second);
      out.erase(found);
    }
    if (event.bytes > 0) out[event.block] = trace.take(time, event.bytes, event.alignment);
  }
  return trace;
}

}  // namespace memory_tool
