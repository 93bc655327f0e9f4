// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlockPool: what a pool is made of: blocks of size classes in slabs, magazines of threads, and a
/// heap for what is larger, over chunks of an upstream.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/heap.hpp>
#include <heddle/memory/impl/metadata.hpp>
#include <heddle/memory/impl/page_map.hpp>
#include <heddle/memory/impl/size_classes.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory::impl {

/// Blocks of one size side by side, and which of them are free.
struct Slab {
  static constexpr std::size_t most = (std::size_t{32} << 10) / SizeClasses::least;

  std::uintptr_t begin;
  std::uint32_t size_class;
  std::uint32_t blocks;
  std::uint32_t free;
  std::uint32_t first_word;  ///< none before it has a free block
  Slab* next;                ///< of its class, of those that have a free block
  Slab* previous;
  std::array<std::uint64_t, most / 64> free_blocks;

  /// Bytes of a slab of blocks of a size.
  [[nodiscard]] static constexpr std::size_t bytes(std::size_t size) noexcept {
    return std::max(most * SizeClasses::least, (8 * size + granule - 1) / granule * granule);
  }
};

/// The blocks that a thread has at hand, of each class a stack.
struct Cache {
  static constexpr std::uint32_t most = 64;

  std::array<std::uint32_t, SizeClasses::count> counts;
  std::size_t bytes;  ///< of all blocks
  Cache* next;        ///< of those that no thread has
  Cache* older;       ///< of all of the pool
  std::array<std::array<void*, most>, SizeClasses::count> blocks;

  /// The most blocks of a size.
  [[nodiscard]] static constexpr std::uint32_t capacity(std::size_t size) noexcept {
    return static_cast<std::uint32_t>(
        std::clamp<std::size_t>((std::size_t{512} << 10) / size, 8, most));
  }
};

/// How a pool grows, and what its threads may keep.
struct PoolLimits {
  std::size_t least_chunk;  ///< bytes
  std::size_t most_growth;  ///< bytes of a chunk, unless a block is larger
  std::size_t cached;       ///< bytes that each thread may have at hand, if a share of all is less
};

/// Threads call it with a Cache of their own, or with none, which takes longer.
template <Resource Upstream>
class BlockPool {
 public:
  BlockPool(Upstream upstream, const PoolLimits& limits)
      : m_upstream(std::move(upstream)), m_limits(limits), m_most_cached(limits.cached) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    m_heap.release_all([&](std::uintptr_t begin, std::size_t bytes) { release(begin, bytes); });
    while (m_slab_arrays != nullptr)
      Metadata<Slab>(std::exchange(m_slab_arrays, m_slab_arrays->next), slab_array);
    while (m_all_caches != nullptr)
      Metadata<Cache>(std::exchange(m_all_caches, m_all_caches->older), 1);
  }

  [[nodiscard]] void* allocate(Cache* cache, std::size_t bytes, std::size_t alignment) {
    if (bytes - 1 < SizeClasses::largest && alignment <= granule) [[likely]] {
      const std::uint32_t c = class_of(bytes, alignment);
      if (cache == nullptr) return one(c);
      std::uint32_t& count = cache->counts[c];
      if (count == 0) [[unlikely]]
        fill(*cache, c);
      cache->bytes -= SizeClasses::size(c);
      return cache->blocks[c][--count];
    }
    return bytes == 0 ? nullptr : large(bytes, alignment);
  }

  void deallocate(Cache* cache, void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    if (bytes - 1 < SizeClasses::largest && alignment <= granule) [[likely]] {
      const std::uint32_t c = class_of(bytes, alignment);
      if (cache == nullptr) return put_back(c, &block, 1);
      std::uint32_t& count = cache->counts[c];
      const std::size_t size = SizeClasses::size(c);
      if (count == Cache::capacity(size)) [[unlikely]]
        shrink(*cache, c, count / 2);
      if (cache->bytes + size > m_most_cached.load(std::memory_order_relaxed)) [[unlikely]] {
        if (c >= small_classes) return put_back(c, &block, 1);
        shrink(*cache);
      }
      cache->blocks[c][count++] = block;
      cache->bytes += size;
    } else {
      const std::scoped_lock lock(m_heap_lock);
      m_heap.give(address_of(block), whole(bytes));
    }
  }

  /// The bytes of a block that allocate() gave, all of which may be used; 0 of another address.
  [[nodiscard]] std::size_t size_of(const void* block) const noexcept {
    const std::uintptr_t word = m_map[address_of(block)];
    return word % 2 == 1 || word == 0 ? word / 4 * granule : SizeClasses::size(class_in(word));
  }
  /// deallocate() for those who do not know the size. False where no block begins at the address.
  bool deallocate(Cache* cache, void* block) noexcept {
    const std::uintptr_t word = m_map[address_of(block)];
    if (word == 0) return false;
    const std::size_t bytes = size_of(block);
    // What is in no size class was taken for its alignment, if it is not large.
    const bool in_class = word % 4 != ranged;
    deallocate(cache, block, bytes, in_class ? 1 : 2 * granule);
    return true;
  }

  /// For a thread that has none; empty. @throws out_of_memory.
  [[nodiscard]] Cache* new_cache() {
    const std::scoped_lock lock(m_heap_lock);
    if (m_caches == nullptr) {
      m_caches = Metadata<Cache>(1).release();
      m_caches->older = std::exchange(m_all_caches, m_caches);
    }
    ++m_threads;
    share_cached();
    return std::exchange(m_caches, m_caches->next);
  }
  /// Its blocks go back, and it to the next thread.
  void retire(Cache* cache) noexcept {
    empty(*cache);
    const std::scoped_lock lock(m_heap_lock);
    cache->next = std::exchange(m_caches, cache);
    --m_threads;
    share_cached();
  }

  /// Gives chunks back in which nothing is used, as long as `keep` bytes stay; before that, what
  /// the calling thread has at hand.
  void trim(Cache* cache, std::size_t keep) noexcept {
    if (cache != nullptr) empty(*cache);
    for (std::uint32_t c = 0; c < small_classes; ++c) {
      const std::scoped_lock lock(m_centres[c].lock);
      for (Slab* slab = m_centres[c].slabs; slab != nullptr;) {
        Slab* const next = slab->next;
        if (slab->free == slab->blocks) drop(*slab);
        slab = next;
      }
    }
    const std::scoped_lock lock(m_heap_lock);
    m_heap.trim(
        keep, [&](std::uintptr_t begin, std::size_t bytes) { release(begin, bytes); },
        [&](std::uintptr_t begin, std::size_t bytes, std::size_t less) {
          if constexpr (ExtendableResource<Upstream>)
            m_upstream.shrink(reinterpret_cast<void*>(begin), bytes, less);
          return ExtendableResource<Upstream>;
        });
  }

  /// Stops other threads that want blocks until unlock(), as around a fork().
  void lock() {
    for (Centre& centre : m_centres) centre.lock.lock();
    m_heap_lock.lock();
  }
  void unlock() {
    m_heap_lock.unlock();
    for (Centre& centre : m_centres) centre.lock.unlock();
  }

  [[nodiscard]] bool owns(const void* address) const {
    const std::scoped_lock lock(m_heap_lock);
    return m_heap.owns(address_of(address));
  }
  /// Bytes of all chunks.
  [[nodiscard]] std::size_t reserved() const {
    const std::scoped_lock lock(m_heap_lock);
    return m_heap.bytes();
  }
  /// Bytes of the heap that are in no slab and in no block.
  [[nodiscard]] std::size_t idle() const {
    const std::scoped_lock lock(m_heap_lock);
    return m_heap.free_bytes();
  }
  [[nodiscard]] Upstream& upstream() noexcept { return m_upstream; }

 private:
  static constexpr std::size_t slab_array = 128;  ///< slabs that are allocated at once
  static constexpr std::uint32_t small_classes = SizeClasses::of(SizeClasses::largest_small) + 1;

  /// The slabs of a class that have a free block.
  struct alignas(64) Centre {
    std::mutex lock;
    Slab* slabs = nullptr;
  };

  /// What the map says of the first granule of a range, besides how many there are; of those of a
  /// slab it has the address of that.
  static constexpr std::uintptr_t ranged = 1, in_a_class = 3;

  [[nodiscard]] static std::uint32_t class_in(std::uintptr_t word) noexcept {
    return reinterpret_cast<const Slab*>(word)->size_class;
  }
  [[nodiscard]] static std::uintptr_t address_of(const void* block) noexcept {
    return reinterpret_cast<std::uintptr_t>(block);
  }
  [[nodiscard]] static std::size_t whole(std::size_t bytes) noexcept {
    return (bytes + granule - 1) / granule * granule;
  }
  [[nodiscard]] static std::uint32_t class_of(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > SizeClasses::largest_small) return SizeClasses::of(whole(bytes));
    return SizeClasses::of(bytes, alignment);
  }

  /// At least one block into an empty stack.
  [[gnu::noinline]] void fill(Cache& cache, std::uint32_t c) {
    const std::size_t size = SizeClasses::size(c);
    void** const blocks = cache.blocks[c].data();
    // Not more than is soon used: what is over the limit of the thread goes back again.
    const auto wanted = static_cast<std::uint32_t>(
        std::clamp<std::size_t>((std::size_t{16} << 10) / size, 1, Cache::most / 2));
    std::uint32_t count = 1;
    if (c < small_classes)
      count = take(c, blocks, wanted);
    else
      blocks[0] = one(c);
    cache.counts[c] = count;
    cache.bytes += count * size;
  }

  /// All but the last `keep` blocks of a stack go back.
  [[gnu::noinline]] void shrink(Cache& cache, std::uint32_t c, std::uint32_t keep) noexcept {
    std::uint32_t& count = cache.counts[c];
    if (count <= keep) return;
    void** const blocks = cache.blocks[c].data();
    put_back(c, blocks, count - keep);
    cache.bytes -= (count - keep) * SizeClasses::size(c);
    std::copy(blocks + count - keep, blocks + count, blocks);
    count = keep;
  }

  /// All blocks go back.
  void empty(Cache& cache) noexcept {
    for (std::uint32_t c = 0; c < SizeClasses::count; ++c) shrink(cache, c, 0);
  }

  /// Halves of the stacks go back, the largest blocks first, until an eighth less than may be kept
  /// is left.
  [[gnu::noinline]] void shrink(Cache& cache) noexcept {
    const std::size_t most = m_most_cached.load(std::memory_order_relaxed);
    const std::size_t aim = most - most / 8;
    while (cache.bytes > aim)
      for (std::uint32_t c = SizeClasses::count; c-- > 0 && cache.bytes > aim;)
        shrink(cache, c, cache.counts[c] / 2);
  }

  /// A block without a cache.
  [[nodiscard]] void* one(std::uint32_t c) {
    void* block = nullptr;
    if (c < small_classes) {
      take(c, &block, 1);
    } else {
      const std::scoped_lock lock(m_heap_lock);
      block = range(SizeClasses::size(c), granule, in_a_class);
    }
    return block;
  }

  /// Up to `wanted` small blocks, at least one.
  std::uint32_t take(std::uint32_t c, void** blocks, std::uint32_t wanted) {
    const std::size_t size = SizeClasses::size(c);
    Centre& centre = m_centres[c];
    const std::scoped_lock lock(centre.lock);
    if (centre.slabs == nullptr) link(new_slab(c, size));
    std::uint32_t count = 0;
    while (count < wanted && centre.slabs != nullptr) {
      Slab& slab = *centre.slabs;
      while (count < wanted && slab.free > 0) {
        std::uint64_t& word = slab.free_blocks[slab.first_word];
        if (word == 0) {
          ++slab.first_word;
          continue;
        }
        const auto index =
            slab.first_word * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
        word &= word - 1;
        --slab.free;
        blocks[count++] = reinterpret_cast<void*>(slab.begin + index * size);
      }
      if (slab.free == 0) unlink(slab);
    }
    return count;
  }

  void put_back(std::uint32_t c, void** blocks, std::uint32_t count) noexcept {
    if (c >= small_classes) {
      const std::scoped_lock lock(m_heap_lock);
      for (std::uint32_t b = 0; b < count; ++b)
        m_heap.give(address_of(blocks[b]), SizeClasses::size(c));
      return;
    }
    const std::size_t size = SizeClasses::size(c);
    const std::scoped_lock lock(m_centres[c].lock);
    for (std::uint32_t b = 0; b < count; ++b) {
      const std::uintptr_t address = address_of(blocks[b]);
      Slab& slab = *reinterpret_cast<Slab*>(m_map[address]);
      const auto index = static_cast<std::uint32_t>((address - slab.begin) / size);
      slab.free_blocks[index / 64] |= std::uint64_t{1} << index % 64;
      slab.first_word = std::min(slab.first_word, index / 64);
      if (slab.free++ == 0) link(slab);
      // One that is free as a whole stays, for the next block.
      if (slab.free == slab.blocks && (slab.next != nullptr || slab.previous != nullptr))
        drop(slab);
    }
  }

  [[nodiscard]] Slab& new_slab(std::uint32_t c, std::size_t size) {
    const std::scoped_lock lock(m_heap_lock);
    if (m_unused_slabs == nullptr) {
      // The first one of an array is none: it leads to the array before.
      Slab* const slabs = Metadata<Slab>(slab_array).release();
      slabs->next = std::exchange(m_slab_arrays, slabs);
      for (std::size_t s = 1; s < slab_array; ++s)
        slabs[s].next = std::exchange(m_unused_slabs, slabs + s);
    }
    const std::size_t bytes = Slab::bytes(size);
    const auto begin = address_of(range(bytes, granule, ranged));
    Slab& slab = *std::exchange(m_unused_slabs, m_unused_slabs->next);
    const auto blocks = static_cast<std::uint32_t>(bytes / size);
    slab = {begin, c, blocks, blocks, 0, nullptr, nullptr, {}};
    for (std::uint32_t block = 0; block < blocks; ++block)
      slab.free_blocks[block / 64] |= std::uint64_t{1} << block % 64;
    m_map.set(begin, bytes, reinterpret_cast<std::uintptr_t>(&slab));
    return slab;
  }
  /// Its class is locked.
  void drop(Slab& slab) noexcept {
    unlink(slab);
    const std::scoped_lock lock(m_heap_lock);
    const std::size_t bytes = Slab::bytes(SizeClasses::size(slab.size_class));
    m_map.set(slab.begin, bytes, 0);
    m_heap.give(slab.begin, bytes);
    slab.next = std::exchange(m_unused_slabs, &slab);
  }
  void link(Slab& slab) noexcept {
    Slab*& first = m_centres[slab.size_class].slabs;
    slab.previous = nullptr;
    slab.next = first;
    if (first != nullptr) first->previous = &slab;
    first = &slab;
  }
  void unlink(Slab& slab) noexcept {
    if (slab.next != nullptr) slab.next->previous = slab.previous;
    (slab.previous != nullptr ? slab.previous->next : m_centres[slab.size_class].slabs) = slab.next;
    slab.next = slab.previous = nullptr;
  }

  [[nodiscard]] void* large(std::size_t bytes, std::size_t alignment) {
    if (bytes > std::numeric_limits<std::size_t>::max() / 2)
      throw out_of_memory({"heddle::memory::Pool", text("there is no block of ", bytes, " B")});
    const std::scoped_lock lock(m_heap_lock);
    return range(whole(bytes), std::max(alignment, granule), ranged);
  }

  /// Of the heap, which grows where it must. It is locked.
  [[nodiscard]] void* range(std::size_t bytes, std::size_t alignment, std::uintptr_t kind) {
    std::uintptr_t begin = m_heap.take(bytes, alignment);
    if (begin == 0) {
      grow(bytes + (alignment - granule));
      share_cached();
      begin = m_heap.take(bytes, alignment);
    }
    m_map.set(begin, granule, bytes / granule * 4 + kind);
    return reinterpret_cast<void*>(begin);
  }

  /// So that a range of `bytes` is there: the newest chunk grows if it can, or another one comes.
  /// By more than that the more there is, where upstream has so much.
  void grow(std::size_t bytes) {
    const std::size_t step =
        whole(std::min(std::max(m_heap.bytes() / 16, m_limits.least_chunk), m_limits.most_growth));
    if constexpr (ExtendableResource<Upstream>)
      if (m_heap.bytes() > 0 && m_heap.owns(m_newest)) {
        const std::size_t least = bytes - std::min(bytes, m_heap.end_of(m_newest));
        if (extend(std::max(least, step)) || (least < step && extend(least))) return;
      }
    if (bytes >= step || !add(step)) add_exactly(bytes);
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
    void* const chunk = m_upstream.allocate(bytes, granule);
    try {
      m_map.reserve(address_of(chunk), bytes);
      m_heap.add(address_of(chunk), bytes);
    } catch (...) {
      m_upstream.deallocate(chunk, bytes, granule);
      throw;
    }
    m_newest = address_of(chunk);
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
    m_upstream.shrink(chunk, bytes, more);
    return false;
  }
  /// Threads have a thirty-second part of the memory at hand, or as little as they may.
  void share_cached() noexcept {
    m_most_cached.store(std::max(m_limits.cached, m_heap.bytes() / 32 / std::max(m_threads, 1u)),
                        std::memory_order_relaxed);
  }
  void release(std::uintptr_t begin, std::size_t bytes) noexcept {
    m_upstream.deallocate(reinterpret_cast<void*>(begin), bytes, granule);
  }

  Upstream m_upstream;
  PoolLimits m_limits;
  std::atomic<std::size_t> m_most_cached;  ///< of one thread
  std::array<Centre, small_classes> m_centres;
  mutable std::mutex m_heap_lock;  ///< of all that follows; taken last
  Heap m_heap{ExtendableResource<Upstream>};
  PageMap m_map;
  std::uintptr_t m_newest = 0;  ///< chunk
  Slab* m_unused_slabs = nullptr;
  Slab* m_slab_arrays = nullptr;
  Cache* m_caches = nullptr;  ///< that no thread has
  Cache* m_all_caches = nullptr;
  std::uint32_t m_threads = 0;  ///< that have one
};

}  // namespace heddle::inline v0::memory::impl
