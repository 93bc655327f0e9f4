// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// LPD: the order of the cells of an image in groups, and the steps of its decoding.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/lpd/grid_order.hpp>
#include <heddle/systems/lpd/group_decoding.hpp>

#include "comparison.hpp"
#include "support/step_costs.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::test::StepCosts;

constexpr std::uint64_t lpd_orders = 200;

/// The orders of one setting of LPD.
struct LpdSetting {
  int side;
  int steps;
  int repulsion;
};

/// What the orders of a setting have.
struct LpdOrders {
  std::uint64_t permutations = 0;  ///< orders that have every cell once
  std::uint64_t apart = 0;         ///< orders whose near cells keep their distance
  double near = 0;                 ///< mean share of cells that are chosen for their proximity
  double pairs = 0;                ///< mean number of neighbours in a group
};

LpdOrders look_at(const LpdSetting& setting) {
  const auto sizes = hd::systems::cosine_group_sizes(setting.side * setting.side, setting.steps);
  LpdOrders result;
  for (std::uint64_t seed = 0; seed < lpd_orders; ++seed) {
    const hd::systems::GridOrder order = hd::systems::locality_order(
        setting.side, setting.side, sizes, {.repulsion = setting.repulsion, .seed = seed});
    std::vector<std::int64_t> sorted = order.cells;
    std::sort(sorted.begin(), sorted.end());
    bool all = sorted.size() == static_cast<std::size_t>(setting.side * setting.side);
    for (std::size_t i = 0; i < sorted.size(); ++i)
      all = all && sorted[i] == static_cast<std::int64_t>(i);
    result.permutations += all ? 1u : 0u;
    bool apart = true;
    std::int64_t near = 0;
    for (const hd::systems::GridOrder::Group& group : order.groups) {
      near += group.near - group.begin;
      for (std::int64_t a = group.begin; a < group.near; ++a)
        for (std::int64_t b = group.begin; b < a; ++b) {
          const std::int64_t one = order.cells[static_cast<std::size_t>(a)];
          const std::int64_t other = order.cells[static_cast<std::size_t>(b)];
          const std::int64_t down = std::abs(one / setting.side - other / setting.side);
          const std::int64_t right = std::abs(one % setting.side - other % setting.side);
          apart = apart && std::max(down, right) > setting.repulsion;
        }
    }
    result.apart += apart ? 1u : 0u;
    result.near += static_cast<double>(near) / static_cast<double>(sorted.size() * lpd_orders);
    result.pairs += static_cast<double>(hd::systems::adjacent_pairs(order)) / lpd_orders;
  }
  return result;
}

/// Returns the number of neighbours in a group that a random order has on average: a pair of cells
/// is in one group with the same probability for all pairs.
double pairs_of_random(const LpdSetting& setting) {
  const double cells = setting.side * setting.side;
  double together = 0;
  for (const std::int64_t size :
       hd::systems::cosine_group_sizes(setting.side * setting.side, setting.steps))
    together += static_cast<double>(size * (size - 1));
  const double side = setting.side;
  const double pairs = 2 * side * (side - 1) + 2 * (side - 1) * (side - 1);
  return pairs * together / (cells * (cells - 1));
}

/// Returns the number of neighbours in a group if the groups follow the rows.
std::int64_t pairs_of_raster(const LpdSetting& setting) {
  std::vector<std::size_t> group;
  for (const std::int64_t size :
       hd::systems::cosine_group_sizes(setting.side * setting.side, setting.steps))
    group.insert(group.end(), static_cast<std::size_t>(size), group.empty() ? 0 : group.back() + 1);
  std::int64_t pairs = 0;
  const std::int64_t cells = setting.side * setting.side;
  for (std::int64_t a = 0; a < cells; ++a)
    for (std::int64_t b = 0; b < a; ++b)
      if (std::abs(a / setting.side - b / setting.side) <= 1 &&
          std::abs(a % setting.side - b % setting.side) <= 1)
        pairs += group[static_cast<std::size_t>(a)] == group[static_cast<std::size_t>(b)];
  return pairs;
}

}  // namespace

std::vector<Comparison> lpd() {
  std::vector<Comparison> lines;
  for (const LpdSetting setting : {LpdSetting{16, 20, 2}, LpdSetting{32, 48, 4}}) {
    const int cells = setting.side * setting.side;
    const std::string name = hd::text(setting.side, " x ", setting.side, " cells, ", setting.steps,
                                      " steps, repulsion ", setting.repulsion);
    const LpdOrders found = look_at(setting);
    lines.push_back({hd::text(name,
                              ": orders that have every cell once, and that keep the cells of "
                              "a group apart unless they fill it"),
                     "", hd::text(found.permutations, " and ", found.apart, " of ", lpd_orders),
                     "all",
                     verdict(found.permutations == lpd_orders && found.apart == lpd_orders)});
    const double random = pairs_of_random(setting);
    const auto raster = static_cast<double>(pairs_of_raster(setting));
    lines.push_back({hd::text(name, ": neighbours in one group, mean"), "",
                     hd::text(found.pairs, "; random order ", random, ", rows ", raster, "; ",
                              100 * found.near, "% of the cells chosen for their proximity"),
                     "at most 0.4 of random and 0.1 of rows",
                     verdict(found.pairs <= 0.4 * random && found.pairs <= 0.1 * raster)});
    const auto gain = [&](double each) {
      const auto time = [&](int steps) {
        return hd::simulate(
                   hd::systems::group_decoding(hd::systems::cosine_group_sizes(cells, steps)),
                   StepCosts<double>{1, each})
            .makespan();
      };
      return time(cells) / time(setting.steps);
    };
    lines.push_back({hd::text(name,
                              ": simulated speed-up over one cell a step, if a step takes as "
                              "long for any number of cells, and if each adds 1%"),
                     setting.side == 16 ? "256 to 20 steps" : "1024 to 48 steps",
                     hd::text(gain(0), "x and ", gain(0.01), 'x'), "none",
                     not_judged("cells / steps, and 1.01 cells / (steps + 0.01 cells)")});
  }
  lines.push_back({"latency and quality of the trained models", "3.4x less latency; FID 1.92", "",
                   "none", "not reproducible: it needs the models and a GPU"});
  return lines;
}

}  // namespace report
