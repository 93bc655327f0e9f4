// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random forks of chains with exact times, and the least time of their branches by brute force.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

#include "support/rational.hpp"

namespace heddle::test {

/// Costs with a time for each stage; messages are free.
struct BranchTimes {
  using Time = Rational;

  std::vector<Rational> times;

  [[nodiscard]] Rational time(const Schedule& schedule, ActionId id) const {
    return times[+schedule[id].stage];
  }
  [[nodiscard]] Transfer<Rational> transfer(const Schedule&, ActionId) const { return {}; }
};

/// A stem, branches behind it, and one fusion, which is the last stage.
struct ForkedStages {
  struct Shape {
    int branches = 1;
    int stem = 0;  ///< stages; without one, branches begin with data of their own
    int most_stages = 1;
  };

  StageGraph graph;
  std::vector<Stage> stem;
  std::vector<std::vector<Stage>> branches;
  std::vector<Rational> times;  ///< by stage: up to 3, in steps of 1/4, and 1/4 at least

  ForkedStages(const Shape& shape, std::mt19937_64& random) {
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const auto add = [&](std::vector<Stage>& chain) {
      const Stage stage{graph.stages++};
      if (!chain.empty()) graph.edges.push_back({chain.back(), stage});
      chain.push_back(stage);
      times.emplace_back(1 + below(12), 4);
    };
    for (int s = 0; s < shape.stem; ++s) add(stem);
    branches.resize(static_cast<std::size_t>(shape.branches));
    for (std::vector<Stage>& branch : branches) {
      if (!stem.empty()) graph.edges.push_back({stem.back(), Stage{graph.stages}});
      for (int s = 1 + below(shape.most_stages); s > 0; --s) add(branch);
    }
    for (const std::vector<Stage>& branch : branches)
      graph.edges.push_back({branch.back(), Stage{graph.stages}});
    std::vector<Stage> last;
    add(last);
  }

  [[nodiscard]] Stage fusion() const { return Stage{graph.stages - 1}; }
  [[nodiscard]] Rational time_of(const std::vector<Stage>& chain) const {
    Rational sum;
    for (const Stage stage : chain) sum = sum + times[+stage];
    return sum;
  }
};

/// Returns the least largest sum of all partitions of `times` into `groups` groups.
[[nodiscard]] inline Rational least_largest_sum(const std::vector<Rational>& times, int groups) {
  std::vector<Rational> sums(static_cast<std::size_t>(groups));
  std::optional<Rational> best;
  const std::function<void(std::size_t)> place = [&](std::size_t next) {
    if (next == times.size()) {
      const Rational largest = *std::max_element(sums.begin(), sums.end());
      if (!best || largest < *best) best = largest;
      return;
    }
    for (Rational& sum : sums) {
      const Rational before = sum;
      sum = sum + times[next];
      place(next + 1);
      sum = before;
    }
  };
  place(0);
  return *best;
}

/// Returns the least makespan of jobs that wait for others, on `workers` workers, over all orders
/// in which the jobs can begin and all workers for each. inputs[j]: the jobs that job j waits for.
[[nodiscard]] inline Rational least_makespan(const std::vector<Rational>& times,
                                             const std::vector<std::vector<std::size_t>>& inputs,
                                             int workers) {
  std::vector<Rational> free(static_cast<std::size_t>(workers));
  std::vector<std::optional<Rational>> ends(times.size());
  std::optional<Rational> best;
  const std::function<void(std::size_t)> begin = [&](std::size_t done) {
    if (done == times.size()) {
      const Rational last = *std::max_element(free.begin(), free.end());
      if (!best || last < *best) best = last;
      return;
    }
    for (std::size_t j = 0; j < times.size(); ++j) {
      if (ends[j]) continue;
      Rational ready;
      bool can = true;
      for (const std::size_t input : inputs[j]) {
        can = can && ends[input].has_value();
        if (can) ready = std::max(ready, *ends[input]);
      }
      if (!can) continue;
      for (Rational& worker : free) {
        const Rational before = worker;
        worker = std::max(worker, ready) + times[j];
        ends[j] = worker;
        begin(done + 1);
        ends[j].reset();
        worker = before;
      }
    }
  };
  begin(0);
  return *best;
}

}  // namespace heddle::test
