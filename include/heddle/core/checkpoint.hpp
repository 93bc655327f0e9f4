// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Checkpoint: named arrays of numbers in one file that is whole or refused. For programs that go
/// on later where they have stopped.
///
/// The file, numbers little-endian: "HEDDLEcp", version (u32), number of fields (u32), bytes of the
/// file (u64), CRC-32C of what stands before (u32); then every field: length of its name (u32),
/// element type (u32), number of elements (u64), CRC-32C of the elements (u32), the name, CRC-32C
/// of the field so far (u32), the elements.

#include <array>
#include <bit>
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
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Takes a checkpoint's bytes one number after the other; says which byte is wrong.
class CheckpointReader {
 public:
  CheckpointReader(std::string_view bytes, std::string name)
      : m_bytes(bytes), m_name(std::move(name)) {}

  /// From here on errors speak of this field.
  void enter(std::string field) { m_field = std::move(field); }
  [[nodiscard]] std::size_t offset() const { return m_offset; }
  [[nodiscard]] bool ended() const { return m_offset == m_bytes.size(); }

  /// `count` things of `size` bytes.
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
  /// Refuses a checksum that is not that of the bytes from `begin` to here.
  void check(std::size_t begin) {
    const std::string_view covered = m_bytes.substr(begin, m_offset - begin);
    if (number<std::uint32_t>() != crc32c(std::as_bytes(std::span(covered)))) damaged(begin);
  }
  [[noreturn]] void damaged(std::size_t begin) {
    const std::size_t count = m_offset - begin;
    m_offset = begin;
    fail("is damaged", text(count, " bytes from there have another checksum"));
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

/// Fields of one element type each, in the order in which they were set.
class Checkpoint {
 public:
  /// Adds a field, or replaces the one of this name. Elements are float, double, f16, bf16,
  /// f8e4m3, f8e5m2, or integers of 8, 32 or 64 bits with a sign.
  template <class T>
  requires(scalar_of<T> != Scalar::byte) void set(std::string_view name,
                                                  std::span<const T> values) {
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    for (Field& field : m_fields) {
      if (field.name != name) continue;
      field.type = scalar_of<T>;
      field.bytes = bytes;
      return;
    }
    m_fields.push_back({std::string(name), scalar_of<T>, std::string(bytes)});
  }
  /// Likewise.
  template <class T>
  void set(std::string_view name, const std::vector<T>& values) {
    set(name, std::span<const T>(values));
  }

  /// The elements of a field. @throws format_error where there is none of this name, or it has
  /// elements of another type.
  template <class T>
  requires(scalar_of<T> != Scalar::byte)
      [[nodiscard]] std::vector<T> get(std::string_view name) const {
    const Field* const found = find(name);
    if (found == nullptr) refuse(name, "is missing", text(m_fields.size(), " others are there"));
    if (found->type != scalar_of<T>)
      refuse(name, "is of another type",
             text("its elements are ", found->type, ", not ", scalar_of<T>));
    std::vector<T> values(found->bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
    return values;
  }
  /// Those of a field that has so many. @throws format_error also for another number.
  template <class T>
  [[nodiscard]] std::vector<T> get(std::string_view name, std::size_t count) const {
    auto values = get<T>(name);
    if (values.size() != count)
      refuse(name, "has another size", text(values.size(), " elements, expected ", count));
    return values;
  }
  /// Whether there is a field of this name.
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  /// Writes the file in one step, see write_file(): whoever is killed meanwhile leaves the old one.
  /// @throws format_error where it cannot be written.
  void save(const std::filesystem::path& path) const { write_file(path, content()); }

  /// Reads a file that save() has written, all of it or nothing.
  /// @throws format_error where it cannot be read, is no checkpoint, has another version, ends too
  ///         early or too late, is damaged, or has two fields of one name: naming the field and the
  ///         byte.
  [[nodiscard]] static Checkpoint load(const std::filesystem::path& path) {
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
      throw format_error({"heddle::Checkpoint", text("cannot load '", path.string(), "'"),
                          failed ? failed.message() : std::string("it is no file to be read")});
    return parse(content, path.string());
  }

  /// What save() writes.
  [[nodiscard]] std::string content() const {
    std::string out(magic);
    append(out, version);
    append(out, static_cast<std::uint32_t>(m_fields.size()));
    append(out, std::uint64_t{0});
    append(out, std::uint32_t{0});
    for (const Field& field : m_fields) {
      const std::size_t begin = out.size();
      append(out, static_cast<std::uint32_t>(field.name.size()));
      append(out, static_cast<std::uint32_t>(field.type));
      append(out, static_cast<std::uint64_t>(field.bytes.size() / size_of(field.type)));
      append(out, checksum(field.bytes));
      out += field.name;
      append(out, checksum(std::string_view(out).substr(begin)));
      out += field.bytes;
    }
    const std::uint64_t bytes = out.size();
    std::memcpy(out.data() + 16, &bytes, sizeof(bytes));
    const std::uint32_t of_header = checksum(std::string_view(out).substr(0, 24));
    std::memcpy(out.data() + 24, &of_header, sizeof(of_header));
    return out;
  }

  /// The checkpoint that `content` is; `name` is said in errors. @throws as load() does.
  [[nodiscard]] static Checkpoint parse(std::string_view content, const std::string& name) {
    impl::CheckpointReader in(content, name);
    if (!content.starts_with(magic)) in.fail("is not that of a checkpoint", "it begins otherwise");
    static_cast<void>(in.take(magic.size()));
    const auto found = in.number<std::uint32_t>();
    const auto fields = in.number<std::uint32_t>();
    const auto bytes = in.number<std::uint64_t>();
    in.check(0);
    if (found != version)
      in.fail("has another version", text(found, ", this library reads ", version));
    if (bytes != content.size())
      in.fail("tells another length", text(bytes, " bytes, there are ", content.size()));
    Checkpoint made;
    for (std::uint32_t f = 0; f < fields; ++f) {
      Field next = field(in, f);
      if (made.has(next.name)) in.fail("is there twice", "a field has one name");
      made.m_fields.push_back(std::move(next));
    }
    if (!in.ended()) in.fail("is followed by something else", "after the last field");
    return made;
  }

 private:
  struct Field {
    std::string name;
    Scalar type;
    std::string bytes;
  };
  static constexpr std::string_view magic = "HEDDLEcp";
  static constexpr std::uint32_t version = 1;
  static_assert(std::endian::native == std::endian::little,
                "heddle::Checkpoint: numbers are written as they lie in memory");

  [[nodiscard]] static std::uint32_t checksum(std::string_view bytes) {
    return crc32c(std::as_bytes(std::span(bytes)));
  }
  template <class Number>
  static void append(std::string& out, Number number) {
    out.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }

  [[nodiscard]] static Field field(impl::CheckpointReader& in, std::uint32_t number) {
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
    if (checksum(made.bytes) != sum) in.damaged(elements);
    return made;
  }

  [[nodiscard]] const Field* find(std::string_view name) const {
    for (const Field& field : m_fields)
      if (field.name == name) return &field;
    return nullptr;
  }
  [[noreturn]] static void refuse(std::string_view name, const char* what, std::string why) {
    throw format_error({"heddle::Checkpoint", text("field '", name, "' ", what), std::move(why),
                        "it may be a checkpoint of something else"});
  }

  std::vector<Field> m_fields;
};

}  // namespace heddle::inline v0
