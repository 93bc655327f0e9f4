// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Objects: named blocks of bytes in one memory tier. A Store holds them in a file or in memory,
/// and a Cache holds some objects of another tier.

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::tier {

/// The number of an object, in the order of Objects::objects().
using ObjectId = Index<struct ObjectTag>;

/// The properties of an object.
struct Object {
  std::string name;            ///< unique among the objects of a tier
  Bytes bytes = 0;             ///< its size
  Scalar type = Scalar::byte;  ///< the type of its elements
};

/// Named objects in one tier that can be read as a whole and, if writable() is true, written as a
/// whole. Names, sizes and types do not change. Different objects may be read and written by
/// several threads at once; the caller orders reads and writes of the same object.
class Objects {
 public:
  virtual ~Objects() = default;
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  /// Returns the objects by number.
  [[nodiscard]] const std::vector<Object>& objects() const noexcept { return m_objects; }
  /// Returns the properties of an object. @throws contract_error if there is no such number.
  [[nodiscard]] const Object& object(ObjectId id) const;
  /// Returns the number of the object with this name.
  /// @throws contract_error if there is none. The error names the most similar name.
  [[nodiscard]] ObjectId find(std::string_view name) const;
  /// Returns true if there is an object with this name.
  [[nodiscard]] bool has(std::string_view name) const { return m_numbers.contains(name); }

  /// Returns true if objects may be written.
  [[nodiscard]] virtual bool writable() const noexcept = 0;
  /// Copies an object to `to`. @throws contract_error if `to` does not have the object's size;
  /// format_error if the object cannot be read, with its name.
  virtual void read(ObjectId id, std::span<std::byte> to) = 0;
  /// Replaces the bytes of an object by `from`.
  /// @throws contract_error if objects are read-only or if `from` does not have the object's size;
  ///         format_error if the object cannot be written, with its name.
  virtual void write(ObjectId id, std::span<const std::byte> from) = 0;

 protected:
  /// Constructs an empty tier. Errors begin with `where`.
  explicit Objects(const char* where) : m_where(where) {}
  /// Adds objects. @throws contract_error if two have the same name.
  void set_objects(std::vector<Object> objects);
  /// Checks the size of a block of memory for object `id`.
  void expect_size(ObjectId id, std::size_t bytes) const;

 private:
  const char* m_where;
  std::vector<Object> m_objects;
  std::map<std::string, ObjectId, std::less<>> m_numbers;
};

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/objects.ipp>
#endif
