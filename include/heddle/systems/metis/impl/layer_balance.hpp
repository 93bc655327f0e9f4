// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LayerBalance: divides layers over stages of different speed as Metis does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/plan/internal/stage_shape.hpp>

namespace heddle::inline v0::systems::impl {

/// The layers of some stages. A division is given by the ends of the stages' layers.
class LayerBalance {
 public:
  static constexpr int sublayers = 7;       ///< parts of a layer
  static constexpr int memory_retries = 3;  ///< reductions of stages that exceed their memory

  /// The shapes and what they keep outlive the object. There are no fewer layers than stages.
  LayerBalance(const std::vector<const plan::impl::StageShape*>& shapes,
               const plan::impl::KeptByStage& kept, int layers)
      : m_shapes(shapes), m_kept(kept), m_layers(layers) {
    double sum = 0;
    for (const plan::impl::StageShape* shape : shapes) {
      m_capacity.push_back(1 / time_of(*shape));
      sum += m_capacity.back();
    }
    for (double& capacity : m_capacity) capacity /= sum;
  }

  /// Returns the ends of the stages by Metis' balancer. If that does not fit after all retries,
  /// they are the ends of the fastest division that fits, or of the balancer if there is none.
  [[nodiscard]] std::vector<int> ends() const {
    std::vector<double> capacity = m_capacity;
    std::vector<int> first, now;
    for (int i = 0; i <= memory_retries; ++i) {
      now = majority(filled(capacity));
      if (i == 0) first = now;
      if (fits(now)) return now;
      reduce(capacity, now);
    }
    if (auto exact = least_max([&](std::size_t s, LayerRange range) -> std::optional<double> {
          if (lacking(s, range) > 0) return {};
          return m_shapes[s]->time(range);
        }))
      return *exact;
    return first;
  }

  /// Returns whether the stages fit their memories.
  [[nodiscard]] bool fits(std::span<const int> ends) const {
    for (std::size_t s = 0; s < m_shapes.size(); ++s)
      if (lacking(s, range_of(ends, s)) > 0) return false;
    return true;
  }

  /// Returns the division in which the largest need of a rank that lacks memory is least.
  [[nodiscard]] std::vector<int> least_memory_ends() const {
    return *least_max([&](std::size_t s, LayerRange range) -> std::optional<double> {
      return static_cast<double>(lacking(s, range));
    });
  }

  /// Returns the memory that stage `s` has left.
  [[nodiscard]] double headroom(std::span<const int> ends, std::size_t s) const {
    return m_shapes[s]->headroom(range_of(ends, s), m_kept.at(s));
  }

  /// Returns the time of the computation of so many microbatches, without messages.
  [[nodiscard]] Seconds computation(std::span<const int> ends, int microbatches) const {
    Seconds slowest = 0, sum = 0;
    for (std::size_t s = 0; s < m_shapes.size(); ++s) {
      const Seconds time = m_shapes[s]->time(range_of(ends, s));
      slowest = std::max(slowest, time);
      sum += time;
    }
    return (microbatches - 1) * slowest + sum;
  }

  /// Returns whether another end of stage `s` could shorten a step: the slower of its two stages
  /// becomes faster, or both together do.
  [[nodiscard]] bool shortens(std::span<const int> ends, std::span<const int> moved,
                              std::size_t s) const {
    const Seconds a = m_shapes[s]->time(range_of(ends, s));
    const Seconds b = m_shapes[s + 1]->time(range_of(ends, s + 1));
    const Seconds c = m_shapes[s]->time(range_of(moved, s));
    const Seconds d = m_shapes[s + 1]->time(range_of(moved, s + 1));
    return std::max(c, d) < std::max(a, b) || c + d < a + b;
  }

 private:
  [[nodiscard]] static LayerRange range_of(std::span<const int> ends, std::size_t s) {
    return {s == 0 ? 0 : ends[s - 1], ends[s]};
  }
  [[nodiscard]] Bytes lacking(std::size_t s, LayerRange range) const {
    return m_shapes[s]->lacking(range, m_kept.at(s));
  }

  /// Returns the time of all layers, above 0.
  [[nodiscard]] static Seconds time_of(const plan::impl::StageShape& shape) {
    const plan::LayerTimes& all = shape.slowest().all();
    return std::max(all.forward + all.backward(), std::numeric_limits<Seconds>::min());
  }

  /// Returns the part of all of its layers' time that a stage needs for one sublayer.
  [[nodiscard]] double demand(std::size_t s, int sublayer) const {
    const int layer = sublayer / sublayers;
    const plan::LayerTimes one = m_shapes[s]->slowest().of({layer, layer + 1});
    return (one.forward + one.backward()) / time_of(*m_shapes[s]) / sublayers;
  }

  /// Returns the ends of the stages, in sublayers.
  [[nodiscard]] std::vector<int> filled(const std::vector<double>& capacity) const {
    constexpr double rounding = 1e-9;
    const std::size_t stages = m_shapes.size();
    const int all = m_layers * sublayers;
    std::vector<int> ends(stages, all);
    std::vector<double> spare = capacity;
    int front = 0, back = all;
    for (std::size_t s = 0; s + 1 < stages; ++s) {
      for (; front < all && demand(s, front) <= spare[s] + rounding; ++front)
        spare[s] -= demand(s, front);
      ends[s] = front;
    }
    const std::size_t last = stages - 1;
    for (; back > front && demand(last, back - 1) <= spare[last] + rounding; --back)
      spare[last] -= demand(last, back - 1);
    if (stages == 1) return ends;
    while (front < back)
      if (spare[last - 1] > spare[last])
        spare[last - 1] -= demand(last - 1, front++);
      else
        spare[last] -= demand(last, --back);
    ends[last - 1] = front;
    return ends;
  }

  /// Returns the ends in layers: a layer is in the stage that has most of it, and every stage has
  /// at least one.
  [[nodiscard]] std::vector<int> majority(const std::vector<int>& parts) const {
    const int stages = static_cast<int>(parts.size());
    std::vector<int> ends, owner, votes(parts.size());
    for (int layer = 0; layer < m_layers; ++layer) {
      std::ranges::fill(votes, 0);
      for (int part = layer * sublayers; part < (layer + 1) * sublayers; ++part) {
        const auto s = std::ranges::upper_bound(parts, part) - parts.begin();
        ++votes[static_cast<std::size_t>(s)];
      }
      owner.push_back(static_cast<int>(std::ranges::max_element(votes) - votes.begin()));
    }
    for (int s = 0; s < stages; ++s) {
      const auto end = std::ranges::upper_bound(owner, s) - owner.begin();
      const int least = s == 0 ? 1 : ends.back() + 1;
      ends.push_back(std::clamp(static_cast<int>(end), least, m_layers - (stages - 1 - s)));
    }
    return ends;
  }

  /// Reduces the capacity of stages that exceed their memory, and spreads the rest over the others.
  void reduce(std::vector<double>& capacity, std::span<const int> ends) const {
    double taken = 0, others = 0;
    std::vector<bool> full(m_shapes.size(), false);
    for (std::size_t s = 0; s < m_shapes.size(); ++s) {
      const Bytes needed = lacking(s, range_of(ends, s));
      full[s] = needed > 0;
      if (!full[s]) {
        others += capacity[s];
        continue;
      }
      const double left = headroom(ends, s);  // below 0
      const double factor =
          0.9 * (static_cast<double>(needed) + left) / static_cast<double>(needed);
      taken += capacity[s] * (1 - factor);
      capacity[s] *= factor;
    }
    for (std::size_t s = 0; s < m_shapes.size() && others > 0; ++s)
      if (!full[s]) capacity[s] *= 1 + taken / others;
  }

  /// Returns the division for which the largest `cost(stage, range)` is least, or nothing if every
  /// division has a stage without a cost. Costs do not fall if a range grows.
  template <class Cost>
  [[nodiscard]] std::optional<std::vector<int>> least_max(Cost&& cost) const {
    constexpr double none = std::numeric_limits<double>::infinity();
    const auto layers = static_cast<std::size_t>(m_layers);
    const std::size_t stages = m_shapes.size();
    // best[s][l]: the first s + 1 stages have the first l layers.
    std::vector<std::vector<double>> best(stages, std::vector<double>(layers + 1, none));
    std::vector<std::vector<int>> from(stages, std::vector<int>(layers + 1, 0));
    for (std::size_t s = 0; s < stages; ++s)
      for (std::size_t l = s + 1; l <= layers; ++l)
        // The range grows from one layer; the first stage begins with layer 0.
        for (std::size_t k = s == 0 ? 0 : l - 1;; --k) {
          const double before = s == 0 ? 0 : best[s - 1][k];
          const auto own = cost(s, LayerRange{static_cast<int>(k), static_cast<int>(l)});
          if (!own) break;  // longer ranges do not fit either
          if (const double most = std::max(before, *own); most < best[s][l]) {
            best[s][l] = most;
            from[s][l] = static_cast<int>(k);
          }
          if (k == s) break;
        }
    if (best[stages - 1][layers] == none) return {};
    std::vector<int> ends(stages);
    int end = m_layers;
    for (std::size_t s = stages; s-- > 0;) {
      ends[s] = end;
      end = from[s][static_cast<std::size_t>(end)];
    }
    return ends;
  }

  const std::vector<const plan::impl::StageShape*>& m_shapes;
  const plan::impl::KeptByStage& m_kept;
  int m_layers;
  std::vector<double> m_capacity;  ///< by stage, from times; the sum is 1
};

}  // namespace heddle::inline v0::systems::impl
