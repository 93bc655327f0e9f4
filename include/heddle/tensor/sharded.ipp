// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sharded.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/fits.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE Kokkos::Impl::SharedAllocationTracker impl::zeroed_part(
    const std::array<std::size_t, 8>& extents, std::size_t dims, Bytes element) {
  Bytes bytes = element;
  bool fits = true, any = true;
  for (std::size_t dim = 0; dim < dims; ++dim) {
    any = any && extents[dim] != 0;
    fits = fits && product_fits({bytes, extents[dim]});
    bytes *= std::max<std::size_t>(extents[dim], 1);
  }
  if (!fits) {  // Kokkos would allocate the bytes of the product modulo 2^64
    std::string shape;
    for (std::size_t dim = 0; dim < dims; ++dim) shape += text(dim == 0 ? "" : " x ", extents[dim]);
    throw out_of_memory({"heddle::Sharded", "the address space cannot hold so many elements",
                         text(shape, " of ", element, " B"), "divide the tensor among more ranks"});
  }
  return Kokkos::View<std::byte*, Kokkos::HostSpace>(part_label, any ? bytes : 0).impl_track();
}

HEDDLE_FULL_INLINE AnySharded::AnySharded(const AnySharded& other) = default;
HEDDLE_FULL_INLINE AnySharded::AnySharded(AnySharded&& other) noexcept = default;
HEDDLE_FULL_INLINE AnySharded& AnySharded::operator=(const AnySharded& other) = default;
HEDDLE_FULL_INLINE AnySharded& AnySharded::operator=(AnySharded&& other) noexcept = default;
HEDDLE_FULL_INLINE AnySharded::~AnySharded() = default;

HEDDLE_FULL_INLINE AnySharded::AnySharded(const Communicator& comm, Layout layout, std::size_t dims,
                                          bool (*can_merge)(Merge), bool left)
    : m_comm(&comm),
      m_layout(std::move(layout)),
      m_here(m_layout.rank_here(comm.rank())),
      m_identity(std::make_shared<const std::byte>()) {
  constexpr const char* where = "heddle::Sharded";
  if (left) m_reversed = m_layout.reversed();
  expects(m_layout.dims() == dims, [&] {
    return ErrorInfo{where, "the layout has another number of dimensions",
                     text(m_layout, ", expected ", dims),
                     text("make a layout of ", dims, " sizes, or a Sharded of another Data")};
  });
  for (const Rank rank : m_layout.ranks())
    expects(+rank < static_cast<std::size_t>(comm.size()), [&] {
      return ErrorInfo{
          where, "the communicator lacks a rank of the layout",
          text("rank ", rank, " of ", comm.size(), ", ", m_layout),
          "use a communicator with all of the layout's ranks, or a Layout on other ranks"};
    });
  expects(!m_layout.partial() || can_merge(*m_layout.partial()), [&] {
    return ErrorInfo{where, "a Partial placement needs elements that can be added", text(m_layout),
                     "use Shard or Replicate"};
  });
}

HEDDLE_FULL_INLINE IndexSet AnySharded::indices(std::size_t dim) const {
  return m_here ? m_layout.indices(*m_here, dim) : IndexSet();
}

HEDDLE_FULL_INLINE std::array<std::size_t, 8> AnySharded::extents_here() const {
  std::array<std::size_t, 8> extents = {};
  if (!m_here) return extents;
  const std::vector<std::int64_t> mine = m_layout.extents(*m_here);
  for (std::size_t dim = 0; dim < mine.size(); ++dim)
    extents[dim] = static_cast<std::size_t>(mine[dim]);
  return extents;
}

HEDDLE_FULL_INLINE void AnySharded::expect_part(const std::array<std::size_t, 8>& extents,
                                                std::size_t elements, std::size_t span) const {
  constexpr const char* where = "heddle::Sharded";
  const std::array<std::size_t, 8> expected = extents_here();
  for (std::size_t dim = 0; dim < m_layout.dims(); ++dim)
    expects(extents[dim] == expected[dim], [&] {
      return ErrorInfo{
          where, "the View has other extents than this rank's part of the tensor",
          text("dimension ", dim, ": ", extents[dim], ", expected ", expected[dim], ", ", m_layout),
          "ask the layout for the extents() of its rank_here(); elsewhere they are 0"};
    });
  expects(span == elements, [&] {
    return ErrorInfo{where, "the View has gaps between its elements",
                     text(span, " places for ", elements, " elements"),
                     "copy them into a View of their own"};
  });
}

HEDDLE_FULL_INLINE void AnySharded::expect_values(const char* asked, const char* of_parts) const {
  expects(!m_layout.partial(), [&] {
    return ErrorInfo{asked, "the layout has a Partial axis, so the elements are not summed yet",
                     text(m_layout),
                     text("redistribute to Shard or Replicate, or ask for the ", of_parts)};
  });
}

HEDDLE_FULL_INLINE Kokkos::pair<std::size_t, std::size_t> AnySharded::inner(
    std::size_t dim, std::size_t extent) const {
  const auto halo = m_here ? static_cast<std::size_t>(m_layout.halo(dim)) : 0;
  return {halo, extent - halo};
}

}  // namespace heddle::inline v0
