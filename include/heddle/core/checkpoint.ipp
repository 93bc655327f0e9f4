// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of checkpoint.hpp.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/checksum.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/internal/checkpoint_format.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {

// Reads a checkpoint's bytes number by number. Its errors name the wrong byte.
class CheckpointReader {
 public:
  CheckpointReader(std::string_view bytes, std::string name)
      : m_bytes(bytes), m_name(std::move(name)) {}

  // Names the field of later errors.
  void enter(std::string field) { m_field = std::move(field); }
  [[nodiscard]] std::size_t offset() const { return m_offset; }
  [[nodiscard]] bool ended() const { return m_offset == m_bytes.size(); }

  // Takes `count` elements of `size` bytes each.
  [[nodiscard]] std::string_view take(std::uint64_t count, std::uint64_t size = 1) {
    const std::size_t left = m_bytes.size() - m_offset;
    if (count > left / size)
      fail("ends too early", text(left, " bytes are left of ", m_bytes.size()));
    const std::string_view taken = m_bytes.substr(m_offset, static_cast<std::size_t>(count * size));
    m_offset += taken.size();
    return taken;
  }
  template <class Number>
  [[nodiscard]] Number number() {
    Number value = 0;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }
  // Reads a checksum and fails if it is not the checksum of the bytes from `begin` to here.
  void check(std::size_t begin) {
    const std::string_view covered = m_bytes.substr(begin, m_offset - begin);
    if (number<std::uint32_t>() != crc32c(std::as_bytes(std::span(covered)))) damaged(begin);
  }
  [[noreturn]] void damaged(std::size_t begin) {
    const std::size_t count = m_offset - begin;
    m_offset = begin;
    fail("is damaged", text(count, " bytes from there do not match their checksum"));
  }
  [[noreturn]] void fail(const char* what, std::string why) const {
    throw format_error(
        {"heddle::Checkpoint",
         text("cannot load '", m_name, "': ", m_field, " ", what, " at byte ", m_offset),
         std::move(why), "go back to an older checkpoint"});
  }

 private:
  std::string_view m_bytes;
  std::string m_name;
  std::string m_field = "the header";
  std::size_t m_offset = 0;
};

}  // namespace impl

HEDDLE_INLINE Checkpoint Checkpoint::load(const std::string& file) {
  const std::filesystem::path path(file);
  std::error_code failed;
  const bool regular = std::filesystem::is_regular_file(path, failed);
  std::ifstream in(path, std::ios::binary);
  std::string content;
  if (regular && in) {
    const auto bytes = std::filesystem::file_size(path, failed);
    if (!failed) content.resize(bytes);
    in.read(content.data(), static_cast<std::streamsize>(content.size()));
  }
  if (!regular || failed || !in)
    throw format_error(
        {"heddle::Checkpoint", text("cannot load '", file, "'"),
         failed ? failed.message() : std::string("it is not a readable regular file")});
  return parse(content, file);
}

HEDDLE_INLINE bool Checkpoint::has(std::string_view name) const { return find(name) != nullptr; }

HEDDLE_INLINE void Checkpoint::save(const std::string& path) const { write_file(path, content()); }

HEDDLE_INLINE std::string Checkpoint::content() const {
  std::string out(impl::checkpoint_head_bytes, '\0');
  for (const Field& field : m_fields) {
    out += impl::field_head(field.name, field.type, field.bytes.size() / size_of(field.type),
                            impl::checkpoint_sum(field.bytes));
    out += field.bytes;
  }
  const auto fields = static_cast<std::uint32_t>(m_fields.size());
  return out.replace(0, impl::checkpoint_head_bytes, impl::checkpoint_head(fields, out.size()));
}

HEDDLE_INLINE Checkpoint Checkpoint::parse(std::string_view content, const std::string& name) {
  impl::CheckpointReader in(content, name);
  if (!content.starts_with(impl::checkpoint_magic))
    in.fail("is not that of a checkpoint", "it does not begin with the mark of a checkpoint");
  static_cast<void>(in.take(impl::checkpoint_magic.size()));
  const auto found = in.number<std::uint32_t>();
  const auto fields = in.number<std::uint32_t>();
  const auto bytes = in.number<std::uint64_t>();
  in.check(0);
  if (found != impl::checkpoint_version)
    in.fail("has another version", text(found, ", this library reads ", impl::checkpoint_version));
  if (bytes != content.size())
    in.fail("states another length", text(bytes, " bytes, there are ", content.size()));
  Checkpoint made;
  for (std::uint32_t f = 0; f < fields; ++f) {
    Field next = field(in, f);
    if (made.has(next.name)) in.fail("appears twice", "names of fields must be unique");
    made.m_fields.push_back(std::move(next));
  }
  if (!in.ended()) in.fail("is followed by more data", "nothing may follow the last field");
  return made;
}

HEDDLE_INLINE Checkpoint::Field Checkpoint::field(impl::CheckpointReader& in,
                                                  std::uint32_t number) {
  in.enter(text("field ", number));
  const std::size_t begin = in.offset();
  const auto length = in.number<std::uint32_t>();
  const auto type = in.number<std::uint32_t>();
  const auto count = in.number<std::uint64_t>();
  const auto sum = in.number<std::uint32_t>();
  Field made{std::string(in.take(length)), {}, {}};
  in.check(begin);
  in.enter(text("field '", made.name, "'"));
  if (type > static_cast<std::uint32_t>(Scalar::i8)) in.fail("is of an unknown type", text(type));
  made.type = static_cast<Scalar>(type);
  const std::size_t elements = in.offset();
  made.bytes = in.take(count, size_of(made.type));
  if (impl::checkpoint_sum(made.bytes) != sum) in.damaged(elements);
  return made;
}

HEDDLE_INLINE const Checkpoint::Field* Checkpoint::find(std::string_view name) const {
  for (const Field& field : m_fields)
    if (field.name == name) return &field;
  return nullptr;
}

HEDDLE_INLINE void Checkpoint::set_bytes(std::string_view name, Scalar type,
                                         std::string_view bytes) {
  for (Field& field : m_fields) {
    if (field.name != name) continue;
    field.type = type;
    field.bytes = bytes;
    return;
  }
  m_fields.push_back({std::string(name), type, std::string(bytes)});
}

HEDDLE_INLINE const std::string& Checkpoint::bytes_of(std::string_view name, Scalar type) const {
  const Field* const found = find(name);
  if (found == nullptr) refuse(name, "is missing", text(m_fields.size(), " others are there"));
  if (found->type != type)
    refuse(name, "is of another type", text("its elements are ", found->type, ", not ", type));
  return found->bytes;
}

HEDDLE_INLINE void Checkpoint::refuse_size(std::string_view name, std::size_t size,
                                           std::size_t count) {
  refuse(name, "has another size", text(size, " elements, expected ", count));
}

HEDDLE_INLINE void Checkpoint::refuse(std::string_view name, const char* what, std::string why) {
  throw format_error({"heddle::Checkpoint", text("field '", name, "' ", what), std::move(why),
                      "load a checkpoint that was written with the same fields"});
}

}  // namespace heddle::inline v0
