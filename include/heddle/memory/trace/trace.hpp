// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Trace: the allocations and deallocations of a program with their times, also as a file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::memory {

/// The allocations and deallocations of a run, in order, of all threads. Blocks that were allocated
/// before recording began are missing. Blocks that are live at its end have no deallocation.
class Trace {
 public:
  /// An allocation or a deallocation.
  struct Event {
    std::uint32_t block;          ///< number in the order of allocation, from 0
    bool taken;                   ///< true for an allocation, false for a deallocation
    Seconds time = 0;             ///< since the first event
    std::uint64_t bytes = 0;      ///< allocations only, like the members below
    std::uint32_t alignment = 1;  ///< a power of two
    std::uint32_t label = 0;      ///< index into the trace's labels
    friend bool operator==(const Event&, const Event&) = default;
  };

  /// Appends an allocation, and returns the number of the block. Line breaks in a label become
  /// spaces. @throws contract_error beyond 2^32 - 1 blocks or labels, if the time is not within 0
  /// and 1e12 s, or if the alignment is not a power of two.
  std::uint32_t take(Seconds time, std::uint64_t bytes, std::uint32_t alignment,
                     std::string_view label = {});
  /// Appends the deallocation of `block`. Needs no memory. @throws contract_error if `block` is not
  /// live, or if the time is not within 0 and 1e12 s.
  void give(Seconds time, std::uint32_t block);

  /// Returns the events in order.
  [[nodiscard]] const std::vector<Event>& events() const noexcept { return m_events; }
  /// Returns the labels in the order in which they first occur, each once.
  [[nodiscard]] const std::vector<std::string>& labels() const noexcept { return m_labels; }
  /// Returns the number of allocations.
  [[nodiscard]] std::uint32_t blocks() const noexcept {
    return static_cast<std::uint32_t>(m_out.size());
  }

  /// Returns the live bytes after each event, in the sizes requested.
  [[nodiscard]] std::vector<std::uint64_t> live() const;
  /// Returns the maximum of the live bytes.
  [[nodiscard]] std::uint64_t peak() const;

  /// Returns the trace as text. The first line names the format and its version. Then follow a line
  /// "label NAME" for each label, "+ TIME BYTES ALIGNMENT LABEL" for each allocation, and "- TIME
  /// BLOCK" for each deallocation, with times in microseconds. The last line is the checksum of all
  /// lines before it.
  [[nodiscard]] std::string content() const;
  /// Parses the text that content() returns. `name` appears in errors. @throws format_error that
  /// names the offending line.
  [[nodiscard]] static Trace parse(const std::string& content, const std::string& name);

  /// Writes content() to a file. @throws format_error if the file cannot be written.
  void save(const std::string& path) const;
  /// Reads a file. @throws format_error if the file cannot be read, or is not a trace.
  [[nodiscard]] static Trace load(const std::string& path);

  friend bool operator==(const Trace& a, const Trace& b);

 private:
  static constexpr const char* header = "heddle memory trace 1";

  /// Throws if content() could not print a time, in microseconds.
  static void expect_time(Seconds time);

  [[nodiscard]] static std::uint32_t checksum(std::string_view text);

  [[nodiscard]] std::uint32_t index_of(std::string_view label);

  std::vector<Event> m_events;
  std::vector<std::string> m_labels;
  std::map<std::string, std::uint32_t, std::less<>> m_numbers;
  std::vector<bool> m_out;  ///< whether each block is live
  std::size_t m_live = 0;   ///< the number of live blocks
};

}  // namespace heddle::inline v0::memory

#if HEDDLE_DEFINES_MEMORY
#include <heddle/memory/trace/trace.ipp>
#endif
