// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Cache: the objects of a slower tier that a faster one holds now, and the loop that loads and
/// evicts them.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/tier/cache_event.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/pinned.hpp>
#include <heddle/tier/policy.hpp>

namespace heddle::inline v0::tier {

/// The options of a Cache.
struct CacheOptions {
  Bytes capacity = 0;        ///< bytes of the objects that the cache holds at most; above 0
  AnyPolicy policy = Lru{};  ///< which object leaves when another one needs its room
  Seconds patience = 0;      ///< how long a request waits for handles of other threads to go
  bool record = false;       ///< keeps a list of all requests and transfers; see Cache::events()
  /// The memory of the objects. memory::Polymorphic makes one of a memory::Pool. One thread at a
  /// time calls it.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

/// Some of the objects of a slower tier in fast memory:
///
///     tier::Store store({.file = "weights.tier"});
///     tier::Cache experts(store, {.capacity = 8_MiB, .policy = tier::Lru{}});
///     const tier::Pinned expert = experts.get("expert 7");   // there while the handle lives
///
/// A request loads an object that is absent, after evicting others until there is room. An object
/// that was requested to be changed is written back when it leaves, or by flush(). Others are never
/// written back. Several threads may call all functions. Transfers of different objects run at the
/// same time, and an object that several threads request is loaded once.
///
/// A Cache is a tier of Objects itself, so another Cache may stand before it.
class Cache final : public Objects, private impl::Pins {
 public:
  /// The requests to a Cache and its transfers.
  struct Counters {
    std::uint64_t requests = 0;     ///< handles that were requested
    std::uint64_t hits = 0;         ///< requests for an object that was there or was being loaded
    std::uint64_t misses = 0;       ///< the other requests
    std::uint64_t evictions = 0;    ///< objects that left
    std::uint64_t write_backs = 0;  ///< objects that were written to the slower tier
    Bytes bytes_read = 0;           ///< bytes of the objects that were loaded
    Bytes bytes_written = 0;        ///< bytes of the objects that were written back

    friend bool operator==(const Counters&, const Counters&) = default;
    /// Prints "100 requests, 60 hits, 40 misses, ...".
    friend std::ostream& operator<<(std::ostream& out, const Counters& counters);
  };

  static constexpr std::size_t alignment = 64;  ///< in bytes, of the objects in memory

  /// Constructs an empty cache before `below`, which must outlive it.
  /// @throws contract_error if the capacity is 0, if the patience is negative, or if the policy
  ///         does not fit the objects.
  Cache(Objects& below, CacheOptions options);
  /// Writes changed objects back and releases the memory. No handle may exist. It cannot report
  /// errors, so call flush() first.
  ~Cache() override;

  /// Returns a handle to an object, and loads it if it is absent. With Access::update the object
  /// may be changed through the handle. With Access::write, too, but an absent object is not loaded
  /// because the caller replaces all of its bytes.
  ///
  /// @throws contract_error if there is no such object, or if it is to be changed but the slower
  ///         tier is read-only; infeasible if the object is larger than the capacity, or if the
  ///         other objects are pinned for longer than the patience; format_error if an object
  ///         cannot be read or written back, with its name. After a format_error the cache may
  ///         have evicted objects, after another error it holds what it held. Other requests go on.
  [[nodiscard]] Pinned get(std::string_view name, Access access = Access::read) {
    return get(find(name), access);
  }
  /// Returns a handle to the object with this number, as the other overload does.
  [[nodiscard]] Pinned get(ObjectId id, Access access = Access::read);
  /// Writes all changed objects back. They stay in the cache.
  /// @throws contract_error if a handle may still change one of them; format_error if one cannot be
  ///         written. It is still in the cache then.
  void flush();

  /// Returns true if an object is in the cache.
  [[nodiscard]] bool holds(std::string_view name) const;
  /// Returns the bytes of the objects in the cache.
  [[nodiscard]] Bytes used() const;
  /// Returns the most bytes that were in the cache at once.
  [[nodiscard]] Bytes peak() const;
  /// Returns the limit of the bytes in the cache.
  [[nodiscard]] Bytes capacity() const noexcept { return m_options.capacity; }
  /// Returns the counters so far.
  [[nodiscard]] Counters counters() const;
  /// Returns what happened so far, in order. It is empty if CacheOptions::record is false.
  [[nodiscard]] std::vector<CacheEvent> events() const;

  [[nodiscard]] bool writable() const noexcept override { return m_below.writable(); }
  /// Copies an object that a Cache before this one requests.
  void read(ObjectId id, std::span<std::byte> to) override;
  /// Replaces an object that a Cache before this one writes back.
  void write(ObjectId id, std::span<const std::byte> from) override;

 private:
  enum class State : std::uint8_t { absent, moving, resident };
  struct Entry {
    std::byte* memory = nullptr;
    State state = State::absent;
    bool changed = false;
    std::uint32_t pins = 0;
    std::uint32_t changers = 0;  ///< pins that may change the object
  };

  struct Sync;  // the mutex, and the condition that an object stopped moving or a handle went
  class Lock;

  void check(ObjectId id, Access access) const;
  void load(Lock& lock, ObjectId id, Access access);
  void make_room(Lock& lock, ObjectId id);
  void evict(Lock& lock, ObjectId id);
  void write_back(Lock& lock, ObjectId id);
  void free_memory(ObjectId id);
  void release(ObjectId id, Access access) noexcept override;
  void note(CacheEvent::What what, ObjectId id);
  [[noreturn]] void refuse_pinned(ObjectId id) const;

  Objects& m_below;
  CacheOptions m_options;
  std::unique_ptr<Sync> m_sync;
  std::vector<Entry> m_entries;  ///< by object; all members from here on are guarded by the mutex
  std::size_t m_leaving = 0;     ///< objects that are being written back to leave
  Bytes m_used = 0;
  Bytes m_peak = 0;
  Counters m_counters;
  std::vector<CacheEvent> m_events;
};

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/cache.ipp>
#endif
