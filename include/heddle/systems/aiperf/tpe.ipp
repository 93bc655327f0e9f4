// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of tpe.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/aiperf/tpe.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// The counts of the values of an axis among some trials, one more for each value.
inline std::vector<double> tpe_counts(const plan::TuneAxis& axis, std::size_t number,
                                      std::span<const plan::TuneTrial* const> trials) {
  std::vector<double> counts(axis.values, 1);
  for (const plan::TuneTrial* trial : trials) ++counts[trial->point[number]];
  return counts;
}

inline void check_tpe(const std::vector<plan::TuneAxis>& axes,
                      std::span<const plan::TuneTrial> trials, const TpeOptions& options) {
  constexpr const char* where = "heddle::systems::propose_by_tpe";
  expects(!axes.empty() && options.good > 0 && options.good < 1 && options.candidates >= 1, [&] {
    return ErrorInfo{
        where, "there is an axis and a candidate, and a part of the trials is good",
        text(axes.size(), " axes, candidates = ", options.candidates, ", good = ", options.good)};
  });
  for (const plan::TuneAxis& axis : axes)
    expects(axis.values >= 1, [&] {
      return ErrorInfo{where, "an axis has no values", text("axis '", axis.name, "'")};
    });
  for (std::size_t t = 0; t < trials.size(); ++t) {
    expects(trials[t].point.size() == axes.size(), [&] {
      return ErrorInfo{
          where, "a trial has another number of axes",
          text("trial ", t, " has ", trials[t].point.size(), ", there are ", axes.size())};
    });
    for (std::size_t a = 0; a < axes.size(); ++a)
      expects(trials[t].point[a] < axes[a].values, [&] {
        return ErrorInfo{where, "a trial has a value that its axis does not have",
                         text("trial ", t, ", axis '", axes[a].name, "': ", trials[t].point[a],
                              " of ", axes[a].values)};
      });
  }
}

}  // namespace impl

HEDDLE_INLINE plan::TunePoint propose_by_tpe(const std::vector<plan::TuneAxis>& axes,
                                             std::span<const plan::TuneTrial> trials,
                                             std::uint64_t number, const TpeOptions& options) {
  impl::check_tpe(axes, trials, options);
  const Random random(options.seed, text("tpe ", number));
  std::uint64_t drawn = 0;
  plan::TunePoint point(axes.size());
  if (trials.size() < options.startup || trials.empty()) {
    for (std::size_t a = 0; a < axes.size(); ++a) point[a] = random.below(drawn++, axes[a].values);
    return point;
  }
  std::vector<const plan::TuneTrial*> ranked;
  for (const plan::TuneTrial& trial : trials) ranked.push_back(&trial);
  const auto feasible =
      std::stable_partition(ranked.begin(), ranked.end(), [](const plan::TuneTrial* trial) {
        return trial->cost.has_value() && !std::isnan(*trial->cost);
      });
  std::stable_sort(
      ranked.begin(), feasible,
      [](const plan::TuneTrial* a, const plan::TuneTrial* b) { return *a->cost < *b->cost; });
  const auto wanted =
      static_cast<std::size_t>(std::ceil(options.good * static_cast<double>(ranked.size())));
  const std::size_t cut = std::min(wanted, static_cast<std::size_t>(feasible - ranked.begin()));
  const std::span<const plan::TuneTrial* const> all(ranked);
  double best = -1;
  std::vector<std::pair<std::vector<double>, std::vector<double>>> counts;
  for (std::size_t a = 0; a < axes.size(); ++a)
    counts.emplace_back(impl::tpe_counts(axes[a], a, all.first(cut)),
                        impl::tpe_counts(axes[a], a, all.subspan(cut)));
  for (std::size_t c = 0; c < options.candidates; ++c) {
    plan::TunePoint candidate(axes.size());
    double ratio = 1;  // of probabilities, up to a factor that all candidates share
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const auto& [good, other] = counts[a];
      double rest = random.uniform(drawn++) * static_cast<double>(axes[a].values + cut);
      std::size_t value = 0;
      while (value + 1 < axes[a].values && rest >= good[value]) rest -= good[value++];
      candidate[a] = value;
      ratio *= good[value] / other[value];
    }
    if (ratio > best) {
      best = ratio;
      point = std::move(candidate);
    }
  }
  return point;
}

}  // namespace heddle::inline v0::systems
