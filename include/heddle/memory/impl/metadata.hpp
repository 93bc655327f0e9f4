// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Metadata: the memory of a pool's own records. It is separate from the pool's blocks, and does
/// not come from malloc(), which may itself use the pool.

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory::impl {

/// An array in its own pages, zero at first. Pages that are never touched use no memory.
template <class T>
class Metadata {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Metadata() = default;
  /// Allocates `size` elements. @throws out_of_memory.
  explicit Metadata(std::size_t size)
      : m_data(static_cast<T*>(Pages(HugePages::no).allocate(size * sizeof(T), alignof(T)))),
        m_size(size) {}
  /// Takes ownership of the array of `size` elements that release() returned.
  Metadata(T* data, std::size_t size) noexcept : m_data(data), m_size(size) {}
  Metadata(Metadata&& other) noexcept
      : m_data(std::exchange(other.m_data, nullptr)), m_size(std::exchange(other.m_size, 0)) {}
  Metadata& operator=(Metadata&& other) noexcept {
    std::swap(m_data, other.m_data);
    std::swap(m_size, other.m_size);
    return *this;
  }
  ~Metadata() { Pages(HugePages::no).deallocate(m_data, m_size * sizeof(T), alignof(T)); }

  /// Gives up ownership of the array, and returns it.
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
