// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AbsentPages: which addresses have no pages, yet or any more.

#include <bit>
#include <cstddef>
#include <cstdint>

#include <heddle/memory/impl/page_map.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory::impl {

/// Account of addresses without pages, in units of 32 KiB, 64 of which are a huge page; whose they
/// are is somebody else's business. Nothing is absent at first. For one thread at a time.
class AbsentPages {
 public:
  using Units = std::uint64_t;  ///< of a huge page, a bit for each
  static constexpr std::size_t huge = Pages::huge, units_in_huge = 64, unit = huge / units_in_huge;
  static constexpr Units all = ~Units{0};

  /// So many units of a huge page, from the first on.
  [[nodiscard]] static Units run(std::size_t first, std::size_t count) noexcept {
    return count == 0 ? 0 : (all >> (units_in_huge - count)) << first;
  }
  /// Those that lie in [from, to), or in part.
  [[nodiscard]] static Units within(std::uintptr_t page, std::uintptr_t from,
                                    std::uintptr_t to) noexcept {
    const std::size_t first = from <= page ? 0 : (from - page) / unit;
    const std::size_t end = to >= page + huge ? units_in_huge : (to - page + unit - 1) / unit;
    return run(first, end - first);
  }
  [[nodiscard]] static std::size_t bytes(Units units) noexcept {
    return static_cast<std::size_t>(std::popcount(units)) * unit;
  }

  /// Those of a huge page that are absent.
  [[nodiscard]] Units operator[](std::uintptr_t page) const noexcept { return m_units[page]; }
  /// All that are.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_bytes; }

  /// Room for the account of a range. @throws out_of_memory.
  void reserve(std::uintptr_t begin, std::size_t size) { m_units.reserve(begin, size); }

  void add(std::uintptr_t page, Units units) noexcept {
    Units& absent = m_units.at(page);
    m_bytes += bytes(units & ~absent);
    absent |= units;
  }
  /// All whole units of a range that has room.
  void add_range(std::uintptr_t begin, std::size_t size) noexcept {
    const std::uintptr_t from = (begin + unit - 1) / unit * unit;
    const std::uintptr_t to = (begin + size) / unit * unit;
    if (from >= to) return;
    for (std::uintptr_t page = from / huge * huge; page < to; page += huge)
      add(page, within(page, from, to));
  }
  /// What is not absent stays so.
  void remove(std::uintptr_t page, Units units) noexcept {
    Units& absent = m_units.at(page);
    m_bytes -= bytes(units & absent);
    absent &= ~units;
  }
  /// All units of a range, or what they have of it.
  void remove_range(std::uintptr_t begin, std::size_t size) noexcept {
    for (std::uintptr_t page = begin / huge * huge; page < begin + size; page += huge)
      remove(page, within(page, begin, begin + size));
  }

 private:
  PageMap<Units, huge, std::size_t{1} << 15> m_units;  ///< of huge pages
  std::size_t m_bytes = 0;
};

}  // namespace heddle::inline v0::memory::impl
