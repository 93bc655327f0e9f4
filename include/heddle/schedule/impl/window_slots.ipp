// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of window_slots.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/impl/window_slots.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE WindowSlots::WindowSlots(std::vector<Bytes> sizes, std::size_t slots,
                                       std::size_t loads)
    : m_sizes(std::move(sizes)), m_first(slots), m_held(slots) {
  for (std::size_t i = 0; i < loads; ++i) m_held[i % slots].push_back(m_sizes[i % m_sizes.size()]);
  for (std::size_t s = 0; s < slots; ++s) {
    std::vector<Bytes>& held = m_held[s];
    std::ranges::sort(held);
    held.erase(std::unique(held.begin(), held.end()), held.end());
    m_first[s] = static_cast<std::uint32_t>(m_parts.size());
    Bytes before = 0;
    for (const Bytes size : held) m_parts.push_back(size - std::exchange(before, size));
    m_bytes += before;
  }
}

HEDDLE_INLINE Use WindowSlots::use(Access access, BufferId buffer, std::size_t load) const {
  const std::size_t slot = load % m_first.size();
  const auto& held = m_held[slot];
  const auto end = std::ranges::upper_bound(held, m_sizes[load % m_sizes.size()]);
  return schedule::use(access, buffer, m_first[slot],
                       static_cast<std::uint32_t>(end - held.begin()));
}

}  // namespace heddle::inline v0::impl
