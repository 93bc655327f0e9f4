// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Segment: one piece of memory, allocated once, that is divided into blocks.

#include <concepts>
#include <cstddef>
#include <ostream>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/memory/impl/listed_view.hpp>
#include <heddle/memory/impl/region.hpp>
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// A resource that divides a fixed piece of its upstream's memory into blocks. A job on Sunway has
/// such segments: one in its core group and one across groups. Each block lies in the smallest free
/// range that fits, and among equal ones in the lowest. Deallocated blocks are joined with free
/// neighbours at once. Nothing is written to the memory itself.
template <Resource Up>
class Segment {
 public:
  using Upstream = Up;  ///< the resource that provides the memory

  /// Allocates `bytes` bytes from `upstream`, aligned to 4 KiB. Throws the upstream's exceptions,
  /// and contract_error for 0 bytes.
  template <class Given>
  requires std::constructible_from<Up, Given> Segment(std::size_t bytes, Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)), m_region(take(m_upstream, bytes)) {}
  /// Allocates `bytes` bytes of host pages. @throws out_of_memory, and contract_error for 0 bytes.
  explicit Segment(std::size_t bytes) requires std::same_as<Up, Pages> : Segment(bytes, Pages{}) {}
  /// Moves the resource. No other thread may use either object during the move.
  Segment(Segment&&) = default;
  /// Returns the memory to the upstream. No View may still use it; see ~Pool().
  ~Segment() {
    impl::ListedView::expect_none_in(*this, where);
    if (m_region.begin() != nullptr)
      m_upstream.deallocate(m_region.begin(), m_region.bytes(), alignment_of_all);
  }

  /// Allocates a block. @throws out_of_memory if no free range is large enough.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_region.allocate(bytes, alignment);
  }
  /// Deallocates a block.
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    m_region.deallocate(block, bytes);
  }
  /// Returns whether the address lies in the segment.
  [[nodiscard]] bool owns(const void* address) const noexcept { return m_region.owns(address); }

  /// Returns the bytes of the segment.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_region.bytes(); }
  /// Returns the live bytes.
  [[nodiscard]] std::size_t used() const { return m_region.used(); }
  /// Returns the bytes of the largest block that can be allocated.
  [[nodiscard]] std::size_t largest() const { return m_region.largest(); }

  /// Prints, for example, "5 B of 100 B used, the largest free piece 95 B".
  friend std::ostream& operator<<(std::ostream& out, const Segment& segment) {
    return out << segment.m_region;
  }

 private:
  static constexpr const char* where = "heddle::memory::Segment";
  static constexpr std::size_t alignment_of_all = 4096;

  [[nodiscard]] static impl::Region take(Up& upstream, std::size_t bytes) {
    expects(bytes > 0, [] { return ErrorInfo{where, "the segment size is 0 B"}; });
    void* const begin = upstream.allocate(bytes, alignment_of_all);
    try {
      return impl::Region(where, begin, bytes);
    } catch (...) {
      upstream.deallocate(begin, bytes, alignment_of_all);
      throw;
    }
  }

  Up m_upstream;
  impl::Region m_region;
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
Segment(std::size_t, Given&&) -> Segment<UpstreamOf<Given>>;
/// A segment without an upstream lies in host pages.
explicit Segment(std::size_t)->Segment<Pages>;

static_assert(OwningResource<Segment<Pages>>);

}  // namespace heddle::inline v0::memory
