// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Pinned: a handle to an object in a Cache, which keeps it there.

#include <cstddef>
#include <span>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/tier/objects.hpp>

namespace heddle::inline v0::tier {

namespace impl {

/// The owner of pinned objects, which a handle tells that it goes.
class Pins {
 public:
  virtual void release(ObjectId id, Access access) noexcept = 0;

 protected:
  ~Pins() = default;
};

}  // namespace impl

/// A handle to an object in the memory of a Cache. The object stays at its address until the handle
/// is destroyed, which must happen before the Cache is destroyed. Handles do not lock the contents:
/// threads that change an object must not have handles to it at the same time.
class Pinned {
 public:
  /// Takes the object over; the other handle is empty afterwards.
  Pinned(Pinned&& other) noexcept
      : m_pins(std::exchange(other.m_pins, nullptr)),
        m_object(other.m_object),
        m_id(other.m_id),
        m_access(other.m_access),
        m_bytes(std::exchange(other.m_bytes, {})) {}
  /// Releases the object and takes the other one over.
  Pinned& operator=(Pinned other) noexcept {
    std::swap(m_pins, other.m_pins);
    std::swap(m_object, other.m_object);
    std::swap(m_id, other.m_id);
    std::swap(m_access, other.m_access);
    std::swap(m_bytes, other.m_bytes);
    return *this;
  }
  /// Releases the object.
  ~Pinned();

  /// Returns the properties of the object.
  [[nodiscard]] const Object& object() const noexcept { return *m_object; }
  /// Returns the number of the object.
  [[nodiscard]] ObjectId id() const noexcept { return m_id; }
  /// Returns the bytes of the object. They are aligned to Cache::alignment.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {m_bytes.data(), m_bytes.size()};
  }
  /// Returns the bytes of the object, to be changed.
  /// @throws contract_error if the object was requested with Access::read.
  [[nodiscard]] std::span<std::byte> writable_bytes() const;
  /// Returns the elements of the object: `experts.get("expert 7").as<float>()`.
  /// @throws contract_error if they have another type.
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    expect_type(scalar_of<T>);
    return {reinterpret_cast<const T*>(m_bytes.data()), m_bytes.size() / sizeof(T)};
  }
  /// Returns the elements of the object, to be changed. @throws contract_error if they have another
  /// type, or if the object was requested with Access::read.
  template <class T>
  [[nodiscard]] std::span<T> writable_as() const {
    expect_type(scalar_of<T>);
    return {reinterpret_cast<T*>(writable_bytes().data()), m_bytes.size() / sizeof(T)};
  }

 private:
  friend class Cache;
  Pinned(impl::Pins& pins, const Object& object, ObjectId id, Access access,
         std::span<std::byte> bytes) noexcept
      : m_pins(&pins), m_object(&object), m_id(id), m_access(access), m_bytes(bytes) {}
  void expect_type(Scalar type) const;

  impl::Pins* m_pins;
  const Object* m_object;
  ObjectId m_id;
  Access m_access;
  std::span<std::byte> m_bytes;
};

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/pinned.ipp>
#endif
