// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Metadata: where a pool writes what it knows, apart from the memory that it gives out, and
/// without asking malloc(), which may be made of the pool.

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory::impl {

/// An array in pages of its own, zero at first; pages that are never touched take no memory.
template <class T>
class Metadata {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Metadata() = default;
  /// @throws out_of_memory.
  explicit Metadata(std::size_t size)
      : m_data(static_cast<T*>(Pages(HugePages::no).allocate(size * sizeof(T), alignof(T)))),
        m_size(size) {}
  /// Of what release() returned, and the size.
  Metadata(T* data, std::size_t size) noexcept : m_data(data), m_size(size) {}
  Metadata(Metadata&& other) noexcept
      : m_data(std::exchange(other.m_data, nullptr)), m_size(std::exchange(other.m_size, 0)) {}
  Metadata& operator=(Metadata&& other) noexcept {
    std::swap(m_data, other.m_data);
    std::swap(m_size, other.m_size);
    return *this;
  }
  ~Metadata() { Pages(HugePages::no).deallocate(m_data, m_size * sizeof(T), alignof(T)); }

  /// What was in it, for somebody else to free.
  [[nodiscard]] T* release() noexcept {
    m_size = 0;
    return std::exchange(m_data, nullptr);
  }

  [[nodiscard]] std::size_t size() const noexcept { return m_size; }
  [[nodiscard]] T* data() const noexcept { return m_data; }
  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return m_data[i]; }

 private:
  T* m_data = nullptr;
  std::size_t m_size = 0;
};

}  // namespace heddle::inline v0::memory::impl
