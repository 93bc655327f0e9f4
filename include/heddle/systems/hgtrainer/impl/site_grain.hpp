// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SiteBounds: where a pipeline that passes sites in an order may be cut, and how fast it can be.
/// SiteGrain: the blocks of ranks and layers of which HGTrainer makes stages.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/systems/hgtrainer/impl/site_orders.hpp>

namespace heddle::inline v0::systems::impl {

/// The windows of the cuts between sites, and lower bounds, for one order of sites.
struct SiteBounds {
  double speed = 0;            ///< the sum over the sites of the order
  double fastest = 0;          ///< the speed of the fastest one
  Seconds longest_cut = 0;     ///< the messages of the slowest cut take at least this time
  Seconds cuts = 0;            ///< the sum over all cuts
  std::vector<int> low, high;  ///< by place in the order: the layers of the cut in front of it

  /// Finds the windows of the cuts, and the lower bounds of an order.
  void find(const SiteOrders& sites, const std::vector<std::size_t>& order, std::int64_t samples,
            int window, const std::vector<std::optional<Codec>>& codecs,
            const plan::PlanProblem& problem) {
    const int layers = problem.layers();
    const std::size_t count = order.size();
    double sum = 0;
    speed = fastest = 0;
    for (const std::size_t site : order) {
      speed += sites.speed(site);
      fastest = std::max(fastest, sites.speed(site));
    }
    low.assign(count + 1, 0);
    high.assign(count + 1, 0);
    low[count] = high[count] = layers;
    longest_cut = cuts = 0;
    for (std::size_t p = 1; p < count; ++p) {
      sum += sites.speed(order[p - 1]);
      const Seconds wanted = sites.work(layers) * sum / speed;
      int nearest = 0;
      for (int l = 1; l <= layers; ++l)
        if (std::abs(sites.work(l) - wanted) < std::abs(sites.work(nearest) - wanted)) nearest = l;
      const int first = static_cast<int>(p), last = layers - static_cast<int>(count - p);
      low[p] = std::clamp(nearest - window, first, last);
      high[p] = std::clamp(nearest + window, first, last);
      add_cut_bound(p, sites, order, samples, codecs, problem);
    }
  }

 private:
  /// The messages at a cut take at least as long as its fewest bytes over all links between its
  /// ranks, and over the ports and lines that all of them pass.
  void add_cut_bound(std::size_t p, const SiteOrders& sites, const std::vector<std::size_t>& order,
                     std::int64_t samples, const std::vector<std::optional<Codec>>& codecs,
                     const plan::PlanProblem& problem) {
    const Machine& machine = problem.machine();
    double bandwidth = 0, bytes = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> passes(machine.shared().size(), 0);  // pairs of ranks, by resource
    std::size_t pairs = 0;
    for (const Rank from : sites.sites()[order[p - 1]]) {
      for (const Rank to : sites.sites()[order[p]]) {
        bandwidth += machine.link(from, to).bandwidth;
        ++pairs;
        if (passes.empty()) continue;
        const Machine::Route route = machine.route(from, to, Lane{0});
        for (const auto* way : {&route.out, &route.in})
          for (const SharedId id : *way) ++passes[+id];
      }
    }
    for (std::size_t i = 0; i < passes.size(); ++i)
      if (passes[i] == pairs) bandwidth = std::min(bandwidth, machine.shared()[i].bandwidth);
    for (int l = low[p]; l <= high[p]; ++l)
      bytes = std::min(bytes, static_cast<double>(problem.profile().input_of(l)));
    double part = std::numeric_limits<double>::infinity();
    const auto element = static_cast<double>(size_of(problem.options().activation));
    for (const auto& codec : codecs)
      part = std::min(part, codec ? static_cast<double>(size_of(codec->type)) / element : 1);
    const Seconds time = static_cast<double>(samples) * bytes * part / bandwidth;
    longest_cut = std::max(longest_cut, time);
    cuts += time;
  }
};

/// The blocks of which stages are made. 1 and 1: all stages are tried.
struct SiteGrain {
  std::size_t ranks = 1, layers = 1;
};

/// The costs of a search of one order.
struct SiteEffort {
  double steps = 0, bytes = 0;
};

/// Calls `visit(size)` for the numbers of ranks of the stages that begin with rank `first` of
/// `count` and have a tensor degree.
template <class Visit>
void each_size(const SiteGrain& grain, std::size_t count, std::size_t first, int degree,
               Visit&& visit) {
  const auto group = static_cast<std::size_t>(degree);
  const std::size_t step = std::lcm(group, grain.ranks), rest = count - first;
  for (std::size_t size = step; size <= rest; size += step) visit(size);
  if (rest % step != 0 && rest % group == 0) visit(rest);  // with what remains of a block
}

/// Returns the least effort of a search in which sites have `sizes` ranks.
[[nodiscard]] inline SiteEffort site_effort(const SiteGrain& grain,
                                            const std::vector<std::size_t>& sizes,
                                            const SiteBounds& bounds, std::int64_t samples,
                                            const plan::PlanProblem& problem) {
  constexpr double kept = 2, step = 5;  // partial plans of a front, and steps for each
  const double layers = problem.layers() + 1;
  SiteEffort effort;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    const std::size_t count = sizes[p];
    std::vector<double> shapes(count + 1, 0);  // by first rank
    double pairs = 0, all = 0;
    for (std::size_t first = count; first-- > 0;) {
      if (first % grain.ranks != 0) continue;
      for (const int degree : problem.options().tensor_degrees)
        each_size(grain, count, first, degree, [&](std::size_t size) {
          if (std::cmp_greater(size / static_cast<std::size_t>(degree), samples)) return;
          ++shapes[first];
          pairs += shapes[first + size];
        });
      all += shapes[first];
    }
    const double cuts =
        1 + (bounds.high[p + 1] - bounds.low[p]) / static_cast<double>(grain.layers);
    effort.steps += (all + pairs * cuts) * cuts / 2 * kept * step;
    effort.bytes += all * layers * layers * sizeof(Seconds);
  }
  return effort;
}

/// Returns the finest grain whose search takes about `steps` steps and half of the bytes of the
/// budget. A site has at least 8 blocks of ranks; larger blocks of layers are the last resort.
[[nodiscard]] inline SiteGrain choose_grain(const std::vector<std::size_t>& sizes,
                                            const SiteBounds& bounds, std::int64_t samples,
                                            double steps, const plan::PlanProblem& problem) {
  constexpr std::size_t blocks = 8;
  const std::size_t most = std::max(std::ranges::max(sizes), blocks);
  const double bytes = 0.5 * static_cast<double>(problem.options().budget.bytes);
  SiteGrain grain;
  for (; std::cmp_less(grain.layers, problem.layers()); grain.layers *= 2)
    for (grain.ranks = 1; grain.ranks * blocks <= most; grain.ranks *= 2)
      if (const SiteEffort effort = site_effort(grain, sizes, bounds, samples, problem);
          4 * effort.steps <= steps && effort.bytes <= bytes)
        return grain;
  return grain;
}

}  // namespace heddle::inline v0::systems::impl
