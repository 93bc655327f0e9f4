// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the simulated time of products in banks against closed forms and a recurrence, on
// rationals.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/pim_gpt/bank_costs.hpp>
#include <heddle/systems/pim_gpt/bank_gemv.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

#include "support/bank_cases.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_bank_gemv {

namespace hd = heddle;
using hd::test::Rational;
using Products = std::vector<hd::systems::Gemv>;
using Times = hd::systems::BasicBankTimes<Rational>;
using Costs = hd::systems::BasicBankCosts<Rational>;

namespace {

const Times times{.activate = 12,
                  .precharge = 11,
                  .column = 1,
                  .per_byte = Rational(1, 32),
                  .latency = Rational(7, 2),
                  .controller = 40,
                  .per_result = Rational(1, 8)};

Rational simulated(const hd::systems::DramGrid& grid, const Products& products,
                   const Times& with = times) {
  return hd::simulate(hd::systems::bank_gemv(grid, products), Costs(grid, products, with))
      .makespan();
}

}  // namespace

TEST_CASE("a single bank takes rows (tRCD + tRP) + bursts tCCD, the messages and the sum") {
  const hd::systems::DramGrid grid{.channels = 1, .banks = 1};
  for (const auto& [outputs, inputs] : {std::pair{1, 1}, std::pair{7, 1000}, std::pair{300, 64}}) {
    const std::int64_t bursts = outputs * ((inputs + 15) / 16);
    const std::int64_t rows = (bursts + 63) / 64;
    CHECK(simulated(grid, {{.outputs = outputs, .inputs = inputs}}) ==
          Rational(2 * inputs, 32) + Rational(7, 2) + Rational(23 * rows + bursts) +
              Rational(4 * outputs, 32) + Rational(7, 2) + Rational(40) + Rational(outputs, 8));
  }
}

TEST_CASE("128 equal banks take the time of one, and 16 messages for each channel") {
  const hd::systems::DramGrid grid;
  const std::int64_t outputs = 128 * 24;
  const std::int64_t bursts = 24 * 64;  // of a bank; 24 rows
  const Rational one = Rational(2 * 1024, 32) + Rational(7, 2) + Rational(23 * 24 + bursts) +
                       Rational(16 * 4 * 24, 32) + Rational(7, 2) + Rational(40) +
                       Rational(outputs, 8);
  CHECK(simulated(grid, {{.outputs = outputs, .inputs = 1024}}) == one);
  CHECK(simulated(grid, {{.outputs = outputs, .inputs = 1024},
                         {.outputs = outputs, .inputs = 1024},
                         {.outputs = outputs, .inputs = 1024}}) == one * Rational(3));
}

TEST_CASE("any products take what a recurrence over the banks of each channel says") {
  for (std::uint64_t seed = 0; seed < hd::test::cases(100, 5'000); ++seed) {
    hd::test::BankCase draw(seed);
    const hd::systems::DramGrid grid = draw.grid();
    Products products;
    for (std::uint64_t p = 0; p < 3; ++p) {
      products.push_back(draw.product());
      products.back().heads = 1 + static_cast<std::int64_t>(draw.below(3));
    }
    Rational now = 0;
    for (const hd::systems::Gemv& product : products) {
      const std::vector<hd::systems::BankWork> work = hd::systems::bank_work(grid, product);
      const Rational begin =
          now + Rational(product.inputs * product.heads * 2) * times.per_byte + times.latency;
      std::int64_t results = 0;
      for (int channel = 0; channel < grid.channels; ++channel) {
        Rational free = 0;
        for (int lane = 0; lane < grid.banks; ++lane) {
          const hd::systems::BankWork& own =
              work[static_cast<std::size_t>(channel * grid.banks + lane)];
          if (own.bursts == 0) continue;
          const Rational done = begin + Rational(23 * own.activations + own.bursts);
          free = std::max(free, done) + Rational(4 * own.results) * times.per_byte;
          results += own.results;
        }
        now = std::max(now, free + times.latency);
      }
      now = now + times.controller + Rational(results) * times.per_result;
    }
    INFO("seed " << seed);
    REQUIRE(simulated(grid, products) == now);
  }
}

TEST_CASE("if the channels are not the limit, 128 banks are nearly 128 times as fast as one") {
  const Times free{.activate = 12, .precharge = 12, .column = 1};
  const hd::systems::DramGrid one{.channels = 1, .banks = 1};
  for (const auto& [outputs, inputs] :
       {std::pair{3072, 1024}, std::pair{1600, 6400}, std::pair{5001, 777}}) {
    const Products products{{.outputs = outputs, .inputs = inputs}};
    const Rational ratio = simulated(one, products, free) / simulated({}, products, free);
    CHECK(Rational(128 * 95, 100) < ratio);
    CHECK(ratio < Rational(128 * 105, 100));
  }
}

TEST_CASE("products in banks reject what cannot be") {
  CHECK_THAT(hd::test::message_of<hd::contract_error>(
                 [] { (void)hd::systems::bank_gemv({}, Products{}); }),
             Catch::Matchers::ContainsSubstring("there are no products"));
  const Products one{{.outputs = 1, .inputs = 1}};
  const hd::systems::BankTimes wrong{.column = -1};
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] {
               (void)hd::simulate(hd::systems::bank_gemv({}, one),
                                  hd::systems::BankCosts({}, one, wrong));
             }),
             Catch::Matchers::ContainsSubstring("column"));
}

}  // namespace test_bank_gemv
