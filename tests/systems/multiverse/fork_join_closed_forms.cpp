// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Texts written side by side, simulated: prefix, longest path and conclusion at every fork, exact
// on rationals; and what is stored.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/multiverse/fork_join.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/fork_tree.hpp"
#include "support/rational.hpp"
#include "support/token_costs.hpp"

namespace test_fork_join_closed_forms {

using namespace heddle;
using test::Rational;

using test::TokenCosts;

TEST_CASE("a forked text takes its prefix, longest path and conclusion, recursively") {
  for (std::uint64_t seed = 0; seed < test::cases(300, 5'000); ++seed) {
    const test::ForkTree tree = test::ForkTrees(seed).draw(3);
    const systems::ForkedText text = test::text_of(tree);
    if (text.tokens() == 0) continue;
    const Schedule schedule = systems::fork_join(text, 24);
    const Rational per_token(1, 3);
    const auto timeline = simulate(schedule, TokenCosts{text, per_token});
    CAPTURE(seed);
    CHECK(timeline.makespan() == test::time_of(tree, per_token));
    // The prefix is stored once: every token has its bytes in one buffer.
    Bytes bytes = 0;
    for (const Buffer& buffer : schedule.buffers()) bytes += buffer.bytes;
    CHECK(bytes == 24 * static_cast<Bytes>(text.tokens()));
    for (const Action& action : schedule.actions()) CHECK(action.kind == Kind::user);
  }
}

TEST_CASE("a token without bytes is refused") {
  CHECK_THAT(
      test::message_of<contract_error>([] { (void)systems::fork_join(systems::ForkedText(), 0); }),
      Catch::Matchers::ContainsSubstring("per_token = 0"));
}

}  // namespace test_fork_join_closed_forms
