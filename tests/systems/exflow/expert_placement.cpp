// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Placements of experts: counted rank changes, the optimum by enumeration, planted groups that are
// found again, levels of nodes and ranks, and wrong input.

#include <cstddef>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/expert_routes.hpp"

namespace test_expert_placement {

using namespace heddle;
using systems::ExpertAffinity;
using systems::ExpertPlacement;
using systems::place_experts;
using systems::rank_changes;
using test::planted_routes;

namespace {

void check_balance(const ExpertPlacement& placement) {
  for (std::size_t l = 0; l < placement.layers; ++l)
    for (int r = 0; r < placement.ranks; ++r) {
      std::size_t count = 0;
      for (std::size_t e = 0; e < placement.experts; ++e)
        count += placement.rank(l, e) == Rank{static_cast<std::size_t>(r)} ? 1u : 0u;
      CHECK(count * static_cast<std::size_t>(placement.ranks) == placement.experts);
    }
}

}  // namespace

TEST_CASE("small placements are optimal: equal to an enumeration of all of them") {
  for (std::uint64_t seed = 0; seed < test::cases(40, 2'000); ++seed) {
    const double affinity = 0.2 * static_cast<double>(seed % 5);
    const auto [trace, planted] = planted_routes(30, 3, 4, 2, affinity, seed);
    const ExpertAffinity counts(trace);
    const ExpertPlacement placement = place_experts(counts, {.levels = {2}});
    CAPTURE(seed);
    check_balance(placement);
    CHECK(rank_changes(counts, placement) == test::traced_changes(trace, placement));
    CHECK(rank_changes(counts, placement) == test::fewest_changes(trace, 2));
  }
  const auto [trace, planted] = planted_routes(50, 3, 3, 3, 0.3, 1);  // an expert for each rank
  const ExpertAffinity counts(trace);
  CHECK(rank_changes(counts, place_experts(counts, {.levels = {3}})) ==
        test::fewest_changes(trace, 3));
}

TEST_CASE("local search finds planted groups, and is close to the optimum without groups") {
  std::uint64_t found = 0;
  std::uint64_t best = 0;
  for (std::uint64_t seed = 0; seed < test::cases(10, 300); ++seed) {
    const auto [trace, planted] = planted_routes(2'000, 8, 16, 4, 0.7, seed);
    const ExpertAffinity counts(trace);
    const ExpertPlacement placement = place_experts(counts, {.levels = {4}});
    CAPTURE(seed);
    check_balance(placement);
    CHECK(rank_changes(counts, placement) <=
          1.05 * static_cast<double>(rank_changes(counts, planted)));
    CHECK(rank_changes(counts, systems::contiguous_experts(8, 16, 4)) > counts.steps() / 2);
    const auto [random, none] = planted_routes(300, 5, 8, 2, 0, seed);
    const ExpertAffinity noise(random);
    found += rank_changes(noise, place_experts(noise, {.levels = {2}, .exact = 0}));
    best += rank_changes(noise, place_experts(noise, {.levels = {2}}));
  }
  CHECK(found >= best);
  CHECK(static_cast<double>(found) <= 1.05 * static_cast<double>(best));
}

TEST_CASE("experts are divided over nodes first, and then within each node") {
  const auto [trace, planted] = planted_routes(2'000, 6, 8, 4, 0.6, 3);
  const ExpertAffinity counts(trace);
  const ExpertPlacement placement = place_experts(counts, {.levels = {2, 2}});
  CHECK(placement.ranks == 4);
  check_balance(placement);
  check_balance(placement.of_nodes(2));
  // The level of the nodes is optimal by itself.
  CHECK(rank_changes(counts, placement.of_nodes(2)) ==
        rank_changes(counts, place_experts(counts, {.levels = {2}})));
  CHECK(rank_changes(counts, placement) <=
        1.05 * static_cast<double>(rank_changes(counts, planted)));
}

TEST_CASE("wrong traces and placements are named") {
  using Catch::Matchers::ContainsSubstring;
  using test::message_of;
  CHECK_THAT(message_of<contract_error>([] {
               (void)ExpertAffinity({2, 4, {0, 1, 2}});
             }),
             ContainsSubstring("3 entries"));
  CHECK_THAT(message_of<contract_error>([] {
               (void)ExpertAffinity({2, 4, {0, 4}});
             }),
             ContainsSubstring("expert 4 of 4"));
  const ExpertAffinity counts({2, 4, {0, 1}});
  CHECK_THAT(message_of<contract_error>([&] { (void)place_experts(counts, {.levels = {3}}); }),
             ContainsSubstring("4 experts, 3 ranks"));
  CHECK_THAT(message_of<contract_error>([&] { (void)place_experts(counts, {.levels = {}}); }),
             ContainsSubstring("0 levels"));
  CHECK_THAT(message_of<contract_error>(
                 [&] { (void)rank_changes(counts, systems::contiguous_experts(3, 4, 2)); }),
             ContainsSubstring("3 x 4 experts, traced 2 x 4"));
  CHECK_THAT(
      message_of<contract_error>([] { (void)systems::contiguous_experts(3, 4, 4).of_nodes(3); }),
      ContainsSubstring("4 ranks, nodes of 3"));
}

}  // namespace test_expert_placement
