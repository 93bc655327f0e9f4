// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// ExFlow: placements of experts against enumeration and planted groups, and the traffic of tokens
/// that stay with their experts, on threads.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <heddle/core/text.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>
#include <heddle/systems/exflow/expert_walk.hpp>

#include "comparison.hpp"
#include "support/expert_routes.hpp"
#include "support/expert_walks.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::systems::ExpertAffinity;
using hd::systems::ExpertPlacement;

constexpr std::size_t traced_layers = 8;
constexpr std::size_t traced_experts = 16;
constexpr int expert_ranks = 4;

/// Returns in how many of 200 random traces (4 experts, 3 layers, 2 ranks) the placement has the
/// fewest changes of all placements.
int optimal_placements() {
  int optimal = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto [trace, planted] =
        hd::test::planted_routes(30, 3, 4, 2, 0.2 * static_cast<double>(seed % 5), seed);
    const ExpertAffinity counts(trace);
    const ExpertPlacement placement = hd::systems::place_experts(counts, {.levels = {2}});
    optimal +=
        hd::test::traced_changes(trace, placement) == hd::test::fewest_changes(trace, 2) ? 1 : 0;
  }
  return optimal;
}

/// The shares of steps that change the rank, means of 20 planted models.
struct ChangeRates {
  double contiguous = 0;
  double planted = 0;
  double placed = 0;
  double worst = 0;   ///< largest ratio of placed over planted
  double others = 0;  ///< largest ratio of the rate on other tokens over that on the traced ones
};

ChangeRates change_rates() {
  ChangeRates rates;
  constexpr std::uint64_t models = 20;
  for (std::uint64_t seed = 0; seed < models; ++seed) {
    const auto draw = [&](std::uint64_t draws) {
      return hd::test::planted_routes(3'000, traced_layers, traced_experts, expert_ranks, 0.7, seed,
                                      draws);
    };
    const auto [trace, planted] = draw(0);
    const ExpertAffinity counts(trace);
    const ExpertAffinity others(draw(1).trace);
    const ExpertPlacement placed = hd::systems::place_experts(counts, {.levels = {expert_ranks}});
    const auto rate = [](const ExpertAffinity& on, const ExpertPlacement& placement) {
      return static_cast<double>(rank_changes(on, placement)) / static_cast<double>(on.steps());
    };
    rates.contiguous +=
        rate(counts, hd::systems::contiguous_experts(traced_layers, traced_experts, expert_ranks)) /
        models;
    rates.planted += rate(counts, planted) / models;
    rates.placed += rate(counts, placed) / models;
    rates.worst = std::max(rates.worst, rate(counts, placed) / rate(counts, planted));
    rates.others = std::max(rates.others, rate(others, placed) / rate(counts, placed));
  }
  return rates;
}

}  // namespace

std::vector<Comparison> exflow() {
  const int optimal = optimal_placements();
  const ChangeRates rates = change_rates();

  // Tokens walk over threads: home after each expert of a contiguous placement, or on and on.
  constexpr std::size_t tokens = 1'200;
  const auto [trace, planted] =
      hd::test::planted_routes(tokens, traced_layers, traced_experts, expert_ranks, 0.7, 0);
  const ExpertAffinity counts(trace);
  const hd::test::ExpertCase vanilla{
      hd::systems::contiguous_experts(traced_layers, traced_experts, expert_ranks), trace, tokens,
      16};
  const hd::test::ExpertCase coherent{
      hd::systems::place_experts(counts, {.levels = {expert_ranks}}), trace, tokens, 16};
  const auto by_token = [](std::uint64_t rows) { return static_cast<double>(rows) / tokens; };
  const auto expected_home = vanilla.serial();
  const auto expected_stays = coherent.serial();
  const auto home = vanilla.on_threads(expected_home, hd::systems::AfterExpert::comes_home);
  const auto stays = coherent.on_threads(expected_stays, hd::systems::AfterExpert::stays);
  const std::uint64_t home_rows = home.rows(16);
  const std::uint64_t stays_rows = stays.rows(16);
  const bool counted = home_rows == expected_home.comes_home && stays_rows == expected_stays.stays;
  const bool same_bits = home.right && stays.right && expected_home.rows == expected_stays.rows;
  const int exchanges[] = {home.traffic[0].exchanges, stays.traffic[0].exchanges};
  const double volume = by_token(stays_rows) / by_token(home_rows);
  const double f = static_cast<double>(rank_changes(counts, coherent.placement)) /
                   static_cast<double>(counts.steps());
  constexpr double layers = traced_layers;
  constexpr double p = expert_ranks;
  const double formula = ((layers - 1) * f + p - 1) / (2 * layers * (1 - 1 / p));
  return {
      {"placements of 4 experts in 3 layers on 2 ranks with the fewest rank changes of all", "",
       hd::text(optimal, " of 200"), "all", verdict(optimal == 200)},
      {"share of steps that change the rank, 16 experts, 8 layers, 4 ranks, planted affinity 0.7: "
       "contiguous; planted; placed (means of 20 models); worst placed over planted",
       "up to 67% fewer",
       hd::text(rates.contiguous, "; ", rates.planted, "; ", rates.placed, "; ", rates.worst),
       "placed at most 1.05 of planted", verdict(rates.worst <= 1.05)},
      {"the share on other tokens of the model over the share on the traced tokens: largest",
       "0.989 to 1.005", hd::text(rates.others), "at most 1.05", verdict(rates.others <= 1.05)},
      {"exchanges of 8 layers: tokens come home; tokens stay", "2 per layer; 1 per layer",
       hd::text(exchanges[0], "; ", exchanges[1], " and a gather"), "16; 7 and a gather",
       verdict(exchanges[0] == 16 && exchanges[1] == 7 && stays.traffic[0].gathers == 1)},
      {"rows of all tokens on 4 threads, both ways, against a serial walk", "",
       same_bits ? "the same bits" : "other bits", "the same bits", verdict(same_bits)},
      {"rows sent, a token: tokens come home; tokens stay, with the gather", "",
       hd::text(by_token(home_rows), "; ", by_token(stays_rows)), "as counted along each route",
       verdict(counted)},
      {"rows of tokens that stay over rows of tokens that come home", "", hd::text(volume),
       hd::text("((L-1)f+P-1)/(2L(1-1/P)) = ", formula, " within 3%"),
       verdict(std::abs(volume / formula - 1) <= 0.03)},
      {"throughput over DeepSpeed-MoE", "2.2x", "", "none",
       "not reproducible: it needs the models, their traces and GPUs"},
  };
}

}  // namespace report
