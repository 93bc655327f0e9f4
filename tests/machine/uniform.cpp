// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cmath>
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>

#include "support/complaint.hpp"

namespace test_uniform {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a uniform machine has equal devices and equal links") {
  const Machine machine = Machine::uniform(3, {"gpu"}, {.latency = 2e-6, .bandwidth = 5e9});
  CHECK(machine.ranks() == 3);
  for (int a = 0; a < 3; ++a) {
    CHECK(machine.device(Rank{a}).name == "gpu");
    for (int b = 0; b < 3; ++b) {
      CHECK(machine.link(Rank{a}, Rank{b}).latency == 2e-6);
      CHECK(machine.link(Rank{a}, Rank{b}).bandwidth == 5e9);
    }
  }
  CHECK(text(machine) == "3 x gpu, links of 2 us and 5 GB/s");
}

TEST_CASE("a link is occupied for bytes / bandwidth; an unlimited one never") {
  CHECK(Link{.latency = 1, .bandwidth = 4}.occupancy(10) == 2.5);
  CHECK(Link{.latency = 1, .bandwidth = 4}.occupancy(0) == 0);
  CHECK(Link{}.occupancy(Bytes{1} << 60) == 0);
}

TEST_CASE("a machine without ranks and a link of nonsense are refused with their numbers") {
  const auto refusal = [](int ranks, Link link) {
    return test::message_of<contract_error>([&] { (void)Machine::uniform(ranks, {}, link); });
  };
  CHECK_THAT(refusal(0, {}), ContainsSubstring("heddle::Machine::uniform: a machine needs at least "
                                               "one rank (ranks = 0)"));
  CHECK_THAT(refusal(-2, {}), ContainsSubstring("ranks = -2"));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double latency : {-1.0, infinity, std::nan("")})
    CHECK_THAT(refusal(1, {.latency = latency}), ContainsSubstring(text("latency ", latency)));
  for (const double bandwidth : {0.0, -3.0, std::nan("")})
    CHECK_THAT(refusal(1, {.bandwidth = bandwidth}),
               ContainsSubstring(text("bandwidth ", bandwidth, " B/s")));
}

}  // namespace test_uniform
