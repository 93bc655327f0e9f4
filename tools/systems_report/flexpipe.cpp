// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// FlexPipe against Chimera on a grid of models with two branches, simulated. Grid and costs are
/// ours: of the paper only the abstract was at hand.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/flexpipe/flexpipe.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

/// A stage of both branches together takes 100 forward, twice that backward, and keeps 100 of
/// memory for a microbatch: so many parts are percents.
constexpr std::int64_t whole = 100;

/// Costs per stage, and latency on every link.
class BranchCosts {
 public:
  using Time = std::int64_t;

  BranchCosts(std::vector<std::int64_t> forward, std::int64_t latency)
      : m_forward(std::move(forward)), m_latency(latency) {}

  [[nodiscard]] Time time(const hd::Schedule& schedule, hd::ActionId id) const {
    const hd::Action& action = schedule[id];
    if (action.kind != hd::Kind::forward && action.kind != hd::Kind::backward) return 0;
    return m_forward[+action.stage] * (action.kind == hd::Kind::forward ? 1 : 2);
  }
  [[nodiscard]] hd::Transfer<Time> transfer(const hd::Schedule&, hd::ActionId) const {
    return {0, m_latency};
  }

 private:
  std::vector<std::int64_t> m_forward;
  std::int64_t m_latency;
};

struct Cell {
  int ranks;
  int microbatches;
  std::int64_t latency;
  std::int64_t share;  ///< of the first branch, in percent
  bool interacts;      ///< every quarter of the ranks, besides the joint loss
};

std::vector<Cell> grid() {
  std::vector<Cell> cells;
  for (const int d : {4, 8, 16})
    for (const int n : {d, 2 * d})
      for (const std::int64_t latency : {std::int64_t{0}, whole / 10})
        for (const std::int64_t share : {50, 60, 70})
          for (const bool interacts : {false, true})
            cells.push_back({d, n, latency, share, interacts});
  return cells;
}

/// The coordinator for one cell, whose ranks may keep `memory` times the activations of as many
/// whole stages as there are ranks, which is what Chimera keeps. The lighter branch hands its
/// output to the heavier one.
hd::plan::Coordinated<std::int64_t> flexpipe(const Cell& cell, double memory) {
  hd::schedule::FlexpipeOptions options{.ranks = cell.ranks, .microbatches = cell.microbatches};
  if (cell.interacts)
    for (int s = 0; s < cell.ranks; s += cell.ranks / 4)
      options.interactions.push_back(
          {.from_branch = 1, .from_stage = s, .to_branch = 0, .to_stage = s});
  std::vector<std::int64_t> each(static_cast<std::size_t>(cell.ranks), cell.share);
  each.resize(2 * each.size(), whole - cell.share);
  const auto cap = static_cast<std::int64_t>(memory * static_cast<double>(cell.ranks * whole));
  return hd::systems::flexpipe(options, BranchCosts(each, cell.latency), cap, each);
}

/// A stage of Chimera holds one stage of either branch.
BranchCosts chimera_costs(const Cell& cell) {
  return {std::vector<std::int64_t>(static_cast<std::size_t>(cell.ranks), whole), cell.latency};
}
hd::Orders chimera_orders(const Cell& cell) {
  return hd::schedule::chimera(cell.ranks, cell.microbatches);
}

/// The mean and the ends of a ratio over cells.
struct Ratios {
  double sum = 0;
  double least = 1e300;
  double most = 0;
  int count = 0;

  void add(std::int64_t theirs, std::int64_t ours) {
    const double ratio = static_cast<double>(theirs) / static_cast<double>(ours);
    sum += ratio;
    least = std::min(least, ratio);
    most = std::max(most, ratio);
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / count; }
  [[nodiscard]] std::string text() const {
    return hd::text("mean ", mean(), ", ", least, " to ", most, " on ", count, " cells");
  }
};

/// Both with so much memory.
struct Compared {
  Ratios slots;            ///< over Chimera in the order of its slots, also where FlexPipe needed
                           ///< more memory
  Ratios best;             ///< over the best of Chimera's orders
  int raised = 0;          ///< cells for which FlexPipe needed more
  std::int64_t extra = 0;  ///< the most that it needed more, in percent of a whole stage
  int tried = 0, dead_ends = 0;
};

Compared compare(double memory) {
  Compared result;
  for (const Cell& cell : grid()) {
    const auto ours = flexpipe(cell, memory);
    result.tried += ours.tried;
    result.dead_ends += ours.dead_ends;
    const hd::Orders chimera = chimera_orders(cell);
    const BranchCosts costs = chimera_costs(cell);
    result.slots.add(hd::simulate(hd::weave(chimera), costs).makespan(), ours.makespan);
    if (ours.extra > 0) {
      ++result.raised;
      result.extra = std::max(result.extra, ours.extra);
      continue;
    }
    const auto cap = static_cast<std::int64_t>(memory * cell.ranks);
    result.best.add(hd::plan::coordinate(chimera, costs, {.cap = cap}).makespan, ours.makespan);
  }
  return result;
}

std::string fall_backs(const Compared& compared) {
  if (compared.raised == 0) return "no cell needs more memory";
  return hd::text(compared.raised, " of all cells need more memory, at most ",
                  static_cast<double>(compared.extra) / whole, " activations of a whole stage");
}

/// Bytes of weights on the rank that has most, with so many for each stage.
hd::Bytes weights(const hd::Orders& orders, hd::Bytes stage) {
  const hd::Schedule schedule = hd::weave(orders, {.parameters = stage});
  std::vector<hd::Bytes> sum(static_cast<std::size_t>(schedule.ranks()), 0);
  for (const hd::Buffer& buffer : schedule.buffers())
    if (schedule[buffer.label] == hd::role::weights) sum[+buffer.rank] += buffer.bytes;
  return *std::max_element(sum.begin(), sum.end());
}

}  // namespace

std::vector<Comparison> flexpipe() {
  const Compared equal = compare(1);
  const Compared more = compare(1.5);
  const Compared less = compare(0.5);
  const Cell plain{8, 8, 0, 50, false};
  const auto bound = flexpipe(plain, 1).makespan;
  const auto ours = weights(hd::schedule::flexpipe(8, 8), 1);
  const auto theirs = weights(chimera_orders(plain), 2);
  const char* grid_of = "72 models of two branches, D 4, 8, 16 ranks, N D or 2D";
  return {
      {hd::text("simulated speed-up over Chimera in the order of its slots, ", grid_of,
                ", both with 1.5D live activations"),
       "+20%", hd::text(more.slots.text(), "; ", fall_backs(more)), "mean at least 1.15",
       verdict(more.slots.mean() >= 1.15)},
      {"the same over the best of Chimera's orders", "(no figure)", more.best.text(),
       "none below 0.98", verdict(more.best.least >= 0.98)},
      {"simulated speed-up over the best of Chimera's orders, both with D live activations", "+20%",
       hd::text(equal.best.text(), "; ", fall_backs(equal), "; ", equal.dead_ends, " of ",
                equal.tried, " lists were dead ends"),
       "mean at least 1.10", verdict(equal.best.mean() >= 1.10)},
      {"FlexPipe with half of that memory, over Chimera in the order of its slots", "(no figure)",
       hd::text(less.slots.text(), "; ", fall_backs(less)), "no cell needs more memory",
       verdict(less.raised == 0)},
      {"simulated step for D=N=8, B=2F, two equal branches", "(no figure)",
       hd::text(static_cast<double>(bound) / whole), "N(F+B) + (D-2)(F+B)/4 = 28.5",
       verdict(bound * 2 == 57 * whole)},
      {"weights on a rank, as a share of Chimera's", "1/2", hd::text(ours, "/", theirs), "1/2",
       verdict(2 * ours == theirs)},
  };
}

}  // namespace report
