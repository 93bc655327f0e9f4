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
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>
#include <heddle/pattern/sweep.hpp>

#include "support/complaint.hpp"

namespace test_rank_fixed_point {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

using Before = ValuesBefore<double>;
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

std::vector<FixedPoint<double>> on_ranks(int ranks, const Equations<double, Rule>& equations,
                                         const RankFixedPointOptions& options) {
  std::vector<FixedPoint<double>> all(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](ThreadTransport& transport) {
    all[+transport.rank()] = fixed_point(transport, equations, options);
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
      for (const Sweep sweep : {Sweep::gauss_seidel, Sweep::jacobi, Sweep::jacobi_gauss_seidel,
                                Sweep::gauss_seidel_jacobi})
        for (const int ranks : {1, 2, 3, 5})
          for (const int most : {0, 3}) {
            const int block = count == 40 ? 6 : 0;
            const auto expected = fixed_point(
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
    const auto x = fixed_point(equations, {.threads = ranks, .most_sweeps = sweep});
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
        const FixedPoint<double>& x = all[static_cast<std::size_t>(r)];
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
          static_cast<void>(fixed_point(transport, equations_of(rank), options_of(rank)));
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
  all(errors(same, [](std::uint32_t) { return RankFixedPointOptions{.reach = -1}; }), "reach = -1");
  all(errors(same, [](std::uint32_t) { return RankFixedPointOptions{.tolerance = -1}; }),
      "the tolerance must be finite");
  all(errors(same, [](std::uint32_t r) { return RankFixedPointOptions{.reach = r == 1 ? 2 : 1}; }),
      "rank 0 has reach = 1, rank 1 has reach = 2");
  all(errors([](std::uint32_t r) { return chain(contracting, r == 2 ? 19 : 20); },
             [](std::uint32_t) { return RankFixedPointOptions{}; }),
      "rank 0 has equations = 20, rank 2 has equations = 19");
  const auto far = errors([](std::uint32_t) { return chain(kinked, 20); },
                          [](std::uint32_t) { return RankFixedPointOptions{.reach = 2}; });
  CHECK_THAT(far[0], ContainsSubstring("reads farther back than options.reach") &&
                         ContainsSubstring("equation 3 reads value 0, reach = 2"));
  const Rule breaks = [](int i, const Before& before) {
    if (i == 12 && before[11] > 5) throw std::runtime_error("equation 12 broke");
    return i == 0 ? 1.0 : before[i - 1] + 1;
  };
  const auto broken = errors([&](std::uint32_t) { return chain(breaks, 20); },
                             [](std::uint32_t) { return RankFixedPointOptions{.reach = 1}; });
  // Equation 12 is in the share of one rank; the others hear of it.
  CHECK(std::count(broken.begin(), broken.end(), "equation 12 broke") == 1);
  for (const std::string& each : broken) CHECK_THAT(each, ContainsSubstring("equation 12 broke"));
}

}  // namespace test_rank_fixed_point
