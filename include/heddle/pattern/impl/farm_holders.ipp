// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of farm_holders.hpp.

#include <cstddef>
#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/pattern/impl/farm_holders.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE FarmHolders::FarmHolders(std::size_t ranks, int prefetch)
    : m_prefetch(static_cast<std::uint64_t>(prefetch)),
      m_given(ranks, 0),
      m_done(ranks, 0),
      m_idle(ranks, false),
      m_waited(ranks * m_prefetch, false) {}

HEDDLE_INLINE bool FarmHolders::is_silent(std::size_t rank,
                                          const pattern::FarmDecider& decider) const {
  for (std::uint64_t n = m_done[rank]; n < m_given[rank]; ++n)
    if (decider.is_silent(holder(rank, n))) return true;
  return false;
}

HEDDLE_INLINE void FarmHolders::note_idle() {
  for (std::size_t rank = 0; rank < m_given.size(); ++rank)
    if (held(rank) == 0) m_idle[rank] = true;
}

HEDDLE_INLINE void FarmHolders::give(std::size_t rank) {
  m_waited[+next(rank)] = m_idle[rank];
  m_idle[rank] = false;
  ++m_given[rank];
}

HEDDLE_INLINE bool FarmHolders::end(std::size_t rank) {
  const bool waited = m_waited[+front(rank)];
  ++m_done[rank];
  return waited;
}

}  // namespace heddle::inline v0::impl
