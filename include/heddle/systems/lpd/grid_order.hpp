// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GridOrder: an order of the cells of a grid in groups that are decoded together. Source of the
/// rules: Zhang and others, "Locality-aware parallel decoding for efficient autoregressive image
/// generation", 2025, and the authors' code.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// An order of the cells of a grid, cut into groups. A cell has the number row * columns + column.
struct GridOrder {
  /// A group: the cells that one step of the decoder produces.
  struct Group {
    std::int64_t begin = 0;  ///< the place of its first cell in `cells`
    std::int64_t near = 0;   ///< one past the last cell that was chosen for its proximity
    std::int64_t end = 0;    ///< one past its last cell; cells from `near` on fill the group
    friend bool operator==(const Group&, const Group&) = default;
  };

  int rows = 0;                     ///< rows of the grid
  int columns = 0;                  ///< columns of the grid
  std::vector<std::int64_t> cells;  ///< the cells in the order in which they are decoded
  std::vector<Group> groups;        ///< the groups in order; together they are all of `cells`

  friend bool operator==(const GridOrder&, const GridOrder&) = default;
};

/// The options of locality_order().
struct LocalityOptions {
  /// The least proximity of a cell that is chosen for it. The proximity is the sum of 1 / distance
  /// over the decoded cells among the 8 neighbours.
  double proximity = 1;
  /// Two cells of a group that are chosen for their proximity differ by more than this in their row
  /// or in their column. The authors take 2 or 3 for 16 x 16 cells and 4 for 32 x 32.
  int repulsion = 1;
  std::uint64_t seed = 0;  ///< seed of the first cell and of the order among equals
};

/// Returns the sizes of `steps` groups of `cells` cells that grow as the cosine schedule says:
/// group i of K has about cells * (cos(pi i / 2K) - cos(pi (i+1) / 2K)). They are rounded to whole
/// numbers of at least 1 that do not decrease. If there are several steps, the first group has one
/// cell. If the rounded sizes do not sum to `cells`, single groups become smaller (or larger)
/// by 1, where the rounding was most generous (or least). For 256 cells in 20 steps and 1024 cells
/// in 48 steps these are the sizes of LPD's authors.
/// @throws contract_error if there are more steps than cells, or fewer than 1.
[[nodiscard]] std::vector<std::int64_t> cosine_group_sizes(std::int64_t cells, int steps);

/// Returns an order in which the cells of a group are far from each other and near to the cells of
/// earlier groups. Each group first takes the cells with the highest proximity of at least
/// options.proximity, and rejects cells within options.repulsion of the ones it has. If these are
/// too few, it adds the cell that is farthest from the group, again and again. Among equally far
/// cells, those below the threshold come first, in the order of their proximity, and an empty group
/// begins with the first of these. Equal cells are taken in a random order that depends only on the
/// seed.
/// @throws contract_error if the grid is empty, if a size is below 1, if the sizes do not sum to
///         the number of cells, or if an option is negative or not a number.
[[nodiscard]] GridOrder locality_order(int rows, int columns, std::span<const std::int64_t> sizes,
                                       const LocalityOptions& options = {});

/// Returns the number of pairs of 8-neighbours that are in the same group. Such cells depend on
/// each other most, and a step decodes them without knowledge of each other.
[[nodiscard]] std::int64_t adjacent_pairs(const GridOrder& order);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/lpd/grid_order.ipp>
#endif
