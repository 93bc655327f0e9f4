// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Region: divides one piece of memory of fixed size into blocks. Internal.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
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

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    const std::lock_guard lock(m_mutex);
    const auto block = m_ranges.take(bytes, alignment);
    if (!block)
      throw out_of_memory(
          {m_where, text("cannot allocate ", bytes, " B aligned to ", alignment, " B"),
           text(m_ranges.free_bytes(), " B of ", m_bytes,
                " B are free, the largest free piece has ", m_ranges.largest(), " B")});
    return m_begin + (*block - address(m_begin));
  }
  void deallocate(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return;
    const std::lock_guard lock(m_mutex);
    m_ranges.give_back(address(block), bytes);
  }

  [[nodiscard]] bool owns(const void* pointer) const noexcept {
    return address(pointer) - address(m_begin) < m_bytes;
  }
  [[nodiscard]] std::byte* begin() const noexcept { return m_begin; }
  [[nodiscard]] std::size_t bytes() const noexcept { return m_bytes; }
  [[nodiscard]] std::size_t used() const {
    const std::lock_guard lock(m_mutex);
    return m_bytes - m_ranges.free_bytes();
  }
  [[nodiscard]] std::size_t largest() const {
    const std::lock_guard lock(m_mutex);
    return m_ranges.largest();
  }
  friend std::ostream& operator<<(std::ostream& out, const Region& region) {
    return out << region.used() << " B of " << region.bytes() << " B used, the largest free piece "
               << region.largest() << " B";
  }

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
