// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Ldm: the local memory of a Sunway core, emulated by ordinary memory.

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

/// A resource as small as the local memory of a core of SW26010-Pro, to test on any machine what
/// fits in it. Block sizes are rounded up to multiples of 32 B. Blocks also begin at such
/// multiples, as vector and DMA instructions require.
class Ldm {
 public:
  /// Bytes of local memory of a core of SW26010-Pro. SW26010 has 64 KB.
  static constexpr std::size_t of_core = std::size_t{256} << 10;
  /// The unit of block sizes and addresses, in bytes.
  static constexpr std::size_t granule = 32;

  /// Constructs `bytes` bytes of local memory. The cache, the stack and the functor occupy
  /// `reserved` of them. @throws contract_error unless both are multiples of 32 B and some bytes
  /// are left.
  explicit Ldm(std::size_t bytes = of_core, std::size_t reserved = 0)
      : m_memory(std::make_unique_for_overwrite<Granule[]>(left(bytes, reserved) / granule)),
        m_region(where, m_memory.get(), bytes - reserved) {}
  /// Moves the resource. No other thread may use either object during the move.
  Ldm(Ldm&&) = default;
  /// Frees the memory. No View may still use it; see ~Pool().
  ~Ldm() { impl::ListedView::expect_none_in(*this, where); }

  /// Allocates a block. @throws out_of_memory if no free range is large enough.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_region.allocate(rounded(bytes), std::max(alignment, granule));
  }
  /// Deallocates a block.
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    m_region.deallocate(block, rounded(bytes));
  }
  /// Returns whether the address lies in this memory.
  [[nodiscard]] bool owns(const void* address) const noexcept { return m_region.owns(address); }

  /// Returns the bytes of this memory, without the reserved ones.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_region.bytes(); }
  /// Returns the live bytes.
  [[nodiscard]] std::size_t used() const { return m_region.used(); }

  /// Prints, for example, "32 B of 262144 B used, the largest free piece 262112 B".
  friend std::ostream& operator<<(std::ostream& out, const Ldm& ldm) { return out << ldm.m_region; }

 private:
  static constexpr const char* where = "heddle::memory::Ldm";
  struct alignas(granule) Granule {
    std::byte bytes[granule];
  };

  [[nodiscard]] static std::size_t left(std::size_t bytes, std::size_t reserved) {
    expects(reserved < bytes && bytes % granule == 0 && reserved % granule == 0, [&] {
      return ErrorInfo{where, text("cannot reserve ", reserved, " B of ", bytes, " B"), "",
                       "pass multiples of 32 B, and reserve less than all"};
    });
    return bytes - reserved;
  }
  // Sizes that are too large to be rounded stay as they are.
  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept {
    return std::max(bytes, (bytes + granule - 1) / granule * granule);
  }

  std::unique_ptr<Granule[]> m_memory;
  impl::Region m_region;
};

static_assert(OwningResource<Ldm>);

}  // namespace heddle::inline v0::memory
