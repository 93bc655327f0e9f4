// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Sweeps over chains of equations against a plain loop: bits, prefixes, counts and refusals.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/pattern.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_fixed_point {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

constexpr pattern::Sweep sweeps[] = {pattern::Sweep::gauss_seidel, pattern::Sweep::jacobi,
                                     pattern::Sweep::jacobi_gauss_seidel,
                                     pattern::Sweep::gauss_seidel_jacobi};

double input(int i) { return Random(7, "input").normal(static_cast<std::uint64_t>(i)); }

double contracting(int i, const pattern::ValuesBefore<double>& before) {
  return std::tanh((i == 0 ? 0.0 : 0.9 * before[i - 1]) + input(i));
}
double chaotic(int i, const pattern::ValuesBefore<double>& before) {
  if (i == 0) return 0.3;
  return 3.9 * before[i - 1] * (1 - before[i - 1]);
}
/// Reads all values before it and has a kink.
double non_smooth(int i, const pattern::ValuesBefore<double>& before) {
  double sum = input(i);
  for (int j = 0; j < i; ++j) sum += (j % 2 == 0 ? 1 : -1) * std::abs(before[j]) / (i - j);
  return std::floor(8 * sum) / 8;
}

using Rule = double (*)(int, const pattern::ValuesBefore<double>&);
constexpr Rule rules[] = {contracting, chaotic, non_smooth};

std::vector<double> loop(Rule rule, int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = rule(i, {values.data(), values.data(), i, i});
  return values;
}

Equations<double, Rule> chain(Rule rule, int count) { return {count, 0.0, rule}; }

TEST_CASE("every sweep gives the bits of a plain loop, on any number of threads") {
  for (const Rule rule : rules) {
    for (const int count : {0, 1, 2, 7, 40}) {
      const std::vector<double> expected = loop(rule, count);
      for (const pattern::Sweep sweep : sweeps) {
        for (const int threads : {1, 2, 3, 8}) {
          for (const int block : {0, 1, 5, 100}) {
            const auto x = pattern::fixed_point(
                chain(rule, count), {.sweep = sweep, .threads = threads, .block = block});
            CAPTURE(count, static_cast<int>(sweep), threads, block);
            CHECK(x.values == expected);
            CHECK(x.converged);
            CHECK(x.exact == count);
            CHECK(x.sweeps <= count);
            CHECK(x.evaluations <= std::int64_t{count} * (count + 1) / 2);
            if (sweep == pattern::Sweep::gauss_seidel) CHECK(x.sweeps == std::min(count, 1));
          }
        }
      }
    }
  }
}

TEST_CASE("after k sweeps the first k values are exact, and more where exact is said") {
  for (const Rule rule : rules) {
    constexpr int count = 30;
    const std::vector<double> expected = loop(rule, count);
    for (int most = 1; most <= count; ++most) {
      const auto x = pattern::fixed_point(chain(rule, count), {.threads = 2, .most_sweeps = most});
      CAPTURE(most);
      CHECK(x.exact >= std::min(most, count));
      for (int i = 0; i < x.exact; ++i)
        CHECK(x.values[static_cast<std::size_t>(i)] == expected[static_cast<std::size_t>(i)]);
      CHECK(x.converged == (x.exact == count));
      CHECK(x.sweeps <= most);
    }
  }
}

TEST_CASE("a contracting chain of 200 is near after 65 sweeps, a chaotic one gains nothing") {
  const std::vector<double> expected = loop(contracting, 200);
  const auto near = pattern::fixed_point(chain(contracting, 200), {.tolerance = 1e-11});
  double error = 0;
  for (std::size_t i = 0; i < 200; ++i)
    error = std::max(error, std::abs(near.values[i] - expected[i]));
  CHECK(near.converged);
  CHECK(near.sweeps <= 65);
  CHECK(error <= 1e-10);
  // Blocks of 20 with an order inside need fewer sweeps.
  const auto blocks = pattern::fixed_point(
      chain(contracting, 200),
      {.sweep = pattern::Sweep::jacobi_gauss_seidel, .block = 20, .tolerance = 1e-11});
  CHECK(blocks.sweeps < near.sweeps);
  CHECK(pattern::fixed_point(chain(chaotic, 200), {}).sweeps == 200);
}

TEST_CASE("a chain in which each value depends on the one before takes the work of the triangle") {
  // No value is right before the one before it is, and none is right by chance.
  const auto next = [](int i, const pattern::ValuesBefore<std::int64_t>& before) {
    return i == 0 ? std::int64_t{1} : before[i - 1] + 1;
  };
  for (const int count : {1, 2, 9, 20}) {
    for (const int threads : {1, 3, 4}) {
      const auto x = pattern::fixed_point(
          Equations<std::int64_t, decltype(next)>(count, -1'000, next), {.threads = threads});
      std::int64_t longest = 0;
      for (int left = count; left > 0; --left) longest += (left + threads - 1) / threads;
      CAPTURE(count, threads);
      CHECK(x.sweeps == count);
      CHECK(x.evaluations == std::int64_t{count} * (count + 1) / 2);
      CHECK(x.longest_share == longest);
    }
  }
}

TEST_CASE("equations that do not depend on each other take one sweep more than none") {
  const auto alone = [](int i, const pattern::ValuesBefore<int>&) { return i * i; };
  const auto x =
      pattern::fixed_point(Equations<int, decltype(alone)>(50, -1, alone), {.threads = 4});
  // The first sweep makes all right, the second sees that nothing changes.
  CHECK(x.sweeps == 2);
  CHECK(x.evaluations == 50 + 49);
}

TEST_CASE("a linear recurrence is a scan, with values of a user's type") {
  // s_i = a_i s_{i-1} + b_i as exact affine maps; a scan composes them.
  struct Pair {
    std::int64_t value;
    bool operator==(const Pair&) const = default;
  };
  std::vector<std::int64_t> a(40), b(40);
  for (std::size_t i = 0; i < 40; ++i) {
    a[i] = i % 3 == 0 ? -1 : 1;
    b[i] = static_cast<std::int64_t>(i) - 11;
  }
  const auto rule = [&](int i, const pattern::ValuesBefore<Pair>& before) {
    const auto at = static_cast<std::size_t>(i);
    return Pair{a[at] * (i == 0 ? 5 : before[i - 1].value) + b[at]};
  };
  for (const pattern::Sweep sweep : sweeps) {
    const auto x = pattern::fixed_point(Equations<Pair, decltype(rule)>(40, Pair{0}, rule),
                                        {.sweep = sweep, .threads = 3});
    std::int64_t factor = 1;
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < 40; ++i) {  // the composed maps, applied to 5
      factor *= a[i];
      offset = a[i] * offset + b[i];
      CHECK(x.values[i].value == factor * 5 + offset);
    }
  }
}

TEST_CASE("NaN and signed zeros end a sweep as their bits say") {
  const auto rule = [](int i, const pattern::ValuesBefore<double>& before) {
    if (i == 0) return -0.0;
    if (i == 1) return 1 / before[0];
    return std::numeric_limits<double>::quiet_NaN();
  };
  const auto x = pattern::fixed_point(Equations<double, decltype(rule)>(5, 0.0, rule), {});
  CHECK(x.values[1] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(x.values[4]));
  CHECK(x.converged);
  const auto near =
      pattern::fixed_point(Equations<double, decltype(rule)>(5, 0.0, rule), {.tolerance = 1e-3});
  CHECK(near.converged);
}

TEST_CASE("an equation that reads its own value or a later one is refused") {
  for (const int ahead : {0, 1, 5}) {
    const auto rule = [&](int i, const pattern::ValuesBefore<double>& before) {
      return i == 3 ? before[i + ahead] : 1.0;
    };
    for (const pattern::Sweep sweep : sweeps) {
      CHECK_THAT(test::message_of<contract_error>([&] {
                   (void)pattern::fixed_point(Equations<double, decltype(rule)>(6, 0.0, rule),
                                              {.sweep = sweep, .threads = 2});
                 }),
                 ContainsSubstring("equation 3 reads value " + std::to_string(3 + ahead)));
    }
  }
}

TEST_CASE("wrong options are refused, and an equation's exception is thrown") {
  const auto message = [](const pattern::FixedPointOptions& options) {
    return test::message_of<contract_error>(
        [&] { (void)pattern::fixed_point(chain(contracting, 3), options); });
  };
  CHECK_THAT(message({.threads = 0}), ContainsSubstring("threads = 0"));
  CHECK_THAT(message({.block = -1}), ContainsSubstring("block = -1"));
  CHECK_THAT(message({.tolerance = -1}), ContainsSubstring("tolerance = -1"));
  CHECK_THAT(message({.tolerance = std::nan("")}), ContainsSubstring("finite"));
  CHECK_THAT(message({.most_sweeps = -2}), ContainsSubstring("most_sweeps = -2"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)chain(contracting, -1); }),
             ContainsSubstring("count = -1"));
  const auto failing = [](int i, const pattern::ValuesBefore<double>&) -> double {
    if (i >= 4) throw std::runtime_error("equation " + std::to_string(i));
    return 0;
  };
  CHECK_THAT(test::message_of<std::runtime_error>([&] {
               (void)pattern::fixed_point(Equations<double, decltype(failing)>(8, 1.0, failing),
                                          {.threads = 4});
             }),
             ContainsSubstring("equation 4"));
}

}  // namespace test_fixed_point
