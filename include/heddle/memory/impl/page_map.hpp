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

/// A map from pages of `size` bytes to words, which are 0 unless they were set. Tables of `words`
/// words exist only where words were reserved. Their pointers lie in directories, which also exist
/// only there, because RLIMIT_AS counts addresses that are never used. Reading needs no lock. Only
/// one thread may write at a time.
template <class Word, std::size_t size, std::size_t words>
class PageMap {
 public:
  PageMap() : m_directories(directories) {}
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap() {
    for (std::size_t d = m_first; d < m_end; ++d)
      if (Word** const tables = load(m_directories[d], std::memory_order_relaxed)) {
        const Metadata<Word*> owner(tables, directory);
        for (std::size_t t = 0; t < directory; ++t)
          if (tables[t] != nullptr) const Metadata<Word> owner_of_words(tables[t], words);
      }
  }

  /// Returns the word of the page that contains the address.
  [[nodiscard, gnu::always_inline]] inline Word operator[](std::uintptr_t address) const noexcept {
    Word** const tables = directory_of(address);
    if (tables == nullptr) [[unlikely]]
      return 0;
    const Word* const table = load(tables[table_of(address)], std::memory_order_acquire);
    return table == nullptr ? 0 : table[address / size % words];
  }
  /// Returns the word of a page for which reserve() was called.
  [[nodiscard]] Word& at(std::uintptr_t address) noexcept {
    return directory_of(address)[table_of(address)][address / size % words];
  }

  /// Reserves memory for the words of a range, so that set() cannot fail. @throws out_of_memory.
  [[gnu::noinline]] void reserve(std::uintptr_t begin, std::size_t bytes) {
    constexpr std::size_t step = size * words;
    for (std::uintptr_t at = begin / step * step; at < begin + bytes; at += step) {
      const std::size_t d = at / step / directory;
      if (d >= directories)
        throw out_of_memory({"heddle::memory", "an address has more than 52 bits"});
      if (load(m_directories[d], std::memory_order_relaxed) == nullptr) {
        store(m_directories[d], Metadata<Word*>(directory).release());
        if (m_end == 0) {
          m_near_tables = m_directories[d];
          m_near.store(d, std::memory_order_release);
        }
        m_first = std::min(m_first, d);
        m_end = std::max(m_end, d + 1);
      }
      Word*& table = m_directories[d][table_of(at)];
      if (load(table, std::memory_order_relaxed) == nullptr)
        store(table, Metadata<Word>(words).release());
    }
  }
  /// Sets the words of all pages of a range. reserve() must have been called for it.
  void set(std::uintptr_t begin, std::size_t bytes, Word word) noexcept {
    for (std::uintptr_t address = begin; address < begin + bytes; address += size)
      at(address) = word;
  }

 private:
  static constexpr std::size_t directory = std::size_t{1} << 14;  ///< tables of one directory
  static constexpr std::size_t directories = (std::size_t{1} << 52) / size / words / directory;

  template <class Pointer>
  [[nodiscard]] static Pointer load(Pointer& from, std::memory_order order) noexcept {
    return std::atomic_ref<Pointer>(from).load(order);
  }
  template <class Pointer>
  static void store(Pointer& to, Pointer pointer) noexcept {
    std::atomic_ref<Pointer>(to).store(pointer, std::memory_order_release);
  }

  [[nodiscard]] Word** directory_of(std::uintptr_t address) const noexcept {
    const std::size_t d = address / size / words / directory;
    if (d == m_near.load(std::memory_order_acquire)) [[likely]]
      return m_near_tables;
    return far_directory(d);
  }
  [[nodiscard, gnu::noinline, gnu::cold]] Word** far_directory(std::size_t d) const noexcept {
    return d < directories ? load(m_directories[d], std::memory_order_acquire) : nullptr;
  }
  [[nodiscard]] static std::size_t table_of(std::uintptr_t address) noexcept {
    return address / size / words % directory;
  }

  Metadata<Word**> m_directories;
  /// The first directory, in which most addresses are. It is found with one load less.
  std::atomic<std::size_t> m_near{directories};
  Word** m_near_tables = nullptr;
  std::size_t m_first = directories, m_end = 0;  ///< bounds of the directories that exist
};

}  // namespace heddle::inline v0::memory::impl
