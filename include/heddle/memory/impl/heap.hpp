// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Heap: the free ranges of some chunks of memory, found by size and joined with their neighbours.
/// Its records lie beside that memory, which it never touches.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/absent_pages.hpp>
#include <heddle/memory/impl/free_bins.hpp>
#include <heddle/memory/impl/metadata.hpp>
#include <heddle/memory/impl/size_classes.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory::impl {

/// Best-fit allocation of ranges of whole granules. A free range is listed in FreeBins. An array
/// beside each chunk records where free ranges begin and end, so that a returned range finds its
/// neighbours in constant time. Ranges of different chunks are never joined. Only one thread may
/// use a Heap at a time.
///
/// Parts of free ranges may be absent: they have addresses, but no pages yet or no pages any more.
class Heap {
 public:
  /// Constructs an empty heap. If `growing` is true, its chunks may be extended. If `paged` is
  /// true, the memory of new chunks and extensions is absent.
  Heap(bool growing, bool paged)
      : m_paged(paged), m_accounts(HugePages::no, growing ? std::size_t{2} << 30 : 0) {}

  /// Adds a free chunk of whole granules, which must not overlap another chunk.
  /// @throws out_of_memory if there is no memory for its records. The heap is unchanged then.
  void add(std::uintptr_t begin, std::size_t bytes) {
    if (m_count == m_chunks.size()) reserve_chunks(std::max<std::size_t>(2 * m_count, 128));
    if (m_paged) m_absent.reserve(begin, bytes);
    std::uint32_t slot = 0;
    while (m_chunks[slot].granules != 0) ++slot;
    Chunk& chunk = m_chunks[slot];
    chunk = {
        begin, bytes / granule,
        static_cast<Range*>(m_accounts.allocate(bytes / granule * sizeof(Range), alignof(Range)))};
    std::uint32_t* const place = first_after(begin);
    std::copy_backward(place, m_order.data() + m_count, m_order.data() + m_count + 1);
    *place = slot;
    ++m_count;
    m_bytes += bytes;
    if (m_paged) m_absent.add_range(begin, bytes);
    list(chunk, 0, chunk.granules, m_paged);
  }

  /// Extends the chunk at `begin` by `bytes` bytes, in whole granules. Returns false if the records
  /// cannot be extended. @throws out_of_memory if there is no memory for the records of absent
  /// pages.
  [[nodiscard]] bool extend(std::uintptr_t begin, std::size_t bytes) {
    Chunk& chunk = chunk_of(begin);
    const std::size_t end = chunk.granules, more = bytes / granule;
    if (m_paged) m_absent.reserve(begin + end * granule, bytes);
    if (!m_accounts.extend(chunk.ranges, end * sizeof(Range), more * sizeof(Range))) return false;
    chunk.granules += more;
    m_bytes += bytes;
    if (m_paged) m_absent.add_range(begin + end * granule, bytes);
    give(chunk, end, more, m_paged);
    return true;
  }

  /// Returns the bytes of the chunk at `begin`.
  [[nodiscard]] std::size_t chunk_bytes(std::uintptr_t begin) const {
    return chunk_of(begin).granules * granule;
  }
  /// Returns the free bytes at the end of the chunk at `begin`.
  [[nodiscard]] std::size_t end_of(std::uintptr_t begin) const {
    const Chunk& chunk = chunk_of(begin);
    return chunk.ranges[chunk.granules - 1].granules * granule;
  }

  /// A range that take() returns. `begin` is 0 if there is none. `lacks` is true if some of it may
  /// be absent.
  struct Taken {
    std::uintptr_t begin = 0;
    bool lacks = false;
  };
  /// Takes `bytes` bytes, in whole granules, at a multiple of `alignment`. Approximates best fit,
  /// because it looks at a limited number of ranges. Returns no range only if none is large enough.
  [[nodiscard]] Taken take(std::size_t bytes, std::size_t alignment = granule) {
    const std::size_t granules = bytes / granule;
    if (m_free.granules() < granules) return {};
    FreeBins::Fit best = m_free.find(granules, alignment, 8, m_chunks.data());
    if (best.range == nullptr)  // without a limit
      best = m_free.find(granules, alignment, m_free.granules(), m_chunks.data());
    if (best.range == nullptr) return {};
    Chunk& chunk = m_chunks[best.range->chunk];
    const auto first = static_cast<std::size_t>(best.range - chunk.ranges);
    const std::size_t length = best.range->granules;
    const bool lacks = best.range->lacks;
    unlist(chunk, first);
    if (best.skip > 0) list(chunk, first, best.skip, lacks);
    if (const std::size_t used = best.skip + granules; used < length)
      list(chunk, first + used, length - used, lacks);
    return {chunk.begin + (first + best.skip) * granule, lacks};
  }

  static constexpr std::size_t record = 32;  ///< bytes of the record of a granule
  /// Returns the records of the granules of a range of take(). Until give(), the heap reads only
  /// the first word of the first and of the last record, which is 0. The owner of the range may
  /// write the rest. Before give(), the first word of each record must be 0 again.
  [[nodiscard]] void* records(std::uintptr_t begin) const noexcept {
    const Chunk& chunk = chunk_of(begin);
    return chunk.ranges + (begin - chunk.begin) / granule;
  }

  /// Prepares a range of take() for its first use. Absent parts get new pages when they are
  /// touched. But if more than `most` bytes would then be present, the function moves pages from
  /// free ranges instead, as far as there are any. `remap(from, to, bytes)` moves pages and returns
  /// whether it succeeded. If `parts` is true, parts of huge pages may move, otherwise only whole
  /// ones.
  template <class Remap>
  void fill(std::uintptr_t begin, std::size_t bytes, std::size_t most, bool parts, Remap&& remap) {
    for (std::uintptr_t page = begin / huge * huge; page < begin + bytes; page += huge)
      if (const Units absent = m_absent[page]; absent != 0) {
        // If a huge page is absent as a whole, the first touch brings all of it.
        bool none = absent == AbsentPages::all;
        Units lacking = absent & AbsentPages::within(page, begin, begin + bytes);
        if (none && !parts) lacking = AbsentPages::all;
        while (lacking != 0 && present() + (none ? huge : AbsentPages::bytes(lacking)) > most) {
          const auto first = static_cast<std::size_t>(std::countr_zero(lacking));
          const auto length = static_cast<std::size_t>(std::countr_one(lacking >> first));
          const Run free = spare(length, parts ? 1 : AbsentPages::units_in_huge);
          const Units filled = AbsentPages::run(first, free.units);
          if (filled == 0 || !remap(free.begin(), page + first * unit, free.units * unit)) {
            most = std::numeric_limits<std::size_t>::max();  // try no more moves
            break;
          }
          leave_out(free);
          m_absent.remove(page, filled);
          lacking &= ~filled;
          none = false;
        }
        m_absent.remove(page, none ? AbsentPages::all : lacking);
      }
  }

  /// Discards pages of free ranges, as long as `keep` bytes stay present. Those for which
  /// `discard(address, bytes)` returns true are absent from then on.
  template <class Discard>
  void discard(std::size_t keep, Discard&& discard) {
    each_run(1, std::numeric_limits<std::size_t>::max(), [&](Run run) {
      run.keep_last((present() - std::min(present(), keep)) / unit);
      if (run.units == 0) return true;
      if (discard(run.begin(), run.units * unit)) leave_out(run);
      return false;
    });
  }

  /// Frees a range of take().
  void give(std::uintptr_t address, std::size_t bytes) {
    Chunk& chunk = chunk_of(address);
    give(chunk, (address - chunk.begin) / granule, bytes / granule, false);
  }

  /// Removes free memory, as long as `keep` bytes stay present. Chunks that are entirely free are
  /// removed, the highest addresses first, and passed to `release(address, bytes)`. Other chunks
  /// lose the free range at their end if `shorten(address, bytes, less)` returns true.
  template <class Release, class Shorten>
  void trim(std::size_t keep, Release&& release, Shorten&& shorten) {
    for (std::size_t c = m_count; c-- > 0;) {
      Chunk& chunk = m_chunks[m_order[c]];
      const std::size_t end = chunk.ranges[chunk.granules - 1].granules;
      const std::size_t spare = cut(chunk, end, present() - std::min(present(), keep));
      if (spare == 0) continue;
      const std::size_t bytes = chunk.granules * granule;
      if (spare == chunk.granules) {
        unlist(chunk, 0);
        std::copy(m_order.data() + c + 1, m_order.data() + m_count, m_order.data() + c);
        --m_count;
        release(forget(chunk), bytes);
      } else if (shorten(chunk.begin, bytes, spare * granule)) {
        unlist(chunk, chunk.granules - end);
        forget_absent(chunk, chunk.granules - spare);
        m_accounts.shrink(chunk.ranges, chunk.granules * sizeof(Range), spare * sizeof(Range));
        chunk.granules -= spare;
        if (end > spare) list(chunk, chunk.granules - (end - spare), end - spare, m_paged);
      } else {
        continue;
      }
      m_bytes -= spare * granule;
    }
  }

  /// Calls `release(address, bytes)` for every chunk, free or not, and removes them all.
  template <class Release>
  void release_all(Release&& release) {
    for (std::size_t c = 0; c < m_count; ++c) {
      Chunk& chunk = m_chunks[m_order[c]];
      const std::size_t bytes = chunk.granules * granule;
      release(forget(chunk), bytes);
    }
    m_count = m_bytes = 0;
    m_free = {};
  }

  /// Returns whether the address lies in a chunk.
  [[nodiscard]] bool owns(std::uintptr_t address) const {
    if (first_after(address) == m_order.data()) return false;
    const Chunk& chunk = chunk_of(address);
    return address - chunk.begin < chunk.granules * granule;
  }
  /// Returns the bytes of all chunks.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_bytes; }
  /// Returns the bytes of all free ranges.
  [[nodiscard]] std::size_t free_bytes() const noexcept { return m_free.granules() * granule; }
  /// Returns the bytes of all chunks, without the absent ones.
  [[nodiscard]] std::size_t present() const noexcept { return m_bytes - m_absent.bytes(); }

 private:
  using Units = AbsentPages::Units;
  static constexpr std::size_t huge = AbsentPages::huge, unit = AbsentPages::unit;

  using Range = FreeRange;
  using Chunk = HeapChunk;
  static_assert(sizeof(Range) == record);
  /// Consecutive units of one huge page.
  struct Run {
    Range* range = nullptr;  ///< the free range that contains them
    std::uintptr_t page = 0;
    std::size_t first = 0, units = 0;

    [[nodiscard]] std::uintptr_t begin() const noexcept { return page + first * unit; }
    void keep_last(std::size_t most) noexcept {
      const std::size_t less = units - std::min(units, most);
      first += less;
      units -= less;
    }
  };

  [[gnu::noinline, gnu::cold]] void reserve_chunks(std::size_t count) {
    Metadata<Chunk> chunks(count);
    Metadata<std::uint32_t> order(count);
    std::copy_n(m_chunks.data(), m_count, chunks.data());
    std::copy_n(m_order.data(), m_count, order.data());
    m_chunks = std::move(chunks);
    m_order = std::move(order);
  }

  /// Returns the place in m_order of the first chunk that begins after the address.
  [[nodiscard]] std::uint32_t* first_after(std::uintptr_t address) const {
    return std::upper_bound(
        m_order.data(), m_order.data() + m_count, address,
        [&](std::uintptr_t at, std::uint32_t slot) { return at < m_chunks[slot].begin; });
  }
  /// Returns the last chunk that begins at or before the address, which must exist.
  [[nodiscard]] Chunk& chunk_of(std::uintptr_t address) const {
    return m_chunks[*(first_after(address) - 1)];
  }

  void list(Chunk& chunk, std::size_t first, std::size_t granules, bool lacks) {
    Range* const range = &chunk.ranges[first];
    chunk.ranges[first + granules - 1].granules = granules;
    m_free.add(range, granules, static_cast<std::uint32_t>(&chunk - m_chunks.data()), lacks);
  }
  void unlist(Chunk& chunk, std::size_t first) {
    Range* const range = &chunk.ranges[first];
    const std::size_t granules = range->granules;
    m_free.remove(range);
    range->granules = chunk.ranges[first + granules - 1].granules = 0;
  }

  /// Lists a free range and joins it with its neighbours. `lacks` is true if some of it may be
  /// absent.
  void give(Chunk& chunk, std::size_t first, std::size_t length, bool lacks) {
    if (const std::size_t end = first + length; end < chunk.granules)
      if (const std::size_t next = chunk.ranges[end].granules; next != 0) {
        lacks = lacks || chunk.ranges[end].lacks;
        unlist(chunk, end);
        length += next;
      }
    if (first > 0)
      if (const std::size_t last = chunk.ranges[first - 1].granules; last != 0) {
        first -= last;
        lacks = lacks || chunk.ranges[first].lacks;
        unlist(chunk, first);
        length += last;
      }
    list(chunk, first, length, lacks);
  }

  /// Marks the pages of a run as absent.
  void leave_out(const Run& run) noexcept {
    m_absent.add(run.page, AbsentPages::run(run.first, run.units));
    run.range->lacks = true;
  }
  /// Removes the records of absent pages of a chunk from granule `first` on.
  void forget_absent(const Chunk& chunk, std::size_t first) noexcept {
    if (m_paged)
      m_absent.remove_range(chunk.begin + first * granule, (chunk.granules - first) * granule);
  }

  /// Calls `found(run)` for runs of units that are free and present. The largest free ranges come
  /// first, and each is visited from its end. Ranges of fewer than `least` units are skipped. Stops
  /// when `found` returns true, or after looking at `most` ranges and huge pages.
  template <class Found>
  void each_run(std::size_t least, std::size_t most, Found&& found) {
    std::size_t looked = 0;
    for (std::size_t bin = FreeBins::count; bin-- > FreeBins::bin_of(least * unit / granule);)
      for (Range* range = m_free.first(bin); range != nullptr; range = range->next) {
        if (looked++ == most) return;
        const std::uintptr_t begin = m_chunks[range->chunk].begin_of(range);
        const std::uintptr_t from = (begin + unit - 1) / unit * unit;
        const std::uintptr_t to = (begin + range->granules * granule) / unit * unit;
        for (std::uintptr_t end = to; end > from;) {
          const std::uintptr_t page = (end - 1) / huge * huge;
          Units units = AbsentPages::within(page, from, to) & ~m_absent[page];
          if (units != 0 && looked++ == most) return;
          while (units != 0) {
            const auto past = static_cast<std::size_t>(std::bit_width(units));
            const auto count = static_cast<std::size_t>(
                std::countl_one(units << (AbsentPages::units_in_huge - past)));
            if (found(Run{range, page, past - count, count})) return;
            units &= ~AbsentPages::run(past - count, count);
          }
          end = page;
        }
      }
  }
  /// Returns a free and present run of `least` to `most` units, or an empty run if a limited search
  /// finds none.
  [[nodiscard]] Run spare(std::size_t most, std::size_t least) {
    Run found;
    if (most >= least)
      each_run(least, 256, [&](Run run) {
        if (run.units < least) return false;
        run.keep_last(most);
        found = run;
        return true;
      });
    return found;
  }
  /// Returns the number of granules, at most `most`, that can be cut from the end of a chunk
  /// without removing more than `bytes` present bytes.
  [[nodiscard]] std::size_t cut(const Chunk& chunk, std::size_t most,
                                std::size_t bytes) const noexcept {
    if (!m_paged) return std::min(most, bytes / granule);
    const std::uintptr_t end = chunk.begin + chunk.granules * granule;
    const std::uintptr_t first = end - most * granule;
    for (std::uintptr_t at = end; at > first;) {
      const std::uintptr_t page = (at - 1) / huge * huge, from = std::max(page, first);
      const Units absent = m_absent[page] & AbsentPages::within(page, from, at);
      const std::size_t there = at - from - AbsentPages::bytes(absent);
      if (there > bytes) return (end - at + bytes) / granule;
      bytes -= there;
      at = from;
    }
    return most;
  }

  /// Removes the records of a chunk, and returns its begin.
  [[nodiscard]] std::uintptr_t forget(Chunk& chunk) {
    forget_absent(chunk, 0);
    m_accounts.deallocate(chunk.ranges, chunk.granules * sizeof(Range), alignof(Range));
    return std::exchange(chunk, {}).begin;
  }

  bool m_paged;
  Pages m_accounts;  ///< memory of the records of chunks
  AbsentPages m_absent;
  Metadata<Chunk> m_chunks;
  Metadata<std::uint32_t> m_order;  ///< indices of chunks, ordered by address
  std::size_t m_count = 0;
  FreeBins m_free;
  std::size_t m_bytes = 0;
};

}  // namespace heddle::inline v0::memory::impl
