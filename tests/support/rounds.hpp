// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_in_rounds(): forms that are measured in interleaved rounds and judged by their medians,
/// for all tests that compare the times of waits.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iostream>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>

#include "support/sleep_noise.hpp"

namespace heddle::test {

/// What was measured of one form in several rounds. A round counts if the machine was quiet beside
/// it (SleepNoise), whatever was measured.
class Spread {
 public:
  void add(double value, bool quiet) {
    if (quiet) m_quiet.push_back(m_values.size());
    m_values.push_back(value);
  }

  /// Returns the number of rounds that count.
  [[nodiscard]] std::size_t count() const { return m_quiet.size(); }
  [[nodiscard]] double least() const { return m_values[sorted().front()]; }
  [[nodiscard]] double most() const { return m_values[sorted().back()]; }
  /// Returns the value in the middle. An even number of values has two; this is the larger one.
  [[nodiscard]] double median() const { return m_values[median_round()]; }
  /// Returns the round in which median() was measured, of all rounds.
  [[nodiscard]] std::size_t median_round() const { return sorted()[count() / 2]; }

  friend std::ostream& operator<<(std::ostream& out, const Spread& spread) {
    if (spread.count() > 0)
      out << "median " << spread.median() << " (" << spread.least() << " to " << spread.most()
          << "), ";
    return out << spread.count() << " of " << spread.m_values.size() << " rounds count";
  }

 private:
  /// Returns the rounds that count, in the order of their values.
  [[nodiscard]] std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> rounds = m_quiet;
    std::ranges::stable_sort(rounds, {}, [&](std::size_t round) { return m_values[round]; });
    return rounds;
  }

  std::vector<double> m_values;      ///< by round
  std::vector<std::size_t> m_quiet;  ///< the rounds that count
};

/// One of the forms that are compared. `measure` runs it once and returns its time, or a ratio. A
/// round that measures several forms together needs none, see repeat_rounds().
struct Form {
  std::string name;
  std::function<double()> measure = {};
  Spread spread = {};
};

struct RoundOptions {
  Seconds limit = 20;  ///< no round begins later than that after the first one
  bool print = true;   ///< whether to print the spreads at the end
  bool spins = false;  ///< if the forms spin while they wait, all rounds count
  /// If several ranks measure together: returns whether its argument is true on all of them.
  std::function<bool(bool)> all = [](bool mine) { return mine; };
};

/// What a test says when it is skipped because measure_in_rounds() returns false.
inline constexpr const char* no_result =
    "other programs disturb too many rounds: there is no result";

/// A sleep beside a measurement is late if it ends that much after it should.
inline constexpr Seconds late_sleep = 1e-3;

/// Repeats `round()`, which adds what it measures to the spreads of `forms`. `holds()` says whether
/// the test's bar holds on the medians. The rounds end as soon as three values or more count for
/// each form and the bar holds, and at the limit otherwise. Then the test checks its bar on the
/// same medians: no value is left out because it is bad. A form must nap while it waits
/// (Idle::nap), because one that spins disturbs the machine itself; see RoundOptions::spins.
///
/// Returns false if fewer than three values of a form count at the limit. Prints the spread of each
/// form.
template <class Round, class Holds>
[[nodiscard]] bool repeat_rounds(std::span<const Form> forms, Round&& round, Holds&& holds,
                                 const RoundOptions& options = {}) {
  constexpr std::size_t fewest = 3;
  const auto enough = [&] {
    return std::ranges::all_of(forms, [](const Form& f) { return f.spread.count() >= fewest; });
  };
  const Seconds start = steady_seconds();
  while (options.all(steady_seconds() - start < options.limit)) {
    round();
    if (options.all(enough() && holds())) break;
  }
  if (options.print)
    for (const Form& form : forms) std::cout << form.name << ": " << form.spread << '\n';
  return enough();
}

/// Measures each form once in every round of repeat_rounds(), so that what changes on the machine
/// meets all of them.
template <class Holds>
[[nodiscard]] bool measure_in_rounds(std::span<Form> forms, Holds&& holds,
                                     const RoundOptions& options = {}) {
  const auto round = [&] {
    for (Form& form : forms) {
      SleepNoise noise(late_sleep);
      const double value = form.measure();
      form.spread.add(value, options.all(noise.end().quiet() || options.spins));
    }
  };
  return repeat_rounds(forms, round, std::forward<Holds>(holds), options);
}

}  // namespace heddle::test
