// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The speed-up of a race of independent walkers, predicted from runs of one walker.
///
/// The run time of a random search that never restarts is a random variable Y. If n walkers search
/// with seeds of their own and the first result ends the race, the race takes the least of n times,
/// so the speed-up is E[Y] / E[least of n]. Source of the method: Arbelaez, Truchet and O'Sullivan,
/// "Learning sequential and parallel runtime distributions for randomized algorithms", ICTAI 2016.
/// "Time" is any measure of work; a count of steps is better than seconds, because it is the same
/// on each machine. pattern/race.hpp runs races.

#include <cstddef>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// The measured times of a walker's runs, as a distribution of their own. It makes no assumption
/// about the shape, but it knows nothing below the least time of its runs: predict no more walkers
/// than about a tenth of the runs.
class EmpiricalTimes {
 public:
  /// Sorts the times. @throws contract_error if there are none, or if one is negative or not
  /// finite; a run that found nothing has no time and must be left out.
  explicit EmpiricalTimes(std::vector<double> times);

  /// Returns the times, the least one first.
  [[nodiscard]] std::span<const double> times() const noexcept {
    return {m_times.data(), m_times.size()};
  }

  /// Returns the share of runs that took at most `time`.
  [[nodiscard]] double share_within(double time) const;

  /// Returns the mean of the least of `walkers` times: with the m sorted times y_1, y_2, ..., the
  /// sum of y_i * ((1 - (i - 1) / m)^walkers - (1 - i / m)^walkers).
  /// @throws contract_error if `walkers` is below 1.
  [[nodiscard]] double mean_of_least(int walkers) const;

 private:
  std::vector<double> m_times;
};

/// An exponential distribution that begins at `least`. Each walker needs the time `least` in any
/// case, so the speed-up cannot exceed 1 + mean_excess / least.
struct ShiftedExponential {
  double least = 0;        ///< the least time that is possible
  double mean_excess = 0;  ///< the mean time above it

  /// Returns the fit of greatest likelihood: `least` is the least time of the runs.
  [[nodiscard]] static ShiftedExponential fit(const EmpiricalTimes& runs);

  /// Returns the probability of a time of at most `time`.
  /// @throws contract_error if a member is negative or not finite, or if `time` is not a number.
  [[nodiscard]] double share_within(double time) const;
  /// Returns the mean of the least of `walkers` times, least + mean_excess / walkers.
  /// @throws contract_error if a member is negative or not finite, or if `walkers` is below 1.
  [[nodiscard]] double mean_of_least(int walkers) const;
};

/// A distribution of times whose logarithms are normally distributed.
struct LognormalTimes {
  double mean_logarithm = 0;  ///< the mean of the logarithms
  double deviation = 0;       ///< the standard deviation of the logarithms

  /// Returns the fit of greatest likelihood.
  /// @throws contract_error if a time is 0, because it has no logarithm.
  [[nodiscard]] static LognormalTimes fit(const EmpiricalTimes& runs);

  /// Returns the probability of a time of at most `time`.
  /// @throws contract_error if a member is not finite, if `deviation` is negative, or if `time` is
  ///         not a number.
  [[nodiscard]] double share_within(double time) const;
  /// Returns the mean of the least of `walkers` times by quadrature, with a relative error below
  /// 1e-6. @throws contract_error if a member is not finite, if `deviation` is negative, or if
  ///         `walkers` is below 1.
  [[nodiscard]] double mean_of_least(int walkers) const;
};

/// Returns the predicted speed-up of a race, mean_of_least(1) / mean_of_least(walkers), or 1 if all
/// times are 0. `Times` is one of the three distributions above.
/// @throws contract_error if `walkers` is below 1.
template <class Times>
[[nodiscard]] double race_speed_up(const Times& times, int walkers) {
  const double of_least = times.mean_of_least(walkers);
  return of_least > 0 ? times.mean_of_least(1) / of_least : 1;
}

/// Returns the distance of Kolmogorov and Smirnov: the largest difference between the share of runs
/// within a time and the probability of it. The distribution must be continuous.
template <class Times>
[[nodiscard]] double largest_difference(const EmpiricalTimes& runs, const Times& times) {
  const std::span<const double> sorted = runs.times();
  const auto count = static_cast<double>(sorted.size());
  double largest = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t after = i + 1;
    while (after < sorted.size() && sorted[after] == sorted[i]) ++after;
    const double expected = times.share_within(sorted[i]);
    const double below = static_cast<double>(i) / count;  // the share of shorter runs
    const double within = static_cast<double>(after) / count;
    for (const double difference : {expected - below, within - expected})
      if (difference > largest) largest = difference;
    i = after;
  }
  return largest;
}

/// Returns the largest_difference() up to which a distribution is accepted at the level of 5%, by
/// the asymptotic formula 1.3581 / sqrt(runs). A distribution that was fitted to the same runs is
/// accepted more often than that.
[[nodiscard]] double accepted_difference(const EmpiricalTimes& runs);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/race_prediction/race_prediction.ipp>
#endif
