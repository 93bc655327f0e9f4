// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Region: divides one piece of memory of fixed size into blocks. Internal.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/source/free_ranges.hpp>

namespace heddle::inline v0::memory::impl {

/// The common part of Segment, Mapped and Ldm. Errors begin with `where`, the name of the resource.
class Region {
 public:
  Region(const char* where, void* begin, std::size_t bytes)
      : m_where(where),
        m_begin(static_cast<std::byte*>(begin)),
        m_bytes(bytes),
        m_ranges(address(begin), bytes) {}
  Region(Region&& other) noexcept
      : m_where(other.m_where),
        m_begin(std::exchange(other.m_begin, nullptr)),
        m_bytes(std::exchange(other.m_bytes, 0)),
        m_ranges(std::move(other.m_ranges)) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment);
  void deallocate(void* block, std::size_t bytes) noexcept;

  [[nodiscard]] bool owns(const void* pointer) const noexcept {
    return address(pointer) - address(m_begin) < m_bytes;
  }
  [[nodiscard]] std::byte* begin() const noexcept { return m_begin; }
  [[nodiscard]] std::size_t bytes() const noexcept { return m_bytes; }
  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t largest() const;
  friend std::ostream& operator<<(std::ostream& out, const Region& region);

 private:
  [[nodiscard]] static std::uintptr_t address(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }

  const char* m_where;
  std::byte* m_begin;
  std::size_t m_bytes;
  mutable Mutex m_mutex;
  FreeRanges m_ranges;
};

}  // namespace heddle::inline v0::memory::impl

#if HEDDLE_DEFINES_MEMORY
#include <heddle/memory/impl/region.ipp>
#endif
