// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The two ends of a VTable in the order of Qi et al. ("Pipeline parallelism with controllable
/// memory", NeurIPS'24). VTable::reorder_ends() uses these functions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule::impl {

/// The cells of one rank of a VTable.
struct VCells {
  /// The content of a cell: one of the four legs of a microbatch, a W, or nothing.
  enum Cell : std::uint8_t { near_forward, far_forward, far_input, near_input, weights, idle };

  [[nodiscard]] static constexpr bool is_input(std::size_t cell) {
    return cell == far_input || cell == near_input;
  }

  std::size_t ranks, rank;           ///< the number of ranks, and the rank of the cells
  std::size_t microbatches;          ///< the number of microbatches in the cells
  std::vector<std::uint8_t>& cells;  ///< one per slot

  /// Orders the cells before the first near I, so that the forwards take `most` activations as
  /// early as possible. Removes the gaps.
  void reorder_begin(std::size_t most) const;

  /// Removes the microbatches from `count` on, with their W.
  void keep(std::size_t count) const;

  /// Puts the last I of both legs into every second slot, as early as their inputs allow, and their
  /// W into the gaps. `most` is the largest number of activations that a rank keeps, and `fold` is
  /// the slot of the last far forward on rank 0. Returns false if two computations would need one
  /// slot.
  [[nodiscard]] bool reorder_end(std::size_t most, std::size_t fold) const;

 private:
  void remove_end(std::size_t most, std::size_t near, std::size_t far) const;
  [[nodiscard]] bool add_weights() const;
};

}  // namespace heddle::inline v0::schedule::impl

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/internal/v_ends.ipp>
#endif
