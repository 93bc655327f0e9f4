// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_views.hpp.

#include <cstddef>
#include <functional>
#include <ostream>
#include <vector>

#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const PlaceInView& place) {
  return out << "number " << place.number << " from byte " << place.from;
}

HEDDLE_FULL_INLINE void SharedViews::add(const SharedBlocks& blocks, Bytes bytes) {
  std::erase_if(m_views, [](const View& view) { return view.memory.expired(); });
  m_views.push_back({m_made++, blocks.of, bytes, blocks.memory});
}

HEDDLE_FULL_INLINE PlaceInView SharedViews::place(const std::byte* mine) const {
  const View& view = *view_of(mine);
  return {view.number, static_cast<Bytes>(mine - view.of[+m_self])};
}

HEDDLE_FULL_INLINE void SharedViews::expect_same_place(Rank rank) const {
  expects(told(rank) == told(m_self), [&] {
    return ErrorInfo{text("heddle::SharedView, rank ", m_self),
                     "the ranks pass different parts of SharedViews to one call",
                     text("this one ", told(m_self), ", rank ", rank, " ", told(rank)),
                     "pass the same part of the same SharedView on all ranks"};
  });
}

HEDDLE_FULL_INLINE std::byte* SharedViews::at(Rank rank, std::byte* mine) const {
  if (rank == m_self) return mine;
  const View& view = *view_of(mine);
  return view.of[+rank] + (mine - view.of[+m_self]);
}

HEDDLE_FULL_INLINE const SharedViews::View* SharedViews::view_of(const std::byte* mine) const {
  for (const View& view : m_views) {
    const std::byte* const begin = view.of[+m_self];
    const std::less<> before;
    if (!before(mine, begin) && before(mine, begin + view.bytes) && !view.memory.expired())
      return &view;
  }
  return nullptr;
}

}  // namespace heddle::inline v0::impl
