// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SimulatedWorkers: workers of given speeds whose times are disturbed by random numbers, to judge
/// SpeedRatios by. The same for tests, benchmarks and the systems report; nothing in it is
/// measured.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/speed_ratios.hpp>

namespace heddle::test {

/// Workers that do `speeds[w]` items a second, give or take: in every round each of them takes up
/// to `noise` more or less, uniformly, from the random stream of `seed`.
class SimulatedWorkers {
 public:
  SimulatedWorkers(std::vector<double> speeds, double noise, std::uint64_t seed)
      : m_speeds(std::move(speeds)), m_noise(noise), m_random(seed, "simulated workers") {}

  /// Other speeds from the next round on.
  void become(std::vector<double> speeds) { m_speeds = std::move(speeds); }

  /// The next round: every worker's time for its range.
  [[nodiscard]] std::vector<Seconds> run(const std::vector<heddle::plan::ItemRange>& ranges) {
    std::vector<Seconds> times;
    for (std::size_t w = 0; w < ranges.size(); ++w) {
      const double disturbance = 1 + m_noise * (2 * m_random.uniform(m_drawn++) - 1);
      times.push_back(static_cast<double>(ranges[w].size()) / m_speeds[w] * disturbance);
    }
    return times;
  }

  /// How good a division is: the time of a perfect one over the time of this one, both at the
  /// undisturbed speeds, so that it judges the division and not the luck of the round.
  [[nodiscard]] double efficiency(const std::vector<heddle::plan::ItemRange>& ranges) const {
    const double all = std::accumulate(m_speeds.begin(), m_speeds.end(), 0.0);
    Seconds longest = 0;
    for (std::size_t w = 0; w < ranges.size(); ++w)
      longest = std::max(longest, static_cast<double>(ranges[w].size()) / m_speeds[w]);
    return static_cast<double>(ranges.back().last) / all / longest;
  }

 private:
  std::vector<double> m_speeds;
  double m_noise;
  Random m_random;
  std::uint64_t m_drawn = 0;
};

/// One round: divides, runs, learns. The division that was used.
inline std::vector<heddle::plan::ItemRange> run_round(heddle::plan::SpeedRatios& ratios,
                                                      SimulatedWorkers& workers,
                                                      std::int64_t items) {
  std::vector<heddle::plan::ItemRange> ranges = ratios.split(items);
  ratios.observe(ranges, workers.run(ranges));
  return ranges;
}

/// What is asked of SpeedRatios, for one seed of the noise.
struct SimulatedRun {
  double after_three = 0;  ///< efficiency of the fourth round
  double least_after = 1;  ///< of the fourth to the 50th
  double recovered = 0;    ///< after four rounds in which the speeds are in reverse order
  double gain = 0;  ///< an equal division's time over ours, from the fourth round to the 50th
};

/// Rounds of `items` items, first at `speeds`, then with these in reverse order.
inline SimulatedRun simulate_run(const std::vector<double>& speeds, double noise,
                                 std::uint64_t seed, std::int64_t items = 1'000'000) {
  const auto longest = [](const std::vector<Seconds>& times) {
    return *std::max_element(times.begin(), times.end());
  };
  SimulatedRun run;
  heddle::plan::SpeedRatios ratios(static_cast<int>(speeds.size()));
  const std::vector<heddle::plan::ItemRange> equal = ratios.split(items);
  SimulatedWorkers workers(speeds, noise, seed);
  Seconds theirs = 0;
  Seconds ours = 0;
  for (int round = 0; round < 50; ++round) {
    const std::vector<heddle::plan::ItemRange> ranges = ratios.split(items);
    const std::vector<Seconds> times = workers.run(ranges);
    ratios.observe(ranges, times);
    if (round < 3) continue;
    const double efficiency = workers.efficiency(ranges);
    if (round == 3) run.after_three = efficiency;
    run.least_after = std::min(run.least_after, efficiency);
    theirs += longest(workers.run(equal));
    ours += longest(times);
  }
  run.gain = theirs / ours;
  workers.become({speeds.rbegin(), speeds.rend()});
  for (int round = 0; round < 4; ++round) run_round(ratios, workers, items);
  run.recovered = workers.efficiency(ratios.split(items));
  return run;
}

}  // namespace heddle::test
