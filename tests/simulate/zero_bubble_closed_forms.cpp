// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Bubbles, steps and activations of the zero-bubble schedules, exactly.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/rational.hpp"

namespace test_zero_bubble_closed_forms {

using namespace heddle;
using test::Rational;

namespace {

/// Returns the idle time of the first rank in a step of ZB-H1 with M >= P:
/// (P - 1) max(F, I, F + I - W). If F and I are at least W, it is the (P - 1)(F + I - W) of Qi et
/// al. The other cases are ours and were found by simulation.
template <class Time>
Time zb_h1_bubble(int stages, const Time& forward, const Time& backward_input,
                  const Time& backward_weight) {
  return Time(stages - 1) *
         std::max({forward, backward_input, Time(forward + backward_input - backward_weight)});
}

/// Returns the idle time of the first rank between its first and its last action in a step of ZB-H2
/// with M >= 2P - 1: (P - 1) max(0, F + I - 2W, I - F). Qi et al. give (P - 1)(F + I - 2W). The
/// other cases are ours and were found by simulation. The step is longer because the last rank
/// starts later: if F = I = W, no rank is idle, but the ranks' spans are shifted in time.
template <class Time>
Time zb_h2_bubble(int stages, const Time& forward, const Time& backward_input,
                  const Time& backward_weight) {
  return Time(stages - 1) *
         std::max({Time(0), Time(forward + backward_input - backward_weight - backward_weight),
                   Time(backward_input - forward)});
}

/// Returns the largest idle time of a rank in a step of DualPipe (stages = P) or DualPipeV
/// (stages = 2P): (stages / 2 - 1)(FB + B - 3W), where FB is the time of a fused pair. The formula
/// is exact if F = I >= W and FB is between B and F + B. This range of costs was found by
/// simulation. Source of the formula: the README of DeepSeek-AI's DualPipe.
template <class Time>
Time dualpipe_bubble(int stages, const Time& forward_backward, const Time& backward,
                     const Time& backward_weight) {
  return Time(stages / 2 - 1) *
         Time(forward_backward + backward - backward_weight - backward_weight - backward_weight);
}

using Exact = BasicStageCosts<Rational>;
using ExactTimeline = BasicTimeline<Rational>;

constexpr auto units = std::to_array<std::array<int, 3>>({{1, 1, 1},
                                                          {3, 2, 1},
                                                          {2, 3, 1},
                                                          {1, 2, 3},
                                                          {3, 3, 4},
                                                          {2, 1, 2},
                                                          {1, 3, 2},
                                                          {2, 2, 3},
                                                          {3, 2, 2}});

/// Exact of F, I and W thirds and sevenths of a unit, to see that nothing depends on whole numbers.
Exact costs(const std::array<int, 3>& unit) {
  return {.forward = Rational(unit[0], 3),
          .backward_input = Rational(unit[1], 3),
          .backward_weight = Rational(unit[2], 3)};
}

/// The time from the first to the last of a rank's orders that is not spent on them.
Rational idle_within(const ExactTimeline& timeline, Rank rank) {
  const Schedule& schedule = timeline.schedule();
  Rational first;
  Rational last;
  bool any = false;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind > Kind::backward || schedule[action.queue].from != rank) continue;
    const auto& span = timeline.spans()[i];
    first = any ? std::min(first, span.start) : span.start;
    last = any ? std::max(last, span.end) : span.end;
    any = true;
  }
  return last - first - timeline.busy()[+rank];
}

Rational most_idle(const ExactTimeline& timeline) {
  Rational most;
  for (const Rational& busy : timeline.busy()) most = std::max(most, timeline.makespan() - busy);
  return most;
}

std::vector<std::uint64_t> peaks(const ExactTimeline& timeline) {
  std::vector<std::uint64_t> all;
  for (int r = 0; r < timeline.schedule().ranks(); ++r)
    all.push_back(schedule::peak(timeline, Rank{r}, role::saved).parts);
  return all;
}
std::vector<std::uint64_t> everywhere(int ranks, int peak) {
  return std::vector<std::uint64_t>(static_cast<std::size_t>(ranks),
                                    static_cast<std::uint64_t>(peak));
}

}  // namespace

TEST_CASE("ZB-H1: bubble (P-1) max(F, I, F+I-W), and the memory of 1F1B on every rank") {
  for (const int p : {1, 2, 3, 4, 5, 8, 13})
    for (const int m : {p + 1, 2 * p, 3 * p + 1, 31}) {
      if (m <= p) continue;
      const Schedule schedule = schedule::zb_h1({.ranks = p, .microbatches = m});
      for (const auto& unit : units) {
        const Exact of = costs(unit);
        const auto timeline = simulate(schedule, of);
        const Rational bubble = zb_h1_bubble(p, of.forward, of.backward_input, of.backward_weight);
        INFO(schedule.name() << " F=" << of.forward << " I=" << of.backward_input
                             << " W=" << of.backward_weight);
        REQUIRE(timeline.makespan() ==
                Rational(m) * (of.forward + of.backward_input + of.backward_weight) + bubble);
        if (of.backward_weight < of.forward && of.backward_weight < of.backward_input)
          REQUIRE(bubble ==
                  Rational(p - 1) * (of.forward + of.backward_input - of.backward_weight));
      }
      REQUIRE(peaks(simulate(schedule, costs(units[0]))) == everywhere(p, std::min(m, p)));
    }
}

TEST_CASE(
    "ZB-H2: bubble (P-1) max(0, F+I-2W, I-F) within the first rank's span, 2P-1 activations") {
  for (const int p : {1, 2, 3, 4, 5, 8, 13})
    for (const int m : {2 * p - 1, 2 * p, 3 * p + 1, 37}) {
      const Schedule schedule = schedule::zb_h2({.ranks = p, .microbatches = m});
      for (const auto& unit : units) {
        const Exact of = costs(unit);
        const auto timeline = simulate(schedule, of);
        INFO(schedule.name() << " F=" << of.forward << " I=" << of.backward_input
                             << " W=" << of.backward_weight);
        REQUIRE(idle_within(timeline, Rank{0}) ==
                zb_h2_bubble(p, of.forward, of.backward_input, of.backward_weight));
      }
      const auto timeline = simulate(schedule, costs(units[0]));
      for (int r = 0; r < p; ++r) REQUIRE(idle_within(timeline, Rank{r}) == Rational(0));
      REQUIRE(peaks(timeline) == everywhere(p, 2 * p - 1));
    }
}

TEST_CASE("ZB-V: no rank idles within its span, 6M+P-1 chunk times, and the memory of 1F1B") {
  const Exact of{.forward = {2, 7}, .backward_input = {2, 7}, .backward_weight = {2, 7}};
  for (const int p : {1, 2, 3, 4, 5, 8, 13, 16})
    for (const int m : {2 * p - 1, 2 * p, 3 * p + 1, 37}) {
      const auto timeline = simulate(schedule::zb_v({.ranks = p, .microbatches = m}), of);
      INFO(timeline.schedule().name());
      REQUIRE(timeline.makespan() == Rational(6 * m + p - 1) * of.forward);
      for (int r = 0; r < p; ++r) REQUIRE(idle_within(timeline, Rank{r}) == Rational(0));
      // Chunks are half as large as the stages of 1F1B, which keeps P of those on rank 0.
      REQUIRE(peaks(timeline) == everywhere(p, 2 * p));
    }
}

TEST_CASE(
    "V-half and V-min: half and two thirds of 1F1B's bubble, half and a third of its memory") {
  const Exact of{.forward = {2, 7}, .backward_input = {2, 7}, .backward_weight = {2, 7}};
  for (const int p : {3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 23, 32})
    for (const int m : {p, p + 1, 2 * p, 2 * p + 1, 3 * p + 1, 4 * p}) {
      const Rational work = Rational(6 * m) * of.forward;
      const Rational one_f_one_b =
          Rational(6 * (p - 1)) * of.forward;  // (P-1)(F+B) of stages of 2 chunks
      const auto half = simulate(schedule::v_half({.ranks = p, .microbatches = m}), of);
      INFO(half.schedule().name());
      const bool even = p % 2 == 0;
      REQUIRE(half.makespan() == work + Rational(3 * p - (even ? 7 : 4)) * of.forward);
      REQUIRE(half.makespan() - work < one_f_one_b / 2);
      REQUIRE(std::ranges::max(peaks(half)) == static_cast<std::uint64_t>(p + (even ? 2 : 1)));
      const auto min = simulate(schedule::v_min({.ranks = p, .microbatches = m}), of);
      REQUIRE(min.makespan() == work + Rational(4 * p - (p % 3 == 0 ? 7 : 5)) * of.forward);
      REQUIRE(min.makespan() - work < one_f_one_b * 2 / 3);
      REQUIRE(std::ranges::max(peaks(min)) <= static_cast<std::uint64_t>(2 * ((p + 4) / 3)));
    }
}

TEST_CASE("the published table at P=4, M=8 and P=8, M=16") {
  const Exact whole{.forward = 1, .backward_input = 1, .backward_weight = 1};
  const Exact chunk{.forward = {1, 2}, .backward_input = {1, 2}, .backward_weight = {1, 2}};
  struct Row {
    int p, m;
    Rational plain, h1, v;
  };
  for (const auto& [p, m, plain, h1, v] :
       {Row{4, 8, 33, 27, {51, 2}}, Row{8, 16, 69, 55, {103, 2}}}) {
    CHECK(simulate(schedule::one_f_one_b({p, m}), whole).makespan() == plain);
    CHECK(simulate(schedule::zb_h1({p, m}), whole).makespan() == h1);
    CHECK(simulate(schedule::zb_v({p, m}), chunk).makespan() == v);
  }
}

TEST_CASE("DualPipe and DualPipeV: bubble (PP/2-1)(FB+B-3W) and PP+1 activations") {
  struct Case {
    Rational f, w, fb;
  };
  const auto check = [](const Schedule& schedule, int stages) {
    // F = I >= W, FB from B to F + B.
    for (const auto& [f, w, fb] : {Case{1, 1, {11, 5}}, Case{1, 1, 2}, Case{1, 1, 3},
                                   Case{{5, 3}, {2, 7}, 2}, Case{{5, 3}, 1, {10, 3}}}) {
      const Exact of{
          .forward = f, .backward_input = f, .backward_weight = w, .forward_backward = fb};
      const auto timeline = simulate(schedule, of);
      INFO(schedule.name() << " F=I=" << f << " W=" << w << " FB=" << fb);
      REQUIRE(most_idle(timeline) ==
              dualpipe_bubble(stages, of.forward_backward, of.backward, of.backward_weight));
      REQUIRE(peaks(timeline) == everywhere(schedule.ranks(), stages + 1));
      // Two stages a rank: DualPipe has twice the parameters, DualPipeV's stages are half as large.
      for (int r = 0; r < schedule.ranks(); ++r)
        REQUIRE(std::ranges::count_if(schedule.buffers(), [&](const Buffer& buffer) {
                  return buffer.rank == Rank{r} && schedule[buffer.label] == role::weights;
                }) == 2);
    }
  };
  for (const auto& [p, m] : {std::pair{2, 4}, {4, 8}, {6, 14}, {8, 16}, {8, 20}, {16, 40}})
    check(schedule::dualpipe({.ranks = p, .microbatches = m}), p);
  for (const auto& [p, m] : {std::pair{1, 2}, {3, 7}, {4, 10}, {4, 20}, {8, 20}})
    check(schedule::dualpipe_v({.ranks = p, .microbatches = m}), 2 * p);
}

TEST_CASE(
    "interleaved ZB1P is ahead of interleaved 1F1B, and W put off to the end is ZB-H1's step") {
  const Exact chunk{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (const auto& [p, v, m] : {std::array{2, 2, 8}, {4, 2, 8}, {4, 3, 12}, {8, 2, 16}}) {
    const auto plain = simulate(
        schedule::interleaved({.ranks = p, .stages_per_rank = v, .microbatches = m}), chunk);
    const auto split = simulate(
        schedule::interleaved_zb1p({.ranks = p, .stages_per_rank = v, .microbatches = m}), chunk);
    INFO(split.schedule().name());
    CHECK(split.makespan() < plain.makespan());
  }
  for (const int p : {1, 2, 4, 7}) {
    const Orders late =
        schedule::fill_idle_with_weights(schedule::split_backward(schedule::one_f_one_b(p, 3 * p)));
    CHECK(simulate(weave(late), chunk).makespan() ==
          simulate(schedule::zb_h1({p, 3 * p}), chunk).makespan());
  }
}

}  // namespace test_zero_bubble_closed_forms
