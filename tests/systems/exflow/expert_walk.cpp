// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Tokens that walk through experts over threads: the same bits as a serial walk, whether they come
// home or stay; the exchanges and the rows that are sent; and failures.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>
#include <heddle/systems/exflow/expert_walk.hpp>

#include "support/complaint.hpp"
#include "support/expert_routes.hpp"
#include "support/expert_walks.hpp"

namespace test_expert_walk {

using namespace heddle;
using test::ExpertCase;

namespace {

void check_both_ways(const ExpertCase& tokens) {
  const ExpertCase::Expected expected = tokens.serial();
  const int layers = static_cast<int>(tokens.placement.layers);
  for (const systems::AfterExpert after :
       {systems::AfterExpert::comes_home, systems::AfterExpert::stays}) {
    const bool stays = after == systems::AfterExpert::stays;
    const ExpertCase::Walked walked = tokens.on_threads(expected, after);
    CAPTURE(tokens.placement.ranks, stays);
    CHECK(walked.right);
    CHECK(walked.rows(tokens.width) == (stays ? expected.stays : expected.comes_home));
    for (const systems::ExpertTraffic& rank : walked.traffic) {
      CHECK(rank.exchanges == (stays ? layers - 1 : 2 * layers));
      CHECK(rank.gathers == (stays ? 1 : 0));
      CHECK(rank.numbers * tokens.width == rank.rows);  // both have eight bytes
    }
  }
}

}  // namespace

TEST_CASE("tokens that stay with their experts compute the bits of tokens that come home") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const auto [trace, planted] = test::planted_routes(61, 5, 24, ranks, 0.7, 4);
    const systems::ExpertAffinity counts(trace);
    check_both_ways({planted, trace, 61});
    check_both_ways({systems::place_experts(counts, {.levels = {ranks}}), trace, 61});
    // Routes that depend on what the experts computed, so that an error takes another way.
    check_both_ways({systems::contiguous_experts(5, 24, ranks), {}, 61});
  }
  check_both_ways({systems::contiguous_experts(1, 4, 2), {}, 1});  // a rank without tokens
}

TEST_CASE("wrong placements and routes are named, and a failing rank ends the others") {
  using Catch::Matchers::ContainsSubstring;
  const auto walk_with = [](int ranks, std::size_t chosen, auto expert) {
    return test::message_of<error>([&] {
      run_threads(2, [&](ThreadTransport& transport) {
        std::vector<double> rows(8, 1);
        systems::walk_experts(
            transport, systems::contiguous_experts(3, 4, ranks), std::span(rows), {.width = 2},
            [&](std::uint64_t, std::size_t, std::span<const double>) { return chosen; }, expert);
      });
    });
  };
  const auto nothing = [](std::size_t, std::size_t, std::uint64_t, std::span<double>) {};
  CHECK_THAT(walk_with(4, 0, nothing), ContainsSubstring("a placement for 4 ranks, 2 ranks"));
  CHECK_THAT(walk_with(2, 4, nothing), ContainsSubstring("token 0, layer 0: expert 4 of 4"));
  const auto failing = [](std::size_t layer, std::size_t, std::uint64_t, std::span<double>) {
    if (layer == 1) throw contract_error({"of the expert", "no more"});
  };
  CHECK_THAT(walk_with(2, 0, failing), ContainsSubstring("no more"));
}

}  // namespace test_expert_walk
