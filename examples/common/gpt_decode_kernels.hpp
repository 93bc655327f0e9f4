// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The kernels of a GPT that keeps keys and values: rows are packed, and every row belongs to a
/// slot of the cache and has a position in its text.

#include <cstddef>
#include <cstdint>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/share.hpp>

#include "gpt_cache.hpp"

namespace examples {

/// The place of a row.
struct GptRow {
  std::uint32_t slot;      ///< slot of the cache
  std::uint32_t position;  ///< position in its text
};

/// The blocks of one layer, as kernels see them.
template <class Real, class Exec>
struct GptLayerCache {
  typename GptCache<Real, typename Exec::memory_space>::Table table;
  std::size_t columns, block;
  std::size_t offset;  ///< elements of a block in front of the layer

  /// The keys of block `i` of a slot, columns x block.
  [[nodiscard]] KOKKOS_FUNCTION Real* keys(std::size_t slot, std::size_t i) const {
    return table(slot, i).data + offset;
  }
  /// Its values, block x columns.
  [[nodiscard]] KOKKOS_FUNCTION Real* values(std::size_t slot, std::size_t i) const {
    return keys(slot, i) + columns * block;
  }
};

/// Appends the keys and values of the rows to the cache.
template <class Real, class Exec>
struct GptKeepRows {
  heddle::kernel::Matrix<const Real, Exec> qkv;
  heddle::kernel::Vector<const GptRow, Exec> rows;
  GptLayerCache<Real, Exec> cache;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    const std::size_t row = index / cache.columns, column = index % cache.columns;
    const std::size_t slot = rows(row).slot, position = rows(row).position;
    const std::size_t i = position / cache.block, at = position % cache.block;
    const std::size_t first = qkv.extent(1) - 2 * cache.columns + column;
    cache.keys(slot, i)[column * cache.block + at] = qkv(row, first);
    cache.values(slot, i)[at * cache.columns + column] = qkv(row, first + cache.columns);
  }
};

/// Computes one head of one row of attention over the positions up to its own, tile by tile, by
/// online softmax (Milakov and Gimelshein, 2018). A tile has at most `tile` tokens of one block.
template <class Real, class Exec>
struct GptCachedAttention {
  static constexpr std::size_t tile = 32;

  heddle::kernel::Matrix<const Real, Exec> qkv;
  heddle::kernel::Vector<const GptRow, Exec> rows;
  GptLayerCache<Real, Exec> cache;
  std::size_t heads, queries_per_key, head_width;
  Real scale;  ///< 1 / sqrt(head_width)
  heddle::kernel::Matrix<Real, Exec> output;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    const std::size_t row = index / heads, head = index % heads;
    const std::size_t slot = rows(row).slot, seen = std::size_t{rows(row).position} + 1;
    const std::size_t key_column = head / queries_per_key * head_width;
    const Real* const query = &qkv(row, head * head_width);
    Real* const out = &output(row, head * head_width);
    for (std::size_t d = 0; d < head_width; ++d) out[d] = 0;
    Real top = -Kokkos::Experimental::infinity_v<Real>, sum = 0;
    for (std::size_t begin = 0; begin < seen;) {
      const std::size_t i = begin / cache.block, at = begin % cache.block;
      std::size_t count = cache.block - at;
      if (count > tile) count = tile;
      if (count > seen - begin) count = seen - begin;
      Real scores[tile];
      const Real* const keys = cache.keys(slot, i) + key_column * cache.block + at;
      for (std::size_t t = 0; t < count; ++t) scores[t] = 0;
      for (std::size_t d = 0; d < head_width; ++d) {
        const Real q = scale * query[d];
        for (std::size_t t = 0; t < count; ++t) scores[t] += q * keys[d * cache.block + t];
      }
      Real largest = top;
      for (std::size_t t = 0; t < count; ++t) largest = scores[t] > largest ? scores[t] : largest;
      const Real old = heddle::kernel::vector_exp(top - largest);  // 0 in the first tile
      top = largest;
      sum *= old;
      for (std::size_t d = 0; d < head_width; ++d) out[d] *= old;
      const Real* const values = cache.values(slot, i) + at * cache.columns + key_column;
      for (std::size_t t = 0; t < count; ++t) {
        const Real weight = heddle::kernel::vector_exp(scores[t] - top);
        sum += weight;
        for (std::size_t d = 0; d < head_width; ++d)
          out[d] += weight * values[t * cache.columns + d];
      }
      begin += count;
    }
    for (std::size_t d = 0; d < head_width; ++d) out[d] /= sum;
  }
};

/// Copies some rows of a matrix: output row i is row picks(i) of the input.
template <class Real, class Exec>
struct GptPickRows {
  heddle::kernel::Matrix<const Real, Exec> input;
  heddle::kernel::Vector<const std::size_t, Exec> picks;
  heddle::kernel::Matrix<Real, Exec> output;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    const std::size_t row = index / output.extent(1), column = index % output.extent(1);
    output(row, column) = input(picks(row), column);
  }
};

/// Puts the logits of this rank's classes among those of all; the others are zero.
template <class Real, class Exec>
struct GptSpreadClasses {
  heddle::kernel::Matrix<const Real, Exec> own;
  heddle::Share classes;
  heddle::kernel::Matrix<Real, Exec> all;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    const std::size_t row = index / all.extent(1), column = index % all.extent(1);
    const std::size_t mine = column - classes.first;  // wraps where it is below
    all(row, column) = mine < classes.count ? own(row, mine) : Real(0);
  }
};

}  // namespace examples
