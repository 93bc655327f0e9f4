// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Slabs: blocks of the small size classes.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include <heddle/memory/impl/brief_mutex.hpp>
#include <heddle/memory/impl/chunks.hpp>
#include <heddle/memory/impl/heap.hpp>
#include <heddle/memory/impl/size_classes.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory::impl {

/// Adjacent blocks of one size, and the set of free ones. It lies in the heap's records of its own
/// granules, so that a slab can be added whenever there is memory for its blocks.
struct Slab {
  static constexpr std::size_t most = 512;  ///< the maximum number of blocks

  std::uint64_t no_range;  ///< always 0; see Heap::records()
  std::uintptr_t begin;
  std::uint32_t size_class;
  std::uint32_t blocks;
  std::uint32_t free;
  std::uint32_t first_word;  ///< earlier words have no free block
  Slab* next;                ///< next slab of the class with a free block
  Slab* previous;

  /// Returns the words behind the slab, with a bit for each free block.
  [[nodiscard]] std::uint64_t* free_blocks() noexcept {
    return reinterpret_cast<std::uint64_t*>(this + 1);
  }
  /// Returns the bytes of a slab of so many blocks, with the words behind it.
  [[nodiscard]] static constexpr std::size_t bytes(std::size_t blocks) noexcept {
    return sizeof(Slab) + (blocks + 63) / 64 * sizeof(std::uint64_t);
  }
  /// Returns the number of the block at `offset` bytes from the begin. The division is done by a
  /// multiplication, which is exact for numbers of 16 bits.
  [[nodiscard]] static std::uint32_t index(std::uint32_t size_class, std::size_t offset) noexcept {
    static constexpr auto inverses = [] {
      std::array<std::uint64_t, SlabClasses::count> all{};
      for (std::uint32_t c = 0; c < SlabClasses::count; ++c)
        all[c] = ((std::uint64_t{1} << 32) + SlabClasses::size(c) - 1) / SlabClasses::size(c);
      return all;
    }();
    return static_cast<std::uint32_t>(offset * inverses[size_class] >> 32);
  }
  /// Returns the number of blocks of a new slab if the class has `had` blocks: a sixteenth of
  /// these. It is at least 4 KiB, at most 32 KiB or 8 blocks, and at most `most` blocks, and it
  /// fills whole granules.
  [[nodiscard]] static constexpr std::uint32_t added(std::size_t size, std::size_t had) noexcept {
    const std::size_t filling = granule / std::gcd(granule, size);
    const std::size_t bytes = std::clamp(had / 16 * size, std::size_t{4} << 10,
                                         std::max(std::size_t{32} << 10, 8 * size));
    const std::size_t blocks = std::max<std::size_t>(bytes / (filling * size), 1) * filling;
    return static_cast<std::uint32_t>(std::min(blocks, most));
  }
};

/// The words that mark the granules of chunks. All granules of a slab have its address. The first
/// granule of another range has its length and kind.
struct Mark {
  static constexpr std::uintptr_t ranged = 1, in_a_class = 3;

  [[nodiscard]] static constexpr std::uintptr_t of(std::size_t bytes,
                                                   std::uintptr_t kind) noexcept {
    return bytes / granule * 4 + kind;
  }
  /// Returns the bytes of the block that begins at the granule, or 0 if there is none.
  [[nodiscard]] static std::size_t bytes(std::uintptr_t word) noexcept {
    return word % 2 == 1 || word == 0 ? word / 4 * granule
                                      : SlabClasses::size(slab(word).size_class);
  }
  [[nodiscard]] static Slab& slab(std::uintptr_t word) noexcept {
    return *reinterpret_cast<Slab*>(word);
  }
};

/// Small blocks in slabs, which lie in chunks. Each class has a lock, so that threads that use
/// different sizes do not wait for each other. The lock of the chunks is taken after that of a
/// class.
template <Resource Upstream>
class Slabs {
 public:
  static constexpr std::uint32_t classes = SlabClasses::count;

  explicit Slabs(Chunks<Upstream>& chunks) : m_chunks(&chunks) {}
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  /// Takes up to `wanted` small blocks, and at least one if `more` allows to ask the upstream. If
  /// the class can have no new slab, the blocks come from a class with larger blocks.
  std::uint32_t take(std::uint32_t c, void** blocks, std::uint32_t wanted, More more) {
    {
      const std::scoped_lock lock(m_centres[c].lock);
      if (m_centres[c].slabs == nullptr) add_slab(c, more);
      if (const std::uint32_t count = take_free(c, blocks, wanted)) return count;
    }
    return take_larger(c, blocks, wanted);
  }

  /// Puts back blocks of a class, or larger ones that were taken instead. Slabs without live blocks
  /// are released to the chunks.
  void put_back(std::uint32_t c, void** blocks, std::uint32_t count) noexcept {
    while (count > 0) {
      std::uint32_t others = 0;
      const std::scoped_lock lock(m_centres[c].lock);
      for (std::uint32_t b = 0; b < count; ++b)
        if (!put_back_one(c, blocks[b])) blocks[others++] = blocks[b];
      count = others;
      if (count > 0) c = slab_of(blocks[0]).size_class;
    }
  }

  /// Locks all classes. Returns false, with none locked, if it could not lock them before
  /// `deadline`.
  [[nodiscard]] bool lock_by(Deadline deadline) {
    for (std::uint32_t c = 0; c < classes; ++c)
      if (!impl::lock_by(m_centres[c].lock, deadline)) {
        unlock(c);
        return false;
      }
    return true;
  }
  void unlock() { unlock(classes); }

 private:
  /// Every slab fits into the records of its granules, without the last one.
  static_assert([] {
    for (std::uint32_t c = 0; c < classes; ++c)
      for (std::size_t had : {std::size_t{0}, std::size_t{1} << 20}) {
        const std::size_t size = SlabClasses::size(c), blocks = Slab::added(size, had);
        if (Slab::bytes(blocks) > (blocks * size / granule - 1) * Heap::record) return false;
      }
    return true;
  }());

  struct alignas(64) Centre {
    BriefMutex lock;
    Slab* slabs = nullptr;   ///< the slabs with a free block
    std::size_t blocks = 0;  ///< number of blocks in all slabs
  };

  /// Unlocks the first `count` classes.
  void unlock(std::uint32_t count) {
    for (std::uint32_t c = 0; c < count; ++c) m_centres[c].lock.unlock();
  }
  /// Takes up to `wanted` free blocks of a class, which must be locked.
  std::uint32_t take_free(std::uint32_t c, void** blocks, std::uint32_t wanted) {
    const std::size_t size = SlabClasses::size(c);
    Centre& centre = m_centres[c];
    std::uint32_t count = 0;
    while (count < wanted && centre.slabs != nullptr) {
      Slab& slab = *centre.slabs;
      while (count < wanted && slab.free > 0) {
        std::uint64_t& word = slab.free_blocks()[slab.first_word];
        if (word == 0) {
          ++slab.first_word;
          continue;
        }
        const auto index =
            slab.first_word * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
        word &= word - 1;
        --slab.free;
        blocks[count++] = reinterpret_cast<void*>(slab.begin + index * size);
      }
      if (slab.free == 0) unlink(slab);
    }
    return count;
  }
  /// Takes up to `wanted` free blocks of classes whose blocks are up to half as large again.
  std::uint32_t take_larger(std::uint32_t c, void** blocks, std::uint32_t wanted) {
    const std::size_t size = SlabClasses::size(c);
    // A block whose size is a power of two may have to be aligned to it.
    if (std::has_single_bit(size)) return 0;
    std::uint32_t count = 0;
    const std::uint32_t end = c < SlabClasses::small ? SlabClasses::small : SlabClasses::count;
    for (std::uint32_t next = c + 1; count < wanted && next < end; ++next) {
      if (SlabClasses::size(next) > size + size / 2) break;
      const std::scoped_lock lock(m_centres[next].lock);
      count += take_free(next, blocks + count, wanted - count);
    }
    return count;
  }
  /// Puts a block back into its slab. Returns false if it is not of class `c`. That class must be
  /// locked.
  bool put_back_one(std::uint32_t c, void* block) noexcept {
    Slab& slab = slab_of(block);
    if (slab.size_class != c) return false;
    const std::uint32_t index =
        Slab::index(c, reinterpret_cast<std::uintptr_t>(block) - slab.begin);
    slab.free_blocks()[index / 64] |= std::uint64_t{1} << index % 64;
    slab.first_word = std::min(slab.first_word, index / 64);
    if (slab.free++ == 0) link(slab);
    if (slab.free == slab.blocks) drop(slab);
    return true;
  }
  [[nodiscard]] Slab& slab_of(const void* block) const noexcept {
    return Mark::slab((*m_chunks)[reinterpret_cast<std::uintptr_t>(block)]);
  }

  /// Adds a slab to a class, which must be locked, if there is memory for it or `more` allows to
  /// ask.
  void add_slab(std::uint32_t c, More more) {
    const std::size_t size = SlabClasses::size(c);
    const std::scoped_lock lock(m_chunks->lock);
    std::uint32_t blocks = Slab::added(size, m_centres[c].blocks);
    const auto room_for_a_few = [&] {
      blocks = Slab::added(size, 0);
      return m_chunks->take(blocks * size, granule, 0, More::none);
    };
    std::uintptr_t begin = 0;
    try {
      begin = m_chunks->take(blocks * size, granule, 0, more);
      if (begin == 0) begin = room_for_a_few();
    } catch (const std::bad_alloc&) {
      begin = room_for_a_few();
      if (begin == 0) throw;
    }
    if (begin == 0) return;
    const std::size_t bytes = blocks * size;
    Slab& slab = *::new (m_chunks->records(begin)) Slab{0, begin, c, blocks, blocks, 0, {}, {}};
    std::fill_n(slab.free_blocks(), blocks / 64, ~std::uint64_t{0});
    if (blocks % 64 != 0) slab.free_blocks()[blocks / 64] = (std::uint64_t{1} << blocks % 64) - 1;
    m_chunks->mark(begin, bytes, reinterpret_cast<std::uintptr_t>(&slab));
    m_centres[c].blocks += blocks;
    link(slab);
  }
  /// Releases a slab to the chunks. Its class must be locked.
  void drop(Slab& slab) noexcept {
    unlink(slab);
    const std::scoped_lock lock(m_chunks->lock);
    const std::uintptr_t begin = slab.begin;
    const std::size_t bytes = slab.blocks * SlabClasses::size(slab.size_class);
    m_centres[slab.size_class].blocks -= slab.blocks;
    m_chunks->mark(begin, bytes, 0);
    std::memset(static_cast<void*>(&slab), 0, Slab::bytes(slab.blocks));
    m_chunks->give(begin, bytes);
  }
  void link(Slab& slab) noexcept {
    Slab*& first = m_centres[slab.size_class].slabs;
    slab.previous = nullptr;
    slab.next = first;
    if (first != nullptr) first->previous = &slab;
    first = &slab;
  }
  void unlink(Slab& slab) noexcept {
    if (slab.next != nullptr) slab.next->previous = slab.previous;
    (slab.previous != nullptr ? slab.previous->next : m_centres[slab.size_class].slabs) = slab.next;
    slab.next = slab.previous = nullptr;
  }

  Chunks<Upstream>* m_chunks;
  std::array<Centre, classes> m_centres;
};

}  // namespace heddle::inline v0::memory::impl
