// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptCache: the keys and values of the texts that a stage continues, in blocks of B tokens from a
/// pool. A text has as many blocks as its tokens need, at any addresses (Kwon et al., "Efficient
/// memory management for large language model serving with PagedAttention", SOSP 2023).

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/memory/pool.hpp>

namespace examples {

/// The sizes of a cache on one rank.
struct GptCacheSizes {
  std::size_t layers;           ///< layers of this stage
  std::size_t columns;          ///< columns of this rank's keys, as many as of its values
  std::size_t block = 16;       ///< tokens of a block, B
  std::size_t blocks = 16;      ///< the most blocks at once
  std::size_t slots = 1;        ///< texts at once
  std::size_t slot_blocks = 4;  ///< the most blocks of a text

  /// The elements of a block: for every layer first the keys, columns x B, then the values,
  /// B x columns.
  [[nodiscard]] std::size_t block_elements() const { return 2 * layers * columns * block; }
};

/// The address of a block.
template <class Real>
struct GptCacheBlock {
  Real* data = nullptr;
};

/// The blocks of some texts. Memory grows with the number of tokens and is reused.
template <class Real, class Memory>
class GptCache {
 public:
  /// Blocks of slots, slots x slot_blocks, as kernels read them.
  using Table = Kokkos::View<GptCacheBlock<Real>**, Kokkos::LayoutRight, Memory>;

  /// Constructs an empty cache.
  explicit GptCache(const GptCacheSizes& sizes)
      : m_sizes(sizes),
        m_pool(heddle::memory::MessageSource<Memory>::make(), {.min_chunk = chunk(sizes)}),
        m_table("heddle::gpt::cache_table", sizes.slots, sizes.slot_blocks),
        m_host(heddle::host_mirror(m_table)),
        m_held(sizes.slots, 0) {}
  GptCache(const GptCache&) = delete;
  GptCache& operator=(const GptCache&) = delete;
  ~GptCache() {
    for (std::size_t slot = 0; slot < m_sizes.slots; ++slot) release(slot);
  }

  /// Releases the blocks of a slot.
  void release(std::size_t slot) {
    for (std::size_t i = 0; i < m_held[slot]; ++i)
      m_pool.deallocate(m_host(slot, i).data, block_bytes(), alignment);
    m_live -= m_held[slot];
    m_held[slot] = 0;
  }
  /// Allocates blocks until the slot has room for so many tokens.
  /// @throws contract_error if the cache has no more blocks.
  void reserve(std::size_t slot, std::size_t tokens) {
    while (m_held[slot] * m_sizes.block < tokens) {
      heddle::expects(m_live < m_sizes.blocks && m_held[slot] < m_sizes.slot_blocks, [&] {
        return heddle::ErrorInfo{
            "GptCache", "the cache is full",
            heddle::text(m_live, " of ", m_sizes.blocks, " blocks, ", m_held[slot], " of the slot"),
            "give the cache more blocks, or submit fewer requests"};
      });
      m_host(slot, m_held[slot]).data =
          static_cast<Real*>(m_pool.allocate(block_bytes(), alignment));
      ++m_held[slot];
      m_changed = true;
      m_peak = std::max(m_peak, ++m_live);
    }
  }

  /// Returns the table for kernels that are queued in `exec` from now on.
  template <class Exec>
  [[nodiscard]] const Table& table(const Exec& exec) {
    if (m_changed) Kokkos::deep_copy(exec, m_table, m_host);
    m_changed = false;
    return m_table;
  }

  [[nodiscard]] const GptCacheSizes& sizes() const { return m_sizes; }
  /// Returns the bytes of a block: 2 layers columns B sizeof(Real).
  [[nodiscard]] std::size_t block_bytes() const { return m_sizes.block_elements() * sizeof(Real); }
  /// Returns the blocks that texts have, and the most that they have had at once.
  [[nodiscard]] std::size_t live_blocks() const { return m_live; }
  [[nodiscard]] std::size_t peak_blocks() const { return m_peak; }

 private:
  static constexpr std::size_t alignment = 64;
  using Source = typename heddle::memory::MessageSource<Memory>::type;

  /// Chunks of the pool for about 16 blocks.
  [[nodiscard]] static std::size_t chunk(const GptCacheSizes& sizes) {
    return std::max<std::size_t>(16 * sizes.block_elements() * sizeof(Real), 4096);
  }

  GptCacheSizes m_sizes;
  heddle::memory::Pool<Source> m_pool;
  Table m_table;
  decltype(heddle::host_mirror(m_table)) m_host;
  std::vector<std::size_t> m_held;  ///< blocks of each slot
  std::size_t m_live = 0, m_peak = 0;
  bool m_changed = false;
};

}  // namespace examples
