// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FarmJournal: the finished items of a farm in a file, from which a killed run continues.
///
/// The file is a Checkpoint that grows: its first field is "farm journal", with the text that the
/// farm gave as its identity: what the outcomes depend on, and the types of items and results. Each
/// further field is a finished item: its name is the number of the item, and its elements are a
/// checksum of the item (u32) and the packed outcome.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include <heddle/core/internal/locked_file.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/sendable.hpp>

namespace heddle::inline v0::pattern {

/// An open journal. It has one owner: if several processes begin a journal at the same time, one of
/// them has it, and the others get an error. An item is written behind the others, and only then
/// does the head of the file count it. So a process that is killed at any time leaves a journal of
/// whole items: bytes behind those that the head counts are dropped. A journal that is shorter than
/// its head says, or that does not match its checksums, is rejected. The file is flushed to the
/// disk by sync() only, so a machine that loses power may damage it.
class FarmJournal {
 public:
  /// Opens the journal at `path`, or creates it. `identity` describes what the outcomes depend on.
  /// @throws format_error if the file cannot be read or written, if another process has it open, or
  ///         if it is no journal, has another identity, is too short, or is damaged. The error
  ///         names the byte, or both identities.
  FarmJournal(std::string path, std::string_view identity);

  /// Returns the packed outcome of item `number` and forgets it, or nothing if the item was not
  /// finished. `sum` is the checksum of the item as the source gives it now.
  /// @throws format_error if the journal has another checksum of the item.
  [[nodiscard]] std::optional<MessageBytes> take(std::int64_t number, std::uint32_t sum);

  /// Writes the packed outcome of item `number`. @throws contract_error if the number is negative;
  /// format_error if writing fails.
  void note(std::int64_t number, std::uint32_t sum, std::span<const std::byte> outcome);

  /// Flushes the file to the disk. @throws format_error if this fails.
  void sync();

  /// Returns the number of finished items that were read and not taken yet.
  [[nodiscard]] std::size_t size() const noexcept { return m_known.size(); }

 private:
  struct Entry {
    std::size_t offset;  ///< the byte where its field begins
    std::uint32_t sum;
    MessageBytes outcome;
  };

  void load(std::string_view identity);
  void read_items(std::string_view content, std::size_t offset, std::uint32_t fields);
  void write(std::string_view bytes, std::uint64_t offset);
  [[noreturn]] void fail(const char* call) const;
  [[noreturn]] void reject(std::string what, std::string why) const;

  std::string m_path;
  heddle::impl::LockedFile m_file;
  std::uint32_t m_fields = 0;
  std::uint64_t m_bytes = 0;  ///< bytes of the file, as its head says
  std::unordered_map<std::int64_t, Entry> m_known;
};

}  // namespace heddle::inline v0::pattern

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/farm_journal.ipp>
#endif
