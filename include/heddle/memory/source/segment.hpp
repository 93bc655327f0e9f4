// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Segment: one piece of memory, taken once, that blocks are cut out of.

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

/// A fixed piece of its upstream's memory, like the segments of which a job on Sunway has one of
/// its core group and one across groups. Each block is in the smallest free piece that fits, the
/// lowest of equal ones; those that come back join their neighbours at once. The memory itself is
/// not written.
template <Resource Up>
class Segment {
 public:
  using Upstream = Up;  ///< the resource that provides the memory

  /// Takes `bytes` of `upstream`, aligned to 4 KiB. @throws what the upstream throws;
  /// contract_error for 0 bytes.
  template <class Given>
  requires std::constructible_from<Up, Given> Segment(std::size_t bytes, Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)), m_region(take(m_upstream, bytes)) {}
  /// Likewise, of pages.
  explicit Segment(std::size_t bytes) requires std::same_as<Up, Pages> : Segment(bytes, Pages{}) {}
  /// Moves the resource. No other thread may use either object during the move.
  Segment(Segment&&) = default;
  /// Gives it back. No View of it lives, see ~Pool().
  ~Segment() {
    impl::ListedView::expect_none_in(*this, where);
    if (m_region.begin() != nullptr)
      m_upstream.deallocate(m_region.begin(), m_region.bytes(), alignment_of_all);
  }

  /// Out of the segment. @throws out_of_memory where no free piece is large enough.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_region.allocate(bytes, alignment);
  }
  /// Free again.
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    m_region.deallocate(block, bytes);
  }
  /// Whether it lies in the segment.
  [[nodiscard]] bool owns(const void* address) const noexcept { return m_region.owns(address); }

  /// Bytes of the segment.
  [[nodiscard]] std::size_t bytes() const noexcept { return m_region.bytes(); }
  /// Bytes of blocks that are out.
  [[nodiscard]] std::size_t used() const { return m_region.used(); }
  /// Bytes of the largest block that there is.
  [[nodiscard]] std::size_t largest() const { return m_region.largest(); }

  /// "5 B of 100 B used, the largest free piece 95 B".
  friend std::ostream& operator<<(std::ostream& out, const Segment& segment) {
    return out << segment.m_region;
  }

 private:
  static constexpr const char* where = "heddle::memory::Segment";
  static constexpr std::size_t alignment_of_all = 4096;

  [[nodiscard]] static impl::Region take(Up& upstream, std::size_t bytes) {
    expects(bytes > 0, [] { return Complaint{where, "a segment of 0 B"}; });
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
/// Of pages.
explicit Segment(std::size_t)->Segment<Pages>;

static_assert(OwningResource<Segment<Pages>>);

}  // namespace heddle::inline v0::memory
