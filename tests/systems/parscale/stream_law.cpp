// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The law of parallel streams: fitted to losses of a known law, with and without noise; the memory
// that streams add, counted; and wrong input.

#include <cmath>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/parscale/stream_law.hpp>

#include "support/complaint.hpp"
#include "support/stream_losses.hpp"

namespace test_stream_law {

using namespace heddle;
using systems::StreamLaw;
using systems::StreamLoss;
using systems::StreamMemory;

TEST_CASE("a fit finds the law of exact losses, and the gain within 5% with noise") {
  for (const double gain : {0.33, 0.39, 0.0}) {
    const StreamLaw truth{.least = 1.3, .scale = 1.2, .power = 0.2, .gain = gain};
    const StreamLaw exact = systems::StreamLaw::fit(test::stream_losses(truth, 0, 1));
    CHECK(std::abs(exact.gain - gain) < 1e-6);
    CHECK(std::abs(exact.least - truth.least) < 1e-5);
    CHECK(std::abs(exact.scale - truth.scale) < 1e-4);
    CHECK(std::abs(exact.power - truth.power) < 1e-5);
    if (gain == 0) continue;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<StreamLoss> losses = test::stream_losses(truth, 5e-4, seed);
      const StreamLaw law = systems::StreamLaw::fit(losses);
      CHECK(std::abs(law.gain / gain - 1) <= 0.05);
      CHECK(systems::explained(law, losses) >= 0.998);
      CHECK(systems::explained(law, losses) < 1);
    }
  }
}

TEST_CASE("streams have the effect of parameters") {
  const StreamLaw law{.least = 1, .scale = 2, .power = 0.5, .gain = 0.4};
  CHECK(law.factor(1) == 1);
  CHECK(law.loss(8e9, 1) == 1.5);
  const double factor = 0.4 * std::log(8.0) + 1;
  CHECK(std::abs(law.loss(1e9, 8) - law.loss(factor * 1e9, 1)) < 1e-14);
}

TEST_CASE("the memory of streams is that of their caches, prefixes and gate") {
  const StreamMemory model{
      .layers = 3, .keys = 5, .width = 7, .prefix = 2, .context = 11, .hidden = 13, .number = 2};
  Bytes numbers = 0;
  for (int stream = 0; stream < 4; ++stream)
    for (int layer = 0; layer < 3; ++layer)
      numbers += 2 * 5 * (2 + (stream == 0 ? 0 : 11));  // keys and values
  numbers += 13 * 4 * 7 + 4 * 13;
  CHECK(model.added(4) == 2 * numbers);
  CHECK(model.added(1) == 0);
}

TEST_CASE("losses that determine no law are named") {
  using Catch::Matchers::ContainsSubstring;
  std::vector<StreamLoss> losses(5, {1e9, 2, 1.5});
  const auto message = [&] {
    return test::message_of<contract_error>([&] { (void)systems::StreamLaw::fit(losses); });
  };
  losses[0].parameters = 2e9;
  CHECK_THAT(message(), ContainsSubstring("several numbers of parameters and of streams"));
  losses[1].streams = 1;
  losses[2].loss = -1;
  CHECK_THAT(message(), ContainsSubstring("losses[2]"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)StreamMemory{}.added(0); }),
             ContainsSubstring("streams = 0"));
}

}  // namespace test_stream_law
