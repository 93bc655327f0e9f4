// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of farm_journal.hpp.

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/checkpoint_format.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pattern/farm_journal.hpp>

namespace heddle::inline v0 {

namespace impl {

inline constexpr std::string_view journal_field = "farm journal";

// Reads a number of a journal whose length was checked before.
template <class Number>
Number journal_number(std::string_view content, std::size_t offset) {
  Number value = 0;
  std::memcpy(&value, content.data() + offset, sizeof(Number));
  return value;
}

// Returns the first field of a journal.
inline std::string first_field(std::string_view identity) {
  return field_head(journal_field, Scalar::i8, identity.size(), checkpoint_sum(identity)) +
         std::string(identity);
}

// Returns ", got " and the identity that another journal begins with, or nothing if it has none.
inline std::string other_identity(std::string_view fields) {
  const std::size_t behind_name = field_head_bytes + journal_field.size() + sizeof(std::uint32_t);
  if (fields.size() < behind_name) return {};
  const auto bytes = journal_number<std::uint64_t>(fields, 8);
  const std::string_view identity = fields.substr(behind_name, static_cast<std::size_t>(bytes));
  return fields.starts_with(first_field(identity)) ? text(", got ", identity) : std::string();
}

// Returns a journal without items.
inline std::string new_journal(std::string_view identity) {
  const std::string first = first_field(identity);
  return checkpoint_head(1, checkpoint_head_bytes + first.size()) + first;
}

}  // namespace impl

namespace pattern {

HEDDLE_INLINE FarmJournal::FarmJournal(std::string path, std::string_view identity)
    : m_path(std::move(path)),
      m_file("heddle::pattern::farm", text("the journal '", m_path, "'"), m_path,
             heddle::impl::new_journal(identity)) {
  load(identity);
}

HEDDLE_INLINE std::optional<MessageBytes> FarmJournal::take(std::int64_t number,
                                                            std::uint32_t sum) {
  const auto found = m_known.find(number);
  if (found == m_known.end()) return std::nullopt;
  if (found->second.sum != sum)
    reject(text("has another item ", number, " at byte ", found->second.offset),
           "the source gives other items than when the journal was written");
  MessageBytes outcome = std::move(found->second.outcome);
  m_known.erase(found);
  return outcome;
}

HEDDLE_INLINE void FarmJournal::note(std::int64_t number, std::uint32_t sum,
                                     std::span<const std::byte> outcome) {
  expects(number >= 0, [&] {
    return ErrorInfo{"heddle::pattern::FarmJournal::note", "items are counted from 0",
                     text("number = ", number)};
  });
  std::string elements;
  heddle::impl::append_bytes(elements, sum);
  elements.append(reinterpret_cast<const char*>(outcome.data()), outcome.size());
  std::string field = heddle::impl::field_head(text(number), Scalar::i8, elements.size(),
                                               heddle::impl::checkpoint_sum(elements));
  field += elements;
  write(field, m_bytes);
  m_bytes += field.size();
  write(heddle::impl::checkpoint_head(++m_fields, m_bytes), 0);
}

HEDDLE_INLINE void FarmJournal::sync() {
  // Some file systems have nothing to synchronise and return EINVAL.
  if (::fsync(m_file.descriptor()) != 0 && errno != EINVAL) fail("fsync");
}

HEDDLE_INLINE void FarmJournal::write(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ::ssize_t done =
        ::pwrite(m_file.descriptor(), bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    if (done < 0 && errno != EINTR) fail("write");
    if (done < 0) continue;
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

HEDDLE_INLINE void FarmJournal::load(std::string_view identity) {
  struct ::stat state {};
  if (::fstat(m_file.descriptor(), &state) != 0) fail("stat");
  std::string content(static_cast<std::size_t>(state.st_size), '\0');
  for (std::size_t at = 0; at < content.size();) {
    const ::ssize_t done = ::pread(m_file.descriptor(), content.data() + at, content.size() - at,
                                   static_cast<::off_t>(at));
    if (done < 0 && errno != EINTR) fail("read");
    if (done == 0) break;
    if (done > 0) at += static_cast<std::size_t>(done);
  }
  if (!content.starts_with(heddle::impl::checkpoint_magic))
    reject("is no journal: wrong at byte 0", "it does not begin with the mark of a checkpoint");
  if (content.size() < heddle::impl::checkpoint_head_bytes)
    reject(text("ends too early at byte ", content.size()), "its head is not complete");
  m_fields = heddle::impl::journal_number<std::uint32_t>(content, 12);
  m_bytes = heddle::impl::journal_number<std::uint64_t>(content, 16);
  if (heddle::impl::checkpoint_head(m_fields, m_bytes) !=
      std::string_view(content).substr(0, heddle::impl::checkpoint_head_bytes))
    reject("is damaged at byte 0", "the head does not match its checksum or has another version");
  if (m_bytes > content.size())
    reject(text("ends too early at byte ", content.size()),
           text("its head counts ", m_bytes, " bytes"));
  // A process that was killed leaves bytes that the head does not count.
  if (content.size() > m_bytes &&
      ::ftruncate(m_file.descriptor(), static_cast<::off_t>(m_bytes)) != 0)
    fail("truncate");
  content.resize(static_cast<std::size_t>(m_bytes));
  const std::string first = heddle::impl::first_field(identity);
  const std::string_view fields =
      std::string_view(content).substr(heddle::impl::checkpoint_head_bytes);
  if (m_fields == 0 || !fields.starts_with(first))
    reject(text("is of another farm at byte ", heddle::impl::checkpoint_head_bytes),
           text("expected ", identity, heddle::impl::other_identity(fields)));
  read_items(content, heddle::impl::checkpoint_head_bytes + first.size(), m_fields - 1);
}

HEDDLE_INLINE void FarmJournal::read_items(std::string_view content, std::size_t offset,
                                           std::uint32_t fields) {
  for (std::uint32_t f = 0; f < fields; ++f) {
    const std::string_view left = content.substr(offset);
    const auto damaged = [&](const char* why) {
      reject(text("is damaged at byte ", offset),
             text("finished item ", f, " of ", fields, ": ", why));
    };
    if (left.size() < heddle::impl::field_head_bytes) damaged("its head is not complete");
    const std::size_t name_bytes = heddle::impl::journal_number<std::uint32_t>(left, 0);
    const auto count = heddle::impl::journal_number<std::uint64_t>(left, 8);
    const auto sum = heddle::impl::journal_number<std::uint32_t>(left, 16);
    const std::size_t rest = left.size() - heddle::impl::field_head_bytes;
    if (name_bytes > rest || rest - name_bytes < sizeof(std::uint32_t))
      damaged("its name is not complete");
    const std::string_view name = left.substr(heddle::impl::field_head_bytes, name_bytes);
    const std::string head = heddle::impl::field_head(name, Scalar::i8, count, sum);
    if (!left.starts_with(head)) damaged("its head does not match its checksum");
    if (count > left.size() - head.size()) damaged("its elements are not complete");
    const std::string_view elements = left.substr(head.size(), static_cast<std::size_t>(count));
    if (heddle::impl::checkpoint_sum(elements) != sum) damaged("it does not match its checksum");
    std::int64_t number = -1;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size() || number < 0 ||
        count < sizeof(std::uint32_t))
      damaged("it is no item of a farm");
    const auto* const bytes = reinterpret_cast<const std::byte*>(elements.data());
    Entry entry{offset, heddle::impl::journal_number<std::uint32_t>(elements, 0),
                MessageBytes(bytes + sizeof(std::uint32_t), bytes + elements.size())};
    if (!m_known.emplace(number, std::move(entry)).second) damaged("it appears twice");
    offset += head.size() + elements.size();
  }
  if (offset != content.size())
    reject(text("is damaged at byte ", offset), "nothing may follow the last item");
}

HEDDLE_INLINE void FarmJournal::fail(const char* call) const {
  const std::error_code reason(errno, std::generic_category());
  throw format_error({"heddle::pattern::farm", text("cannot ", call, " the journal '", m_path, "'"),
                      reason.message()});
}

HEDDLE_INLINE void FarmJournal::reject(std::string what, std::string why) const {
  throw format_error({"heddle::pattern::farm", text("the journal '", m_path, "' ", what),
                      std::move(why), "give another path, or remove the file to begin anew"});
}

}  // namespace pattern

}  // namespace heddle::inline v0
