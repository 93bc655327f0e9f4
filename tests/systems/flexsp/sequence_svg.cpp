// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The picture of a SequencePlan: a box to scale for each group, with the lengths of its sequences.

#include <cstddef>
#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_svg.hpp>

#include "support/complaint.hpp"

namespace test_sequence_groups_svg {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

/// 4 ranks, 100 tokens each; group times 75 and 50 s.
systems::SequencePlan small() {
  return systems::plan_sequence_groups({50, 150, 50},
                                       {4, 100, {{1, 0, 1, 0}, {2, 0, 0.5, 0}, {4, 0, 0.4, 0}}});
}

}  // namespace

TEST_CASE("a plan of sequence groups is drawn to scale") {
  const std::string svg = to_svg(small(), {.width = 484, .title = "a < b"});
  // 380 pixels for 75 s, from 84 on; ranks are 32 pixels high, from 68 on.
  CHECK_THAT(svg, ContainsSubstring("<rect x=\"84\" y=\"68.5\" width=\"380\" height=\"63\" "));
  CHECK_THAT(svg, ContainsSubstring("<title>ranks 0 to 1, 75 s: 150</title>"));
  CHECK_THAT(svg, ContainsSubstring("<rect x=\"84\" y=\"132.5\" width=\"253.33\" height=\"63\" "));
  CHECK_THAT(svg, ContainsSubstring("<title>ranks 2 to 3, 50 s: 50, 50</title>"));
  // The second group is divided in the middle.
  CHECK_THAT(svg, ContainsSubstring("<line x1=\"210.67\" y1=\"132.5\" x2=\"210.67\" "));
  CHECK_THAT(svg, ContainsSubstring("a &lt; b"));
  CHECK(count(svg, "class=\"microbatch\"") == 1);
  CHECK(count(svg, "degree 2") == 1);
  CHECK(count(svg, "<g ") == count(svg, "</g>"));
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("a plan without sequences is a picture, too") {
  const systems::SequencePlan none = systems::plan_sequence_groups({}, {4, 100, {{4, 0, 1, 0}}});
  CHECK_THAT(to_svg(none), ContainsSubstring("0 sequences"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)to_svg(none, {.width = 100}); }),
             ContainsSubstring("width = 100"));
}

}  // namespace test_sequence_groups_svg
