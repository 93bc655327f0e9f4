// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of tune.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/tune.hpp>

namespace heddle::inline v0::plan {

namespace impl {

// The search of one tune() call. Points of the grid are numbered, the last axis fastest.
class Tuner {
 public:
  Tuner(const std::vector<TuneAxis>& axes, const TuneCost& cost, const TuneOptions& options)
      : m_axes(axes),
        m_cost(cost),
        m_options(options),
        m_random(options.seed, "heddle::plan::tune") {
    for (const TuneAxis& axis : axes) {
      const bool fits = m_size <= std::numeric_limits<std::size_t>::max() / axis.values;
      m_size = fits ? m_size * axis.values : std::numeric_limits<std::size_t>::max();
    }
    if (m_size <= most_in_grid)
      for (std::size_t i = 0; i < m_size; ++i) m_grid.push_back({point(i), {}});
  }

  Tuned run() && {
    const std::size_t most = std::min(m_options.evaluations, m_size);
    const std::size_t first = std::clamp<std::size_t>(most / 4, 1, 4 * m_axes.size() + 4);
    while (m_tuned.trials.size() < most) {
      const std::size_t count = m_tuned.trials.size();
      std::optional<TunePoint> next;
      if (count >= first && m_tuned.best) {
        if (count % 2 == 0) next = best_of(estimated(neighbours()), 0);
        if (!next && count % 4 != 3)  // every fourth trial is random
          next = best_of(m_grid.empty() ? estimated(random_points()) : m_grid, exploration);
      }
      if (!next) next = unseen();
      evaluate(std::move(*next));
    }
    return std::move(m_tuned);
  }

 private:
  static constexpr double exploration = 0.5;
  static constexpr std::size_t most_candidates = 4096;  // that are drawn
  static constexpr std::size_t most_in_grid = 32768;    // of which each is kept

  [[nodiscard]] TunePoint point(std::size_t number) const {
    TunePoint result(m_axes.size());
    for (std::size_t a = m_axes.size(); a-- > 0;) {
      result[a] = number % m_axes[a].values;
      number /= m_axes[a].values;
    }
    return result;
  }
  [[nodiscard]] bool seen(const TunePoint& point) const { return m_seen.contains(point); }

  TunePoint draw() {
    TunePoint result;
    for (const TuneAxis& axis : m_axes)
      result.push_back(static_cast<std::size_t>(m_random.below(m_draws++, axis.values)));
    return result;
  }
  // Draws a point that was not tried.
  TunePoint unseen() {
    for (int attempt = 0; attempt < 64; ++attempt) {
      TunePoint drawn = draw();
      if (!seen(drawn)) return drawn;
    }
    // Nearly all points were tried, so the grid is small.
    const auto begin = static_cast<std::size_t>(m_random.below(m_draws++, m_size));
    for (std::size_t i = 0;; ++i) {
      TunePoint next = point((begin + i) % m_size);
      if (!seen(next)) return next;
    }
  }

  void evaluate(TunePoint next) {
    const std::optional<double> cost = m_cost(next);
    expects(!cost || (*cost > 0 && std::isfinite(*cost)), [&] {
      std::string where;
      for (std::size_t a = 0; a < next.size(); ++a)
        where += text(a == 0 ? "" : ", ", m_axes[a].name, " ", next[a]);
      return ErrorInfo{"heddle::plan::tune", "a cost must be positive and finite",
                       text(*cost, " at ", where), "return nothing for an infeasible point"};
    });
    m_seen.insert(next);
    m_tuned.trials.push_back({std::move(next), cost});
    if (cost && (!m_tuned.best || *cost < *m_tuned.best->cost))
      m_tuned.best = m_tuned.trials.back();
    for (Candidate& candidate : m_grid) add(candidate, m_tuned.trials.back());
    if (!cost) return;
    m_low = std::min(m_low, std::log(*cost));
    m_high = std::max(m_high, std::log(*cost));
  }

  // Returns the distance of two points. An axis has the length 1, and a step has at least 1/8.
  [[nodiscard]] double distance(const TunePoint& a, const TunePoint& b) const {
    double sum = 0;
    for (std::size_t i = 0; i < m_axes.size(); ++i) {
      if (a[i] == b[i]) continue;
      const double steps =
          a[i] < b[i] ? static_cast<double>(b[i] - a[i]) : static_cast<double>(a[i] - b[i]);
      const double length = static_cast<double>(std::min<std::size_t>(m_axes[i].values - 1, 8));
      const double part = m_axes[i].ordered ? steps / length : 1;
      sum += part * part;
    }
    return std::sqrt(sum);
  }

  // The estimate of a point by the trials: sums over their weights.
  struct Estimate {
    double heights = 0;     // weight * logarithm of the cost, of feasible trials
    double feasible = 0;    // weights of these
    double infeasible = 0;  // weights of the others
    double nearest = std::numeric_limits<double>::infinity();  // distance; 0: the point was tried
  };
  struct Candidate {
    TunePoint point;
    Estimate estimate;
  };

  void add(Candidate& candidate, const TuneTrial& trial) const {
    const double d = distance(candidate.point, trial.point);
    Estimate& estimate = candidate.estimate;
    estimate.nearest = std::min(estimate.nearest, d);
    if (d == 0) return;
    const double weight = 1 / (d * d * d * d);
    if (trial.cost) estimate.heights += weight * std::log(*trial.cost);
    (trial.cost ? estimate.feasible : estimate.infeasible) += weight;
  }
  [[nodiscard]] std::vector<Candidate> estimated(std::vector<TunePoint> points) const {
    std::vector<Candidate> result;
    for (TunePoint& each : points) {
      result.push_back({std::move(each), {}});
      for (const TuneTrial& trial : m_tuned.trials) add(result.back(), trial);
    }
    return result;
  }

  // Returns what the surrogate predicts, less `bonus` times the distance to the nearest trial.
  // Infeasible trials lie above the worst cost by half of the range of costs.
  [[nodiscard]] double predict(const Estimate& estimate, double bonus) const {
    const double range = m_high > m_low ? m_high - m_low : 1;
    const double heights = estimate.heights + estimate.infeasible * (m_high + range / 2);
    return heights / (estimate.feasible + estimate.infeasible) - bonus * range * estimate.nearest;
  }

  // Returns the points that differ from the best one by a step on one axis, or on two.
  [[nodiscard]] std::vector<TunePoint> neighbours() const {
    std::vector<TunePoint> result;
    const TunePoint& centre = m_tuned.best->point;
    const auto add = [&](TunePoint at, std::size_t axis, auto&& then) {
      const std::size_t from = at[axis];
      for (std::size_t value = 0; value < m_axes[axis].values; ++value) {
        const bool step = value + 1 == from || from + 1 == value;
        if (value == from || (m_axes[axis].ordered && !step)) continue;
        at[axis] = value;
        if (!seen(at)) result.push_back(at);
        then(at);
      }
    };
    for (std::size_t a = 0; a < m_axes.size(); ++a)
      add(centre, a, [&](const TunePoint& moved) {
        for (std::size_t b = a + 1; b < m_axes.size(); ++b) add(moved, b, [](const TunePoint&) {});
      });
    return result;
  }
  // Draws points that were not tried, for a grid that is too large for all of them.
  [[nodiscard]] std::vector<TunePoint> random_points() {
    std::vector<TunePoint> result;
    for (std::size_t i = 0; i < most_candidates; ++i) {
      TunePoint next = draw();
      if (!seen(next)) result.push_back(std::move(next));
    }
    return result;
  }
  // Returns the point of the best prediction, of those that were not tried.
  [[nodiscard]] std::optional<TunePoint> best_of(const std::vector<Candidate>& candidates,
                                                 double bonus) const {
    const Candidate* best = nullptr;
    double least = 0;
    for (const Candidate& candidate : candidates) {
      if (candidate.estimate.nearest == 0) continue;
      const double predicted = predict(candidate.estimate, bonus);
      if (best != nullptr && !(predicted < least)) continue;
      best = &candidate;
      least = predicted;
    }
    if (best == nullptr) return {};
    return best->point;
  }

  const std::vector<TuneAxis>& m_axes;
  const TuneCost& m_cost;
  const TuneOptions& m_options;
  Random m_random;
  std::uint64_t m_draws = 0;
  std::size_t m_size = 1;  // points of the grid, or the largest number if there are more
  std::set<TunePoint> m_seen;
  std::vector<Candidate> m_grid;                           // all points, unless there are too many
  double m_low = std::numeric_limits<double>::infinity();  // the least logarithm of a cost
  double m_high = -m_low;                                  // the greatest
  Tuned m_tuned;
};

}  // namespace impl

HEDDLE_INLINE std::size_t Tuned::infeasible() const {
  return static_cast<std::size_t>(std::count_if(
      trials.begin(), trials.end(), [](const TuneTrial& trial) { return !trial.cost; }));
}

HEDDLE_INLINE Tuned tune(const std::vector<TuneAxis>& axes, const TuneCost& cost,
                         const TuneOptions& options) {
  constexpr const char* where = "heddle::plan::tune";
  expects(!axes.empty() && options.evaluations >= 1, [&] {
    return ErrorInfo{where, "a search needs an axis and an evaluation",
                     text(axes.size(), " axes, ", options.evaluations, " evaluations")};
  });
  expects(cost != nullptr, [] {
    return ErrorInfo{where, "there is no function of the cost", "`cost` is empty"};
  });
  for (const TuneAxis& axis : axes)
    expects(axis.values >= 1, [&] {
      return ErrorInfo{where, "an axis has no values", text("axis '", axis.name, "'"),
                       "leave the axis out, or give it a value"};
    });
  return impl::Tuner(axes, cost, options).run();
}

}  // namespace heddle::inline v0::plan
