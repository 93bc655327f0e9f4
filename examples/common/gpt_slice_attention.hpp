// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptSliceAttention: causal attention of a slice of each sequence to itself and to the slices
/// before it, whose keys and values are where their forward passes saved them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/kernel.hpp>
#include <heddle/layout/attention_mask.hpp>
#include <heddle/layout/index_set.hpp>

#include "gpt_shape.hpp"

namespace examples {

/// What attention of one block needs of one slice of the sequences of a microbatch.
template <class Real, class Exec>
struct GptSliceKeys {
  heddle::kernel::Matrix<const Real, Exec> qkv;  ///< Q | K | V of its rows
  heddle::kernel::Matrix<Real, Exec> key_grads;  ///< the sums of the gradients of its K | V
  std::int64_t first = 0;                        ///< its first position
};

/// The attention of the slices of a stage. Rows of a matrix are sequence * positions + position.
template <class Real, class Exec>
class GptSliceAttention {
 public:
  using Matrix = heddle::kernel::Matrix<Real, Exec>;
  using Input = heddle::kernel::Matrix<const Real, Exec>;
  using Vector = heddle::kernel::Vector<Real, Exec>;
  using Keys = GptSliceKeys<Real, Exec>;

  /// The slices before the present one, from the first one on. The present one stands last.
  std::vector<Keys> visible = {};

  /// Computes `attended`, of the rows of the present slice, and keeps in `saved` what its backward
  /// pass needs.
  void forward(const Exec& exec, const GptBlockShape& shape, const Matrix& qkv, const Vector& saved,
               const Matrix& attended) {
    for_each_pair(shape, qkv, saved, attended, [&](const Pair& pair) {
      if (pair.key_slice == 0) heddle::kernel::clear_attention(exec, pair.state);
      heddle::kernel::block_attention_forward(exec, shape.attention.heads, pair.mask, pair.input,
                                              tile(), pair.state);
    });
  }

  /// Computes `qkv_grad` of the present slice. The sums of the gradients of its keys and values
  /// must be complete but for its own part. Adds to the sums of the slices before.
  void backward(const Exec& exec, const GptBlockShape& shape, const Matrix& qkv,
                const Vector& saved, const Matrix& attended, const Input& output_grad,
                const Matrix& qkv_grad) {
    const auto& heads = shape.attention.heads;
    const std::size_t q = heads.query_columns(), kv = heads.kv_columns();
    const Range all(0, shape.all_rows());
    Kokkos::deep_copy(exec, Kokkos::subview(qkv_grad, all, Range(0, q)), Real(0));
    Kokkos::deep_copy(exec, Kokkos::subview(qkv_grad, all, Range(q, q + 2 * kv)),
                      visible.back().key_grads);
    for_each_pair(shape, qkv, saved, attended, [&](const Pair& pair) {
      const bool own = pair.key_slice + 1 == visible.size();
      const auto grads =
          own ? rows(qkv_grad, shape, pair.sequence, q, 2 * kv)
              : rows(visible[pair.key_slice].key_grads, shape, pair.sequence, 0, 2 * kv);
      const Range keys(0, grads.extent(0));
      heddle::kernel::block_attention_backward(
          exec, heads, pair.mask, pair.input, pair.state,
          rows(output_grad, shape, pair.sequence, 0, q), tile(),
          heddle::kernel::AttentionInputGrad<Real, Exec>{
              rows(qkv_grad, shape, pair.sequence, 0, q),
              Kokkos::subview(grads, keys, Range(0, kv)),
              Kokkos::subview(grads, keys, Range(kv, 2 * kv))});
    });
  }

 private:
  using Range = std::pair<std::size_t, std::size_t>;
  using Mask = heddle::kernel::VisibleKeys<Exec>;

  /// The queries of a sequence in the present slice, and its keys in one slice.
  struct Pair {
    std::size_t sequence, key_slice;
    const Mask& mask;
    heddle::kernel::AttentionInput<Real, Exec> input;
    heddle::kernel::AttentionState<Real, Exec> state;
  };

  /// Some columns of the rows of a sequence.
  template <class View>
  [[nodiscard]] static auto rows(const View& of, const GptBlockShape& shape, std::size_t sequence,
                                 std::size_t begin, std::size_t columns) {
    const std::size_t each = of.extent(0) / shape.attention.sequences;
    return Kokkos::subview(of, Range(sequence * each, (sequence + 1) * each),
                           Range(begin, begin + columns));
  }

  template <class Visit>
  void for_each_pair(const GptBlockShape& shape, const Matrix& qkv, const Vector& saved,
                     const Matrix& attended, const Visit& visit) {
    const auto& heads = shape.attention.heads;
    const std::size_t q = heads.query_columns(), kv = heads.kv_columns();
    const Matrix max(saved.data(), shape.all_rows(), heads.heads);
    const Matrix sum(saved.data() + max.size(), shape.all_rows(), heads.heads);
    for (std::size_t sequence = 0; sequence < shape.attention.sequences; ++sequence)
      for (std::size_t slice = 0; slice < visible.size(); ++slice) {
        const Input& keys = visible[slice].qkv;
        visit(
            Pair{sequence,
                 slice,
                 mask(shape, slice),
                 {rows(qkv, shape, sequence, 0, q), rows(keys, shape, sequence, q, kv),
                  rows(keys, shape, sequence, q + kv, kv)},
                 {rows(attended, shape, sequence, 0, q), rows(max, shape, sequence, 0, heads.heads),
                  rows(sum, shape, sequence, 0, heads.heads)}});
      }
  }

  /// The keys of slice `slice` that the queries of the present one see.
  [[nodiscard]] const Mask& mask(const GptBlockShape& shape, std::size_t slice) {
    const auto interval = [&](const Keys& of) {
      const auto count = static_cast<std::int64_t>(of.qkv.extent(0) / shape.attention.sequences);
      heddle::IndexSet positions;
      positions.add(heddle::Interval{of.first, of.first + count});
      return positions;
    };
    const auto found = m_masks.find({visible.back().first, visible[slice].first});
    if (found != m_masks.end()) return found->second;
    return m_masks
        .try_emplace({visible.back().first, visible[slice].first}, interval(visible.back()),
                     interval(visible[slice]), heddle::AttentionMask{})
        .first->second;
  }

  [[nodiscard]] Matrix tile() {
    constexpr auto size = heddle::kernel::attention_tile<Exec>;
    if (m_tile.size() == 0)
      m_tile = Tile(Kokkos::view_alloc(Kokkos::WithoutInitializing, "examples::slice_tile"),
                    size.scratch_rows(), size.keys);
    return m_tile;
  }

  using Tile = Kokkos::View<Real**, Kokkos::LayoutRight, typename Exec::memory_space>;
  std::map<std::pair<std::int64_t, std::int64_t>, Mask> m_masks;  ///< by first positions
  Tile m_tile;
};

}  // namespace examples
