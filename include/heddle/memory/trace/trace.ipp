// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of trace.hpp.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <istream>
#include <limits>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/trace/trace.hpp>

namespace heddle::inline v0::memory {

HEDDLE_FULL_INLINE std::uint32_t Trace::take(Seconds time, std::uint64_t bytes,
                                             std::uint32_t alignment, std::string_view label) {
  expects(m_out.size() < std::numeric_limits<std::uint32_t>::max(), [] {
    return ErrorInfo{"heddle::memory::Trace",
                     "the trace already has the maximum of 2^32 - 1 blocks"};
  });
  expect_time(time);
  expects(std::has_single_bit(alignment), [&] {
    return ErrorInfo{"heddle::memory::Trace", "an alignment must be a power of two",
                     text("alignment = ", alignment)};
  });
  // Reserve room for the deallocations of all live blocks.
  if (const std::size_t wanted = m_events.size() + m_live + 2; m_events.capacity() < wanted)
    m_events.reserve(2 * wanted);
  const std::uint32_t block = blocks(), index = index_of(label);
  m_out.push_back(true);
  ++m_live;
  m_events.push_back({block, true, time, bytes, alignment, index});
  return block;
}

HEDDLE_FULL_INLINE void Trace::give(Seconds time, std::uint32_t block) {
  expect_time(time);
  expects(block < m_out.size() && m_out[block], [&] {
    return ErrorInfo{"heddle::memory::Trace", text("block ", block, " is not live"),
                     text(m_out.size(), " blocks were allocated")};
  });
  m_events.push_back({.block = block, .taken = false, .time = time});
  m_out[block] = false;
  --m_live;
}

HEDDLE_FULL_INLINE std::vector<std::uint64_t> Trace::live() const {
  std::vector<std::uint64_t> bytes(m_out.size()), after;
  std::uint64_t now = 0;
  for (const Trace::Event& event : m_events) {
    if (event.taken)
      now += bytes[event.block] = event.bytes;
    else
      now -= bytes[event.block];
    after.push_back(now);
  }
  return after;
}

HEDDLE_FULL_INLINE std::uint64_t Trace::peak() const {
  const std::vector<std::uint64_t> after = live();
  return after.empty() ? 0 : *std::max_element(after.begin(), after.end());
}

HEDDLE_FULL_INLINE std::string Trace::content() const {
  std::ostringstream out;
  out << header << '\n';
  for (const std::string& label : m_labels) out << "label " << std::quoted(label) << '\n';
  for (const Trace::Event& event : m_events) {
    const auto time = static_cast<std::uint64_t>(std::max(event.time, 0.0) * 1e6 + 0.5);
    if (event.taken)
      out << "+ " << time << ' ' << event.bytes << ' ' << event.alignment << ' ' << event.label;
    else
      out << "- " << time << ' ' << event.block;
    out << '\n';
  }
  std::string text = std::move(out).str();
  text += heddle::text("checksum ", checksum(text), '\n');
  return text;
}

HEDDLE_FULL_INLINE Trace Trace::parse(const std::string& content, const std::string& name) {
  if (const std::string_view text = heddle::impl::without_mark(content);
      text.size() < content.size())
    return parse(std::string(text), name);
  std::istringstream in(content);
  Trace made;
  std::string line;
  std::size_t number = 0, begin = 0;
  const auto fail = [&](const char* why) {
    throw format_error({"heddle::memory::Trace",
                        text(name, " line ", number, " is not a valid line of a trace"),
                        text(why, ": '", line, "'")});
  };
  for (bool ended = false; std::getline(in, line); begin += line.size() + 1) {
    ++number;
    if (ended) fail("there is a line after the checksum");
    if (number == 1) {
      if (line != header) fail("the first line names another format or version");
      continue;
    }
    std::istringstream words(line);
    std::string what;
    words >> what;
    std::uint64_t time = 0, bytes = 0;
    std::uint32_t alignment = 0, index = 0;
    if (what == "label") {
      std::string label;
      words >> std::quoted(label);
      if (!made.m_events.empty()) fail("labels must precede events");
      if (!made.m_numbers.try_emplace(label, made.m_labels.size()).second)
        fail("the label occurs twice");
      made.m_labels.push_back(label);
    } else if (what == "+") {
      words >> time >> bytes >> alignment >> index;
      if (words && index >= made.m_labels.size()) fail("there is no such label");
      if (words && (alignment & (alignment - 1)) != 0) fail("the alignment is not a power of two");
      made.m_events.push_back({made.blocks(), true, static_cast<Seconds>(time) * 1e-6, bytes,
                               std::max(alignment, 1u), index});
      made.m_out.push_back(true);
      ++made.m_live;
    } else if (what == "-") {
      words >> time >> index;
      if (words && (index >= made.m_out.size() || !made.m_out[index]))
        fail("no such block is live");
      if (words) made.m_out[index] = false;
      --made.m_live;
      made.m_events.push_back(
          {.block = index, .taken = false, .time = static_cast<Seconds>(time) * 1e-6});
    } else if (what == "checksum") {
      words >> index;
      if (words && index != checksum(std::string_view(content).substr(0, begin)))
        fail("the lines before have another checksum");
      ended = true;
    } else {
      fail("unknown kind of line");
    }
    if (!words || words.peek() != std::istringstream::traits_type::eof())
      fail("words are missing or superfluous");
    if (ended && begin + line.size() + 1 == content.size()) return made;
  }
  ++number;
  line.clear();
  fail("the trace ends without a checksum");
  return made;
}

HEDDLE_FULL_INLINE void Trace::save(const std::string& path) const { write_file(path, content()); }

HEDDLE_FULL_INLINE Trace Trace::load(const std::string& path) {
  return parse(read_file(path), text("'", path, "'"));
}

HEDDLE_FULL_INLINE bool operator==(const Trace& a, const Trace& b) {
  return a.m_events == b.m_events && a.m_labels == b.m_labels;
}

HEDDLE_FULL_INLINE void Trace::expect_time(Seconds time) {
  expects(time >= 0 && time <= 1e12, [&] {
    return ErrorInfo{"heddle::memory::Trace", "a time must lie within 0 and 1e12 s",
                     text("time = ", time)};
  });
}

HEDDLE_FULL_INLINE std::uint32_t Trace::checksum(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text)));
}

HEDDLE_FULL_INLINE std::uint32_t Trace::index_of(std::string_view label) {
  std::string line(label);
  std::ranges::replace(line, '\n', ' ');
  if (const auto found = m_numbers.find(line); found != m_numbers.end()) return found->second;
  const auto index = static_cast<std::uint32_t>(m_labels.size());
  m_labels.push_back(line);
  try {
    m_numbers.emplace(std::move(line), index);
  } catch (...) {
    m_labels.pop_back();
    throw;
  }
  return index;
}

}  // namespace heddle::inline v0::memory
