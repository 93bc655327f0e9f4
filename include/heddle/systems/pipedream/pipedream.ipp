// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of pipedream.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/plan/internal/stage_table.hpp>
#include <heddle/systems/pipedream/impl/pipedream_levels.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// PipeDream's formula for one plan.
class PipeDreamPrice {
 public:
  PipeDreamPrice(const Plan& plan, const plan::PlanProblem& problem)
      : m_plan(&plan),
        m_problem(&problem),
        m_levels(problem.machine()),
        m_prices(plan::stage_prices(plan, problem)) {}

  [[nodiscard]] Seconds step() const {
    return m_plan->microbatches * part(m_levels.top(), 0, m_plan->stages.size());
  }

 private:
  /// Returns the groups of a level that have ranks of a stage.
  [[nodiscard]] std::vector<std::size_t> groups(std::size_t level, std::size_t stage) const {
    std::vector<std::size_t> found;
    for (const Rank rank : m_plan->stages[stage].ranks)
      found.push_back(m_levels.group_of[level][+rank]);
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  /// Returns the group of a level that holds a group of the level below.
  [[nodiscard]] std::size_t parent(std::size_t level, std::size_t group) const {
    const std::vector<std::size_t>& below = m_levels.group_of[level - 1];
    const auto at = std::ranges::find(below, group) - below.begin();
    return m_levels.group_of[level][static_cast<std::size_t>(at)];
  }

  /// Returns the time of the stages from `first` up to but without `last`, which have the same
  /// groups of a level.
  [[nodiscard]] Seconds part(std::size_t level, std::size_t first, std::size_t last) const {
    Seconds longest = 0;
    if (level == 0) {
      for (std::size_t s = first; s < last; ++s)
        longest = std::max(longest, m_prices[s].forward + m_prices[s].backward);
      return longest;
    }
    const plan::Profile& profile = m_problem->profile();
    for (std::size_t s = first; s < last;) {
      const std::vector<std::size_t> inside = groups(level - 1, s);
      std::size_t end = s + 1;
      while (end < last && groups(level - 1, end) == inside) ++end;
      std::map<std::size_t, std::size_t> by_group;
      std::size_t m = 0;
      for (const std::size_t group : inside) m = std::max(m, ++by_group[parent(level, group)]);
      double weights = 0;
      for (std::size_t i = s; i < end; ++i)
        weights += static_cast<double>(
            profile.parameters(m_plan->stages[i].layers, m_plan->stages[i].tensor));
      const double copies = static_cast<double>(inside.size()) / static_cast<double>(m);
      longest =
          std::max(longest, part(level - 1, s, end) + m_levels.sum(level, m, 1, weights) / copies);
      if (s != first) {
        const double bytes = static_cast<double>(profile.input_of(m_plan->stages[s].layers.first)) *
                             static_cast<double>(m_plan->microbatch_samples());
        longest = std::max(longest, m_levels.transfer(level, inside.size(), bytes));
      }
      s = end;
    }
    return longest;
  }

  const Plan* m_plan;
  const plan::PlanProblem* m_problem;
  PipeDreamLevels m_levels;
  std::vector<plan::StagePrice> m_prices;
};

/// PipeDream's search for one number of microbatches.
class PipeDreamSearch {
 public:
  PipeDreamSearch(const plan::PlanProblem& problem, int microbatches, std::size_t most_candidates,
                  plan::impl::PlanTracker& best)
      : m_problem(&problem),
        m_microbatches(microbatches),
        m_levels(problem.machine()),
        m_table(problem, problem.options().batch / microbatches),
        m_layers(static_cast<std::size_t>(problem.layers())),
        m_most(most_candidates),
        m_best(&best),
        m_watch(best.watch()) {
    for (int layer = 0; layer <= problem.layers(); ++layer) {
      m_weights.push_back(static_cast<double>(problem.profile().parameters({0, layer})));
      if (layer < problem.layers())
        m_inputs.push_back(static_cast<double>(problem.profile().input_of(layer)) *
                           static_cast<double>(m_table.samples()));
    }
  }

  void run() {
    const std::size_t whole = section(m_levels.top(), {0});
    if (m_watch.ended()) return;  // without the tables nothing can be placed
    const Seconds optimum = m_sections[whole].time(0, m_layers);
    const auto pass = [&](Seconds limit, bool any, std::size_t most) {
      m_limit = limit;
      m_any = any;
      m_stop = m_best->candidates() + most;
      if (!m_watch.ended())
        place(whole, 0, m_layers, 0, 0, [this](Seconds longest) { finish(longest); });
      if (m_best->candidates() >= m_stop) m_watch.cut_off();
    };
    pass(optimum * (1 + 1e-9), false, m_most / 4);
    if (m_best->price() <= m_microbatches * optimum * (1 + 1e-9)) return;
    pass(std::numeric_limits<Seconds>::infinity(), false, m_most);
    if (!m_best->found()) pass(std::numeric_limits<Seconds>::infinity(), true, m_most / 20);
  }

 private:
  /// Groups of a level that are divided alike.
  struct Section {
    std::size_t level = 0;
    std::vector<std::size_t> groups;
    std::size_t width = 1;  // the groups of the level below in each of them
    std::size_t layers = 0;
    std::optional<plan::impl::Replicas> replicas = {};  // on level 0
    std::vector<Seconds> times = {};                    // the least, by first and last layer
    std::vector<Seconds> behind = {};      // the least, by last and first layer, and position
    std::vector<std::size_t> inside = {};  // sections, by position and number of groups

    [[nodiscard]] Seconds time(std::size_t first, std::size_t last) const {
      return times[first * (layers + 1) + last];
    }
    [[nodiscard]] std::size_t at(std::size_t last, std::size_t first, std::size_t position) const {
      return (last * (layers + 1) + first) * (width + 1) + position;
    }
    [[nodiscard]] std::size_t part(std::size_t position, std::size_t m) const {
      return inside[position * width + m - 1];
    }
  };

  /// Returns the number of a section, with its tables.
  std::size_t section(std::size_t level, const std::vector<std::size_t>& groups) {
    const auto [known, is_new] = m_ids.try_emplace({level, groups}, m_sections.size());
    if (!is_new) return known->second;
    const std::size_t id = m_sections.size();
    m_sections.push_back({.level = level, .groups = groups, .layers = m_layers});
    if (level == 0)
      fill_rank(m_sections[id]);
    else
      fill(id);
    return id;
  }

  void fill_rank(Section& section) {
    std::vector<Rank> ranks;
    for (const std::size_t rank : section.groups) ranks.push_back(Rank{rank});
    section.times.assign((m_layers + 1) * (m_layers + 1), std::numeric_limits<Seconds>::infinity());
    m_watch.spend(100 + 10 * ranks.size() + section.times.size());
    m_watch.hold(section.times.size() * sizeof(Seconds));
    if (static_cast<std::int64_t>(ranks.size()) > m_table.samples()) return;
    section.replicas = m_table.replicas(std::move(ranks));
    for (std::size_t i = 0; i < m_layers; ++i)
      for (std::size_t j = i + 1; j <= m_layers; ++j) {
        const plan::impl::StageTime time = m_table.time(range(i, j), *section.replicas);
        section.times[i * (m_layers + 1) + j] = time.forward + time.backward;
      }
  }

  /// Returns the kinds of all ranks of a section, and their groups: sections that have the same
  /// have the same tables, though of other ranks.
  [[nodiscard]] std::vector<std::size_t> pattern(const Section& section) const {
    const std::vector<std::size_t>& group_of = m_levels.group_of[section.level];
    std::vector<std::size_t> all{section.level, section.groups.size()};
    for (const std::size_t group : section.groups) {
      const auto first =
          static_cast<std::size_t>(std::ranges::find(group_of, group) - group_of.begin());
      for (std::size_t r = first; r < group_of.size() && group_of[r] == group; ++r) {
        all.push_back(m_table.kind(Rank{r}));
        for (std::size_t l = 0; l < section.level; ++l)
          all.push_back(m_levels.group_of[l][r] - m_levels.group_of[l][first]);
      }
    }
    return all;
  }

  void fill(std::size_t id) {
    const std::size_t level = m_sections[id].level;
    const std::vector<std::size_t> groups = m_sections[id].groups;
    const auto below = [&](std::size_t group) -> const std::vector<std::size_t>& {
      return m_levels.inside[level][group];
    };
    std::size_t width = below(groups.front()).size();
    for (const std::size_t group : groups) width = std::min(width, below(group).size());
    m_sections[id].width = width;
    std::vector<std::size_t> inside(width * width);
    for (std::size_t position = 0; position < width; ++position)
      for (std::size_t m = 1; position + m <= width; ++m) {
        std::vector<std::size_t> parts;
        for (const std::size_t group : groups)
          for (std::size_t q = position; q < position + m; ++q) parts.push_back(below(group)[q]);
        if (m_watch.spend(50 + 2 * parts.size()) || m_watch.hold(16 * parts.size())) return;
        inside[position * width + m - 1] = section(level - 1, parts);
      }
    m_sections[id].inside = std::move(inside);
    if (m_watch.ended()) return;
    const auto [known, is_new] = m_patterns.try_emplace(pattern(m_sections[id]), id);
    if (is_new) {
      fill_tables(m_sections[id]);
    } else {
      m_sections[id].times = m_sections[known->second].times;
      m_sections[id].behind = m_sections[known->second].behind;
    }
  }

  /// The dynamic programme of a level.
  void fill_tables(Section& section) {
    constexpr Seconds never = std::numeric_limits<Seconds>::infinity();
    const std::size_t width = section.width, n = m_layers;
    section.times.assign((n + 1) * (n + 1), never);
    if (m_watch.hold((n + 1) * (n + 1) * (width + 2) * sizeof(Seconds))) return;
    section.behind.assign((n + 1) * (n + 1) * (width + 1), never);
    for (std::size_t last = 1; last <= n; ++last) {
      for (std::size_t p = 0; p <= width; ++p) section.behind[section.at(last, last, p)] = 0;
      for (std::size_t first = last; first-- > 0;) {
        const auto least = [&](std::size_t position, bool receives) {
          Seconds best = never;
          for (std::size_t m = 1; position + m <= width && !m_watch.ended(); ++m) {
            m_best->count(last - first);
            std::size_t end = first + 1;
            for (; end <= last; ++end) {
              const Seconds time = own(section, position, m, first, end, receives);
              if (time >= best) break;  // and more layers take longer
              best = std::min(best,
                              std::max(section.behind[section.at(last, end, position + m)], time));
            }
            m_watch.spend(1 + (end - first) / 2);
          }
          return best;
        };
        for (std::size_t p = 0; p < width; ++p)
          section.behind[section.at(last, first, p)] = least(p, true);
        section.times[first * (n + 1) + last] = least(0, false);
      }
    }
  }

  /// Returns the time of a part: its computation and sum of gradients, or its messages.
  [[nodiscard]] Seconds own(const Section& section, std::size_t position, std::size_t m,
                            std::size_t first, std::size_t last, bool receives) const {
    const Seconds inside = m_sections[section.part(position, m)].time(first, last);
    const Seconds time = inside + sum(section, m, first, last);
    if (!receives) return time;
    return std::max(time,
                    m_levels.transfer(section.level, m * section.groups.size(), m_inputs[first]));
  }
  [[nodiscard]] Seconds sum(const Section& section, std::size_t m, std::size_t first,
                            std::size_t last) const {
    return m_levels.sum(section.level, m, section.groups.size(),
                        m_weights[last] - m_weights[first]);
  }

  using Then = std::function<void(Seconds)>;

  /// Returns true if a part that takes at least `time` cannot be in the best plan.
  [[nodiscard]] bool too_slow(Seconds time) const {
    const Seconds limit = std::min(m_limit, m_best->price() / m_microbatches);
    return m_best->candidates() >= m_stop || m_watch.ended() || !(time < limit * (1 - 1e-13));
  }

  /// Tries all ways to divide layers over a section, and calls `then` with the longest time so far.
  /// `added` is what the sums of gradients of the levels above add to each time of this part.
  void place(std::size_t id, std::size_t first, std::size_t last, Seconds added, Seconds longest,
             const Then& then) {
    if (m_sections[id].level != 0) {
      row(id, first, last, 0, added, longest, then);
      return;
    }
    const plan::impl::Replicas& replicas = *m_sections[id].replicas;
    if (!m_any && !m_table.may_fit(range(first, last), replicas)) return;
    m_best->count();
    m_stages.push_back(plan::impl::StageTable::stage(range(first, last), replicas));
    then(std::max(longest, m_sections[id].time(first, last) + added));
    m_stages.pop_back();
  }

  /// The same for the groups of a section from `position` on.
  void row(std::size_t id, std::size_t first, std::size_t last, std::size_t position, Seconds added,
           Seconds longest, const Then& then) {
    const std::size_t width = m_sections[id].width;
    for (std::size_t m = width - position; m >= 1; --m) {
      if (m_watch.spend(2 * (last - first))) return;
      for (std::size_t end = last; end > first; --end) {
        const Section& section = m_sections[id];
        const Seconds time = own(section, position, m, first, end, position != 0) + added;
        const Seconds rest = section.behind[section.at(last, end, position + m)] + added;
        if (too_slow(std::max({longest, time, rest}))) continue;
        const Seconds more = sum(section, m, first, end);
        Seconds so_far = longest;
        if (position != 0)
          so_far = std::max(
              so_far,
              added + m_levels.transfer(section.level, m * section.groups.size(), m_inputs[first]));
        place(section.part(position, m), first, end, added + more, so_far, [&](Seconds now) {
          if (too_slow(std::max(now, rest))) return;
          if (end == last)
            then(now);
          else
            row(id, end, last, position + m, added, now, then);
        });
      }
    }
  }

  /// Considers the plan of m_stages.
  void finish(Seconds longest) {
    std::size_t workers = 0;
    for (const PlanStage& stage : m_stages) workers += stage.ranks.size();
    const std::size_t inputs = m_stages.front().ranks.size();
    m_watch.spend(20 * m_stages.size() + workers);
    if (static_cast<std::size_t>(m_microbatches) < (workers + inputs - 1) / inputs) return;
    m_best->consider({.stages = m_stages,
                      .microbatches = m_microbatches,
                      .schedule = m_problem->options().schedule},
                     m_microbatches * longest);
  }

  [[nodiscard]] static LayerRange range(std::size_t first, std::size_t last) {
    return {static_cast<int>(first), static_cast<int>(last)};
  }

  const plan::PlanProblem* m_problem;
  int m_microbatches;
  PipeDreamLevels m_levels;
  plan::impl::StageTable m_table;
  std::size_t m_layers;
  std::size_t m_most;
  plan::impl::PlanTracker* m_best;
  plan::impl::SearchWatch& m_watch;
  std::vector<double> m_weights;  // by layer: the bytes of all before it
  std::vector<double> m_inputs;   // by layer: the bytes that it reads, of a microbatch
  std::vector<Section> m_sections;
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::size_t> m_ids;
  std::map<std::vector<std::size_t>, std::size_t> m_patterns;
  std::vector<PlanStage> m_stages;
  Seconds m_limit = 0;     // longer parts are not tried
  bool m_any = false;      // whether stages are tried that do not fit
  std::size_t m_stop = 0;  // candidates at which the search stops
};

}  // namespace impl

HEDDLE_INLINE Seconds PipeDream::formula(const Plan& plan, const plan::PlanProblem& problem) const {
  return impl::PipeDreamPrice(plan, problem).step();
}

HEDDLE_INLINE plan::FoundPlan PipeDream::search(const plan::PlanProblem& problem) const {
  plan::impl::PlanTracker best(problem, name);
  const std::vector<int>& degrees = problem.options().tensor_degrees;
  if (std::ranges::find(degrees, 1) == degrees.end())
    return {
        .planner = std::string(name),
        .plan = std::nullopt,
        .infeasible = "PipeDream divides no layer, and tensor degree 1 is not among the degrees"};
  // Many microbatches are small and fit: their price bounds the search for those that do not.
  std::vector<int> counts = problem.options().microbatches;
  std::ranges::sort(counts, std::greater<>());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    best.watch().begin_part(counts.size() - i);
    if (best.watch().ended()) break;
    impl::PipeDreamSearch(problem, counts[i], most_candidates, best).run();
  }
  return best.result([&](const Plan& plan) { return formula(plan, problem); });
}

}  // namespace heddle::inline v0::systems
