// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceWorkspace: the memory that a SequenceLine keeps from one call to the next.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/kernel/visible_keys.hpp>
#include <heddle/layout/attention_mask.hpp>
#include <heddle/layout/index_set.hpp>

namespace heddle::inline v0::impl {

/// Scratch that grows to the largest call, and the visible keys of the latest pairs of blocks.
template <class Real, kernel::ExecutionSpace Exec>
class SequenceWorkspace {
 public:
  /// Returns `size` elements whose content has no meaning. They are in use until the next call.
  [[nodiscard]] Real* elements(std::size_t size) {
    if (m_elements.extent(0) < size)
      m_elements = Elements(
          Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::sequence::scratch"), size);
    return m_elements.data();
  }

  /// Returns the scratch of block_attention_forward() and block_attention_backward().
  [[nodiscard]] kernel::Matrix<Real, Exec> tile() {
    constexpr kernel::AttentionTile tile = kernel::attention_tile<Exec>;
    constexpr std::size_t rows = tile.scratch_rows();
    if (m_tile.extent(0) == 0)
      m_tile = Elements(Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::sequence::tile"),
                        rows * tile.keys);
    return kernel::Matrix<Real, Exec>(m_tile.data(), rows, tile.keys);
  }

  /// Returns what queries at some positions see of keys at some positions. Copies share the table.
  [[nodiscard]] kernel::VisibleKeys<Exec> visible(const IndexSet& queries, const IndexSet& keys,
                                                  const AttentionMask& mask) {
    const auto found = std::find_if(m_pairs.begin(), m_pairs.end(), [&](const Pair& pair) {
      return pair.queries == queries && pair.keys == keys && pair.mask == mask;
    });
    if (found != m_pairs.end()) return found->visible;
    if (m_pairs.size() == most) m_pairs.erase(m_pairs.begin());
    m_pairs.push_back({queries, keys, mask, kernel::VisibleKeys<Exec>(queries, keys, mask)});
    return m_pairs.back().visible;
  }

 private:
  using Elements = Kokkos::View<Real*, Kokkos::LayoutRight, typename Exec::memory_space>;
  struct Pair {
    IndexSet queries, keys;
    AttentionMask mask;
    kernel::VisibleKeys<Exec> visible;
  };
  static constexpr std::size_t most = 64;  // pairs that are kept

  Elements m_elements, m_tile;
  std::vector<Pair> m_pairs;
};

}  // namespace heddle::inline v0::impl
