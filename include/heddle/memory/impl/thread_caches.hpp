// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ThreadCaches: the Cache of each thread in each pool. It returns to the pool when either ends.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <heddle/memory/impl/block_pool.hpp>

namespace heddle::inline v0::memory::impl {

/// A pool as its threads see it. A thread may end before or after the pool.
class CachedPool {
 public:
  /// The part that outlives the pool while threads have caches of it.
  struct Link {
    /// Locked while the pool ends, and while an ending thread returns its cache.
    std::mutex ending;
    std::atomic<CachedPool*> pool;  ///< null after the pool has ended
  };

  CachedPool() = default;
  CachedPool(const CachedPool&) = delete;
  CachedPool& operator=(const CachedPool&) = delete;
  virtual ~CachedPool() = default;
  [[nodiscard]] virtual Cache* new_cache() = 0;
  virtual void retire(Cache* cache) noexcept = 0;

  /// The number of the pool, unique among all pools of the process.
  const std::uint64_t id = next_id.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<Link> link{new Link{{}, {this}}};

 protected:
  /// Ensures that no thread calls retire() any more. The destructor of a derived class must call it
  /// first.
  void end() noexcept {
    const std::scoped_lock lock(link->ending);
    link->pool = nullptr;
  }

 private:
  inline static std::atomic<std::uint64_t> next_id{1};
};

/// The caches of one thread, at most one for each pool.
class ThreadCaches {
 public:
  ThreadCaches() = default;
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;
  ~ThreadCaches() {
    state = {0, nullptr, true};
    for (const Entry& entry : m_entries) {
      // In a child of fork(), the thread that held the lock of an ended pool may not exist.
      if (entry.link->pool == nullptr) continue;
      const std::scoped_lock lock(entry.link->ending);
      if (CachedPool* const pool = entry.link->pool) pool->retire(entry.cache);
    }
  }

  /// Returns this thread's cache in a pool, or null if the thread is about to end or there is no
  /// memory.
  [[nodiscard]] static Cache* of(CachedPool& pool) noexcept {
    if (state.id == pool.id) [[likely]]
      return state.cache;
    return find(pool);
  }

 private:
  struct Entry {
    std::uint64_t id;
    std::shared_ptr<CachedPool::Link> link;
    Cache* cache;
  };
  /// The cache that was used last.
  struct State {
    std::uint64_t id;
    Cache* cache;
    bool ended;
  };

  [[gnu::noinline]] static Cache* find(CachedPool& pool) noexcept {
    if (state.ended) return nullptr;
    try {
      thread_local ThreadCaches caches;
      std::vector<Entry>& entries = caches.m_entries;
      std::erase_if(entries, [](const Entry& entry) { return entry.link->pool == nullptr; });
      for (const Entry& entry : entries)
        if (entry.id == pool.id) return use(entry);
      entries.reserve(entries.size() + 1);  // an entry without a cache must not stay
      entries.push_back({pool.id, pool.link, pool.new_cache()});
      return use(entries.back());
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  /// Remembers the entry as the one that was used last. Returns its cache.
  static Cache* use(const Entry& entry) noexcept {
    state = {entry.id, entry.cache, false};
    return entry.cache;
  }

  inline static thread_local constinit State state = {};
  std::vector<Entry> m_entries;
};

}  // namespace heddle::inline v0::memory::impl
