// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Fallback and OnOutOfMemory: what to do where a resource has no more memory.

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

/// Blocks of a first resource and, where that has none, of a second one. It remembers which are of
/// the second, so that those of the first cost nothing more while there are none.
template <Resource First, Resource Second>
class Fallback {
 public:
  /// Of these.
  template <class GivenFirst, class GivenSecond>
  requires(
      std::constructible_from<First, GivenFirst>&& std::constructible_from<Second, GivenSecond>)
      Fallback(GivenFirst&& first, GivenSecond&& second)
      : m_first(std::forward<GivenFirst>(first)), m_second(std::forward<GivenSecond>(second)) {}
  /// As long as no other thread uses either.
  Fallback(Fallback&& other) noexcept
      : m_first(std::move(other.m_first)),
        m_second(std::move(other.m_second)),
        m_of_second(std::move(other.m_of_second)),
        m_count(other.m_count.exchange(0)) {}

  /// Of the first, or else of the second. @throws what the second throws, or std::bad_alloc where
  /// there is no memory to remember it.
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
  /// To where it is from.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (forget(block))
      m_second.deallocate(block, bytes, alignment);
    else
      m_first.deallocate(block, bytes, alignment);
  }
  /// Whether one of them does.
  [[nodiscard]] bool owns(const void* address) const
      requires(OwningResource<First>&& OwningResource<Second>) {
    return m_first.owns(address) || m_second.owns(address);
  }

  /// The first resource.
  [[nodiscard]] First& first() noexcept { return m_first; }
  /// The second.
  [[nodiscard]] Second& second() noexcept { return m_second; }

 private:
  // Whether it was of the second.
  [[nodiscard]] bool forget(void* block) noexcept {
    // Who has the block has seen its count.
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

/// Of a temporary, which it then owns, or a resource with a name; see UpstreamOf.
template <class GivenFirst, class GivenSecond>
Fallback(GivenFirst&&, GivenSecond&&) -> Fallback<UpstreamOf<GivenFirst>, UpstreamOf<GivenSecond>>;

/// If both are.
template <class First, class Second>
inline constexpr bool is_ipc_safe<Fallback<First, Second>> =
    is_ipc_safe<First>&& is_ipc_safe<Second>;
/// If one of them is.
template <class First, class Second>
inline constexpr bool is_overcommitted<Fallback<First, Second>> =
    is_overcommitted<First> || is_overcommitted<Second>;

static_assert(Resource<Fallback<Pages, Pages>>);

/// Blocks of its upstream; where that has none, a callback may free something, or have others do.
template <Resource Up, std::predicate<std::size_t, int> Callback>
class OnOutOfMemory {
 public:
  using Upstream = Up;  ///< where its blocks come from

  /// How often the upstream is asked for a block at most.
  static constexpr int most_attempts = 10;

  /// `callback(bytes, attempt)` returns whether to ask again for a block of `bytes`, after the
  /// `attempt`th time, from 1 on, has failed. Threads may call it at once. What it throws is
  /// thrown.
  template <class Given>
  requires std::constructible_from<Up, Given> OnOutOfMemory(Given&& upstream, Callback callback)
      : m_upstream(std::forward<Given>(upstream)), m_callback(std::move(callback)) {}

  /// Of the upstream. @throws what that throws at last.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    for (int attempt = 1;; ++attempt) {
      try {
        return m_upstream.allocate(bytes, alignment);
      } catch (const out_of_memory&) {
        if (attempt == most_attempts || !m_callback(bytes, attempt)) throw;
      }
    }
  }
  /// To the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_upstream.deallocate(block, bytes, alignment);
  }
  /// Whether the upstream does.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }
  /// Where its blocks come from.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  Up m_upstream;
  Callback m_callback;
};

/// Likewise.
template <class Given, class Callback>
OnOutOfMemory(Given&&, Callback) -> OnOutOfMemory<UpstreamOf<Given>, Callback>;

static_assert(Resource<OnOutOfMemory<Pages, bool (*)(std::size_t, int)>>);

}  // namespace heddle::inline v0::memory
