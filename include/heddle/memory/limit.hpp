// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Limit: no more memory than so much.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <ostream>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// Blocks of its upstream, as long as those that are out have at most so many bytes together, as
/// they were asked for.
template <Resource Up>
class Limit {
 public:
  using Upstream = Up;  ///< where its blocks come from

  /// At most `most` bytes of `upstream` at once.
  template <class Given>
  requires std::constructible_from<Up, Given> Limit(Given&& upstream, std::size_t most)
      : m_upstream(std::forward<Given>(upstream)), m_most(most) {}
  /// As long as no other thread uses either.
  Limit(Limit&& other) noexcept
      : m_upstream(std::move(other.m_upstream)), m_most(other.m_most), m_used(other.used()) {}

  /// Of the upstream. @throws out_of_memory beyond the limit, and what the upstream throws.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return within(bytes, [&] { return m_upstream.allocate(bytes, alignment); });
  }
  /// To the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    m_upstream.deallocate(block, bytes, alignment);
    m_used.fetch_sub(bytes, std::memory_order_relaxed);
  }
  /// Likewise in the order of `exec`; what has come back is not out, whether or not work uses it.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  [[nodiscard]] void* allocate(const Exec& exec, std::size_t bytes, std::size_t alignment) {
    return within(bytes, [&] { return m_upstream.allocate(exec, bytes, alignment); });
  }
  /// Likewise.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    if (block == nullptr) return;
    m_upstream.deallocate(exec, block, bytes, alignment);
    m_used.fetch_sub(bytes, std::memory_order_relaxed);
  }
  /// Whether the upstream does.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }

  /// Bytes that are out.
  [[nodiscard]] std::size_t used() const noexcept { return m_used.load(std::memory_order_relaxed); }
  /// Bytes that may be.
  [[nodiscard]] std::size_t most() const noexcept { return m_most; }
  /// Where its blocks come from.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

  /// "5 B of 100 B used".
  friend std::ostream& operator<<(std::ostream& out, const Limit& limit) {
    return out << limit.used() << " B of " << limit.most() << " B used";
  }

 private:
  /// What `take` returns, if so many bytes more are within the limit.
  template <class Take>
  [[nodiscard]] void* within(std::size_t bytes, Take&& take) {
    std::size_t used = m_used.load(std::memory_order_relaxed);
    do {
      if (bytes > m_most - used)
        throw out_of_memory({"heddle::memory::Limit", text("no ", bytes, " B within the limit"),
                             text(used, " B of ", m_most, " B are used")});
    } while (!m_used.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    try {
      return take();
    } catch (...) {
      m_used.fetch_sub(bytes, std::memory_order_relaxed);
      throw;
    }
  }

  Up m_upstream;
  std::size_t m_most;
  std::atomic<std::size_t> m_used = 0;
};

/// Of a temporary, which it then owns, or a resource with a name; see UpstreamOf.
template <class Given>
Limit(Given&&, std::size_t) -> Limit<UpstreamOf<Given>>;

static_assert(Resource<Limit<Pages>>);

}  // namespace heddle::inline v0::memory
