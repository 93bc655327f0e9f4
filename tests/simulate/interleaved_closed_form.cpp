// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_interleaved_closed_form {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

namespace {

/// The rule of interleaved 1F1B as a graph of its own, and the longest path through it. Nodes are
/// (backward?, stage, microbatch); edges are explicit; the path is found by depth-first search.
class LongestPath {
 public:
  LongestPath(int ranks, int chunks, int microbatches, Rational forward, Rational backward)
      : m_stages(ranks * chunks), m_microbatches(microbatches), m_cost{forward, backward} {
    const std::size_t nodes = static_cast<std::size_t>(2 * m_stages * microbatches);
    m_before.resize(nodes);
    m_finish.resize(nodes);
    m_state.resize(nodes, 0);
    for (int s = 0; s < m_stages; ++s) {
      for (int m = 0; m < microbatches; ++m) {
        if (s > 0) edge(node(0, s - 1, m), node(0, s, m));
        edge(node(0, s, m), node(1, s, m));
        if (s + 1 < m_stages) edge(node(1, s + 1, m), node(1, s, m));
      }
    }
    for (int r = 0; r < ranks; ++r) {
      const std::vector<std::size_t> order = order_of(r, ranks, chunks);
      for (std::size_t i = 1; i < order.size(); ++i) edge(order[i - 1], order[i]);
    }
  }

  Rational length() {
    Rational longest;
    for (std::size_t n = 0; n < m_before.size(); ++n) longest = std::max(longest, finish(n));
    return longest;
  }

 private:
  std::size_t node(int backward, int stage, int microbatch) const {
    return static_cast<std::size_t>((backward * m_stages + stage) * m_microbatches + microbatch);
  }
  void edge(std::size_t from, std::size_t to) { m_before[to].push_back(from); }

  /// All forwards and all backwards of a rank in their own order, then merged: the warm-up, pairs,
  /// the rest.
  std::vector<std::size_t> order_of(int rank, int ranks, int chunks) const {
    const int rounds = std::max(1, m_microbatches / ranks);
    const int width = m_microbatches / rounds;
    std::array<std::vector<std::size_t>, 2> lines;
    for (int round = 0; round < rounds; ++round)
      for (int turn = 0; turn < chunks; ++turn)
        for (int i = 0; i < width; ++i) {
          const int m = round * width + i;
          lines[0].push_back(node(0, turn * ranks + rank, m));
          lines[1].push_back(node(1, (chunks - 1 - turn) * ranks + rank, m));
        }
    const std::size_t total = lines[0].size();
    const std::size_t warm =
        std::min(total, static_cast<std::size_t>((chunks - 1) * width + 2 * (ranks - 1 - rank)));
    std::vector<std::size_t> order(lines[0].begin(), lines[0].begin() + static_cast<long>(warm));
    for (std::size_t k = 0; k + warm < total; ++k) {
      order.push_back(lines[0][k + warm]);
      order.push_back(lines[1][k]);
    }
    for (std::size_t k = total - warm; k < total; ++k) order.push_back(lines[1][k]);
    return order;
  }

  const Rational& finish(std::size_t n) {
    if (m_state[n] == 2) return m_finish[n];
    if (m_state[n] == 1) FAIL("the rule's own graph has a cycle");
    m_state[n] = 1;
    Rational start;
    for (const std::size_t before : m_before[n]) start = std::max(start, finish(before));
    m_state[n] = 2;
    return m_finish[n] = start + m_cost[2 * n >= m_before.size()];
  }

  int m_stages;
  int m_microbatches;
  std::array<Rational, 2> m_cost;
  std::vector<std::vector<std::size_t>> m_before;
  std::vector<Rational> m_finish;
  std::vector<char> m_state;
};

bool divides(int ranks, int microbatches) {
  return microbatches >= 1 && microbatches % std::max(1, microbatches / ranks) == 0;
}

Rational makespan(int p, int v, int m, Rational forward, Rational backward) {
  const Schedule pipeline =
      schedule::interleaved({.ranks = p, .stages_per_rank = v, .microbatches = m});
  const BasicStageCosts<Rational> costs{.forward = forward, .backward = backward};
  return simulate(pipeline, costs).makespan();
}

/// Whether rank r of P keeps at most `closed_form(r)` activations at once, and no fewer, by the
/// timeline and by the orders.
template <class ClosedForm>
bool peaks_equal(const Orders& orders, ClosedForm&& closed_form) {
  const auto timeline = simulate(
      weave(orders), BasicStageCosts<int>{.forward = 2, .backward_input = 3, .backward_weight = 1});
  const auto counted = schedule::live_activations(orders);
  for (std::size_t r = 0; r < orders.ranks.size(); ++r) {
    const int expected = closed_form(static_cast<int>(r));
    if (static_cast<int>(schedule::peak(timeline, Rank{r}, role::saved).parts) != expected ||
        counted[r] != expected)
      return false;
  }
  return true;
}

/// Every allowed M in [1, most]: the closed form for M >= P, the longest path for M < P.
void check(int p, int v, int most, Rational forward, Rational backward) {
  for (int m = 1; m <= most; ++m) {
    if (!divides(p, m)) continue;
    const Rational found = makespan(p, v, m, forward / v, backward / v);
    const Rational whole = forward + backward;
    Rational expected = Rational(m) * whole + Rational(p - 1) * whole / v;
    const Rational longest = LongestPath(p, v, m, forward / v, backward / v).length();
    if (m < p) expected = longest;
    if (found == expected && found == longest) continue;
    FAIL("P=" << p << " V=" << v << " M=" << m << ": " << found << ", expected " << expected
              << ", longest path " << longest);
  }
}

}  // namespace

TEST_CASE("interleaved 1F1B takes M(F+B) + (P-1)(F+B)/V, or its longest path where M < P") {
  for (int p = 2; p <= 8; ++p)
    for (int v = 1; v <= 4; ++v) {
      check(p, v, 40, 1, 2);
      check(p, v, 40, {5, 3}, {2, 7});
    }
  for (const int v : {1, 2, 3}) check(16, v, 40, {2, 7}, {5, 3});
}

TEST_CASE("the bubble of interleaved 1F1B is that of the theory") {
  for (const auto& [p, m, v] :
       {std::array{4, 8, 2}, {8, 16, 2}, {8, 16, 4}, {4, 16, 2}, {3, 9, 5}}) {
    const auto timeline =
        simulate(schedule::interleaved({.ranks = p, .stages_per_rank = v, .microbatches = m}),
                 BasicStageCosts<Rational>{.forward = 1, .backward = 2});
    CHECK(timeline.bubble_ratio() == Rational(p - 1, v * m + p - 1));
    CHECK(schedule::bubble_ratio(p, m, v) == (p - 1.0) / (v * m + p - 1.0));
  }
}

TEST_CASE("interleaved 1F1B keeps min(MV, (V-1)R + 2(P-1-r) + 1) activations on rank r") {
  for (int p = 1; p <= 9; ++p)
    for (int v = 1; v <= 5; ++v)
      for (int m = 1; m <= 40; ++m) {
        if (!divides(p, m)) continue;
        const int round = m / std::max(1, m / p);
        if (!peaks_equal(schedule::interleaved(p, v, m), [&](int r) {
              return std::min(m * v, (v - 1) * round + 2 * (p - 1 - r) + 1);
            }))
          FAIL("P=" << p << " V=" << v << " M=" << m);
      }
  // Those of a rank's V stages together, on the first of 8 ranks, where 1F1B keeps 8.
  CHECK(Rational(schedule::live_activations(schedule::interleaved(8, 2, 16))[0], 2) ==
        Rational(23, 2));
  CHECK(Rational(schedule::live_activations(schedule::interleaved(8, 4, 16))[0], 4) ==
        Rational(39, 4));
}

TEST_CASE("interleaved ZB1P keeps min(MV, (V-1)R + P) activations on every rank") {
  for (int p = 1; p <= 9; ++p)
    for (int v = 1; v <= 5; ++v)
      for (int m = 1; m <= 40; ++m) {
        if (!divides(p, m)) continue;
        const int round = m / std::max(1, m / p);
        if (!peaks_equal(schedule::interleaved_zb1p(p, v, m),
                         [&](int) { return std::min(m * v, (v - 1) * round + p); }))
          FAIL("P=" << p << " V=" << v << " M=" << m);
      }
}

TEST_CASE("a number of microbatches that does not divide is infeasible, and the nearest is named") {
  int refused = 0;
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 128; ++m) {
      if (divides(p, m)) {
        REQUIRE_NOTHROW(schedule::interleaved(p, 2, m));
        continue;
      }
      ++refused;
      const std::string message =
          test::message_of<infeasible>([&] { (void)schedule::interleaved(p, 2, m); });
      int nearest = 1000;
      for (int other = 1; other <= 256; ++other)
        if (divides(p, other) && std::abs(other - m) < std::abs(nearest - m)) nearest = other;
      const std::string before = "the nearest valid number is ";
      REQUIRE(message.find(before) != std::string::npos);
      const int named = std::atoi(message.c_str() + message.find(before) + before.size());
      // Two numbers may be equally near.
      if (!divides(p, named) || std::abs(named - m) != std::abs(nearest - m))
        FAIL("P=" << p << " M=" << m << ": nearest is " << nearest << ", message: " << message);
    }
  }
  CHECK(refused > 100);
  CHECK_THAT(test::message_of<infeasible>([] {
               (void)schedule::interleaved({.ranks = 4, .stages_per_rank = 2, .microbatches = 9});
             }),
             ContainsSubstring("heddle::schedule::interleaved") &&
                 ContainsSubstring("microbatches = 9, ranks = 4, rounds = 2") &&
                 ContainsSubstring("nearest valid number is 8"));
}

}  // namespace test_interleaved_closed_form
