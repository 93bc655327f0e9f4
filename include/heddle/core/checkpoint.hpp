// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Checkpoint: named arrays of numbers in one file, for programs that stop and continue later. A
/// file that is damaged or not complete is rejected.
///
/// Format of the file, with little-endian numbers: "HEDDLEcp", version (u32), number of fields
/// (u32), bytes of the file (u64), CRC-32C of the header so far (u32). Then follows each field:
/// length of its name (u32), element type (u32), number of elements (u64), CRC-32C of the elements
/// (u32), the name, CRC-32C of the field so far (u32), the elements.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {
class CheckpointReader;
}

/// A list of named fields, in the order in which they were set. Each field has one element type.
class Checkpoint {
 public:
  /// Adds a field, or replaces the field of this name. Elements are float, double, f16, bf16,
  /// f8e4m3, f8e5m2, or signed integers of 8, 32 or 64 bits.
  template <class T>
  requires(scalar_of<T> != Scalar::byte) void set(std::string_view name,
                                                  std::span<const T> values) {
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    set_bytes(name, scalar_of<T>, bytes);
  }
  /// Adds or replaces a field with the elements of a vector.
  template <class T>
  void set(std::string_view name, const std::vector<T>& values) {
    set(name, std::span<const T>(values));
  }

  /// Returns the elements of a field. @throws format_error if no field has this name, or if its
  /// elements have another type.
  template <class T>
  requires(scalar_of<T> != Scalar::byte)
      [[nodiscard]] std::vector<T> get(std::string_view name) const {
    const std::string& bytes = bytes_of(name, scalar_of<T>);
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  /// Returns the elements of a field and checks their number. @throws format_error also if the
  /// field does not have `count` elements.
  template <class T>
  [[nodiscard]] std::vector<T> get(std::string_view name, std::size_t count) const {
    auto values = get<T>(name);
    if (values.size() != count) refuse_size(name, values.size(), count);
    return values;
  }
  /// Returns true if there is a field of this name.
  [[nodiscard]] bool has(std::string_view name) const;

  /// Writes the file in one step; see write_file(). If the process is killed meanwhile, the old
  /// file stays. @throws format_error if the file cannot be written.
  void save(const std::string& path) const;

  /// Reads a file that save() has written.
  /// @throws format_error if the file cannot be read, is no checkpoint, has another version, is too
  ///         short or too long, is damaged, or has two fields of one name. The error names the
  ///         field and the byte.
  [[nodiscard]] static Checkpoint load(const std::string& path);

  /// Returns the bytes that save() writes.
  [[nodiscard]] std::string content() const;

  /// Returns the checkpoint that `content` holds. Errors call it `name`. Throws as load() does.
  [[nodiscard]] static Checkpoint parse(std::string_view content, const std::string& name);

 private:
  struct Field {
    std::string name;
    Scalar type;
    std::string bytes;
  };

  [[nodiscard]] static Field field(impl::CheckpointReader& in, std::uint32_t number);

  void set_bytes(std::string_view name, Scalar type, std::string_view bytes);
  [[nodiscard]] const std::string& bytes_of(std::string_view name, Scalar type) const;
  [[nodiscard]] const Field* find(std::string_view name) const;
  [[noreturn]] static void refuse(std::string_view name, const char* what, std::string why);
  [[noreturn]] static void refuse_size(std::string_view name, std::size_t size, std::size_t count);

  std::vector<Field> m_fields;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/checkpoint.ipp>
#endif
