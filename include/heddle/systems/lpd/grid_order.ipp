// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of grid_order.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/lpd/grid_order.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE std::vector<std::int64_t> cosine_group_sizes(std::int64_t cells, int steps) {
  expects(steps >= 1 && steps <= cells, [&] {
    return ErrorInfo{"heddle::systems::cosine_group_sizes", "every step decodes at least one cell",
                     text(cells, " cells, ", steps, " steps"), "take at most as many steps"};
  });
  const auto count = static_cast<std::size_t>(steps);
  std::vector<double> wanted(count);
  std::vector<std::int64_t> sizes(count);
  const double quarter = std::numbers::pi / 2 / steps;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<double>(i);
    wanted[i] =
        static_cast<double>(cells) * (std::cos(quarter * at) - std::cos(quarter * (at + 1)));
    sizes[i] = std::max<std::int64_t>(1, std::llround(wanted[i]));
  }
  if (steps > 1) sizes[0] = 1;
  std::int64_t excess = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) - cells;
  const auto rounded_up = [&](std::size_t i) { return static_cast<double>(sizes[i]) - wanted[i]; };
  while (excess != 0) {
    std::size_t best = count;
    for (std::size_t i = steps > 1 ? 1 : 0; i < count; ++i) {
      if (excess > 0) {  // the first group of its size may become smaller
        if (sizes[i] == 1 || (i > 0 && sizes[i] == sizes[i - 1])) continue;
        if (best == count || rounded_up(i) > rounded_up(best)) best = i;
      } else {  // the last group of its size may become larger
        if (i + 1 < count && sizes[i] == sizes[i + 1]) continue;
        if (best == count || rounded_up(i) < rounded_up(best)) best = i;
      }
    }
    sizes[best] -= excess > 0 ? 1 : -1;
    excess -= excess > 0 ? 1 : -1;
  }
  return sizes;
}

namespace impl {

/// Chooses the groups of locality_order() one after another.
class LocalityOrder {
 public:
  LocalityOrder(int rows, int columns, const LocalityOptions& options)
      : m_options(options),
        m_order{rows, columns, {}, {}},
        m_cells(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) {}

  void add_group(std::size_t size) {
    GridOrder::Group group;
    group.begin = static_cast<std::int64_t>(m_order.cells.size());
    const Random random(m_options.seed, text("locality ", m_order.groups.size()));
    std::vector<Candidate> candidates;
    for (std::size_t c = 0; c < m_cells.size(); ++c)
      if (!m_cells[c].decoded) candidates.push_back({proximity(m_cells[c]), random.bits(c), c});
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.proximity != b.proximity ? a.proximity > b.proximity : a.tie < b.tie;
    });
    std::vector<std::size_t> chosen;
    for (const Candidate& candidate : candidates) {
      if (chosen.size() == size || candidate.proximity < m_options.proximity) break;
      if (std::none_of(chosen.begin(), chosen.end(),
                       [&](std::size_t other) { return repelled(candidate.cell, other); }))
        chosen.push_back(candidate.cell);
    }
    group.near = group.begin + static_cast<std::int64_t>(chosen.size());
    // Among equally far cells those that depend less on decoded ones come first.
    std::stable_partition(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
      return candidate.proximity < m_options.proximity;
    });
    fill(candidates, size, chosen);
    for (const std::size_t cell : chosen) decode(cell);
    group.end = group.begin + static_cast<std::int64_t>(size);
    m_order.groups.push_back(group);
  }

  [[nodiscard]] GridOrder take() { return std::move(m_order); }

 private:
  struct Cell {
    int beside = 0;    ///< decoded neighbours that share an edge
    int diagonal = 0;  ///< decoded neighbours that share a corner only
    bool decoded = false;
  };
  struct Candidate {
    double proximity;
    std::uint64_t tie;
    std::size_t cell;
  };

  // From counts, so that it does not depend on the order in which neighbours were decoded.
  [[nodiscard]] static double proximity(const Cell& cell) {
    return cell.beside + cell.diagonal / std::numbers::sqrt2;
  }
  [[nodiscard]] int row(std::size_t cell) const { return static_cast<int>(cell) / m_order.columns; }
  [[nodiscard]] int column(std::size_t cell) const {
    return static_cast<int>(cell) % m_order.columns;
  }
  [[nodiscard]] bool repelled(std::size_t a, std::size_t b) const {
    return std::abs(row(a) - row(b)) <= m_options.repulsion &&
           std::abs(column(a) - column(b)) <= m_options.repulsion;
  }

  /// Adds the candidate that is farthest from the chosen ones until there are `size`.
  void fill(const std::vector<Candidate>& candidates, std::size_t size,
            std::vector<std::size_t>& chosen) const {
    std::vector<std::int64_t> apart(candidates.size(), std::numeric_limits<std::int64_t>::max());
    const auto move_away = [&](std::size_t from) {
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const std::int64_t down = row(candidates[i].cell) - row(from);
        const std::int64_t right = column(candidates[i].cell) - column(from);
        apart[i] = std::min(apart[i], down * down + right * right);
      }
    };
    for (const std::size_t cell : chosen) move_away(cell);
    while (chosen.size() < size) {
      const auto farthest = std::max_element(apart.begin(), apart.end()) - apart.begin();
      chosen.push_back(candidates[static_cast<std::size_t>(farthest)].cell);
      move_away(chosen.back());
    }
  }

  void decode(std::size_t cell) {
    m_order.cells.push_back(static_cast<std::int64_t>(cell));
    m_cells[cell].decoded = true;
    for (int down = -1; down <= 1; ++down)
      for (int right = -1; right <= 1; ++right) {
        const int r = row(cell) + down;
        const int c = column(cell) + right;
        if (r < 0 || r >= m_order.rows || c < 0 || c >= m_order.columns) continue;
        Cell& other = m_cells[static_cast<std::size_t>(r * m_order.columns + c)];
        (down == 0 || right == 0 ? other.beside : other.diagonal) += down != 0 || right != 0;
      }
  }

  LocalityOptions m_options;
  GridOrder m_order;
  std::vector<Cell> m_cells;
};

}  // namespace impl

HEDDLE_INLINE GridOrder locality_order(int rows, int columns, std::span<const std::int64_t> sizes,
                                       const LocalityOptions& options) {
  constexpr const char* where = "heddle::systems::locality_order";
  expects(rows >= 1 && columns >= 1, [&] {
    return ErrorInfo{where, "the grid has no cells", text(rows, " rows, ", columns, " columns")};
  });
  const std::int64_t cells = std::int64_t{rows} * columns;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    expects(sizes[i] >= 1 && sizes[i] <= cells - sum, [&] {
      return ErrorInfo{where, "a group has at least one cell, and all groups those of the grid",
                       text("sizes[", i, "] = ", sizes[i], " after ", sum, " of ", cells, " cells"),
                       "cosine_group_sizes() returns sizes that fit"};
    });
    sum += sizes[i];
  }
  expects(sum == cells, [&] {
    return ErrorInfo{where, "every cell belongs to one group",
                     text("the sizes sum to ", sum, ", the grid has ", cells, " cells"),
                     "cosine_group_sizes() returns sizes that fit"};
  });
  expects(options.proximity >= 0 && options.repulsion >= 0, [&] {
    return ErrorInfo{where, "thresholds are at least 0",
                     text("proximity = ", options.proximity, ", repulsion = ", options.repulsion)};
  });
  impl::LocalityOrder order(rows, columns, options);
  for (const std::int64_t size : sizes) order.add_group(static_cast<std::size_t>(size));
  return order.take();
}

namespace impl {

inline void expect_valid(const GridOrder& order) {
  constexpr const char* where = "heddle::systems::GridOrder";
  const auto cells = static_cast<std::int64_t>(order.cells.size());
  expects(
      order.rows >= 1 && order.columns >= 1 && std::int64_t{order.rows} * order.columns == cells,
      [&] {
        return ErrorInfo{where, "an order has every cell of its grid",
                         text(order.rows, " rows, ", order.columns, " columns, ", cells, " cells"),
                         "use locality_order()"};
      });
  std::vector<bool> seen(order.cells.size(), false);
  for (std::size_t i = 0; i < order.cells.size(); ++i) {
    const std::int64_t cell = order.cells[i];
    expects(cell >= 0 && cell < cells && !seen[static_cast<std::size_t>(cell)], [&] {
      return ErrorInfo{where, "an order has every cell of its grid once",
                       text("cells[", i, "] = ", cell, " of ", cells)};
    });
    seen[static_cast<std::size_t>(cell)] = true;
  }
  std::int64_t end = 0;
  for (std::size_t g = 0; g < order.groups.size(); ++g) {
    const GridOrder::Group& group = order.groups[g];
    expects(group.begin == end && group.near >= group.begin && group.end >= group.near &&
                group.end <= cells,
            [&] {
              return ErrorInfo{where, "the groups divide the cells in order",
                               text("group ", g, " begins at ", group.begin, ", is near up to ",
                                    group.near, " and ends at ", group.end, " of ", cells,
                                    "; expected it to begin at ", end)};
            });
    end = group.end;
  }
  expects(end == cells, [&] {
    return ErrorInfo{where, "the groups have every cell",
                     text("the last group ends at ", end, " of ", cells)};
  });
}

}  // namespace impl

HEDDLE_INLINE std::int64_t adjacent_pairs(const GridOrder& order) {
  impl::expect_valid(order);
  std::vector<std::size_t> group_of(order.cells.size());
  for (std::size_t g = 0; g < order.groups.size(); ++g)
    for (std::int64_t at = order.groups[g].begin; at < order.groups[g].end; ++at)
      group_of[static_cast<std::size_t>(order.cells[static_cast<std::size_t>(at)])] = g;
  const auto group = [&](int r, int c) {
    return group_of[static_cast<std::size_t>(r) * static_cast<std::size_t>(order.columns) +
                    static_cast<std::size_t>(c)];
  };
  std::int64_t pairs = 0;
  for (int r = 0; r < order.rows; ++r)
    for (int c = 0; c < order.columns; ++c) {
      const bool below = r + 1 < order.rows;
      if (c + 1 < order.columns) pairs += group(r, c) == group(r, c + 1);
      if (below) pairs += group(r, c) == group(r + 1, c);
      if (below && c + 1 < order.columns) pairs += group(r, c) == group(r + 1, c + 1);
      if (below && c > 0) pairs += group(r, c) == group(r + 1, c - 1);
    }
  return pairs;
}

}  // namespace heddle::inline v0::systems
