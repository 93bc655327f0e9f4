// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FreeRanges: tracks the free parts of a piece of memory without writing to it. For resources that
/// divide a piece of memory into blocks.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// The free ranges of a piece of memory, as addresses or offsets. Blocks are placed by exact best
/// fit. A block that is returned is joined at once with the free ranges next to it.
///
///     FreeRanges ranges(begin, 1 << 20);
///     if (const auto block = ranges.take(5000, 64)) ranges.give_back(*block, 5000);
///
/// All functions take time logarithmic in the number of ranges. However, take() with an alignment
/// tries, one by one, the ranges that are large enough but contain no aligned block. The records
/// lie in separate pages, about 32 B for each block or range. Only one thread may use it at a time.
class FreeRanges {
 public:
  /// A range of addresses.
  struct Range {
    std::uintptr_t begin;  ///< the first address
    std::size_t bytes;     ///< the length in bytes
    friend bool operator==(const Range&, const Range&) = default;
  };

  /// Constructs one free range of all `bytes` bytes. @throws contract_error if `bytes` is 0, or if
  /// the range does not end within the addresses; out_of_memory if there is no memory for the
  /// records.
  FreeRanges(std::uintptr_t begin, std::size_t bytes) : m_free_bytes(bytes) {
    expects(bytes > 0 && bytes <= std::numeric_limits<std::uintptr_t>::max() - begin, [&] {
      return ErrorInfo{"heddle::memory::FreeRanges",
                       "a range has at least 1 B, and ends within the addresses",
                       text("begin = ", begin, ", bytes = ", bytes)};
    });
    reserve(1);
    insert_range(begin, bytes);
  }
  /// Moves the ranges. The other object manages no memory afterwards.
  FreeRanges(FreeRanges&& other) noexcept
      : m_nodes(std::exchange(other.m_nodes, nullptr)),
        m_capacity(std::exchange(other.m_capacity, 0)),
        m_used(std::exchange(other.m_used, 0)),
        m_spare(std::exchange(other.m_spare, 0)),
        m_touched(std::exchange(other.m_touched, 0)),
        m_blocks(std::exchange(other.m_blocks, 0)),
        m_free_bytes(std::exchange(other.m_free_bytes, 0)),
        m_by_address(std::exchange(other.m_by_address, 0)),
        m_by_size(std::exchange(other.m_by_size, 0)) {}
  FreeRanges& operator=(FreeRanges&&) = delete;
  ~FreeRanges() { Pages().deallocate(m_nodes, m_capacity * sizeof(Node), alignof(Node)); }

  /// Takes a block of `bytes` bytes, at least 1, whose address is a multiple of `alignment`, a
  /// power of two. The block has the lowest such address in the smallest free range that contains
  /// one. Among ranges of equal size, the one at the lowest address is chosen. Returns nothing if
  /// no range contains such a block. @throws out_of_memory if there is no memory for the records.
  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes, std::size_t alignment) {
    std::size_t gap = 0;
    Index range = fitting(0, bytes);
    for (; range != 0; range = fitting(m_nodes[range].begin + 1, m_nodes[range].bytes)) {
      gap = -m_nodes[range].begin & (alignment - 1);
      if (gap <= m_nodes[range].bytes - bytes) break;
    }
    if (range == 0) return std::nullopt;
    reserve(2);
    const auto [begin, whole] = static_cast<const Range&>(m_nodes[range]);
    const std::size_t rest = whole - gap - bytes;
    // The range shrinks to the gap before the block, or to the rest after it, or it is erased.
    if (gap > 0) {
      resize(range, begin, gap);
      if (rest > 0) insert_range(begin + gap + bytes, rest);
    } else if (rest > 0) {
      resize(range, begin + bytes, rest);
    } else {
      erase_range(range);
    }
    ++m_blocks;
    m_free_bytes -= bytes;
    return begin + gap;
  }
  /// Returns a block to the free ranges. take() must have returned it for the same `bytes`.
  void give_back(std::uintptr_t begin, std::size_t bytes) noexcept {
    m_free_bytes += bytes;
    --m_blocks;
    const auto [lower, upper] = around(begin);
    const bool joins_lower = lower != 0 && m_nodes[lower].begin + m_nodes[lower].bytes == begin;
    const bool joins_upper = upper != 0 && m_nodes[upper].begin == begin + bytes;
    if (joins_upper) bytes += m_nodes[upper].bytes;
    if (joins_lower) {
      if (joins_upper) erase_range(upper);
      resize(lower, m_nodes[lower].begin, m_nodes[lower].bytes + bytes);
    } else if (joins_upper) {
      resize(upper, begin, bytes);
    } else {
      insert_range(begin, bytes);
    }
  }

  /// Returns the number of free bytes.
  [[nodiscard]] std::size_t free_bytes() const noexcept { return m_free_bytes; }
  /// Returns the bytes of the largest free range, or 0 if nothing is free.
  [[nodiscard]] std::size_t largest() const noexcept {
    if (m_by_size == 0) return 0;
    Index at = m_by_size;
    while (below<of_size>(at, after) != 0) at = below<of_size>(at, after);
    return m_nodes[at].bytes;
  }
  /// Returns the first free range that begins at `from` or later, so that callers can visit all of
  /// them.
  [[nodiscard]] std::optional<Range> next_free(std::uintptr_t from) const noexcept {
    const auto [at_or_below, above] = around(from);
    const Index found =
        at_or_below != 0 && m_nodes[at_or_below].begin == from ? at_or_below : above;
    if (found == 0) return std::nullopt;
    return Range{m_nodes[found].begin, m_nodes[found].bytes};
  }

 private:
  // Each range is in two trees: one ordered by address, and one ordered by size, then address. They
  // are treaps, which are search trees that are also heaps of the priorities of their nodes. This
  // makes them as shallow as random trees. A node is named by its index, and 0 means none.
  using Index = std::uint32_t;
  enum Order : std::uint8_t { of_address, of_size };
  // The children of a node in the tree of each order: [before] it and [after] it. For a spare node,
  // below[of_address][before] is the next spare node.
  enum Side : std::uint8_t { before, after };
  struct Node : Range {
    std::array<std::array<Index, 2>, 2> below;
  };

  [[nodiscard]] static Index priority(Index node) noexcept {
    node *= 0x9e3779b1U;
    node ^= node >> 15;
    return node * 0x85ebca6bU;
  }
  // Branchless, because the outcomes could not be predicted.
  template <Order order>
  [[nodiscard]] static bool precedes(const Range& a, const Range& b) noexcept {
    const bool lower = a.begin < b.begin;
    if constexpr (order == of_address) return lower;
    return static_cast<bool>(int{a.bytes < b.bytes} | (int{a.bytes == b.bytes} & int{lower}));
  }
  template <Order order>
  [[nodiscard]] Index& below(Index node, bool side) noexcept {
    return m_nodes[node].below[order][side];
  }
  template <Order order>
  [[nodiscard]] Index below(Index node, bool side) const noexcept {
    return m_nodes[node].below[order][side];
  }

  template <Order order>
  void insert(Index& root, Index added) noexcept {
    const Node& node = m_nodes[added];
    Index* link = &root;
    while (*link != 0 && priority(*link) > priority(added))
      link = &below<order>(*link, precedes<order>(m_nodes[*link], node));
    // Split the previous subtree into the nodes before and after the new one.
    Index at = std::exchange(*link, added);
    std::array<Index*, 2> ends{&below<order>(added, before), &below<order>(added, after)};
    while (at != 0) {
      const bool lies_after = precedes<order>(node, m_nodes[at]);
      *ends[lies_after] = at;
      ends[lies_after] = &below<order>(at, !lies_after);
      at = *ends[lies_after];
    }
    *ends[before] = *ends[after] = 0;
  }
  template <Order order>
  void erase(Index& root, Index erased) noexcept {
    Index* link = &root;
    while (*link != erased)
      link = &below<order>(*link, precedes<order>(m_nodes[*link], m_nodes[erased]));
    std::array<Index, 2> rest = m_nodes[erased].below[order];
    while (rest[before] != 0 && rest[after] != 0) {
      const bool upper = priority(rest[before]) <= priority(rest[after]);
      *link = rest[upper];
      link = &below<order>(rest[upper], !upper);
      rest[upper] = *link;
    }
    *link = rest[before] | rest[after];
  }

  // Returns the last range that begins at or below `begin`, and the first that begins above it.
  [[nodiscard]] std::array<Index, 2> around(std::uintptr_t begin) const noexcept {
    std::array<Index, 2> found{};
    for (Index at = m_by_address; at != 0;) {
      const bool above = m_nodes[at].begin > begin;
      found[above] = at;
      at = below<of_address>(at, !above);
    }
    return found;
  }
  // Returns the first range, in the order of size, that does not precede {begin, bytes}.
  [[nodiscard]] Index fitting(std::uintptr_t begin, std::size_t bytes) const noexcept {
    std::array<Index, 2> found{};
    for (Index at = m_by_size; at != 0;) {
      const bool small = precedes<of_size>(m_nodes[at], Range{begin, bytes});
      found[small] = at;
      at = below<of_size>(at, small);
    }
    return found[0];
  }
  void insert_range(std::uintptr_t begin, std::size_t bytes) noexcept {
    const Index range = node(begin, bytes);
    insert<of_address>(m_by_address, range);
    insert<of_size>(m_by_size, range);
  }
  void erase_range(Index range) noexcept {
    erase<of_address>(m_by_address, range);
    erase<of_size>(m_by_size, range);
    drop(range);
  }
  // No other range lies between the old and the new begin, so the order of addresses stays valid.
  void resize(Index range, std::uintptr_t begin, std::size_t bytes) noexcept {
    erase<of_size>(m_by_size, range);
    m_nodes[range].begin = begin;
    m_nodes[range].bytes = bytes;
    insert<of_size>(m_by_size, range);
  }

  [[nodiscard]] Index node(std::uintptr_t begin, std::size_t bytes) noexcept {
    ++m_used;
    const Index made = m_spare != 0 ? m_spare : ++m_touched;
    if (m_spare != 0) m_spare = below<of_address>(m_spare, before);
    ::new (&m_nodes[made]) Node{{begin, bytes}, {}};
    return made;
  }
  void drop(Index dropped) noexcept {
    --m_used;
    below<of_address>(dropped, before) = std::exchange(m_spare, dropped);
  }
  // Reserves `more` nodes, and one for each live block so that it can be returned in any case.
  void reserve(std::size_t more) {
    const std::size_t needed = 1 + m_used + m_blocks + more;
    if (needed <= m_capacity) return;
    const std::size_t capacity = m_capacity == 0 ? Pages::page() / sizeof(Node) : 2 * m_capacity;
    if (capacity > std::numeric_limits<Index>::max())
      throw out_of_memory(
          {"heddle::memory::FreeRanges", "there are more ranges than 32-bit indices"});
    auto* const nodes =
        static_cast<Node*>(Pages(HugePages::no).allocate(capacity * sizeof(Node), alignof(Node)));
    if (m_nodes != nullptr) std::memcpy(nodes, m_nodes, (1 + m_touched) * sizeof(Node));
    Pages().deallocate(std::exchange(m_nodes, nodes), m_capacity * sizeof(Node), alignof(Node));
    m_capacity = capacity;
  }

  Node* m_nodes = nullptr;
  std::size_t m_capacity = 0;  // capacity of m_nodes, whose element 0 is unused
  std::size_t m_used = 0;      // nodes in the trees
  Index m_spare = 0;           // the first node in the list of erased ones
  Index m_touched = 0;         // the last node that was ever used
  std::size_t m_blocks = 0;    // live blocks
  std::size_t m_free_bytes = 0;
  Index m_by_address = 0;
  Index m_by_size = 0;
};

}  // namespace heddle::inline v0::memory
