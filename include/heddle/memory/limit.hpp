// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Limit: an upper limit on the bytes that are allocated from a resource.

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

/// A resource that allocates from its upstream as long as its live blocks together stay within a
/// limit. It counts the bytes that callers requested.
template <Resource Up>
class Limit {
 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Constructs a limit of at most `most` live bytes of `upstream`.
  template <class Given>
  requires std::constructible_from<Up, Given> Limit(Given&& upstream, std::size_t most)
      : m_upstream(std::forward<Given>(upstream)), m_most(most) {}
  /// Moves the resource. No other thread may use either object during the move.
  Limit(Limit&& other) noexcept
      : m_upstream(std::move(other.m_upstream)), m_most(other.m_most), m_used(other.used()) {}

  /// Allocates from the upstream. @throws out_of_memory if the limit would be exceeded, and the
  /// upstream's exceptions.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return within(bytes, [&] { return m_upstream.allocate(bytes, alignment); });
  }
  /// Deallocates a block through the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    m_upstream.deallocate(block, bytes, alignment);
    m_used.fetch_sub(bytes, std::memory_order_relaxed);
  }
  /// Allocates from the upstream, in the order of `exec`. Throws as allocate() without `exec`.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  [[nodiscard]] void* allocate(const Exec& exec, std::size_t bytes, std::size_t alignment) {
    return within(bytes, [&] { return m_upstream.allocate(exec, bytes, alignment); });
  }
  /// Deallocates a block in the order of `exec`. The block stops counting at once, even if work
  /// still uses it.
  template <class Exec>
  requires StreamOrderedResource<Up, Exec>
  void deallocate(const Exec& exec, void* block, std::size_t bytes,
                  std::size_t alignment) noexcept {
    if (block == nullptr) return;
    m_upstream.deallocate(exec, block, bytes, alignment);
    m_used.fetch_sub(bytes, std::memory_order_relaxed);
  }
  /// Returns whether the upstream owns the address.
  [[nodiscard]] bool owns(const void* address) const requires OwningResource<Up> {
    return m_upstream.owns(address);
  }

  /// Returns the live bytes.
  [[nodiscard]] std::size_t used() const noexcept { return m_used.load(std::memory_order_relaxed); }
  /// Returns the limit in bytes.
  [[nodiscard]] std::size_t most() const noexcept { return m_most; }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

  /// Prints "5 B of 100 B used".
  friend std::ostream& operator<<(std::ostream& out, const Limit& limit) {
    return out << limit.used() << " B of " << limit.most() << " B used";
  }

 private:
  /// Returns the result of `take`, if `bytes` more bytes are within the limit.
  /// @throws out_of_memory otherwise.
  template <class Take>
  [[nodiscard]] void* within(std::size_t bytes, Take&& take) {
    std::size_t used = m_used.load(std::memory_order_relaxed);
    do {
      if (bytes > m_most - used)
        throw out_of_memory({"heddle::memory::Limit",
                             text("cannot allocate ", bytes, " B within the limit"),
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

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
Limit(Given&&, std::size_t) -> Limit<UpstreamOf<Given>>;

static_assert(Resource<Limit<Pages>>);

}  // namespace heddle::inline v0::memory
