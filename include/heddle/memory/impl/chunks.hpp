// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Chunks: ranges within chunks of an upstream, each marked with its owner.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/brief_mutex.hpp>
#include <heddle/memory/impl/heap.hpp>
#include <heddle/memory/impl/page_map.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory::impl {

/// The amounts by which a pool grows.
struct Growth {
  std::size_t min_chunk;         ///< in bytes
  std::size_t max_chunk_growth;  ///< bytes of a chunk, unless one range is larger
  std::size_t most;              ///< bytes of all ranges, and of the memory requested for them
  /// The most free bytes that the pool keeps, as far as it can return them to the upstream.
  std::size_t most_idle = std::numeric_limits<std::size_t>::max();
};

/// Whether the upstream may be asked if no free range is large enough, and for how much more.
enum class More : std::uint8_t { none, little, much };

/// Ranges of whole granules. Each is marked with a word, which can be found by its address. Callers
/// of take(), give(), give_back() and trim() must hold `lock`.
template <Resource Upstream>
class Chunks {
 public:
  Chunks(Upstream upstream, const Growth& growth)
      : m_upstream(std::move(upstream)),
        m_growth{whole(std::min(growth.min_chunk, most_bytes)),
                 whole(std::min(growth.max_chunk_growth, most_bytes)),
                 std::min(growth.most, most_bytes) / granule * granule, growth.most_idle} {}
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;
  ~Chunks() {
    m_heap.release_all([&](std::uintptr_t begin, std::size_t bytes) { release(begin, bytes); });
  }

  /// Takes a range, and marks its first granule with `word`. Returns 0 if there is no free range
  /// and `more` is More::none. @throws out_of_memory.
  [[nodiscard]] std::uintptr_t take(std::size_t bytes, std::size_t alignment, std::uintptr_t word,
                                    More more) {
    // Chunks of pages may have more addresses than the pool may have pages.
    if (m_heap.bytes() > m_growth.most && bytes > left(used())) [[unlikely]] {
      if (more == More::none) return 0;
      refuse(bytes);
    }
    Heap::Taken taken = m_heap.take(bytes, alignment);
    if (taken.begin == 0) [[unlikely]] {
      if (more == More::none) return 0;
      taken = take_more(bytes, alignment, more);
    }
    m_most_used = std::max(m_most_used, used());
    if constexpr (PagedResource<Upstream>) {
      m_ranges_taken = std::min(m_ranges_taken + 1, most_saved * ranges_for_a_move);
      if (taken.lacks) [[unlikely]]
        fill(taken.begin, bytes);
    }
    m_map.set(taken.begin, granule, word);
    return taken.begin;
  }
  /// Releases whole granules of a range, in any portions.
  void give(std::uintptr_t begin, std::size_t bytes) noexcept {
    m_heap.give(begin, bytes);
    if (m_heap.free_bytes() > m_growth.most_idle) [[unlikely]]
      give_back(used() + m_growth.most_idle / 2);
  }

  /// Returns the records of a range; see Heap::records().
  [[nodiscard]] void* records(std::uintptr_t begin) const noexcept { return m_heap.records(begin); }

  /// Returns the word of the granule that contains the address, or 0 if it has none.
  [[nodiscard]] std::uintptr_t operator[](std::uintptr_t address) const noexcept {
    return m_map[address];
  }
  /// Marks all granules of a range with `word`.
  void mark(std::uintptr_t begin, std::size_t bytes, std::uintptr_t word) noexcept {
    m_map.set(begin, bytes, word);
  }

  /// Returns unused chunks to the upstream, and free memory at the end of other chunks, as long as
  /// `keep` bytes stay. Returns whether there was any.
  bool give_back(std::size_t keep) noexcept {
    const std::size_t had = m_heap.bytes();
    m_heap.trim(
        keep, [&](std::uintptr_t begin, std::size_t bytes) { release(begin, bytes); },
        [&](std::uintptr_t begin, std::size_t bytes, std::size_t less) {
          if constexpr (ExtendableResource<Upstream>)
            m_upstream.shrink(reinterpret_cast<void*>(begin), bytes, less);
          return ExtendableResource<Upstream>;
        });
    m_bytes.store(m_heap.present(), std::memory_order_relaxed);
    return m_heap.bytes() < had;
  }
  /// Calls give_back(), and then releases the free pages of the remaining chunks.
  void trim(std::size_t keep) noexcept {
    give_back(keep);
    if constexpr (PagedResource<Upstream>) {
      discard(keep);
      m_most_used = used();
      m_bytes.store(m_heap.present(), std::memory_order_relaxed);
    }
  }

  /// Returns the bytes of all chunks without absent pages. The value may be slightly out of date.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return m_bytes.load(std::memory_order_relaxed);
  }
  /// Returns the bytes of the free ranges without absent pages.
  [[nodiscard]] std::size_t free_bytes() const {
    const std::scoped_lock locked(lock);
    return m_heap.free_bytes() - (m_heap.bytes() - m_heap.present());
  }
  [[nodiscard]] bool owns(std::uintptr_t address) const {
    const std::scoped_lock locked(lock);
    return m_heap.owns(address);
  }
  [[nodiscard]] const Upstream& upstream() const noexcept { return m_upstream; }
  /// Returns the most free bytes that the pool keeps.
  [[nodiscard]] std::size_t most_idle() const noexcept { return m_growth.most_idle; }

  mutable BriefMutex lock;

 private:
  /// Takes a range after asking the upstream for more memory.
  [[nodiscard, gnu::noinline]] Heap::Taken take_more(std::size_t bytes, std::size_t alignment,
                                                     More more) {
    if (bytes > left(used())) refuse(bytes);
    grow(bytes + (alignment - granule), more);
    const Heap::Taken taken = m_heap.take(bytes, alignment);
    m_bytes.store(m_heap.present(), std::memory_order_relaxed);
    return taken;
  }
  /// Makes a free range of `bytes` bytes. The newest chunk is extended if possible, otherwise a new
  /// chunk is added. It asks for more than `bytes` first, if the upstream has so much. With
  /// More::little, a small pool extends its chunk in small steps. Otherwise the chunk grows to
  /// multiples of `min_chunk`, which may be huge pages.
  void grow(std::size_t bytes, More more) {
    const std::size_t all = m_heap.bytes(), min_chunk = m_growth.min_chunk;
    // Addresses without pages do not count.
    const std::size_t room = PagedResource<Upstream> ? most_bytes : left(all);
    const std::size_t most = std::min(m_growth.max_chunk_growth, room);
    if constexpr (ExtendableResource<Upstream>)
      if (all > 0 && m_heap.owns(m_newest)) {
        const std::size_t had = m_heap.chunk_bytes(m_newest), end = m_heap.end_of(m_newest);
        const std::size_t least = bytes - std::min(bytes, end);
        const bool small = more == More::little && all < 32 * min_chunk;
        const std::size_t unit = small ? granule : min_chunk;
        const std::size_t wanted = had + std::max({least, all / 128, min_chunk / 32});
        const std::size_t step = std::min((wanted + unit - 1) / unit * unit - had, most);
        if (least <= room && (extend(std::max(least, step)) || (least < step && extend(least)))) {
          m_small_steps = small;
          return;
        }
      }
    if (bytes > room) refuse(bytes);
    const std::size_t step = std::min(whole(std::max(all / 16, min_chunk)), most);
    if (bytes >= step || !add(step)) add_exactly(bytes);
  }
  [[nodiscard]] std::size_t used() const noexcept { return m_heap.bytes() - m_heap.free_bytes(); }
  /// Returns the bytes that are left up to the limit, if there are `had`.
  [[nodiscard]] std::size_t left(std::size_t had) const noexcept {
    return m_growth.most - std::min(had, m_growth.most);
  }
  [[noreturn, gnu::noinline, gnu::cold]] void refuse(std::size_t bytes) const {
    throw out_of_memory({"heddle::memory::Pool", text("cannot allocate ", bytes, " B more"),
                         text(used(), " B of at most ", m_growth.most, " B are in use"),
                         "free some, or raise PoolOptions::most if the machine has more"});
  }

  /// Provides pages for a range that was taken. It moves pages of free ranges if the pool would
  /// otherwise exceed its peak use by more than a sixteenth, or by a sixth if whole huge pages
  /// move. Ranges of size classes are numerous, so they get one move for every 512 ranges taken,
  /// and up to 64 moves may be saved up. A very large pool uses new pages instead, because the
  /// system records each moved part and limits their number for each process.
  [[gnu::noinline]] void fill(std::uintptr_t begin,
                              std::size_t bytes) requires PagedResource<Upstream> {
    const bool saved = bytes <= SizeClasses::largest;
    const bool moves =
        m_heap.present() <= most_moved && (!saved || m_ranges_taken >= ranges_for_a_move);
    const std::size_t more = m_most_used / (m_small_steps ? 16 : 6);
    const std::size_t most = moves ? std::min(m_most_used + more, m_growth.most) : most_bytes;
    m_heap.fill(begin, bytes, most, m_small_steps,
                [&](std::uintptr_t from, std::uintptr_t to, std::size_t size) {
                  if (saved) m_ranges_taken -= std::min(m_ranges_taken, ranges_for_a_move);
                  return m_upstream.remap(reinterpret_cast<void*>(from),
                                          reinterpret_cast<void*>(to), size);
                });
    if (m_heap.present() > m_growth.most) discard(m_growth.most);
    m_bytes.store(m_heap.present(), std::memory_order_relaxed);
  }
  /// Releases pages of free ranges, as long as `keep` bytes stay.
  void discard(std::size_t keep) noexcept requires PagedResource<Upstream> {
    m_heap.discard(keep, [&](std::uintptr_t begin, std::size_t bytes) {
      return m_upstream.discard(reinterpret_cast<void*>(begin), bytes);
    });
  }
  /// Adds a chunk of `bytes` bytes. Returns false if the upstream throws.
  [[nodiscard]] bool add(std::size_t bytes) {
    try {
      add_exactly(bytes);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  void add_exactly(std::size_t bytes) {
    const auto chunk = reinterpret_cast<std::uintptr_t>(m_upstream.allocate(bytes, granule));
    try {
      m_map.reserve(chunk, bytes);
      m_heap.add(chunk, bytes);
    } catch (...) {
      release(chunk, bytes);
      throw;
    }
    m_newest = chunk;
    m_small_steps = false;
  }
  /// Extends the newest chunk by `more` bytes. Returns false if that is not possible.
  [[nodiscard]] bool extend(std::size_t more) requires ExtendableResource<Upstream> {
    void* const chunk = reinterpret_cast<void*>(m_newest);
    const std::size_t bytes = m_heap.chunk_bytes(m_newest);
    if (!m_upstream.extend(chunk, bytes, more)) return false;
    try {
      m_map.reserve(m_newest + bytes, more);
      if (m_heap.extend(m_newest, more)) return true;
    } catch (const std::bad_alloc&) {  // no memory for the records
    }
    m_upstream.shrink(chunk, bytes + more, more);
    return false;
  }
  void release(std::uintptr_t begin, std::size_t bytes) noexcept {
    m_upstream.deallocate(reinterpret_cast<void*>(begin), bytes, granule);
  }

  /// An upper bound on all sizes.
  static constexpr std::size_t most_bytes = std::numeric_limits<std::size_t>::max() / 8;
  static constexpr std::size_t most_moved = std::size_t{16} << 30;
  /// Limits on moves to small ranges. A move takes about 30 us, so it costs at most 60 ns for each
  /// range.
  static constexpr std::size_t ranges_for_a_move = 512, most_saved = 64;

  Upstream m_upstream;
  Growth m_growth;  ///< in whole granules
  Heap m_heap{ExtendableResource<Upstream>, PagedResource<Upstream>};
  PageMap<std::uintptr_t, granule, std::size_t{1} << 16> m_map;
  std::uintptr_t m_newest = 0;     ///< begin of the newest chunk
  std::size_t m_most_used = 0;     ///< peak of the bytes in ranges
  std::size_t m_ranges_taken = 0;  ///< minus those already used up by moves to small ranges
  /// True if the newest chunk grew in small steps, without huge pages.
  bool m_small_steps = false;
  std::atomic<std::size_t> m_bytes{0};
};

}  // namespace heddle::inline v0::memory::impl
