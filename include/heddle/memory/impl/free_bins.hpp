// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FreeBins: the free ranges of a Heap, found by size.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <heddle/memory/impl/size_classes.hpp>

namespace heddle::inline v0::memory::impl {

/// The record of the first and of the last granule of a free range. Other records are unused.
struct FreeRange {
  std::size_t granules;  ///< length of the range, or 0 if none begins or ends here
  std::uint32_t chunk;   ///< only at the first granule, like the members below
  bool lacks;            ///< whether some of the range may be absent
  FreeRange* next;       ///< next range in the bin
  FreeRange* previous;
};

/// Memory of a heap, and the records beside it.
struct HeapChunk {
  std::uintptr_t begin = 0;
  std::size_t granules = 0;     ///< 0 if there is no chunk
  FreeRange* ranges = nullptr;  ///< one record for each granule

  /// Returns the address of a free range of this chunk.
  [[nodiscard]] std::uintptr_t begin_of(const FreeRange* range) const noexcept {
    return begin + static_cast<std::size_t>(range - ranges) * granule;
  }
};

/// Lists of free ranges: one bin for each size below 64 granules, and eight bins for each octave
/// above. A bit for each bin says whether it has a range, so that a search skips the empty ones.
class FreeBins {
 public:
  static constexpr std::size_t exact = 64;  ///< sizes that have a bin of their own
  static constexpr std::size_t count = exact + 8 * 48;

  [[nodiscard]] static std::size_t bin_of(std::size_t granules) noexcept {
    if (granules < exact) return granules;
    const auto octave = static_cast<std::size_t>(std::bit_width(granules)) - 4;
    return exact + (octave - 3) * 8 + (granules >> octave) - 8;
  }

  /// Returns the first range of a bin, or null. Its other ranges follow by `next`.
  [[nodiscard]] FreeRange* first(std::size_t bin) const noexcept { return m_bins[bin]; }
  /// Returns the granules of all ranges.
  [[nodiscard]] std::size_t granules() const noexcept { return m_granules; }

  /// Writes the record of a range of `granules` granules of a chunk, and adds it.
  void add(FreeRange* range, std::size_t granules, std::uint32_t chunk, bool lacks) noexcept {
    const std::size_t bin = bin_of(granules);
    *range = {granules, chunk, lacks, m_bins[bin], nullptr};
    if (m_bins[bin] != nullptr) m_bins[bin]->previous = range;
    m_bins[bin] = range;
    m_filled[bin / 64] |= std::uint64_t{1} << bin % 64;
    m_granules += granules;
  }
  void remove(const FreeRange* range) noexcept {
    const std::size_t granules = range->granules;
    const std::size_t bin = bin_of(granules);
    if (range->next != nullptr) range->next->previous = range->previous;
    (range->previous != nullptr ? range->previous->next : m_bins[bin]) = range->next;
    if (m_bins[bin] == nullptr) m_filled[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
    m_granules -= granules;
  }

  struct Fit {
    FreeRange* range = nullptr;
    std::size_t skip = 0;  ///< granules before the first aligned address
  };
  /// Returns the smallest range that fits, and among equal ones the one at the lowest address. It
  /// searches the first `most` ranges of each bin, and stops at the first bin with a range that
  /// fits. `chunks` are those that the records name.
  [[nodiscard]] Fit find(std::size_t granules, std::size_t alignment, std::size_t most,
                         const HeapChunk* chunks) const {
    for (std::size_t bin = filled_from(bin_of(granules)); bin < count; bin = filled_from(bin + 1)) {
      Fit best;
      std::uintptr_t lowest = 0;
      std::size_t looked = 0;
      for (FreeRange* range = m_bins[bin]; range != nullptr && looked < most;
           range = range->next, ++looked) {
        const std::uintptr_t begin = chunks[range->chunk].begin_of(range);
        const std::size_t skip = (alignment - begin % alignment) % alignment / granule;
        if (range->granules < granules + skip) continue;
        if (best.range == nullptr || range->granules < best.range->granules ||
            (range->granules == best.range->granules && begin < lowest)) {
          best = {range, skip};
          lowest = begin;
          if (range->granules == granules) break;  // none is smaller
        }
      }
      if (best.range != nullptr) return best;
    }
    return {};
  }

 private:
  /// Returns the first bin from `bin` on that is not empty.
  [[nodiscard]] std::size_t filled_from(std::size_t bin) const noexcept {
    if (bin >= count) return count;
    std::size_t word = bin / 64;
    std::uint64_t filled = m_filled[word] & ~std::uint64_t{0} << bin % 64;
    while (filled == 0)
      if (++word == m_filled.size())
        return count;
      else
        filled = m_filled[word];
    return word * 64 + static_cast<std::size_t>(std::countr_zero(filled));
  }

  std::array<FreeRange*, count> m_bins = {};
  std::array<std::uint64_t, count / 64> m_filled = {};
  std::size_t m_granules = 0;
};

}  // namespace heddle::inline v0::memory::impl
