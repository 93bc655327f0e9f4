// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlockPool: thread caches over slabs for small blocks and ranges for large ones, in chunks.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <unistd.h>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/brief_mutex.hpp>
#include <heddle/memory/impl/chunks.hpp>
#include <heddle/memory/impl/metadata.hpp>
#include <heddle/memory/impl/size_classes.hpp>
#include <heddle/memory/impl/slabs.hpp>
#include <heddle/memory/impl/thread_barrier.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory::impl {

/// The blocks that a thread caches, one stack for each size class. Only its thread uses it, except
/// in BlockPool::reclaim().
struct Cache {
  static constexpr std::uint32_t most = 64;

  /// The process of its thread. A fork() copies the caches of other threads page by page, while
  /// they change.
  pid_t process;
  bool in_use;  ///< atomic; see BlockPool::Use
  std::array<std::uint32_t, SizeClasses::count> counts;
  std::size_t bytes;  ///< the bytes of all blocks, by the sizes of their classes
  Cache* next;        ///< next unused cache
  Cache* older;       ///< next in the list of all caches of the pool
  std::array<std::array<void*, most>, SizeClasses::count> blocks;
  std::uint32_t refills;                          ///< number of refills of small classes
  std::array<bool, SizeClasses::count> refilled;  ///< since the last forget()

  /// The maximum number of blocks of each class.
  static constexpr auto capacities = [] {
    std::array<std::uint8_t, SizeClasses::count> all{};
    for (std::uint32_t c = 0; c < SizeClasses::count; ++c)
      all[c] = static_cast<std::uint8_t>(
          std::clamp<std::size_t>((std::size_t{512} << 10) / SizeClasses::size(c), 8, most));
    return all;
  }();
};

/// A pool of blocks. Threads pass it their own Cache, or a null pointer, which is slower.
template <Resource Upstream>
class BlockPool {
 public:
  /// Constructs a pool over `upstream`. Each thread may cache `cached` bytes, or a share of all
  /// chunks if that is more; see share_cached().
  BlockPool(Upstream upstream, const Growth& growth, std::size_t cached)
      : m_cached(cached), m_most_cached(cached), m_chunks(std::move(upstream), growth) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    while (m_all_caches != nullptr)
      Metadata<Cache>(std::exchange(m_all_caches, m_all_caches->older), 1);
  }

  [[nodiscard]] void* allocate(Cache* cache, std::size_t bytes, std::size_t alignment) {
    if (bytes - 1 < SizeClasses::largest && alignment <= granule) [[likely]] {
      const std::uint32_t c = SizeClasses::of(bytes, alignment);
      if (cache == nullptr) return one(c);
      const Use use(*this, *cache);
      std::uint32_t& count = cache->counts[c];
      if (count == 0) [[unlikely]]
        fill(*cache, c);
      cache->bytes -= SizeClasses::size(c);
      return cache->blocks[c][--count];
    }
    return bytes == 0 ? nullptr : allocate_exactly(cache, bytes, alignment);
  }
  /// Allocates at least 1 B in a fine class of slabs or in whole granules, without the rounding of
  /// a size class. Only the deallocate() for blocks of unknown size may get the block.
  [[nodiscard, gnu::noinline]] void* allocate_exactly(Cache* cache, std::size_t bytes,
                                                      std::size_t alignment) {
    if (bytes > std::numeric_limits<std::size_t>::max() / 2)
      throw out_of_memory(
          {"heddle::memory::Pool", text("cannot allocate a block of ", bytes, " B")});
    if (bytes > SlabClasses::below_fine && bytes <= SlabClasses::largest_fine &&
        alignment <= SizeClasses::least)
      return with_room(cache, [&, c = SlabClasses::fine(bytes)](More more) {
        void* block = nullptr;
        m_slabs.take(c, &block, 1, more);
        return block;
      });
    return with_room(cache, [&](More more) {
      return range(whole(bytes), std::max(alignment, granule), Mark::ranged, more);
    });
  }

  void deallocate(Cache* cache, void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    if (bytes - 1 < SizeClasses::largest && alignment <= granule) [[likely]] {
      const std::uint32_t c = SizeClasses::of(bytes, alignment);
      if (cache == nullptr) return put_back(c, &block, 1);
      const Use use(*this, *cache);
      std::uint32_t& count = cache->counts[c];
      const std::size_t size = SizeClasses::size(c);
      if (count == Cache::capacities[c]) [[unlikely]]
        shrink(*cache, c, count / 2);
      if (cache->bytes + size > m_most_cached.load(std::memory_order_relaxed)) [[unlikely]] {
        share_cached();  // the pool may have grown
        if (cache->bytes + size > m_most_cached.load(std::memory_order_relaxed)) {
          if (c >= small_classes) return put_back(c, &block, 1);
          shrink(*cache);
        }
      }
      cache->blocks[c][count++] = block;
      cache->bytes += size;
    } else {
      const std::scoped_lock lock(m_chunks.lock);
      m_chunks.give(address_of(block), whole(bytes));
    }
  }

  /// Returns the usable bytes of a live block, or 0 if no block begins there.
  [[nodiscard]] std::size_t size_of(const void* block) const noexcept {
    return Mark::bytes(m_chunks[address_of(block)]);
  }
  /// Deallocates a block of unknown size. Returns false if no block begins there.
  bool deallocate(Cache* cache, void* block) noexcept {
    const std::uintptr_t word = m_chunks[address_of(block)];
    if (word == 0) return false;
    if (word % 2 == 0) {
      const std::uint32_t c = Mark::slab(word).size_class;
      if (c < small_classes) [[likely]]
        deallocate(cache, block, SizeClasses::size(c), 1);
      else
        m_slabs.put_back(c, &block, 1);
      return true;
    }
    // A range of a class size that has no class was allocated with a large alignment.
    const bool in_class = word % 4 != Mark::ranged;
    deallocate(cache, block, Mark::bytes(word), in_class ? 1 : 2 * granule);
    return true;
  }

  /// Returns an empty cache for a thread that has none. @throws out_of_memory.
  [[nodiscard]] Cache* new_cache() {
    const std::scoped_lock lock(m_chunks.lock);
    if (m_caches == nullptr) {
      m_caches = Metadata<Cache>(1).release();
      m_caches->older = std::exchange(m_all_caches, m_caches);
    }
    ++m_threads;
    share_cached();
    m_caches->process = ::getpid();
    return std::exchange(m_caches, m_caches->next);
  }
  /// Empties the cache of a thread that ends, and keeps the cache for the next thread.
  void retire(Cache* cache) noexcept {
    empty(cache);
    const std::scoped_lock lock(m_chunks.lock);
    cache->next = std::exchange(m_caches, cache);
    --m_threads;
    share_cached();
  }

  /// Empties the cache of the calling thread. Then returns unused chunks and pages to the upstream,
  /// as long as `keep` bytes stay.
  void trim(Cache* cache, std::size_t keep) noexcept {
    empty(cache);
    const std::scoped_lock lock(m_chunks.lock);
    m_chunks.trim(keep);
    share_cached();
  }

  /// Stops other threads that allocate or deallocate, until unlock(), for example during a fork().
  /// Returns false if it could not lock before `deadline`.
  [[nodiscard]] bool lock_by(Deadline deadline) {
    if (!impl::lock_by(m_reclaim_lock, deadline)) return false;
    if (m_slabs.lock_by(deadline)) {
      if (impl::lock_by(m_chunks.lock, deadline)) return true;
      m_slabs.unlock();
    }
    m_reclaim_lock.unlock();
    return false;
  }
  void unlock() {
    m_chunks.lock.unlock();
    m_slabs.unlock();
    m_reclaim_lock.unlock();
  }

  [[nodiscard]] bool owns(const void* address) const { return m_chunks.owns(address_of(address)); }
  /// Returns the bytes of all chunks, as far as they have pages.
  [[nodiscard]] std::size_t reserved() const { return m_chunks.bytes(); }
  /// Returns the reserved bytes that are in no slab and in no block.
  [[nodiscard]] std::size_t idle() const { return m_chunks.free_bytes(); }
  [[nodiscard]] const Upstream& upstream() const noexcept { return m_chunks.upstream(); }

 private:
  static constexpr std::uint32_t small_classes = SlabClasses::small;

  [[nodiscard]] static std::uintptr_t address_of(const void* block) noexcept {
    return reinterpret_cast<std::uintptr_t>(block);
  }

  /// The time in which a thread uses its cache, so that reclaim() does not. The stores and the load
  /// are plain instructions, because reclaim() makes all threads pass a barrier.
  class Use {
   public:
    Use(BlockPool& pool, Cache& cache) noexcept : m_cache(cache) { enter(pool, cache); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { leave(m_cache); }

    static void enter(BlockPool& pool, Cache& cache) noexcept {
      std::atomic_ref(cache.in_use).store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (pool.m_reclaiming.load(std::memory_order_acquire)) [[unlikely]]
        wait(pool, cache);
    }
    static void leave(Cache& cache) noexcept {
      std::atomic_ref(cache.in_use).store(false, std::memory_order_release);
    }

   private:
    [[gnu::noinline, gnu::cold]] static void wait(BlockPool& pool, Cache& cache) noexcept {
      leave(cache);
      const std::scoped_lock lock(pool.m_reclaim_lock);
      std::atomic_ref(cache.in_use).store(true, std::memory_order_relaxed);
    }

    Cache& m_cache;
  };

  /// Puts at least one block into an empty stack of a cache in use.
  [[gnu::noinline]] void fill(Cache& cache, std::uint32_t c) {
    const std::size_t size = SizeClasses::size(c);
    void** const blocks = cache.blocks[c].data();
    // Fetch only what is used soon, because blocks above the limit of the thread are returned.
    const auto wanted = static_cast<std::uint32_t>(
        std::clamp<std::size_t>((std::size_t{16} << 10) / size, 1, Cache::most / 2));
    Use::leave(cache);  // what lies above an empty stack is not read by reclaim()
    const std::uint32_t count =
        with_room(&cache, [&](More more) { return take(c, blocks, wanted, more); });
    Use::enter(*this, cache);
    cache.counts[c] = count;
    cache.bytes += count * size;
    cache.refilled[c] = true;
    if (c < small_classes && ++cache.refills % 64 == 0) forget(cache);
  }

  /// Puts back the stacks that were not refilled since the last call, because their blocks keep
  /// slabs from being released.
  [[gnu::noinline]] void forget(Cache& cache) noexcept {
    for (std::uint32_t c = 0; c < SizeClasses::count; ++c)
      if (!std::exchange(cache.refilled[c], false)) shrink(cache, c, 0);
  }

  /// Puts back all blocks of a stack but the last `keep` ones.
  [[gnu::noinline]] void shrink(Cache& cache, std::uint32_t c, std::uint32_t keep) noexcept {
    std::uint32_t& count = cache.counts[c];
    if (count <= keep) return;
    void** const blocks = cache.blocks[c].data();
    put_back(c, blocks, count - keep);
    cache.bytes -= (count - keep) * SizeClasses::size(c);
    std::copy(blocks + count - keep, blocks + count, blocks);
    count = keep;
  }

  /// Puts back all blocks of the cache of this thread, if it has one. It must not be in use.
  void empty(Cache* cache) noexcept {
    if (cache == nullptr) return;
    const Use use(*this, *cache);
    put_back_all(*cache);
  }
  void put_back_all(Cache& cache) noexcept {
    for (std::uint32_t c = 0; c < SizeClasses::count; ++c) shrink(cache, c, 0);
  }

  /// Empties the caches of all threads of this process, so that no memory lies free in them when a
  /// request fails. No cache of the calling thread may be in use. Threads that use their caches for
  /// longer than the deadline keep them. Returns false if the system has no barrier on all threads.
  [[nodiscard, gnu::noinline, gnu::cold]] bool reclaim() noexcept {
    const std::scoped_lock lock(m_reclaim_lock);
    m_reclaiming.store(true, std::memory_order_relaxed);
    const bool done = barrier_on_all_threads();
    if (done) {
      const Deadline deadline = Deadline::clock::now() + std::chrono::milliseconds(100);
      for (Cache* cache = all_caches(); cache != nullptr; cache = cache->older) {
        struct {
          std::atomic_ref<bool> in_use;
          [[nodiscard]] bool try_lock() const { return !in_use.load(std::memory_order_acquire); }
        } idle{std::atomic_ref(cache->in_use)};
        if (cache->process == ::getpid() && impl::lock_by(idle, deadline)) put_back_all(*cache);
      }
    }
    m_reclaiming.store(false, std::memory_order_release);
    return done;
  }
  [[nodiscard]] Cache* all_caches() const noexcept {
    const std::scoped_lock lock(m_chunks.lock);
    return m_all_caches;
  }

  /// Puts back half of each stack, the largest blocks first, until the cache is an eighth below its
  /// limit.
  [[gnu::noinline]] void shrink(Cache& cache) noexcept {
    const std::size_t most = m_most_cached.load(std::memory_order_relaxed);
    const std::size_t aim = most - most / 8;
    while (cache.bytes > aim)
      for (std::uint32_t c = SizeClasses::count; c-- > 0 && cache.bytes > aim;)
        shrink(cache, c, cache.counts[c] / 2);
  }

  /// Allocates a block without a cache.
  [[nodiscard, gnu::noinline]] void* one(std::uint32_t c) {
    void* block = nullptr;
    with_room(nullptr, [&](More more) { return take(c, &block, 1, more); });
    return block;
  }

  /// Calls `take` with More::none, which does not ask the upstream. If that finds nothing, empties
  /// the thread's cache, which must not be in use, and calls `take` so that it may ask the
  /// upstream. If the upstream throws, tries once more without it, then returns the free chunks to
  /// the upstream and asks again, and at last does the same with the caches of all threads empty.
  template <class Take>
  auto with_room(Cache* cache, Take&& take) {
    if (const auto found = take(More::none)) return found;
    empty(cache);
    const More more = m_threads.load(std::memory_order_relaxed) > 1 ? More::much : More::little;
    for (bool reclaimed = false;;) {
      try {
        return take(more);
      } catch (const std::bad_alloc&) {
        if (const auto found = take(More::none)) return found;
        if (!give_back() && (std::exchange(reclaimed, true) || !reclaim())) throw;
      }
    }
  }
  bool give_back() noexcept {
    const std::scoped_lock lock(m_chunks.lock);
    return m_chunks.give_back(0);
  }

  /// Takes up to `wanted` blocks of a class, and at least one if `more` allows to ask the upstream.
  std::uint32_t take(std::uint32_t c, void** blocks, std::uint32_t wanted, More more) {
    if (c < small_classes) return m_slabs.take(c, blocks, wanted, more);
    blocks[0] = range(SizeClasses::size(c), granule, Mark::in_a_class, more);
    return blocks[0] != nullptr ? 1 : 0;
  }

  void put_back(std::uint32_t c, void** blocks, std::uint32_t count) noexcept {
    if (c < small_classes) return m_slabs.put_back(c, blocks, count);
    const std::scoped_lock lock(m_chunks.lock);
    for (std::uint32_t b = 0; b < count; ++b)
      m_chunks.give(address_of(blocks[b]), SizeClasses::size(c));
  }

  [[nodiscard]] void* range(std::size_t bytes, std::size_t alignment, std::uintptr_t kind,
                            More more) {
    const std::scoped_lock lock(m_chunks.lock);
    return reinterpret_cast<void*>(m_chunks.take(bytes, alignment, Mark::of(bytes, kind), more));
  }

  /// Sets the limit of each thread's cache to a 48th of the memory divided by the number of
  /// threads, or to `cached` where that is more. If there are several threads, which would
  /// otherwise wait for each other, the limit is up to eight times `cached`, but at most a quarter
  /// of the memory for all threads together. Whatever this gives, all threads together cache at
  /// most 1/32 of Growth::most_idle, because an idle thread keeps its blocks when there is no other
  /// memory.
  void share_cached() noexcept {
    const std::size_t threads = std::max(m_threads.load(std::memory_order_relaxed), 1u);
    const std::size_t each = m_chunks.bytes() / threads;
    const std::size_t more = threads > 1 ? std::min(8 * m_cached, each / 4) : 0;
    const std::size_t most = m_chunks.most_idle() / 32 / threads;
    m_most_cached.store(std::min(most, std::max({m_cached, more, each / 48})),
                        std::memory_order_relaxed);
  }

  std::size_t m_cached;
  /// Bytes of each thread; in another cache line than the locks.
  alignas(64) std::atomic<std::size_t> m_most_cached;
  std::atomic<bool> m_reclaiming{false};  ///< if so, no cache may come into use
  alignas(64) Chunks<Upstream> m_chunks;
  Slabs<Upstream> m_slabs{m_chunks};
  BriefMutex m_reclaim_lock;  ///< held by reclaim(); taken before the other locks
  Cache* m_caches = nullptr;  ///< unused ones; under the lock of the chunks, like the next member
  Cache* m_all_caches = nullptr;
  std::atomic<std::uint32_t> m_threads{0};  ///< number of threads with a cache
};

}  // namespace heddle::inline v0::memory::impl
