// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Multiverse: nested forks of a text: masks, times, storage, and forks on threads.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/layout.hpp>
#include <heddle/pattern.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/multiverse/fork_join.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>

#include "comparison.hpp"
#include "support/fork_tree.hpp"
#include "support/rational.hpp"
#include "support/token_costs.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::test::Rational;
using hd::test::TokenCosts;

constexpr std::uint64_t programs = 2'000;

struct Counts {
  std::uint64_t masks = 0;   ///< programs whose mask is that of the brute force
  std::uint64_t times = 0;   ///< programs whose simulated time is the recursive formula
  std::uint64_t stored = 0;  ///< programs that store each token once
};

Counts counts() {
  Counts counts;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const hd::test::ForkTree tree = hd::test::ForkTrees(seed).draw(3);
    const hd::systems::ForkedText text = hd::test::text_of(tree);
    std::vector<hd::test::ForkToken> tokens;
    hd::test::append_tokens(tree, {}, tokens);
    bool same = text.tokens() == static_cast<std::int64_t>(tokens.size());
    for (std::size_t q = 0; q < tokens.size(); ++q) {
      std::vector<bool> seen(tokens.size(), false);
      for (const hd::Interval& interval : text.visible(static_cast<std::int64_t>(q)))
        for (std::int64_t k = interval.begin; k < interval.end; ++k)
          seen[static_cast<std::size_t>(k)] = true;
      for (std::size_t k = 0; k < tokens.size(); ++k)
        same = same && seen[k] == (k <= q && tokens[q].sees(tokens[k]));
    }
    counts.masks += same ? 1u : 0u;
    const hd::Schedule schedule = hd::systems::fork_join(text, 1);
    const Rational per_token(1, 3);
    const Rational time = hd::simulate(schedule, TokenCosts{text, per_token}).makespan();
    counts.times += time == hd::test::time_of(tree, per_token) ? 1u : 0u;
    hd::Bytes bytes = 0;
    for (const hd::Buffer& buffer : schedule.buffers()) bytes += buffer.bytes;
    counts.stored += bytes == static_cast<hd::Bytes>(text.tokens()) ? 1u : 0u;
  }
  return counts;
}

/// Returns the median of five ratios of the formula's time over the measured one: four branches of
/// waits between a prefix and a conclusion.
double over_formula() {
  const std::vector<int> branches{10, 40, 20, 30};  // ms
  std::vector<double> ratios;
  for (int run = 0; run < 5; ++run) {
    const auto wait = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
    const double begin = hd::steady_seconds();
    hd::pattern::fork_join({.threads = 4}, [&](hd::pattern::Fork& fork) {
      wait(10);
      return fork.map(
          branches,
          [&](hd::pattern::Fork&, int ms) {
            wait(ms);
            return ms;
          },
          [&](const std::vector<int>& done) {
            wait(10);
            return done.size();
          });
    });
    ratios.push_back(0.060 / (hd::steady_seconds() - begin));
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[2];
}

}  // namespace

std::vector<Comparison> multiverse() {
  const Counts good = counts();
  const auto of_all = [](std::uint64_t count) { return hd::text(count, " of ", programs); };
  const double ratio = over_formula();
  return {
      {"mask of random nested forks is that of every token's path", "", of_all(good.masks), "all",
       verdict(good.masks == programs)},
      {"simulated time: prefix, longest path and conclusion at every fork, on rationals", "",
       of_all(good.times), "none", not_judged("the Schedule gives each path a rank of its own")},
      {"bytes: the prefix once, and every path", "", of_all(good.stored), "all",
       verdict(good.stored == programs)},
      {"four branches of waits on threads: time of the formula over the measured time", "",
       hd::text(ratio), "at least 0.95", verdict(ratio >= 0.95)},
      {"accuracy and speed of the fine-tuned model", "2x", "", "none",
       "not reproducible: it needs the model; the gain of a text is its tokens over its positions"},
  };
}

}  // namespace report
