// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of holmes.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/internal/same_node.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/internal/plan_bytes.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/holmes/holmes.hpp>

namespace heddle::inline v0::systems {

namespace impl {

// Divides the layers among stages of these speeds. Nothing if there are more stages than layers.
inline std::optional<std::vector<LayerRange>> holmes_layers(int layers,
                                                            std::span<const double> speeds,
                                                            double alpha, bool even) {
  const int stages = static_cast<int>(speeds.size());
  if (stages > layers) return {};
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<LayerRange> ranges;
  int first = 0;
  for (int s = 0; s < stages; ++s) {
    const int left = layers - first - (stages - s - 1);  // each later stage needs one
    const double share = even ? 1.0 / stages : alpha * speeds[static_cast<std::size_t>(s)] / sum;
    int count = static_cast<int>(std::floor(share * layers + 1e-9));
    if (even) count = layers / stages + (s < layers % stages);
    count = s + 1 == stages ? left : std::clamp(count, 1, left);
    ranges.push_back({first, first + count});
    first += count;
  }
  return ranges;
}

// The samples of `groups` equal groups, as even as can be, in multiples of `unit`.
inline std::vector<std::int64_t> even_samples(std::int64_t samples, std::int64_t groups,
                                              std::int64_t unit) {
  std::vector<std::int64_t> shares;
  for (std::int64_t g = 0; g < groups; ++g)
    shares.push_back(unit * (samples / unit / groups + (g < samples / unit % groups)));
  return shares;
}

// The choices of Holmes for one cluster: how many stages its ranks make.
inline std::vector<int> stage_counts(const Machine& machine, const std::vector<Rank>& cluster,
                                     int tensor) {
  std::vector<int> counts;
  const int ranks = static_cast<int>(cluster.size());
  if (ranks % tensor != 0) return counts;
  // A tensor group is `tensor` ranks one after another.
  for (int r = 0; r < ranks; r += tensor)
    if (!heddle::impl::same_node(machine, cluster[static_cast<std::size_t>(r)],
                                 cluster[static_cast<std::size_t>(r + tensor - 1)]))
      return counts;
  for (int stages = 1; stages * tensor <= ranks; ++stages)
    if (ranks % (stages * tensor) == 0) counts.push_back(stages);
  return counts;
}

}  // namespace impl

HEDDLE_INLINE std::vector<std::vector<Rank>> network_clusters(const Machine& machine) {
  // The nodes, by their first ranks. If the levels give all links, all ranks of a node have those
  // of the first one.
  std::vector<std::vector<Rank>> nodes;
  for (int r = 0; r < machine.ranks(); ++r) {
    if (nodes.empty() || !heddle::impl::same_node(machine, nodes.back().front(), Rank{r}))
      nodes.emplace_back();
    nodes.back().push_back(Rank{r});
  }
  const auto widest = [&](std::size_t a, std::size_t b) {
    if (machine.links().empty()) return machine.link(nodes[a].front(), nodes[b].front()).bandwidth;
    double most = 0;
    for (const Rank from : nodes[a])
      for (const Rank to : nodes[b]) most = std::max(most, machine.link(from, to).bandwidth);
    return most;
  };
  std::vector<double> best(nodes.size());  // by node: the widest link to another node
  for (std::size_t a = 0; a < nodes.size(); ++a)
    for (std::size_t b = 0; b < nodes.size(); ++b)
      if (a != b) best[a] = std::max(best[a], widest(a, b));
  std::vector<std::size_t> cluster(nodes.size(), nodes.size());  // by node: its first node
  std::vector<std::vector<Rank>> clusters;
  for (std::size_t first = 0; first < nodes.size(); ++first) {
    if (cluster[first] != nodes.size()) continue;
    std::vector<std::size_t> reached{first};
    cluster[first] = first;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (std::size_t other = 0; other < nodes.size(); ++other) {
        if (cluster[other] != nodes.size()) continue;
        const double most = std::max(widest(reached[i], other), widest(other, reached[i]));
        if (most < 0.5 * std::max(best[reached[i]], best[other])) continue;
        cluster[other] = first;
        reached.push_back(other);
      }
    std::ranges::sort(reached);
    std::vector<Rank>& members = clusters.emplace_back();
    for (const std::size_t node : reached)
      members.insert(members.end(), nodes[node].begin(), nodes[node].end());
  }
  return clusters;
}

HEDDLE_INLINE plan::FoundPlan Holmes::search(const plan::PlanProblem& problem) const {
  expects(alpha > 0 && std::isfinite(alpha) && buckets >= 1, [&] {
    return ErrorInfo{"heddle::systems::Holmes", "an option is out of range",
                     text("alpha = ", alpha, ", buckets = ", buckets),
                     "use a finite alpha above 0 and at least one bucket"};
  });
  const Machine& machine = problem.machine();
  const std::vector<std::vector<Rank>> clusters = network_clusters(machine);
  plan::FoundPlan found{.planner = std::string(name)};
  std::optional<plan::MemoryShortage> smallest;
  plan::impl::SearchWatch watch(problem, name);
  plan::impl::PlanBytes bytes(problem);
  const auto all_ranks = static_cast<std::uint64_t>(machine.ranks());
  // By first rank, number of ranks, tensor degree and microbatches, which give the samples.
  std::map<std::tuple<std::size_t, std::size_t, int, int>, double> known_speeds;
  const auto consider = [&](Plan plan) {
    if (watch.spend(200 * plan.stages.size() + 20 * all_ranks)) return;
    plan.buckets = 1;
    // The speed of a stage follows from its time for all layers.
    std::vector<double> speeds;
    for (PlanStage& stage : plan.stages) {
      stage.layers = {0, problem.layers()};
      const auto [speed, is_new] = known_speeds.try_emplace(
          {+stage.ranks.front(), stage.ranks.size(), stage.tensor, plan.microbatches});
      if (is_new) {
        watch.spend(30 * static_cast<std::uint64_t>(problem.layers()));
        const plan::StagePrice alone =
            plan::stage_prices(
                {.stages = {stage}, .microbatches = plan.microbatches, .schedule = plan.schedule},
                problem)
                .front();
        speed->second = 1 / (alone.forward + alone.backward);
      }
      speeds.push_back(speed->second);
    }
    const auto layers = impl::holmes_layers(problem.layers(), speeds, alpha, even);
    if (!layers) return;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) plan.stages[s].layers = (*layers)[s];
    ++found.candidates;
    if (const auto shortage = bytes.shortage(plan)) {
      if (!smallest || shortage->needed < smallest->needed) smallest = shortage;
      return;
    }
    for (const int each : {1, buckets}) {
      plan.buckets = each;
      // Buckets need a little more memory.
      if (each > 1 && (plan.bucket_count() == 1 || bytes.shortage(plan))) continue;
      watch.spend(static_cast<std::uint64_t>(each) * (500 * plan.stages.size() + 20 * all_ranks));
      const Seconds time = formula(plan, problem);
      watch.note(found.candidates, found.plan ? std::min(time, found.formula) : time);
      if (found.plan && !(time < found.formula)) continue;
      found.formula = time;
      found.plan = plan;
    }
  };
  // Chooses the stages of cluster after cluster; `equal` of each, if it is not 0.
  const auto extend = [&](const auto& self, Plan& plan, std::size_t cluster, int tensor,
                          int equal) -> void {
    if (watch.spend(10)) return;
    if (cluster == clusters.size()) return consider(plan);
    const std::int64_t samples = problem.options().batch / plan.microbatches;
    const std::int64_t unit = problem.options().sample_unit(tensor);
    if (samples % unit != 0) return;
    for (const int stages : impl::stage_counts(machine, clusters[cluster], tensor)) {
      if (equal != 0 && stages != equal) continue;
      const std::size_t ranks = clusters[cluster].size() / static_cast<std::size_t>(stages);
      const auto groups = static_cast<std::int64_t>(ranks) / tensor;
      if (groups > samples / unit) continue;
      if (plan.stages.size() + static_cast<std::size_t>(stages) >
          static_cast<std::size_t>(problem.layers()))
        break;
      for (std::size_t s = 0; s < static_cast<std::size_t>(stages); ++s) {
        const auto begin = clusters[cluster].begin() + static_cast<std::ptrdiff_t>(s * ranks);
        plan.stages.push_back({.layers = {},
                               .ranks = {begin, begin + static_cast<std::ptrdiff_t>(ranks)},
                               .samples = impl::even_samples(samples, groups, unit),
                               .tensor = tensor});
      }
      self(self, plan, cluster + 1, tensor, equal);
      plan.stages.resize(plan.stages.size() - static_cast<std::size_t>(stages));
    }
  };
  constexpr double many = 10'000;
  std::size_t parts =
      problem.options().tensor_degrees.size() * problem.options().microbatches.size();
  for (const int tensor : problem.options().tensor_degrees)
    for (const int microbatches : problem.options().microbatches) {
      watch.begin_part(parts--);
      Plan plan{.stages = {},
                .microbatches = microbatches,
                .schedule = problem.options().schedule,
                .sharding = "zero1"};
      // If all choices are very many, equal ones come first.
      double choices = 1;
      for (const std::vector<Rank>& cluster : clusters)
        choices *= static_cast<double>(impl::stage_counts(machine, cluster, tensor).size());
      if (choices > many)
        for (const int stages : impl::stage_counts(machine, clusters.front(), tensor))
          extend(extend, plan, 0, tensor, stages);
      extend(extend, plan, 0, tensor, 0);
    }
  found.end = watch.result();
  if (found.plan) return found;
  found.shortage = smallest;
  if (smallest)
    found.infeasible = text("rank ", smallest->rank, " needs ", smallest->needed, " bytes and has ",
                            smallest->capacity, " in the smallest plan");
  else if (found.end == plan::SearchEnd::cut_off)
    found.infeasible = "cut off before it found a plan";
  else
    found.infeasible =
        text("no division gives each of ", clusters.size(),
             " clusters of networks a stage and each group of ranks a sample: ", machine.ranks(),
             " ranks, ", problem.layers(), " layers, ", problem.options().batch, " samples");
  return found;
}

HEDDLE_INLINE Seconds Holmes::formula(const Plan& plan, const plan::PlanProblem& problem) const {
  Seconds longest = 0;
  Seconds all = 0;
  Seconds drain = 0;   // from the last backward of a stage to that of stage 0
  Seconds behind = 0;  // what follows the last backward of stage 0
  const std::vector<plan::StagePrice> prices = plan::stage_prices(plan, problem);
  for (std::size_t s = 0; s < prices.size(); ++s) {
    const plan::StagePrice& price = prices[s];
    const Seconds work = price.forward + price.backward;
    const Seconds message = std::max(price.send_forward, price.send_backward);
    longest = std::max(longest, work + message);
    all += work + message;
    behind = std::max(behind, plan::behind_backward(plan, plan.stages[s], problem) - drain);
    drain += price.backward + price.send_backward;
  }
  return (plan.microbatches - 1) * longest + all + behind;
}

}  // namespace heddle::inline v0::systems
