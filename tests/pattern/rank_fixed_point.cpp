// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Sweeps over ranks that are threads: the bits and counts of sweeps on threads, the values that
// move between sweeps, and refusals.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

#include "support/complaint.hpp"

namespace test_rank_fixed_point {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

using Before = pattern::ValuesBefore<double>;
using Rule = double (*)(int, const Before&);

double input(int i) { return Random(7, "input").normal(static_cast<std::uint64_t>(i)); }

double contracting(int i, const Before& before) {
  return std::tanh((i == 0 ? 0.0 : 0.9 * before[i - 1]) + input(i));
}
double chaotic(int i, const Before& before) {
  return i == 0 ? 0.3 : 3.9 * before[i - 1] * (1 - before[i - 1]);
}
/// Reads three values and has a kink.
double kinked(int i, const Before& before) {
  double sum = input(i);
  for (int j = std::max(0, i - 3); j < i; ++j) sum += (j % 2 == 0 ? 1 : -1) * std::abs(before[j]);
  return std::floor(8 * sum) / 8;
}
double reads_all(int i, const Before& before) {
  double sum = input(i);
  for (int j = 0; j < i; ++j) sum += std::sin(before[j]) / (i - j);
  return sum;
}

Equations<double, Rule> chain(Rule rule, int count) { return {count, 0.0, rule}; }

std::vector<pattern::FixedPoint<double>> on_ranks(int ranks,
                                                  const Equations<double, Rule>& equations,
                                                  const pattern::FixedPointOptions& options) {
  std::vector<pattern::FixedPoint<double>> all(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](ThreadTransport& transport) {
    all[+transport.rank()] = pattern::fixed_point(transport, equations, options);
  });
  return all;
}

TEST_CASE("sweeps over ranks give all ranks the bits and the counts of sweeps on threads") {
  struct Case {
    Rule rule;
    int reach;
  };
  for (const Case& each : {Case{contracting, 1}, Case{chaotic, 1}, Case{kinked, 3},
                           Case{reads_all, 0}, Case{contracting, 0}, Case{kinked, 50}})
    for (const int count : {0, 1, 7, 40})
      for (const pattern::Sweep sweep :
           {pattern::Sweep::gauss_seidel, pattern::Sweep::jacobi,
            pattern::Sweep::jacobi_gauss_seidel, pattern::Sweep::gauss_seidel_jacobi})
        for (const int ranks : {1, 2, 3, 5})
          for (const int most : {0, 3}) {
            const int block = count == 40 ? 6 : 0;
            const auto expected = pattern::fixed_point(
                chain(each.rule, count),
                {.sweep = sweep, .threads = ranks, .block = block, .most_sweeps = most});
            CAPTURE(count, static_cast<int>(sweep), ranks, each.reach, most);
            for (const auto& x : on_ranks(
                     ranks, chain(each.rule, count),
                     {.sweep = sweep, .block = block, .most_sweeps = most, .reach = each.reach})) {
              CHECK(x.values == expected.values);
              CHECK(x.sweeps == expected.sweeps);
              CHECK(x.evaluations == expected.evaluations);
              CHECK(x.longest_share == expected.longest_share);
              CHECK(x.exact == expected.exact);
              CHECK(x.converged == expected.converged);
            }
          }
}

/// The values that rank `r` of `ranks` must get between the sweeps of a chain with reach 1, from
/// the number of exact values after each sweep: what it reads next, but has not computed.
std::int64_t must_receive(const Equations<double, Rule>& equations, int ranks, int r) {
  const int count = equations.size();
  const auto first = [&](int exact, int rank) { return exact + rank * (count - exact) / ranks; };
  std::int64_t sum = 0;
  int before = 0;
  for (int sweep = 1;; ++sweep) {
    const auto x = pattern::fixed_point(equations, {.threads = ranks, .most_sweeps = sweep});
    if (x.converged) return sum;
    for (int i = std::max(before, first(x.exact, r) - 1); i < first(x.exact, r + 1); ++i)
      if (i < first(before, r) || i >= first(before, r + 1)) ++sum;
    before = x.exact;
  }
}

TEST_CASE("between two sweeps only the boundary moves, and what changes its rank") {
  constexpr int count = 120;
  for (const int ranks : {2, 4}) {
    for (const Rule rule : {contracting, chaotic}) {
      const auto all = on_ranks(ranks, chain(rule, count), {.reach = 1});
      for (int r = 0; r < ranks; ++r) {
        const pattern::FixedPoint<double>& x = all[static_cast<std::size_t>(r)];
        CAPTURE(ranks, r, x.sweeps);
        CHECK(x.received == must_receive(chain(rule, count), ranks, r));
        // At most one value a sweep, and each value once because the share has moved.
        CHECK(x.received <= x.sweeps - 1 + count);
      }
    }
    // All that is before a share moves if the equations may read it.
    const auto whole = on_ranks(ranks, chain(contracting, count), {});
    CHECK(whole.back().received > 10 * count);
  }
}

/// The sweeps of ranks that read old values of others, in one loop: every sweep is kept whole.
struct OldSweeps {
  std::vector<std::vector<double>> values;  // by sweep; sweep 0 is the start
  int sweeps = 0;
  OldSweeps(const Equations<double, Rule>& equations, int ranks, const schedule::Staleness& fresh) {
    const int n = equations.size();
    values.emplace_back(static_cast<std::size_t>(n), 0.0);
    const auto rank_of = [&](int i) {
      int rank = 0;
      while (rank + 1 < ranks && i >= (rank + 1) * n / ranks) ++rank;
      return rank;
    };
    std::vector<int> read{0};     // by sweep: the sweep of which others were read
    std::vector<int> changed{0};  // by sweep: one past the first value that changed
    int come = 0;
    for (int exact = 0; exact < n;) {
      const int sweep = ++sweeps;
      std::vector<double> next(static_cast<std::size_t>(n));
      std::vector<double> seen(static_cast<std::size_t>(n));
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < i; ++j) {
          const auto of = static_cast<std::size_t>(rank_of(j) == rank_of(i) ? sweep - 1 : come);
          seen[static_cast<std::size_t>(j)] = values[of][static_cast<std::size_t>(j)];
        }
        next[static_cast<std::size_t>(i)] = equations(i, {seen.data(), seen.data(), i, i});
      }
      int first = 0;
      while (first < n && next[static_cast<std::size_t>(first)] ==
                              values.back()[static_cast<std::size_t>(first)])
        ++first;
      read.push_back(come);
      changed.push_back(std::min(n, first + 1));
      values.push_back(std::move(next));
      const int due = sweep - fresh.of_call(sweep);
      if (due <= come) continue;
      come = due;
      int final = n;
      for (int s = read[static_cast<std::size_t>(due)] + 1; s <= due; ++s)
        final = std::min(final, changed[static_cast<std::size_t>(s)]);
      exact = std::max(exact, final);
    }
  }
};

TEST_CASE("ranks that read old values get the bits of a plain loop, and the counts of that rule") {
  struct Case {
    Rule rule;
    int reach;
  };
  for (const Case& each : {Case{contracting, 1}, Case{kinked, 3}, Case{reads_all, 0}})
    for (const int count : {7, 30})
      for (const int ranks : {1, 2, 5})
        for (const schedule::Staleness fresh :
             {schedule::Staleness{.age = 1}, schedule::Staleness{.age = 3},
              schedule::Staleness{.age = 2, .warmup = 5}}) {
          const auto equations = chain(each.rule, count);
          const OldSweeps expected(equations, ranks, fresh);
          const std::vector<double> loop =
              pattern::fixed_point(equations, {.sweep = pattern::Sweep::gauss_seidel}).values;
          CAPTURE(count, ranks, each.reach, fresh.age, fresh.warmup);
          CHECK(expected.values.back() == loop);
          const auto all = on_ranks(ranks, equations, {.reach = each.reach, .staleness = fresh});
          for (const auto& x : all) {
            CHECK(x.values == loop);
            CHECK(x.sweeps == expected.sweeps);
            CHECK(x.exact == count);
            CHECK(x.converged);
          }
          // One boundary a sweep, and nothing else.
          if (each.reach == 1)
            for (const auto& x : all) CHECK(x.received <= x.sweeps);
          // Stopped before: the values of that sweep.
          const auto few = on_ranks(ranks, equations,
                                    {.most_sweeps = 2, .reach = each.reach, .staleness = fresh});
          if (expected.sweeps > 2)
            for (const auto& x : few) {
              CHECK(x.values == expected.values[2]);
              CHECK(x.sweeps == 2);
              CHECK_FALSE(x.converged);
            }
        }
}

TEST_CASE("each boundary between ranks costs a chaotic chain as many sweeps as values are old") {
  // Every sweep makes one value final, and a boundary holds it up by the age. That nothing changes
  // any more is seen when the age has passed twice.
  constexpr int count = 60;
  for (const int ranks : {2, 4})
    for (const int age : {1, 2, 4})
      for (const auto& x :
           on_ranks(ranks, chain(chaotic, count), {.reach = 1, .staleness = {.age = age}}))
        CHECK(x.sweeps == count + age * (ranks - 1) + 2 * age);
  // Blocks in turn inside a share: as many sweeps as blocks, and the same for each boundary.
  const auto blocks = on_ranks(3, chain(chaotic, count),
                               {.sweep = pattern::Sweep::jacobi_gauss_seidel,
                                .block = 5,
                                .reach = 1,
                                .staleness = {.age = 2}});
  const auto loop =
      pattern::fixed_point(chain(chaotic, count), {.sweep = pattern::Sweep::gauss_seidel});
  for (const auto& x : blocks) {
    CHECK(x.values == loop.values);
    CHECK(x.sweeps == 12 + 2 * 2 + 2 * 2);
  }
}

TEST_CASE("a chain of 200 on ranks is near within 65 sweeps") {
  std::vector<double> loop(200);
  for (int i = 0; i < 200; ++i)
    loop[static_cast<std::size_t>(i)] = contracting(i, {loop.data(), loop.data(), i, i});
  const auto x = on_ranks(3, chain(contracting, 200), {.tolerance = 1e-11, .reach = 1}).front();
  double error = 0;
  for (std::size_t i = 0; i < loop.size(); ++i)
    error = std::max(error, std::abs(x.values[i] - loop[i]));
  CHECK(x.converged);
  CHECK(x.sweeps <= 65);
  CHECK(error <= 1e-10);
}

TEST_CASE("wrong options, unequal ranks and failing equations end all ranks") {
  const auto errors = [](auto&& equations_of, auto&& options_of) {
    std::vector<std::string> texts(3);
    try {
      run_threads(3, [&](ThreadTransport& transport) {
        const std::uint32_t rank = transport.rank().value;
        try {
          static_cast<void>(pattern::fixed_point(transport, equations_of(rank), options_of(rank)));
        } catch (const std::exception& error) {
          texts[rank] = error.what();
          throw;
        }
      });
    } catch (const std::exception&) {  // it is among the texts
    }
    return texts;
  };
  const auto all = [](const std::vector<std::string>& texts, const char* expected) {
    for (const std::string& each : texts) CHECK_THAT(each, ContainsSubstring(expected));
  };
  const auto same = [](std::uint32_t) { return chain(contracting, 20); };
  all(errors(same, [](std::uint32_t) { return pattern::FixedPointOptions{.reach = -1}; }),
      "reach = -1");
  all(errors(same, [](std::uint32_t) { return pattern::FixedPointOptions{.tolerance = -1}; }),
      "the tolerance must be finite");
  all(errors(same,
             [](std::uint32_t) { return pattern::FixedPointOptions{.staleness = {.age = -1}}; }),
      "heddle::pattern::fixed_point");
  all(errors(same,
             [](std::uint32_t) {
               return pattern::FixedPointOptions{.sweep = pattern::Sweep::gauss_seidel,
                                                 .staleness = {.age = 1}};
             }),
      "old values need a sweep in which all ranks compute at once");
  all(errors(same,
             [](std::uint32_t r) {
               return pattern::FixedPointOptions{.staleness = {.age = r == 1 ? 2 : 1}};
             }),
      "rank 0 has staleness = age 1, rank 1 has staleness = age 2");
  all(errors(same,
             [](std::uint32_t r) { return pattern::FixedPointOptions{.reach = r == 1 ? 2 : 1}; }),
      "rank 0 has reach = 1, rank 1 has reach = 2");
  all(errors([](std::uint32_t r) { return chain(contracting, r == 2 ? 19 : 20); },
             [](std::uint32_t) { return pattern::FixedPointOptions{}; }),
      "rank 0 has equations = 20, rank 2 has equations = 19");
  const auto far = errors([](std::uint32_t) { return chain(kinked, 20); },
                          [](std::uint32_t) { return pattern::FixedPointOptions{.reach = 2}; });
  // Rank 0 names the equation that was evaluated first, which may be another rank's.
  CHECK_THAT(far[0], ContainsSubstring("reads farther back than options.reach (equation ") &&
                         ContainsSubstring(", reach = 2); set reach to the largest distance"));
  const Rule breaks = [](int i, const Before& before) {
    if (i == 12 && before[11] > 5) throw std::runtime_error("equation 12 broke");
    return i == 0 ? 1.0 : before[i - 1] + 1;
  };
  for (const int age : {0, 2}) {
    const auto broken =
        errors([&](std::uint32_t) { return chain(breaks, 20); },
               [&](std::uint32_t) {
                 return pattern::FixedPointOptions{.reach = 1, .staleness = {.age = age}};
               });
    // Equation 12 is in the share of one rank; the others hear of it.
    CHECK(std::count(broken.begin(), broken.end(), "equation 12 broke") == 1);
    for (const std::string& each : broken) CHECK_THAT(each, ContainsSubstring("equation 12 broke"));
  }
}

TEST_CASE("the watchdog names all ranks that do not come to the end of a sweep") {
  for (const int age : {0, 2})
    for (const std::uint32_t first_silent : {1u, 2u}) {
      std::vector<std::string> texts(3);
      CHECK_THROWS_AS(
          run_threads(3,
                      [&](ThreadTransport& transport) {
                        const bool silent = transport.rank().value >= first_silent;
                        const auto rule = [&](int i, const pattern::ValuesBefore<double>& before) {
                          while (silent && !transport.aborted()) std::this_thread::yield();
                          return contracting(i, before);
                        };
                        const Equations<double, decltype(rule)> equations(20, 0.0, rule);
                        try {
                          static_cast<void>(pattern::fixed_point(
                              transport, equations,
                              {.reach = 1, .staleness = {.age = age}, .wait = {.watchdog = 0.2}}));
                        } catch (const communication_error& error) {
                          texts[+transport.rank()] = error.what();
                          throw;
                        }
                      }),
          communication_error);
      CAPTURE(age, first_silent);
      CHECK_THAT(texts[0], ContainsSubstring(first_silent == 1 ? "ranks 1, 2 do not answer"
                                                               : "rank 2 does not answer"));
    }
}

}  // namespace test_rank_fixed_point
