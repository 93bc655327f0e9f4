// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What libheddle_malloc.so writes while a program runs, and the trace that is made of it
/// afterwards.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/trace/trace.hpp>

#include "../heddle_malloc/raw_event.hpp"

namespace memory_tool {

/// Of that file. Blocks that came back without having been taken are left out.
/// @throws format_error where it is no such file.
[[nodiscard]] inline heddle::memory::Trace read_events(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path))
    throw heddle::format_error({"memory import", heddle::text("cannot read '", path.string(), "'"),
                                in ? "it is a folder" : "it does not exist, or may not be read"});
  std::string magic(heddle_malloc::raw_magic.size(), '\0');
  in.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  if (!in || magic != heddle_malloc::raw_magic)
    throw heddle::format_error({"memory import",
                                heddle::text("'", path.string(), "' has no events"),
                                "it does not begin as libheddle_malloc.so begins them"});
  heddle::memory::Trace trace;
  std::map<std::uint64_t, std::uint32_t> out;
  std::uint64_t microseconds = 0;
  for (heddle_malloc::RawEvent event; in.read(reinterpret_cast<char*>(&event), sizeof event);) {
    if (event.block == 0) continue;
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
