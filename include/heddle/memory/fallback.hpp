// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Fallback and OnOutOfMemory: what to do if a resource has no more memory.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <mutex>
#include <unordered_set>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// A resource that allocates from a first resource and, if that one has no memory, from a second
/// one. It remembers the blocks of the second resource. So there is no overhead for blocks of the
/// first one as long as the second has no live blocks.
template <Resource First, Resource Second>
class Fallback {
 public:
  /// Constructs a fallback from `first` to `second`.
  template <class GivenFirst, class GivenSecond>
  requires(
      std::constructible_from<First, GivenFirst>&& std::constructible_from<Second, GivenSecond>)
      Fallback(GivenFirst&& first, GivenSecond&& second)
      : m_first(std::forward<GivenFirst>(first)), m_second(std::forward<GivenSecond>(second)) {}
  /// Moves the resource. No other thread may use either object during the move.
  Fallback(Fallback&& other) noexcept
      : m_first(std::move(other.m_first)),
        m_second(std::move(other.m_second)),
        m_of_second(std::move(other.m_of_second)),
        m_count(other.m_count.exchange(0)) {}

  /// Allocates from the first resource, or from the second if the first throws out_of_memory.
  /// Throws the second resource's exceptions, and std::bad_alloc if there is no memory to remember
  /// the block.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    try {
      return m_first.allocate(bytes, alignment);
    } catch (const out_of_memory&) {
      void* const block = m_second.allocate(bytes, alignment);
      try {
        const std::lock_guard lock(m_mutex);
        m_of_second.insert(block);
      } catch (...) {
        m_second.deallocate(block, bytes, alignment);
        throw;
      }
      m_count.fetch_add(1, std::memory_order_relaxed);
      return block;
    }
  }
  /// Deallocates the block through the resource that allocated it.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (forget(block))
      m_second.deallocate(block, bytes, alignment);
    else
      m_first.deallocate(block, bytes, alignment);
  }
  /// Returns whether one of the two resources owns the address.
  [[nodiscard]] bool owns(const void* address) const
      requires(OwningResource<First>&& OwningResource<Second>) {
    return m_first.owns(address) || m_second.owns(address);
  }

  /// Returns the first resource.
  [[nodiscard]] First& first() noexcept { return m_first; }
  /// Returns the second resource.
  [[nodiscard]] Second& second() noexcept { return m_second; }

 private:
  // Forgets the block, and returns whether the second resource had allocated it.
  [[nodiscard]] bool forget(void* block) noexcept {
    // The thread that has a block of the second resource also sees the count that includes it.
    if (m_count.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(m_mutex);
    if (m_of_second.erase(block) == 0) return false;
    m_count.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  First m_first;
  Second m_second;
  impl::Mutex m_mutex;
  std::unordered_set<void*> m_of_second;
  std::atomic<std::size_t> m_count = 0;
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class GivenFirst, class GivenSecond>
Fallback(GivenFirst&&, GivenSecond&&) -> Fallback<UpstreamOf<GivenFirst>, UpstreamOf<GivenSecond>>;

/// It is IPC-safe if both resources are.
template <class First, class Second>
inline constexpr bool is_ipc_safe<Fallback<First, Second>> =
    is_ipc_safe<First>&& is_ipc_safe<Second>;
/// It is overcommitted if one of the resources is.
template <class First, class Second>
inline constexpr bool is_overcommitted<Fallback<First, Second>> =
    is_overcommitted<First> || is_overcommitted<Second>;

static_assert(Resource<Fallback<Pages, Pages>>);

/// A resource that calls a callback when its upstream has no memory. The callback may free some
/// memory, or ask other components to do so.
template <Resource Up, std::predicate<std::size_t, int> Callback>
class OnOutOfMemory {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// The maximum number of times that the upstream is asked for one block.
  static constexpr int most_attempts = 10;

  /// Constructs the adaptor. `callback(bytes, attempt)` is called after attempt number `attempt`
  /// (from 1) to allocate `bytes` bytes has failed. It returns whether to try again. Threads may
  /// call it concurrently. Its exceptions pass through allocate().
  template <class Given>
  requires std::constructible_from<Up, Given> OnOutOfMemory(Given&& upstream, Callback callback)
      : m_upstream(std::forward<Given>(upstream)), m_callback(std::move(callback)) {}

  /// Allocates from the upstream. Throws the exception of the last attempt.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    for (int attempt = 1;; ++attempt) {
      try {
        return m_upstream.allocate(bytes, alignment);
      } catch (const out_of_memory&) {
        if (attempt == most_attempts || !m_callback(bytes, attempt)) throw;
      }
    }
  }
  /// Deallocates a block through the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_upstream.deallocate(block, bytes, alignment);
  }
  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  Up m_upstream;
  Callback m_callback;
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given, class Callback>
OnOutOfMemory(Given&&, Callback) -> OnOutOfMemory<UpstreamOf<Given>, Callback>;

static_assert(Resource<OnOutOfMemory<Pages, bool (*)(std::size_t, int)>>);

}  // namespace heddle::inline v0::memory
