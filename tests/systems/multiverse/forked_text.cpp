// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Nested forks: masks and positions against the address of every token.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/layout.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/fork_tree.hpp"

namespace test_forked_text {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("masks and positions of random nested forks are those of every token's address") {
  for (std::uint64_t seed = 0; seed < test::cases(1'000, 10'000); ++seed) {
    const test::ForkTree tree = test::ForkTrees(seed).draw(3);
    const systems::ForkedText text = test::text_of(tree);
    std::vector<test::ForkToken> tokens;
    const std::int64_t positions = test::append_tokens(tree, {}, tokens);
    CAPTURE(seed);
    REQUIRE(text.tokens() == static_cast<std::int64_t>(tokens.size()));
    REQUIRE(text.positions() == positions);
    bool right = true;
    for (std::int64_t q = 0; q < text.tokens(); ++q) {
      const test::ForkToken& query = tokens[static_cast<std::size_t>(q)];
      right = right && text.position_of(q) == query.position;
      std::vector<bool> expected(tokens.size(), false);
      for (std::size_t k = 0; k <= static_cast<std::size_t>(q); ++k)
        expected[k] = query.sees(tokens[k]);
      std::vector<bool> seen(tokens.size(), false);
      std::int64_t end = -1;
      for (const Interval& interval : text.visible(q)) {
        right = right && interval.begin > end && interval.size() > 0;  // ascending, merged
        end = interval.end;
        for (std::int64_t k = interval.begin; k < interval.end; ++k)
          seen[static_cast<std::size_t>(k)] = true;
      }
      right = right && seen == expected;
    }
    REQUIRE(right);
  }
}

TEST_CASE("a goal, two paths and a conclusion have the positions of the paper") {
  systems::ForkedText text;
  text.say(10).fork({systems::ForkedText().say(5), systems::ForkedText().say(8)}).say(3);
  CHECK(text.tokens() == 26);
  CHECK(text.positions() == 21);
  CHECK(text.position_of(10) == 10);  // the first path begins behind the goal
  CHECK(text.position_of(15) == 10);  // and so does the second
  CHECK(text.position_of(23) == 18);  // the conclusion comes behind the longest path
  CHECK(text.visible(14) == std::vector<Interval>{{0, 15}});
  CHECK(text.visible(22) == std::vector<Interval>{{0, 10}, {15, 23}});
  CHECK(text.visible(25) == std::vector<Interval>{{0, 26}});
}

TEST_CASE("empty texts, empty paths and wrong numbers") {
  CHECK(systems::ForkedText().tokens() == 0);
  systems::ForkedText text;
  text.fork({systems::ForkedText(), systems::ForkedText()}).say(1);
  CHECK(text.positions() == 1);
  CHECK(text.visible(0) == std::vector<Interval>{{0, 1}});
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([] { systems::ForkedText().say(-1); }), ContainsSubstring("tokens = -1"));
  CHECK_THAT(message([] { systems::ForkedText().fork({}); }),
             ContainsSubstring("at least one path"));
  CHECK_THAT(message([&] { (void)text.visible(1); }), ContainsSubstring("token 1 of 1"));
  CHECK_THAT(message([&] { (void)text.position_of(-1); }), ContainsSubstring("token -1"));
}

}  // namespace test_forked_text
