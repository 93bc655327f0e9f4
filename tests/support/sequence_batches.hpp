// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Batches of sequences of random lengths, and what plan_sequence_groups() is compared with:
/// best-fit packing at one degree, and the exact assignment by branch and bound.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>

namespace heddle::test {

/// A log-normal distribution of lengths, cut off at `longest`.
struct LengthDistribution {
  double mean;           ///< of the logarithm
  double deviation;      ///< of the logarithm
  std::int64_t longest;  ///< the context that the model is trained for
};

/// The three distributions of the comparison with static degrees: long-tailed, as published data.
inline constexpr LengthDistribution length_distributions[] = {
    {7.0, 1.6, 192 * 1024}, {6.5, 1.3, 384 * 1024}, {6.0, 1.5, 192 * 1024}};

/// `count` lengths of at least 1.
[[nodiscard]] inline std::vector<std::int64_t> draw_lengths(const LengthDistribution& of,
                                                            std::uint64_t seed, std::size_t count) {
  const Random random(seed, "lengths");
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < count; ++i) {
    const double length = std::exp(of.mean + of.deviation * random.normal(i));
    lengths.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(length), 1, of.longest));
  }
  return lengths;
}

/// The time of one group, by the formula.
[[nodiscard]] inline double group_time(const systems::DegreeCost& cost,
                                       const std::vector<std::int64_t>& lengths) {
  double time = lengths.empty() ? 0 : cost.fixed;
  for (const std::int64_t length : lengths) {
    const auto tokens = static_cast<double>(length);
    time += cost.per_square * tokens * tokens + cost.per_token * tokens;
  }
  return time;
}

/// The time of a batch at one static degree: sequences in falling order, or in the order in which
/// they come, each to the fullest group that has room; then groups in their order, as many at once
/// as there are. Infinite if a sequence has no room.
[[nodiscard]] inline double best_fit_time(std::vector<std::int64_t> lengths,
                                          const systems::SequenceCosts& costs, int degree,
                                          bool falling) {
  if (falling) std::ranges::sort(lengths, std::greater<>());
  const std::int64_t room = degree * costs.tokens_per_rank;
  std::vector<std::vector<std::int64_t>> groups;
  std::vector<std::int64_t> tokens;
  for (const std::int64_t length : lengths) {
    if (length > room) return std::numeric_limits<double>::infinity();
    std::size_t chosen = groups.size();
    for (std::size_t g = 0; g < groups.size(); ++g)
      if (tokens[g] + length <= room && (chosen == groups.size() || tokens[g] > tokens[chosen]))
        chosen = g;
    if (chosen == groups.size()) {
      groups.emplace_back();
      tokens.push_back(0);
    }
    groups[chosen].push_back(length);
    tokens[chosen] += length;
  }
  double time = 0;
  const auto at_once = static_cast<std::size_t>(costs.ranks / degree);
  for (std::size_t first = 0; first < groups.size(); first += at_once) {
    double slowest = 0;
    for (std::size_t g = first; g < std::min(first + at_once, groups.size()); ++g)
      slowest = std::max(slowest, group_time(costs.of(degree), groups[g]));
    time += slowest;
  }
  return time;
}

/// Times of a batch against static degrees, which hold the longest sequence that the model is
/// trained for; `adaptive` is the best single degree for this batch.
struct StaticTimes {
  double best_fit = std::numeric_limits<double>::infinity();  ///< the better of both orders
  double balanced = std::numeric_limits<double>::infinity();  ///< packed as our own groups are
  double adaptive = std::numeric_limits<double>::infinity();  ///< packed likewise
};

/// Those of `lengths`, the least over the degrees.
[[nodiscard]] inline StaticTimes static_times(const std::vector<std::int64_t>& lengths,
                                              const systems::SequenceCosts& costs,
                                              std::int64_t longest) {
  StaticTimes times;
  for (const systems::DegreeCost& cost : costs.degrees) {
    const std::int64_t room = cost.degree * costs.tokens_per_rank;
    if (room < std::ranges::max(lengths)) continue;
    const double balanced = plan_sequence_groups(lengths, costs, {.degree = cost.degree}).time;
    times.adaptive = std::min(times.adaptive, balanced);
    if (room < longest) continue;
    times.balanced = std::min(times.balanced, balanced);
    for (const bool falling : {false, true})
      times.best_fit =
          std::min(times.best_fit, best_fit_time(lengths, costs, cost.degree, falling));
  }
  return times;
}

/// What is wrong with a plan, if anything: a sequence not once, memory, ranks, sizes that do not
/// fall, a group that is not aligned, tokens or a time that are not those of its sequences.
[[nodiscard]] inline std::optional<const char*> fault_of(const systems::SequencePlan& plan,
                                                         const systems::SequenceCosts& costs) {
  std::vector<int> times_planned(plan.lengths.size(), 0);
  double sum = 0;
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-12 * (a + b); };
  for (const systems::SequenceMicrobatch& microbatch : plan.microbatches) {
    double slowest = 0;
    std::size_t rank = 0;
    int before = costs.ranks;
    for (const systems::SequenceGroup& group : microbatch.groups) {
      const auto degree = static_cast<std::size_t>(group.degree);
      if (+group.first != rank || rank % degree != 0) return "ranks";
      if (group.degree > before || (degree & (degree - 1)) != 0) return "sizes";
      before = group.degree;
      rank += degree;
      std::vector<std::int64_t> lengths;
      std::int64_t tokens = 0;
      for (const std::size_t sequence : group.sequences) {
        ++times_planned.at(sequence);
        lengths.push_back(plan.lengths[sequence]);
        tokens += plan.lengths[sequence];
      }
      if (!std::ranges::is_sorted(lengths, std::greater<>())) return "order";
      if (tokens != group.tokens) return "tokens";
      if (tokens > group.degree * costs.tokens_per_rank) return "memory";
      if (!same(group.time, group_time(costs.of(group.degree), lengths))) return "time of a group";
      slowest = std::max(slowest, group.time);
    }
    if (rank != static_cast<std::size_t>(costs.ranks)) return "number of ranks";
    if (slowest != microbatch.time) return "time of a microbatch";
    sum += slowest;
  }
  if (!same(sum, plan.time)) return "time";
  if (std::ranges::count(times_planned, 1) != std::ssize(plan.lengths)) return "not every once";
  return {};
}

/// The least time of one microbatch over all multisets of powers of two up to the number of ranks,
/// and all assignments to them, by branch and bound.
class ExactAssignment {
 public:
  /// Of sequences with these lengths.
  ExactAssignment(std::vector<std::int64_t> lengths, const systems::SequenceCosts& costs)
      : m_lengths(std::move(lengths)), m_costs(costs) {
    std::ranges::sort(m_lengths, std::greater<>());
    choose(costs.ranks, costs.degrees.size());
  }
  /// Infinite if they do not fit.
  [[nodiscard]] double time() const { return m_best; }

 private:
  struct Group {
    const systems::DegreeCost* cost;
    std::int64_t tokens = 0;
    double time = 0;
    bool operator==(const Group&) const = default;
  };

  /// Adds groups of the first `below` degrees for `ranks` ranks in all ways.
  void choose(int ranks, std::size_t below) {
    if (ranks == 0) return assign(0, 0);
    for (std::size_t d = 0; d < below; ++d) {
      if (m_costs.degrees[d].degree > ranks) continue;
      m_groups.push_back({&m_costs.degrees[d]});
      choose(ranks - m_costs.degrees[d].degree, d + 1);
      m_groups.pop_back();
    }
  }
  void assign(std::size_t sequence, double slowest) {
    if (slowest >= m_best) return;
    if (sequence == m_lengths.size()) {
      m_best = slowest;
      return;
    }
    const auto tokens = static_cast<double>(m_lengths[sequence]);
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
      const Group before = m_groups[g];
      // Of groups that are in the same state, one is enough.
      if (std::find(m_groups.begin(), m_groups.begin() + static_cast<std::ptrdiff_t>(g), before) !=
          m_groups.begin() + static_cast<std::ptrdiff_t>(g))
        continue;
      const systems::DegreeCost& cost = *before.cost;
      if (before.tokens + m_lengths[sequence] > cost.degree * m_costs.tokens_per_rank) continue;
      m_groups[g].tokens += m_lengths[sequence];
      m_groups[g].time = (before.tokens == 0 ? cost.fixed : before.time) +
                         cost.per_square * tokens * tokens + cost.per_token * tokens;
      assign(sequence + 1, std::max(slowest, m_groups[g].time));
      m_groups[g] = before;
    }
  }

  std::vector<std::int64_t> m_lengths;
  const systems::SequenceCosts& m_costs;
  std::vector<Group> m_groups;
  double m_best = std::numeric_limits<double>::infinity();
};

}  // namespace heddle::test
