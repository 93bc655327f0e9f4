// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Arena: blocks that are all deallocated at once, for data that live as long as one step.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/listed_view.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// A resource that places blocks one after the other in chunks of its upstream. Each chunk is twice
/// as large as the one before, or larger if a block needs it. Deallocating the last block frees its
/// memory at once, so all of it is free if blocks are deallocated in reverse order. Other blocks
/// are free after reset(). Only one thread may use an Arena at a time.
template <Resource Up>
class Arena {
 public:
  using Upstream = Up;  ///< the resource that provides the chunks

  /// Constructs an arena whose first chunk has `chunk` bytes. It is allocated with the first block.
  /// @throws contract_error if `chunk` is 0.
  template <class Given>
  requires std::constructible_from<Up, Given> Arena(Given&& upstream, std::size_t chunk)
      : m_upstream(std::forward<Given>(upstream)), m_next_chunk(chunk) {
    expects(chunk > 0, [] { return ErrorInfo{"heddle::memory::Arena", "the chunk size is 0 B"}; });
  }
  /// Moves the resource. No other thread may use either object during the move.
  Arena(Arena&& other) noexcept requires std::move_constructible<Up>
      : m_upstream(std::move(other.m_upstream)),
        m_next_chunk(other.m_next_chunk),
        m_chunks(std::exchange(other.m_chunks, {})),
        m_current(std::exchange(other.m_current, 0)),
        m_gaps(std::exchange(other.m_gaps, {})) {}
  /// Releases all chunks. No View may still use the memory; see ~Pool().
  ~Arena() { release(); }

  /// Returns the next free bytes of a chunk. Throws the upstream's exceptions, and std::bad_alloc
  /// if there is no memory for the arena's own records.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    std::size_t current = m_current;
    while (current < m_chunks.size() && !m_chunks[current].fits(bytes, alignment)) ++current;
    if (current == m_chunks.size()) grow(bytes, alignment);
    Chunk& chunk = m_chunks[current];
    std::byte* const block = chunk.begin + chunk.used + chunk.gap(alignment);
    if (chunk.gap(alignment) > 0) m_gaps.push_back({block, chunk.used});
    chunk.used = static_cast<std::size_t>(block - chunk.begin) + bytes;
    m_current = current;
    return block;
  }
  /// Frees the block and its alignment gap if it is the last block. Others wait for reset().
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    if (block == nullptr) return;
    Chunk& chunk = m_chunks[m_current];
    if (static_cast<std::byte*>(block) + bytes != chunk.begin + chunk.used) return;
    chunk.used -= bytes;
    if (!m_gaps.empty() && m_gaps.back().end == block) {
      chunk.used = m_gaps.back().used_before;
      m_gaps.pop_back();
    }
    while (m_chunks[m_current].used == 0 && m_current > 0) --m_current;
  }
  /// Returns whether the address lies in one of the chunks.
  [[nodiscard]] bool owns(const void* address) const noexcept {
    return std::any_of(m_chunks.begin(), m_chunks.end(), [&](const Chunk& chunk) {
      return reinterpret_cast<std::uintptr_t>(address) -
                 reinterpret_cast<std::uintptr_t>(chunk.begin) <
             chunk.bytes;
    });
  }

  /// Frees all blocks, and keeps the chunks for later blocks. Blocks that were allocated before
  /// must not be used or deallocated any more. No View may still use the memory; see ~Pool().
  void reset() noexcept {
    impl::ListedView::expect_none_in(*this, "heddle::memory::Arena");
    for (Chunk& chunk : m_chunks) chunk.used = 0;
    m_gaps.clear();
    m_current = 0;
  }
  /// Frees all blocks as reset() does, and returns the chunks to the upstream.
  void release() noexcept {
    reset();
    for (; !m_chunks.empty(); m_chunks.pop_back())
      m_upstream.deallocate(m_chunks.back().begin, m_chunks.back().bytes,
                            m_chunks.back().alignment);
  }

  /// Returns the bytes up to the end of the last block in each chunk, including alignment gaps.
  [[nodiscard]] std::size_t used() const noexcept {
    std::size_t sum = 0;
    for (const Chunk& chunk : m_chunks) sum += chunk.used;
    return sum;
  }
  /// Returns the bytes of all chunks.
  [[nodiscard]] std::size_t reserved() const noexcept {
    std::size_t sum = 0;
    for (const Chunk& chunk : m_chunks) sum += chunk.bytes;
    return sum;
  }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

  /// Prints "5 B of 4096 B used, chunks: 1".
  friend std::ostream& operator<<(std::ostream& out, const Arena& arena) {
    return out << arena.used() << " B of " << arena.reserved()
               << " B used, chunks: " << arena.m_chunks.size();
  }

 private:
  struct Chunk {
    std::byte* begin;
    std::size_t bytes;
    std::size_t alignment;
    std::size_t used = 0;

    // Returns the bytes to the next multiple of `multiple`.
    [[nodiscard]] std::size_t gap(std::size_t multiple) const noexcept {
      return -(reinterpret_cast<std::uintptr_t>(begin) + used) & (multiple - 1);
    }
    [[nodiscard]] bool fits(std::size_t wanted, std::size_t multiple) const noexcept {
      const std::size_t left = bytes - used;
      return wanted <= left && gap(multiple) <= left - wanted;
    }
  };
  // Bytes that were skipped to align a block.
  struct Gap {
    const void* end;
    std::size_t used_before;
  };

  void grow(std::size_t bytes, std::size_t alignment) {
    m_chunks.reserve(m_chunks.size() + 1);
    alignment = std::max<std::size_t>(alignment, 64);
    std::size_t size = std::max(bytes, m_next_chunk);
    void* begin = nullptr;
    try {
      begin = m_upstream.allocate(size, alignment);
    } catch (const out_of_memory&) {
      // Try a chunk that is just large enough for this block.
      if (size == bytes) throw;
      size = bytes;
      begin = m_upstream.allocate(size, alignment);
    }
    m_chunks.push_back({static_cast<std::byte*>(begin), size, alignment});
    if (size <= std::numeric_limits<std::size_t>::max() / 2)
      m_next_chunk = std::max(m_next_chunk, 2 * size);
  }

  Up m_upstream;
  std::size_t m_next_chunk;
  std::vector<Chunk> m_chunks;
  std::size_t m_current = 0;  // the chunk of the last block; later chunks are empty
  std::vector<Gap> m_gaps;    // ordered from the first block to the last
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
Arena(Given&&, std::size_t) -> Arena<UpstreamOf<Given>>;

static_assert(OwningResource<Arena<Pages>>);

}  // namespace heddle::inline v0::memory
