// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/systems/hap/factored_gradient.hpp>

namespace test_sufficient_factors {

using namespace heddle;
using systems::FactoredGradient;

namespace {

Bytes bytes_sent(const Schedule& schedule) {
  Bytes bytes = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[ActionId{i}].kind == Kind::move)
      bytes += schedule.bytes(schedule.uses(ActionId{i})[0]);
  return bytes;
}

}  // namespace

TEST_CASE("the bytes of a gradient and of its factors are those of the schedules") {
  using namespace schedule;
  for (const int p : {1, 2, 3, 4, 7}) {
    for (const std::uint64_t rows : {0, 1, 5, 64}) {
      const FactoredGradient gradient{
          .inputs = 13, .outputs = 7, .rows = rows, .ranks = p, .type = Scalar::f64};
      CHECK(systems::bytes_of_sum(gradient) ==
            bytes_sent(collective(Collective::all_reduce, Algorithm::ring,
                                  {.ranks = p, .bytes = 13 * 7 * 8, .type = Scalar::f64})));
      const auto gathered = [&](std::uint64_t columns) {
        return bytes_sent(
            collective(Collective::all_gather, Algorithm::ring,
                       {.ranks = p, .bytes = rows * columns * 8, .element = columns * 8}));
      };
      CHECK(systems::bytes_of_factors(gradient) == gathered(13) + gathered(7));
    }
  }
}

TEST_CASE("factors are preferred while they are smaller, and their product is cheap enough") {
  // 2 x 60 x 30 / (60 + 30) = 40 rows are as many bytes as the gradient.
  const auto prefers = [](std::uint64_t rows, Seconds per_flop) {
    return systems::prefers_factors({.inputs = 60, .outputs = 30, .rows = rows, .ranks = 4}, 1,
                                    per_flop);
  };
  CHECK(prefers(39, 0));
  CHECK_FALSE(prefers(40, 0));
  CHECK_FALSE(prefers(41, 0));
  // 20 rows save 3 x 1800 x 4 bytes, a quarter of them on each rank, and cost 15 x 2 x 1800 flops.
  const Seconds even = (3 * 1800 * 4 / 4.0) / (15 * 2 * 1800);
  CHECK(prefers(20, 0.99 * even));
  CHECK_FALSE(prefers(20, even));
  CHECK_FALSE(prefers(20, 1.01 * even));
  // Alone nothing is sent, and nothing computed besides.
  const FactoredGradient alone{.inputs = 60, .outputs = 30, .rows = 8};
  CHECK(systems::extra_flops(alone) == 0);
  CHECK_FALSE(systems::prefers_factors(alone, 1, 0));
}

TEST_CASE("of a wide layer the factors travel in a fraction of the time") {
  // The first fully connected layer of VGG, on 8 ranks of 32 samples: 411 MB of gradient.
  constexpr FactoredGradient layer{.inputs = 25088, .outputs = 4096, .rows = 256, .ranks = 8};
  static_assert(systems::bytes_of_sum(layer) == Bytes{14} * 25088 * 4096 * 4);
  static_assert(systems::bytes_of_sum(layer) > 27 * systems::bytes_of_factors(layer));
  CHECK(systems::prefers_factors(layer, 1 / 1.3e9, 1 / 1e13));
  CHECK_FALSE(systems::prefers_factors(layer, 1 / 1.3e9, 1 / 5e10));
}

}  // namespace test_sufficient_factors
