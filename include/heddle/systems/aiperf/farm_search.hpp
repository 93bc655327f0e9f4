// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// farm_search(): a search whose proposals depend on earlier results, with several evaluations at a
/// time.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/farm.hpp>

namespace heddle::inline v0::systems {

/// A trial of a search: an aggregate of a `point` and its `cost`, a std::optional<double>, such as
/// plan::TuneTrial. The cost is nothing if the evaluation failed.
template <class Trial>
concept SearchTrial = requires(Trial trial) {
  trial.point;
  { trial.cost } -> std::convertible_to<std::optional<double>>;
};

/// Runs a search of `trials` trials on a farm() and returns them in the order of their proposals.
///
/// - `propose(number, history)` returns the point of the trial with this number. The history is a
///   std::span of the trials up to number - options.lag. One thread at a time calls it.
/// - `evaluate(point)`, or `evaluate(point, task)`, returns the cost, or nothing if the point is
///   infeasible. If it throws at all options.attempts, the trial has no cost. Several threads call
///   it at once.
///
/// The trials are the same for any number of workers, because a proposal sees exactly these
/// results, whatever else has arrived. A lag of about twice the number of workers costs little
/// time. Every trial counts once, even if a worker is silent for longer than options.lease.
/// @throws contract_error if options.lag is 0 or `trials` is negative, or as farm() does; the
///         exception of `propose`.
template <SearchTrial Trial, class Propose, class Evaluate>
[[nodiscard]] std::vector<Trial> farm_search(const pattern::FarmOptions& options,
                                             std::int64_t trials, Propose&& propose,
                                             Evaluate&& evaluate) {
  expects(options.lag >= 1 && trials >= 0, [&] {
    return ErrorInfo{"heddle::systems::farm_search",
                     "a proposal sees the results of earlier trials",
                     text("lag = ", options.lag, ", trials = ", trials),
                     "set lag to about twice the number of workers"};
  });
  using Point = decltype(Trial::point);
  using Cost = std::optional<double>;
  // The farm calls source and sink one at a time, so both may use the trials.
  std::vector<Trial> made;
  pattern::farm(
      options,
      [&](std::span<const pattern::FarmOutcome<Cost>> outcomes) -> std::optional<Point> {
        if (made.size() == static_cast<std::size_t>(trials)) return std::nullopt;
        Trial next{};
        next.point = propose(made.size(), std::span<const Trial>(made.data(), outcomes.size()));
        made.push_back(std::move(next));
        return made.back().point;
      },
      [&](const Point& point, const pattern::FarmTask& task) -> Cost {
        return heddle::impl::farm_work(evaluate, point, task);
      },
      [&](std::int64_t number, pattern::FarmOutcome<Cost>&& outcome) {
        if (outcome.value) made[static_cast<std::size_t>(number)].cost = *outcome.value;
      });
  return made;
}

}  // namespace heddle::inline v0::systems
