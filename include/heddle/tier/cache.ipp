// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cache.hpp.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/cache_event.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/pinned.hpp>
#include <heddle/tier/policy.hpp>

namespace heddle::inline v0::tier {

namespace impl {

inline constexpr const char* cache_where = "heddle::tier::Cache";

[[nodiscard]] inline bool changes(Access access) { return access != Access::read; }

}  // namespace impl

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Cache::Counters& counters) {
  return out << text(counters.requests, " requests, ", counters.hits, " hits, ", counters.misses,
                     " misses, ", counters.bytes_read, " B read, ", counters.evictions,
                     " evictions, ", counters.write_backs, " write-backs of ",
                     counters.bytes_written, " B");
}

struct Cache::Sync {
  std::mutex mutex;
  std::condition_variable freed;
};

class Cache::Lock : public std::unique_lock<std::mutex> {
 public:
  using std::unique_lock<std::mutex>::unique_lock;
};

HEDDLE_INLINE Cache::Cache(Objects& below, CacheOptions options)
    : Objects(impl::cache_where),
      m_below(below),
      m_options(std::move(options)),
      m_sync(std::make_unique<Sync>()),
      m_entries(below.objects().size()) {
  expects(m_options.capacity > 0, [] {
    return ErrorInfo{impl::cache_where, "the capacity is 0", "no object has room",
                     "set CacheOptions::capacity to the bytes of the faster tier"};
  });
  expects(m_options.patience >= 0 && std::isfinite(m_options.patience), [&] {
    return ErrorInfo{impl::cache_where, "the patience must be a finite time of at least 0",
                     text("patience ", m_options.patience, " s")};
  });
  set_objects(below.objects());
  m_options.policy.begin(objects());
}

HEDDLE_INLINE Cache::~Cache() {
  try {
    flush();
  } catch (...) {
    // Nobody can be told; flush() reports the same error.
  }
  for (std::size_t o = 0; o < m_entries.size(); ++o)
    if (m_entries[o].memory != nullptr) free_memory(ObjectId{o});
}

HEDDLE_INLINE void Cache::check(ObjectId id, Access access) const {
  const Object& wanted = object(id);
  expects(!impl::changes(access) || writable(), [&] {
    return ErrorInfo{impl::cache_where, text("object '", wanted.name, "' is read-only"),
                     "the slower tier may not be written",
                     "open the Store with StoreOptions::writable, or request Access::read"};
  });
  if (wanted.bytes > m_options.capacity)
    throw infeasible({impl::cache_where,
                      text("object '", wanted.name, "' is larger than the cache"),
                      text(wanted.bytes, " bytes, the capacity is ", m_options.capacity),
                      "raise CacheOptions::capacity, or divide the object"});
}

HEDDLE_INLINE Pinned Cache::get(ObjectId id, Access access) {
  check(id, access);
  Lock lock(m_sync->mutex);
  Entry& entry = m_entries[+id];
  m_sync->freed.wait(lock, [&] { return entry.state != State::moving; });
  const bool hit = entry.state == State::resident;
  if (!hit) load(lock, id, access);
  m_options.policy.use(id);
  ++m_counters.requests;
  ++(hit ? m_counters.hits : m_counters.misses);
  note(CacheEvent::What::use, id);
  ++entry.pins;
  if (impl::changes(access)) {
    ++entry.changers;
    entry.changed = true;
  }
  return Pinned(*this, object(id), id, access, {entry.memory, object(id).bytes});
}

// Loads an absent object. Other threads that request it wait meanwhile.
HEDDLE_INLINE void Cache::load(Lock& lock, ObjectId id, Access access) {
  Entry& entry = m_entries[+id];
  const Bytes bytes = object(id).bytes;
  entry.state = State::moving;
  bool reserved = false;
  try {
    make_room(lock, id);
    m_used += bytes;
    reserved = true;
    entry.memory = static_cast<std::byte*>(
        m_options.memory->allocate(std::max<std::size_t>(bytes, 1), alignment));
    m_peak = std::max(m_peak, m_used);
    if (access != Access::write) {
      lock.unlock();
      try {
        m_below.read(id, {entry.memory, bytes});
      } catch (...) {
        lock.lock();
        throw;
      }
      lock.lock();
      m_counters.bytes_read += bytes;
      note(CacheEvent::What::load, id);
    }
  } catch (...) {
    if (entry.memory != nullptr) free_memory(id);
    if (reserved) m_used -= bytes;
    entry.state = State::absent;
    m_sync->freed.notify_all();
    throw;
  }
  entry.state = State::resident;
  m_sync->freed.notify_all();
}

// Evicts objects until `id` has room.
HEDDLE_INLINE void Cache::make_room(Lock& lock, ObjectId id) {
  const Bytes bytes = object(id).bytes;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<Seconds>(m_options.patience));
  const auto may_leave = [&](std::size_t o) {
    const Entry& entry = m_entries[o];
    return entry.state == State::resident && entry.pins == 0 && objects()[o].bytes > 0;
  };
  while (bytes > m_options.capacity - m_used) {
    Bytes leaving = 0;
    for (std::size_t o = 0; o < m_entries.size(); ++o)
      if (may_leave(o)) leaving += objects()[o].bytes;
    // No object leaves in vain.
    if (bytes <= m_options.capacity - m_used + leaving)
      evict(lock, ObjectId{impl::least_worth(m_options.policy, m_entries.size(), may_leave)});
    else if (m_leaving > 0)
      m_sync->freed.wait(lock);
    else if (m_options.patience == 0 ||
             m_sync->freed.wait_until(lock, until) == std::cv_status::timeout)
      refuse_pinned(id);
  }
}

HEDDLE_INLINE void Cache::refuse_pinned(ObjectId id) const {
  std::size_t held = 0;
  std::string names;
  for (std::size_t o = 0; o < m_entries.size(); ++o) {
    if (m_entries[o].pins == 0) continue;
    if (++held <= 4) names += text(held == 1 ? "'" : ", '", objects()[o].name, "'");
  }
  if (held > 4) names += text(" and ", held - 4, " more");
  throw infeasible(
      {impl::cache_where,
       text("object '", object(id).name, "' has no room, because handles pin the others"),
       text(object(id).bytes, " bytes are needed, ", m_options.capacity - m_used, " of ",
            m_options.capacity, " are free, and ", names.empty() ? "others are loaded" : names,
            held == 1  ? " is pinned"
            : held > 1 ? " are pinned"
                       : ""),
       text("release a handle first, set CacheOptions::patience if another thread releases one, or "
            "set the capacity to at least ",
            m_used + object(id).bytes, " bytes")});
}

HEDDLE_INLINE void Cache::evict(Lock& lock, ObjectId id) {
  Entry& entry = m_entries[+id];
  if (entry.changed) {
    ++m_leaving;
    try {
      write_back(lock, id);
    } catch (...) {
      --m_leaving;
      throw;
    }
    --m_leaving;
  }
  free_memory(id);
  entry.state = State::absent;
  m_used -= object(id).bytes;
  ++m_counters.evictions;
  note(CacheEvent::What::evict, id);
  m_sync->freed.notify_all();
}

// Copies a changed object to the slower tier. No thread can get it meanwhile. If it cannot be
// written, it stays in the cache, changed.
HEDDLE_INLINE void Cache::write_back(Lock& lock, ObjectId id) {
  Entry& entry = m_entries[+id];
  const Bytes bytes = object(id).bytes;
  entry.state = State::moving;
  lock.unlock();
  try {
    m_below.write(id, {entry.memory, bytes});
  } catch (...) {
    lock.lock();
    entry.state = State::resident;
    m_sync->freed.notify_all();
    throw;
  }
  lock.lock();
  entry.state = State::resident;
  entry.changed = false;
  ++m_counters.write_backs;
  m_counters.bytes_written += bytes;
  note(CacheEvent::What::write_back, id);
  m_sync->freed.notify_all();
}

HEDDLE_INLINE void Cache::flush() {
  Lock lock(m_sync->mutex);
  for (std::size_t o = 0; o < m_entries.size(); ++o) {
    Entry& entry = m_entries[o];
    m_sync->freed.wait(lock, [&] { return entry.state != State::moving; });
    if (entry.state != State::resident || !entry.changed) continue;
    expects(entry.changers == 0, [&] {
      return ErrorInfo{impl::cache_where,
                       text("object '", objects()[o].name, "' cannot be written back"),
                       "a handle may still change it", "release the handle before flush()"};
    });
    write_back(lock, ObjectId{o});
  }
}

HEDDLE_INLINE void Cache::free_memory(ObjectId id) {
  m_options.memory->deallocate(std::exchange(m_entries[+id].memory, nullptr),
                               std::max<std::size_t>(object(id).bytes, 1), alignment);
}

HEDDLE_INLINE void Cache::release(ObjectId id, Access access) noexcept {
  const std::lock_guard lock(m_sync->mutex);
  --m_entries[+id].pins;
  if (impl::changes(access)) --m_entries[+id].changers;
  m_sync->freed.notify_all();
}

HEDDLE_INLINE void Cache::note(CacheEvent::What what, ObjectId id) {
  if (m_options.record) m_events.push_back({what, id});
}

HEDDLE_INLINE bool Cache::holds(std::string_view name) const {
  const ObjectId id = find(name);
  const std::lock_guard lock(m_sync->mutex);
  return m_entries[+id].state == State::resident;
}

HEDDLE_INLINE Bytes Cache::used() const {
  const std::lock_guard lock(m_sync->mutex);
  return m_used;
}

HEDDLE_INLINE Bytes Cache::peak() const {
  const std::lock_guard lock(m_sync->mutex);
  return m_peak;
}

HEDDLE_INLINE Cache::Counters Cache::counters() const {
  const std::lock_guard lock(m_sync->mutex);
  return m_counters;
}

HEDDLE_INLINE std::vector<CacheEvent> Cache::events() const {
  const std::lock_guard lock(m_sync->mutex);
  return m_events;
}

HEDDLE_INLINE void Cache::read(ObjectId id, std::span<std::byte> to) {
  expect_size(id, to.size());
  const Pinned object = get(id);
  std::ranges::copy(object.bytes(), to.begin());
}

HEDDLE_INLINE void Cache::write(ObjectId id, std::span<const std::byte> from) {
  expect_size(id, from.size());
  const Pinned object = get(id, Access::write);
  std::ranges::copy(from, object.writable_bytes().begin());
}

}  // namespace heddle::inline v0::tier
