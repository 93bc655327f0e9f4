// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Ldm: the local memory of a Sunway core, as ordinary memory.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <ostream>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/listed_view.hpp>
#include <heddle/memory/impl/region.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// A memory as small as that of a core of SW26010-Pro, to find out on any machine what fits in it.
/// Blocks begin at multiples of 32 B, as vectors and DMA want it, and take such multiples.
class Ldm {
 public:
  /// Local memory of a core of SW26010-Pro; that of SW26010 has 64 KB.
  static constexpr std::size_t of_core = std::size_t{256} << 10;
  /// What all blocks are multiples of.
  static constexpr std::size_t granule = 32;

  /// `bytes` of local memory, of which the cache, the stack and the functor have `reserved`.
  /// @throws contract_error where nothing is left, or no multiple of 32 B.
  explicit Ldm(std::size_t bytes = of_core, std::size_t reserved = 0)
      : m_memory(std::make_unique_for_overwrite<Granule[]>(left(bytes, reserved) / granule)),
        m_region(where, m_memory.get(), bytes - reserved) {}
  /// Moves the resource. No other thread may use either object during the move.
  Ldm(Ldm&&) = default;
  /// No View of it lives, see ~Pool().
  ~Ldm() { impl::ListedView::expect_none_in(*this, where); }

  /// Out of it. @throws out_of_memory where no free piece is large enough.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_region.allocate(rounded(bytes), std::max(alignment, granule));
  }
  /// Free again.
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    m_region.deallocate(block, rounded(bytes));
  }
  /// Whether it lies in it.
  [[nodiscard]] bool owns(const void* address) const noexcept { return m_region.owns(address); }

  /// Bytes of it without what is reserved.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_region.bytes(); }
  /// Bytes of blocks that are out.
  [[nodiscard]] std::size_t used() const { return m_region.used(); }

  /// "32 B of 262144 B used, the largest free piece 262112 B".
  friend std::ostream& operator<<(std::ostream& out, const Ldm& ldm) { return out << ldm.m_region; }

 private:
  static constexpr const char* where = "heddle::memory::Ldm";
  struct alignas(granule) Granule {
    std::byte bytes[granule];
  };

  [[nodiscard]] static std::size_t left(std::size_t bytes, std::size_t reserved) {
    expects(reserved < bytes && bytes % granule == 0 && reserved % granule == 0, [&] {
      return Complaint{where, text(reserved, " B of ", bytes, " B cannot be reserved"), "",
                       "take multiples of 32 B, and leave some"};
    });
    return bytes - reserved;
  }
  // What is too large stays so.
  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept {
    return std::max(bytes, (bytes + granule - 1) / granule * granule);
  }

  std::unique_ptr<Granule[]> m_memory;
  impl::Region m_region;
};

static_assert(OwningResource<Ldm>);

}  // namespace heddle::inline v0::memory
