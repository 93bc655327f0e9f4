// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the benchmarks share: the summary of a sample, the lines that scripts/bench reads, and the
/// check that competitors do the same work. docs/benchmarks.md describes the lines.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <time.h>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>

namespace bench {

/// What is said of a sample. All values are measured ones, none is interpolated.
struct Summary {
  double median = 0;
  double low = 0;   ///< 5% of the sample lie below
  double high = 0;  ///< 5% of the sample lie above
  double from = 0;  ///< [from, to] holds the median of all possible samples with 95% confidence
  double to = 0;
  std::size_t count = 0;
};

/// The lower end of the 95% interval of the median of `count` values, as an index into them in
/// ascending order; the upper end lies as far from the other end. From the binomial distribution:
/// the number of values below the true median is one of `count` tosses of a coin. Fewer than 6
/// values have no such interval; their extremes are taken.
[[nodiscard]] inline std::size_t interval_index(std::size_t count) {
  const double n = static_cast<double>(count);
  double below = 0;  // P(at most k of the values lie below the median)
  std::size_t k = 0;
  for (;; ++k) {
    const double ways = std::lgamma(n + 1) - std::lgamma(static_cast<double>(k) + 1) -
                        std::lgamma(n - static_cast<double>(k) + 1);
    below += std::exp(ways - n * std::log(2.0));
    if (below > 0.025) break;
  }
  return k == 0 ? 0 : k - 1;
}

[[nodiscard]] inline Summary summarise(std::vector<double> sample) {
  heddle::expects(!sample.empty(), [] {
    return heddle::ErrorInfo{"bench::summarise", "the sample is empty"};
  });
  std::sort(sample.begin(), sample.end());
  const std::size_t last = sample.size() - 1;
  const auto tail = static_cast<std::size_t>(0.05 * static_cast<double>(last));
  const std::size_t end = interval_index(sample.size());
  return {sample[sample.size() / 2], sample[tail], sample[last - tail], sample[end],
          sample[last - end],        sample.size()};
}

/// Paired ratios: `theirs[i] / ours[i]`, above 1 where we took less time.
[[nodiscard]] inline Summary ratios(const std::vector<double>& theirs,
                                    const std::vector<double>& ours) {
  std::vector<double> sample;
  for (std::size_t i = 0; i < ours.size(); ++i) sample.push_back(theirs[i] / ours[i]);
  return summarise(std::move(sample));
}

namespace impl {

inline void print(std::string_view first, std::string_view name, std::string_view what,
                  const Summary& summary, std::string_view unit) {
#ifndef __OPTIMIZE__  // a build of the tests only shows that benchmarks compile
  std::cout << "skip " << name << " compiled without optimisation, where times say nothing\n";
  return;
#endif
  std::ostringstream line;
  line.precision(4);
  line << first << ' ' << name << ' ' << what << ' ' << summary.median << ' ' << summary.low << ".."
       << summary.high;
  if (!unit.empty()) line << ' ' << unit;
  line << "\ninterval " << name << ' ' << what << ' ' << summary.from << ".." << summary.to << '\n';
  std::cout << std::move(line).str() << std::flush;
}

}  // namespace impl

/// `ratio AREA/CASE PEER VALUE SPREAD`, and the interval of the median.
inline void print_ratio(std::string_view name, std::string_view peer, const Summary& summary) {
  impl::print("ratio", name, peer, summary, {});
}

/// `value AREA/CASE WHAT VALUE SPREAD UNIT`, and the interval of the median.
inline void print_value(std::string_view name, std::string_view what, const Summary& summary,
                        std::string_view unit) {
  impl::print("value", name, what, summary, unit);
}

/// Ends the benchmark where competitors did not do the same work: no time of it means anything.
template <class A, class B>
void require_equal(std::string_view what, const A& ours, const B& theirs) {
  if (ours == theirs) return;
  throw heddle::contract_error({"benchmark",
                                heddle::text(what, " differs: the work is not the same"),
                                heddle::text(ours, " and ", theirs)});
}

/// Wall time of `work()`.
template <class Work>
[[nodiscard]] heddle::Seconds seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<heddle::Seconds>(std::chrono::steady_clock::now() - start).count();
}

/// Processor time of `work()` on the calling thread: what the work costs, also on a machine that
/// has more to do. Says nothing of work on other threads.
template <class Work>
[[nodiscard]] heddle::Seconds processor_seconds_of(Work&& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

/// The status of a program that is `run()`: 0, or 1 and what went wrong.
template <class Run>
[[nodiscard]] int status_of(std::string_view name, Run&& run) {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace bench
