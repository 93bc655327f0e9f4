// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of region.hpp.

#include <cstddef>
#include <mutex>
#include <ostream>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/region.hpp>

namespace heddle::inline v0::memory::impl {

HEDDLE_FULL_INLINE void* Region::allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(m_mutex);
  const auto block = m_ranges.take(bytes, alignment);
  if (!block)
    throw out_of_memory(
        {m_where, text("cannot allocate ", bytes, " B aligned to ", alignment, " B"),
         text(m_ranges.free_bytes(), " B of ", m_bytes, " B are free, the largest free piece has ",
              m_ranges.largest(), " B")});
  return m_begin + (*block - address(m_begin));
}

HEDDLE_FULL_INLINE void Region::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  const std::lock_guard lock(m_mutex);
  m_ranges.give_back(address(block), bytes);
}

HEDDLE_FULL_INLINE std::size_t Region::used() const {
  const std::lock_guard lock(m_mutex);
  return m_bytes - m_ranges.free_bytes();
}

HEDDLE_FULL_INLINE std::size_t Region::largest() const {
  const std::lock_guard lock(m_mutex);
  return m_ranges.largest();
}

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const Region& region) {
  return out << region.used() << " B of " << region.bytes() << " B used, the largest free piece "
             << region.largest() << " B";
}

}  // namespace heddle::inline v0::memory::impl
