// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of race_prediction.hpp.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline void expect_walkers(int walkers) {
  expects(walkers >= 1, [&] {
    return ErrorInfo{"heddle::systems::mean_of_least", "a race needs at least one walker",
                     text("walkers = ", walkers)};
  });
}

inline void expect_instant(double time) {
  expects(!std::isnan(time), [] {
    return ErrorInfo{"heddle::systems::share_within", "a time is not a number", "time = nan"};
  });
}

inline void check(const ShiftedExponential& times) {
  constexpr const char* where = "heddle::systems::ShiftedExponential";
  heddle::impl::expect_time(where, "least", times.least);
  heddle::impl::expect_time(where, "mean_excess", times.mean_excess);
}

inline void check(const LognormalTimes& times) {
  expects(std::isfinite(times.mean_logarithm) && heddle::impl::is_time(times.deviation), [&] {
    return ErrorInfo{
        "heddle::systems::LognormalTimes",
        "the members are finite, and the deviation is at least 0",
        text("mean_logarithm = ", times.mean_logarithm, ", deviation = ", times.deviation)};
  });
}

/// Returns the probability that a standard normal number is above `x`.
inline double normal_above(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }

}  // namespace impl

HEDDLE_INLINE EmpiricalTimes::EmpiricalTimes(std::vector<double> times)
    : m_times(std::move(times)) {
  expects(!m_times.empty(), [] {
    return ErrorInfo{"heddle::systems::EmpiricalTimes", "a prediction needs the times of runs",
                     "there are none"};
  });
  for (std::size_t i = 0; i < m_times.size(); ++i)
    expects(std::isfinite(m_times[i]) && m_times[i] >= 0, [&] {
      return ErrorInfo{"heddle::systems::EmpiricalTimes", "a time must be finite and not negative",
                       text("times[", i, "] = ", m_times[i]),
                       "leave out runs that found no result"};
    });
  std::sort(m_times.begin(), m_times.end());
}

HEDDLE_INLINE double EmpiricalTimes::share_within(double time) const {
  impl::expect_instant(time);
  const auto after = std::upper_bound(m_times.begin(), m_times.end(), time);
  return static_cast<double>(after - m_times.begin()) / static_cast<double>(m_times.size());
}

HEDDLE_INLINE double EmpiricalTimes::mean_of_least(int walkers) const {
  impl::expect_walkers(walkers);
  const auto count = static_cast<double>(m_times.size());
  double mean = 0;
  double all_later = 1;  // the probability that no walker is among the times so far
  for (std::size_t i = 0; i < m_times.size(); ++i) {
    const double next = std::pow((count - static_cast<double>(i + 1)) / count, walkers);
    mean += m_times[i] * (all_later - next);
    all_later = next;
  }
  return mean;
}

HEDDLE_INLINE ShiftedExponential ShiftedExponential::fit(const EmpiricalTimes& runs) {
  // The mean of equal runs may be rounded down.
  return {runs.times().front(), std::max(runs.mean_of_least(1) - runs.times().front(), 0.0)};
}

HEDDLE_INLINE double ShiftedExponential::share_within(double time) const {
  impl::check(*this);
  impl::expect_instant(time);
  if (time < least) return 0;
  return mean_excess > 0 ? -std::expm1((least - time) / mean_excess) : 1;
}

HEDDLE_INLINE double ShiftedExponential::mean_of_least(int walkers) const {
  impl::check(*this);
  impl::expect_walkers(walkers);
  return least + mean_excess / walkers;
}

HEDDLE_INLINE LognormalTimes LognormalTimes::fit(const EmpiricalTimes& runs) {
  const std::span<const double> times = runs.times();
  expects(times.front() > 0, [&] {
    return ErrorInfo{"heddle::systems::LognormalTimes::fit", "a time of 0 has no logarithm",
                     text(std::count(times.begin(), times.end(), 0.0), " of ", times.size(),
                          " runs took no time"),
                     "count steps from 1, or use EmpiricalTimes"};
  });
  const auto count = static_cast<double>(times.size());
  LognormalTimes fitted;
  for (const double time : times) fitted.mean_logarithm += std::log(time) / count;
  double variance = 0;
  for (const double time : times)
    variance += std::pow(std::log(time) - fitted.mean_logarithm, 2) / count;
  fitted.deviation = std::sqrt(variance);
  return fitted;
}

HEDDLE_INLINE double LognormalTimes::share_within(double time) const {
  impl::check(*this);
  impl::expect_instant(time);
  if (time <= 0) return 0;
  const double distance = std::log(time) - mean_logarithm;
  if (deviation == 0) return distance >= 0 ? 1 : 0;
  return impl::normal_above(-distance / deviation);
}

HEDDLE_INLINE double LognormalTimes::mean_of_least(int walkers) const {
  impl::check(*this);
  impl::expect_walkers(walkers);
  // The mean is the integral of P(every walker is later than y) over y. With y = exp(mean_logarithm
  // + deviation z), P is 1 to the last bit below z = -9, and beyond deviation + 10 nothing is left.
  constexpr double first = -9;
  constexpr int intervals = 4'000;  // of Simpson's rule
  const double last = deviation + 10;
  const double width = (last - first) / intervals;
  const auto integrand = [&](double z) {
    return deviation * std::exp(deviation * z) * std::pow(impl::normal_above(z), walkers);
  };
  double sum = integrand(first) + integrand(last);
  for (int i = 1; i < intervals; ++i) sum += (i % 2 == 1 ? 4 : 2) * integrand(first + width * i);
  const double mean = std::exp(mean_logarithm) * (std::exp(deviation * first) + sum * width / 3);
  expects(std::isfinite(mean), [&] {
    return ErrorInfo{"heddle::systems::mean_of_least", "the mean is more than a double can hold",
                     text("a deviation of ", deviation, " of the logarithms"),
                     "use EmpiricalTimes for runs that differ so much"};
  });
  return mean;
}

HEDDLE_INLINE double accepted_difference(const EmpiricalTimes& runs) {
  return 1.3581 / std::sqrt(static_cast<double>(runs.times().size()));
}

}  // namespace heddle::inline v0::systems
