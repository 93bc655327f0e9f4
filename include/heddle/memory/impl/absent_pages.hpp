// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AbsentPages: records which addresses have no pages, either not yet or no longer.

#include <bit>
#include <cstddef>
#include <cstdint>

#include <heddle/memory/impl/page_map.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory::impl {

/// The set of addresses without pages, in units of 32 KiB. A huge page has 64 units. The set is
/// empty at first, and does not know who owns the addresses. Only one thread may use it at a time.
class AbsentPages {
 public:
  using Units = std::uint64_t;  ///< a bit for each unit of a huge page
  static constexpr std::size_t huge = Pages::huge, units_in_huge = 64, unit = huge / units_in_huge;
  static constexpr Units all = ~Units{0};

  /// Returns `count` units of a huge page from unit `first` on.
  [[nodiscard]] static Units run(std::size_t first, std::size_t count) noexcept {
    return count == 0 ? 0 : (all >> (units_in_huge - count)) << first;
  }
  /// Returns the units of `page` that overlap [from, to).
  [[nodiscard]] static Units within(std::uintptr_t page, std::uintptr_t from,
                                    std::uintptr_t to) noexcept {
    const std::size_t first = from <= page ? 0 : (from - page) / unit;
    const std::size_t end = to >= page + huge ? units_in_huge : (to - page + unit - 1) / unit;
    return run(first, end - first);
  }
  [[nodiscard]] static std::size_t bytes(Units units) noexcept {
    return static_cast<std::size_t>(std::popcount(units)) * unit;
  }

  /// Returns the absent units of a huge page.
  [[nodiscard]] Units operator[](std::uintptr_t page) const noexcept { return m_units[page]; }
  /// Returns the bytes of all absent units.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_bytes; }

  /// Reserves memory for the records of an address range. @throws out_of_memory.
  void reserve(std::uintptr_t begin, std::size_t size) { m_units.reserve(begin, size); }

  void add(std::uintptr_t page, Units units) noexcept {
    Units& absent = m_units.at(page);
    m_bytes += bytes(units & ~absent);
    absent |= units;
  }
  /// Adds all units that lie entirely in an address range. reserve() must have been called for it.
  void add_range(std::uintptr_t begin, std::size_t size) noexcept {
    const std::uintptr_t from = (begin + unit - 1) / unit * unit;
    const std::uintptr_t to = (begin + size) / unit * unit;
    if (from >= to) return;
    for (std::uintptr_t page = from / huge * huge; page < to; page += huge)
      add(page, within(page, from, to));
  }
  /// Removes units of a huge page. Units that are not absent are ignored.
  void remove(std::uintptr_t page, Units units) noexcept {
    Units& absent = m_units.at(page);
    m_bytes -= bytes(units & absent);
    absent &= ~units;
  }
  /// Removes all units that overlap an address range.
  void remove_range(std::uintptr_t begin, std::size_t size) noexcept {
    for (std::uintptr_t page = begin / huge * huge; page < begin + size; page += huge)
      remove(page, within(page, begin, begin + size));
  }

 private:
  PageMap<Units, huge, std::size_t{1} << 12> m_units;  ///< one word for each huge page
  std::size_t m_bytes = 0;
};

}  // namespace heddle::inline v0::memory::impl
