// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PageMap: a word for each page of the address space.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heddle/memory/impl/metadata.hpp>

namespace heddle::inline v0::memory::impl {

/// A map from pages of `size` bytes to words, which are 0 unless they were set. It is a table of
/// tables of `words` words each, which use memory only where words were reserved. Reading needs no
/// lock. Only one thread may write at a time.
template <class Word, std::size_t size, std::size_t words>
class PageMap {
 public:
  PageMap() : m_tables(tables) {}
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap() {
    for (std::size_t t = m_first; t < m_end; ++t)
      if (Word* const table = table_of(t).load(std::memory_order_relaxed); table != nullptr)
        const Metadata<Word> owner(table, words);
  }

  /// Returns the word of the page that contains the address.
  [[nodiscard]] Word operator[](std::uintptr_t address) const noexcept {
    const std::uintptr_t part = address / size;
    if (part / words >= tables) return 0;
    const Word* const table = table_of(part / words).load(std::memory_order_acquire);
    return table == nullptr ? 0 : table[part % words];
  }
  /// Returns the word of a page for which reserve() was called.
  [[nodiscard]] Word& at(std::uintptr_t address) noexcept {
    const std::uintptr_t part = address / size;
    return table_of(part / words).load(std::memory_order_relaxed)[part % words];
  }

  /// Reserves memory for the words of a range, so that set() cannot fail. @throws out_of_memory.
  void reserve(std::uintptr_t begin, std::size_t bytes) {
    for (std::uintptr_t t = begin / size / words; t <= (begin + bytes - 1) / size / words; ++t) {
      if (t >= tables) throw out_of_memory({"heddle::memory", "an address has more than 52 bits"});
      if (table_of(t).load(std::memory_order_relaxed) != nullptr) continue;
      table_of(t).store(Metadata<Word>(words).release(), std::memory_order_release);
      m_first = std::min(m_first, t);
      m_end = std::max(m_end, t + 1);
    }
  }
  /// Sets the words of all pages of a range. reserve() must have been called for it.
  void set(std::uintptr_t begin, std::size_t bytes, Word word) noexcept {
    for (std::uintptr_t address = begin; address < begin + bytes; address += size)
      at(address) = word;
  }

 private:
  static constexpr std::size_t tables = (std::size_t{1} << 52) / size / words;

  [[nodiscard]] std::atomic_ref<Word*> table_of(std::size_t index) const noexcept {
    return std::atomic_ref<Word*>(m_tables[index]);
  }

  Metadata<Word*> m_tables;
  std::size_t m_first = tables, m_end = 0;  ///< bounds of the tables that exist
};

}  // namespace heddle::inline v0::memory::impl
