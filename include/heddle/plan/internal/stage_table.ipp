// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_table.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/internal/stage_table.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the bytes of the first memory of a rank, or 0 if they are unknown.
[[nodiscard]] inline Bytes capacity_of(const PlanProblem& problem, Rank rank) {
  const std::vector<Memory>& memories = problem.machine().device(rank).memories;
  return memories.empty() ? 0 : memories.front().capacity;
}

HEDDLE_INLINE StageTable::StageTable(const PlanProblem& problem, std::int64_t samples)
    : m_problem(&problem), m_samples(samples) {
  const Machine& machine = problem.machine();
  for (std::size_t r = 0; r < static_cast<std::size_t>(machine.ranks()); ++r) {
    const Device& device = machine.device(Rank{r});
    std::size_t kind = 0;
    while (kind < m_kinds.size() && (machine.device(m_kinds[kind]).name != device.name ||
                                     machine.device(m_kinds[kind]).speed != device.speed))
      ++kind;
    if (kind == m_kinds.size()) m_kinds.push_back(Rank{r});
    m_kind.push_back(kind);
    m_capacity.push_back(capacity_of(problem, Rank{r}));
  }
  for (int layer = 0; layer < problem.layers(); ++layer) {
    Seconds least = std::numeric_limits<Seconds>::infinity();
    for (const Rank rank : m_kinds)
      for (std::int64_t ranks = 1; ranks <= std::min<std::int64_t>(samples, machine.ranks());
           ++ranks) {
        const std::int64_t share = (samples + ranks - 1) / ranks;  // the largest of a stage
        const LayerTimes times =
            problem.profile().times(layer, machine.device(rank), 1, static_cast<double>(share));
        least = std::min(least, (times.forward + times.backward()) / static_cast<double>(share));
      }
    m_least.push_back(least);
  }
}

HEDDLE_INLINE const LayerTimeSums& StageTable::sums(std::size_t kind, std::int64_t samples) {
  LayerTimeSums& sums = m_sums[{kind, samples}];
  fill(sums, *m_problem, m_problem->machine().device(m_kinds[kind]), 1, samples);
  return sums;
}

HEDDLE_INLINE Replicas StageTable::replicas(std::vector<Rank> ranks) {
  std::ranges::sort(ranks);
  const auto count = static_cast<std::int64_t>(ranks.size());
  std::vector<std::int64_t> most(m_kinds.size());  // the largest share of each kind
  Replicas replicas;
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t share = m_samples / count + (r < m_samples % count);
    replicas.samples.push_back(share);
    std::int64_t& largest = most[m_kind[+ranks[static_cast<std::size_t>(r)]]];
    largest = std::max(largest, share);
  }
  for (std::size_t kind = 0; kind < most.size(); ++kind)
    if (most[kind] != 0) replicas.slowest.push_back(&sums(kind, most[kind]));
  replicas.ranks = std::move(ranks);
  constexpr double many = 0x1p30;  // bytes
  const Machine& machine = m_problem->machine();
  replicas.sum_latency = ring_all_reduce_time(machine, replicas.ranks, 0);
  replicas.sum_per_byte =
      (ring_all_reduce_time(machine, replicas.ranks, many) - replicas.sum_latency) / many;
  return replicas;
}

HEDDLE_INLINE StageTime StageTable::time(LayerRange layers, const Replicas& replicas) const {
  const auto first = static_cast<std::size_t>(layers.first);
  const auto last = static_cast<std::size_t>(layers.last);
  StageTime time;
  for (const LayerTimeSums* sums : replicas.slowest) {
    const LayerTimes& to = sums->first[last];
    const LayerTimes& from = sums->first[first];
    time.forward = std::max(time.forward, to.forward - from.forward);
    time.backward = std::max(time.backward, to.backward() - from.backward());
  }
  return time;
}

HEDDLE_INLINE Seconds StageTable::tail(LayerRange layers, const Replicas& replicas) const {
  Seconds update = 0;
  for (const LayerTimeSums* sums : replicas.slowest)
    update = std::max(update, sums->of(layers).update);
  return replicas.sum_latency +
         replicas.sum_per_byte * static_cast<double>(m_problem->profile().parameters(layers)) +
         update;
}

HEDDLE_INLINE bool StageTable::may_fit(LayerRange layers, const Replicas& replicas) const {
  const auto state = m_problem->options().state_per_parameter *
                     static_cast<double>(m_problem->profile().parameters(layers));
  const auto saved = static_cast<double>(m_problem->profile().saved(layers));
  for (std::size_t r = 0; r < replicas.ranks.size(); ++r) {
    const Bytes capacity = m_capacity[+replicas.ranks[r]];
    const double needed = state + saved * static_cast<double>(replicas.samples[r]);
    if (capacity != 0 && needed > static_cast<double>(capacity) + 1) return false;
  }
  return true;
}

HEDDLE_INLINE bool memory_matters(const PlanProblem& problem) {
  for (std::size_t r = 0; r < static_cast<std::size_t>(problem.machine().ranks()); ++r)
    if (capacity_of(problem, Rank{r}) != 0) return true;
  return false;
}

HEDDLE_INLINE Seconds PlanTracker::price() const {
  return m_plan ? m_price : std::numeric_limits<Seconds>::infinity();
}

HEDDLE_INLINE void PlanTracker::consider(Plan plan, Seconds price) {
  if (!improves(price)) return;
  if (m_memory) {
    m_watch.spend(
        200 + 20 * plan.stages.size() +
        5 * static_cast<std::uint64_t>(m_problem->layers() + m_problem->machine().ranks()));
    const auto lack = [](const MemoryShortage& s) { return s.needed - s.capacity; };
    if (m_least && least_lack(plan) > static_cast<double>(lack(*m_least)) + 1) return;
    const std::optional<MemoryShortage> shortage = m_bytes.shortage(plan);
    if (shortage) {
      if (!m_least || lack(*shortage) < lack(*m_least)) m_least = shortage;
      return;
    }
  }
  m_plan = std::move(plan);
  m_price = price;
}

HEDDLE_INLINE double PlanTracker::least_lack(const Plan& plan) {
  const std::vector<std::int64_t>& live = m_bytes.kept_of(plan).live;
  double most = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    const Profile& profile = m_problem->profile();
    const double state = m_problem->options().state_per_parameter *
                         static_cast<double>(profile.parameters(stage.layers));
    const double saved =
        static_cast<double>(live[s]) * static_cast<double>(profile.saved(stage.layers));
    for (std::size_t r = 0; r < stage.ranks.size(); ++r) {
      const Bytes capacity = capacity_of(*m_problem, stage.ranks[r]);
      const double needed = state + saved * static_cast<double>(stage.samples[r]);
      if (capacity != 0) most = std::max(most, needed - static_cast<double>(capacity));
    }
  }
  return most;
}

HEDDLE_INLINE std::string PlanTracker::why_not() const {
  if (!m_least && m_watch.result() == SearchEnd::cut_off) return "cut off before it found a plan";
  if (!m_least) return "the search ended before it found a plan that fits";
  return text("rank ", m_least->rank, " lacks ", m_least->needed - m_least->capacity,
              " bytes: the plan that lacks least needs ", m_least->needed, ", and it has ",
              m_least->capacity);
}

}  // namespace heddle::inline v0::plan::impl
