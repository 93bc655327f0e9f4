// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Chunks: ranges out of chunks of an upstream, and whose each is.

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

/// By how much there is more at once.
struct Growth {
  std::size_t least_chunk;  ///< bytes
  std::size_t most_growth;  ///< bytes of a chunk, unless a range is larger
  std::size_t most;         ///< bytes of all ranges, and of what upstream gives for them
};

/// Whether upstream is asked where no free range is large enough, and for how much more than that.
enum class More : std::uint8_t { none, little, much };

/// Ranges of whole granules, each marked with a word for whoever only has an address. `lock` is
/// held by callers of take(), give(), give_back() and trim().
template <Resource Upstream>
class Chunks {
 public:
  Chunks(Upstream upstream, const Growth& growth)
      : m_upstream(std::move(upstream)),
        m_growth{whole(std::min(growth.least_chunk, most_bytes)),
                 whole(std::min(growth.most_growth, most_bytes)),
                 std::min(growth.most, most_bytes) / granule * granule} {}
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;
  ~Chunks() {
    m_heap.release_all([&](std::uintptr_t begin, std::size_t bytes) { release(begin, bytes); });
  }

  /// The first granule is marked with `word`. 0 if there is none and is to be no more of upstream.
  /// @throws out_of_memory.
  [[nodiscard]] std::uintptr_t take(std::size_t bytes, std::size_t alignment, std::uintptr_t word,
                                    More more) {
    // Chunks of pages may have more addresses than there may be pages.
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
  /// Any whole granules of what was taken.
  void give(std::uintptr_t begin, std::size_t bytes) noexcept { m_heap.give(begin, bytes); }

  /// What the granule of an address was marked with; 0 of others'.
  [[nodiscard]] std::uintptr_t operator[](std::uintptr_t address) const noexcept {
    return m_map[address];
  }
  /// All granules of what was taken.
  void mark(std::uintptr_t begin, std::size_t bytes, std::uintptr_t word) noexcept {
    m_map.set(begin, bytes, word);
  }

  /// Chunks of which nothing is used go back, as long as `keep` bytes stay, and what is free at the
  /// ends of others. Whether any do.
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
  /// Likewise, and pages of what is free in others.
  void trim(std::size_t keep) noexcept {
    give_back(keep);
    if constexpr (PagedResource<Upstream>) {
      discard(keep);
      m_most_used = used();
      m_bytes.store(m_heap.present(), std::memory_order_relaxed);
    }
  }

  /// Of all chunks, but for pages that they do not have, at some time.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return m_bytes.load(std::memory_order_relaxed);
  }
  /// Of ranges that nobody has; likewise.
  [[nodiscard]] std::size_t free_bytes() const {
    const std::scoped_lock locked(lock);
    return m_heap.free_bytes() - (m_heap.bytes() - m_heap.present());
  }
  [[nodiscard]] bool owns(std::uintptr_t address) const {
    const std::scoped_lock locked(lock);
    return m_heap.owns(address);
  }
  [[nodiscard]] const Upstream& upstream() const noexcept { return m_upstream; }

  mutable BriefMutex lock;

 private:
  /// Of more of upstream.
  [[nodiscard, gnu::noinline]] Heap::Taken take_more(std::size_t bytes, std::size_t alignment,
                                                     More more) {
    if (bytes > left(used())) refuse(bytes);
    grow(bytes + (alignment - granule), more);
    const Heap::Taken taken = m_heap.take(bytes, alignment);
    m_bytes.store(m_heap.present(), std::memory_order_relaxed);
    return taken;
  }
  /// So that a range of `bytes` is there: the newest chunk grows if it can, or another one comes.
  /// By more than that, where upstream has so much. A chunk that is to have little more grows in
  /// small steps at first; otherwise to multiples of `least_chunk`, which may be huge pages.
  void grow(std::size_t bytes, More more) {
    const std::size_t all = m_heap.bytes(), least_chunk = m_growth.least_chunk;
    // What has no pages yet is not counted.
    const std::size_t room = PagedResource<Upstream> ? most_bytes : left(all);
    const std::size_t most = std::min(m_growth.most_growth, room);
    if constexpr (ExtendableResource<Upstream>)
      if (all > 0 && m_heap.owns(m_newest)) {
        const std::size_t had = m_heap.chunk_bytes(m_newest), end = m_heap.end_of(m_newest);
        const std::size_t least = bytes - std::min(bytes, end);
        const bool small = more == More::little && all < 32 * least_chunk;
        const std::size_t unit = small ? granule : least_chunk;
        const std::size_t wanted = had + std::max({least, all / 128, least_chunk / 32});
        const std::size_t step = std::min((wanted + unit - 1) / unit * unit - had, most);
        if (least <= room && (extend(std::max(least, step)) || (least < step && extend(least)))) {
          m_small_steps = small;
          return;
        }
      }
    if (bytes > room) refuse(bytes);
    const std::size_t step = std::min(whole(std::max(all / 16, least_chunk)), most);
    if (bytes >= step || !add(step)) add_exactly(bytes);
  }
  [[nodiscard]] std::size_t used() const noexcept { return m_heap.bytes() - m_heap.free_bytes(); }
  /// Bytes until there are as many as there may be.
  [[nodiscard]] std::size_t left(std::size_t had) const noexcept {
    return m_growth.most - std::min(had, m_growth.most);
  }
  [[noreturn, gnu::noinline, gnu::cold]] void refuse(std::size_t bytes) const {
    throw out_of_memory({"heddle::memory::Pool", text("no ", bytes, " B more than it has in use"),
                         text(used(), " B of at most ", m_growth.most, " B are in use"),
                         "free some, or raise PoolOptions::most if the machine has more"});
  }

  /// Pages for a range that was taken: those of free ones, if there would otherwise be a sixteenth
  /// more than was used at most, or a sixth, where huge pages move as a whole; for ranges of size
  /// classes, which are many, one move for every 512 ranges that were taken, of which 64 may be
  /// saved. In very large memory new ones, as the system keeps account of each part that was moved,
  /// and of so many in a process.
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
  /// Pages of free ranges, as long as `keep` bytes stay.
  void discard(std::size_t keep) noexcept requires PagedResource<Upstream> {
    m_heap.discard(keep, [&](std::uintptr_t begin, std::size_t bytes) {
      return m_upstream.discard(reinterpret_cast<void*>(begin), bytes);
    });
  }
  /// A chunk of `bytes`, unless upstream refuses.
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
  /// The newest chunk by `more`, unless upstream refuses.
  [[nodiscard]] bool extend(std::size_t more) requires ExtendableResource<Upstream> {
    void* const chunk = reinterpret_cast<void*>(m_newest);
    const std::size_t bytes = m_heap.chunk_bytes(m_newest);
    if (!m_upstream.extend(chunk, bytes, more)) return false;
    try {
      m_map.reserve(m_newest + bytes, more);
      if (m_heap.extend(m_newest, more)) return true;
    } catch (const std::bad_alloc&) {  // as there is no room to keep account of it
    }
    m_upstream.shrink(chunk, bytes + more, more);
    return false;
  }
  void release(std::uintptr_t begin, std::size_t bytes) noexcept {
    m_upstream.deallocate(reinterpret_cast<void*>(begin), bytes, granule);
  }

  /// There are none of more.
  static constexpr std::size_t most_bytes = std::numeric_limits<std::size_t>::max() / 8;
  static constexpr std::size_t most_moved = std::size_t{16} << 30;
  /// Moves to small ranges: each takes some 30 us, so that every range pays 60 ns at most.
  static constexpr std::size_t ranges_for_a_move = 512, most_saved = 64;

  Upstream m_upstream;
  Growth m_growth;  ///< in whole granules
  Heap m_heap{ExtendableResource<Upstream>, PagedResource<Upstream>};
  PageMap<std::uintptr_t, granule, std::size_t{1} << 20> m_map;
  std::uintptr_t m_newest = 0;     ///< chunk
  std::size_t m_most_used = 0;     ///< bytes of ranges, at once
  std::size_t m_ranges_taken = 0;  ///< less those that moves of pages to small ones were for
  bool m_small_steps = false;      ///< the newest chunk grew in such: not of huge pages
  std::atomic<std::size_t> m_bytes{0};
};

}  // namespace heddle::inline v0::memory::impl
