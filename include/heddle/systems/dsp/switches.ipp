// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of switches.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <ostream>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/dsp/switches.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline constexpr const char* switches_where = "heddle::systems::plan_switches";

/// One plan_switches() call. Dimensions are counted by their place in the list.
class SwitchPlanner {
 public:
  SwitchPlanner(const std::vector<std::size_t>& dimensions, const std::vector<std::size_t>& mixed,
                const SwitchOptions& options)
      : m_dimensions(dimensions), m_mixed(mixed), m_options(options) {
    check();
  }

  [[nodiscard]] SwitchPlan run() const {
    std::optional<Path> best;
    if (m_options.cyclic) {
      for (std::size_t start = 0; start < m_dimensions.size(); ++start)
        if (allowed(0, start)) keep(best, path(start, start));
    } else {
      keep(best, path(place(m_options.first), place(m_options.last)));
    }
    if (!best || !std::isfinite(best->cost)) throw_infeasible();
    return plan_of(*best);
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  using Place = std::optional<std::size_t>;

  struct Path {
    double cost = infinite;
    std::vector<std::size_t> places;  ///< by stage
    std::size_t end = 0;              ///< after the last stage
  };

  void check() const {
    expects(!m_dimensions.empty(), [] {
      return ErrorInfo{switches_where,
                       "the list of dimensions that can be sharded must not be empty",
                       "0 dimensions"};
    });
    for (std::size_t i = 0; i < m_dimensions.size(); ++i)
      expects(std::find(m_dimensions.begin(), m_dimensions.begin() + static_cast<std::ptrdiff_t>(i),
                        m_dimensions[i]) == m_dimensions.begin() + static_cast<std::ptrdiff_t>(i),
              [&] {
                return ErrorInfo{switches_where, "a dimension appears twice in the list",
                                 text("dimension ", m_dimensions[i])};
              });
    expects(!m_options.cyclic || (!m_options.first && !m_options.last), [] {
      return ErrorInfo{switches_where, "a cyclic plan cannot have a first or a last dimension", "",
                       "leave out `cyclic`, or `first` and `last`"};
    });
    for (const Place& end : {m_options.first, m_options.last})
      expects(!end || std::ranges::count(m_dimensions, *end) == 1, [&] {
        return ErrorInfo{switches_where,
                         "the first or last sharded dimension is not in the list of dimensions",
                         text("dimension ", *end)};
      });
    const std::size_t wanted = m_dimensions.size() * m_dimensions.size();
    expects(m_options.costs.empty() || m_options.costs.size() == wanted, [&] {
      return ErrorInfo{switches_where, "every pair of dimensions needs one cost",
                       text(m_options.costs.size(), " costs, expected ", wanted)};
    });
    double most = 0;  // of the switches that are not excluded
    for (const double cost : m_options.costs) {
      expects(cost >= 0, [&] {
        return ErrorInfo{switches_where, "the cost of a switch must be at least 0 and not NaN",
                         text("cost ", cost)};
      });
      if (std::isfinite(cost)) most = std::max(most, cost);
    }
    heddle::impl::expect_sum(
        switches_where, most * static_cast<double>(m_mixed.size() + 1),
        [&] { return text(m_mixed.size(), " stages, and a switch that costs ", most); },
        "divide all costs by the same number");
  }

  [[nodiscard]] Place place(const std::optional<std::size_t>& dimension) const {
    if (!dimension) return {};
    return static_cast<std::size_t>(std::ranges::find(m_dimensions, *dimension) -
                                    m_dimensions.begin());
  }
  [[nodiscard]] bool allowed(std::size_t stage, std::size_t at) const {
    return stage >= m_mixed.size() || m_mixed[stage] != m_dimensions[at];
  }
  [[nodiscard]] double cost(std::size_t from, std::size_t to) const {
    if (from == to) return 0;
    return m_options.costs.empty() ? 1 : m_options.costs[from * m_dimensions.size() + to];
  }
  static void keep(std::optional<Path>& best, Path found) {
    if (!best || found.cost < best->cost) best = std::move(found);
  }

  /// The costs from each place to the end: rest[stage][place], with one more row for the layout
  /// behind the last stage. Backwards, so that the plan can be read off forwards.
  [[nodiscard]] std::vector<std::vector<double>> rests(const Place& last) const {
    const std::size_t stages = m_mixed.size(), count = m_dimensions.size();
    std::vector<std::vector<double>> rest(stages + 1, std::vector<double>(count, infinite));
    for (std::size_t at = 0; at < count; ++at)
      if (!last || *last == at) rest[stages][at] = 0;
    for (std::size_t stage = stages; stage-- > 0;)
      for (std::size_t at = 0; at < count; ++at) {
        if (!allowed(stage, at)) continue;
        for (std::size_t next = 0; next < count; ++next)
          rest[stage][at] = std::min(rest[stage][at], cost(at, next) + rest[stage + 1][next]);
      }
    return rest;
  }

  /// The best path from `first`, if there is one, to `last`, if there is one. A cycle begins in the
  /// first stage with `first`, which it returns to; another path may switch in front of it.
  [[nodiscard]] Path path(const Place& first, const Place& last) const {
    const std::vector<std::vector<double>> rest = rests(last);
    Path found;
    // The next place: the present one if that costs no more than another.
    const auto next = [&](const Place& from, std::size_t stage) {
      const auto total = [&](std::size_t to) {
        return (from ? cost(*from, to) : 0) + rest[stage][to];
      };
      std::size_t best = from ? *from : 0;
      for (std::size_t to = 0; to < m_dimensions.size(); ++to)
        if (total(to) < total(best)) best = to;
      return best;
    };
    Place at = first;
    for (std::size_t stage = 0; stage <= m_mixed.size(); ++stage) {
      const std::size_t to = m_options.cyclic && stage == 0 ? *first : next(at, stage);
      if (stage == 0) found.cost = (first ? cost(*first, to) : 0) + rest[0][to];
      if (stage < m_mixed.size())
        found.places.push_back(to);
      else
        found.end = to;
      at = to;
    }
    return found;
  }

  [[nodiscard]] SwitchPlan plan_of(const Path& path) const {
    SwitchPlan plan;
    plan.cost = path.cost;
    for (const std::size_t at : path.places) plan.sharded.push_back(m_dimensions[at]);
    std::vector<std::size_t> layouts = plan.sharded;
    layouts.push_back(m_dimensions[path.end]);
    std::size_t before = m_options.first.value_or(layouts.front());
    for (std::size_t stage = 0; stage < layouts.size(); ++stage) {
      if (layouts[stage] != before) plan.switches.push_back({stage, before, layouts[stage]});
      before = layouts[stage];
    }
    return plan;
  }

  [[noreturn]] void throw_infeasible() const {
    // The first stage that no place can be reached in, or the end.
    std::vector<bool> reached(m_dimensions.size(), true);
    if (const Place first = place(m_options.first)) {
      reached.assign(m_dimensions.size(), false);
      reached[*first] = true;
    }
    std::size_t stage = 0;
    for (; stage < m_mixed.size(); ++stage) {
      std::vector<bool> next(m_dimensions.size(), false);
      for (std::size_t from = 0; from < next.size(); ++from)
        for (std::size_t to = 0; to < next.size(); ++to)
          if (reached[from] && allowed(stage, to) && std::isfinite(cost(from, to))) next[to] = true;
      reached = next;
      if (std::ranges::find(reached, true) == reached.end()) break;
    }
    const bool end = stage == m_mixed.size();
    throw infeasible(
        {switches_where,
         end ? "no switches lead to the last dimension, or back to the first one of a cycle"
             : text("stage ", stage, " has no dimension that can be sharded"),
         text(m_dimensions.size(), " dimensions",
              end ? "" : text(", the stage mixes dimension ", m_mixed[stage])),
         "add a dimension that the stage does not mix, or allow more switches"});
  }

  const std::vector<std::size_t>& m_dimensions;
  const std::vector<std::size_t>& m_mixed;
  const SwitchOptions& m_options;
};

}  // namespace impl

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const DimensionSwitch& change) {
  return out << "before stage " << change.before << " from " << change.from << " to " << change.to;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const SwitchPlan& plan) {
  out << plan.switches.size() << (plan.switches.size() == 1 ? " switch" : " switches");
  for (std::size_t i = 0; i < plan.switches.size(); ++i)
    out << (i == 0 ? ": " : ", ") << plan.switches[i];
  return out;
}

HEDDLE_INLINE SwitchPlan plan_switches(const std::vector<std::size_t>& dimensions,
                                       const std::vector<std::size_t>& mixed,
                                       const SwitchOptions& options) {
  return impl::SwitchPlanner(dimensions, mixed, options).run();
}

}  // namespace heddle::inline v0::systems
