// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the places of matrices in banks: products equal a serial one, each place holds one burst,
// and loads, activations and partial sums equal closed forms.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

#include "support/bank_cases.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"

namespace test_bank_mapping {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::systems::BankLayout;

namespace {

std::int64_t up(std::int64_t over, std::int64_t under) { return (over + under - 1) / under; }

}  // namespace

TEST_CASE("a product bank by bank equals the serial product, and each place has one burst") {
  hd::test::Coverage coverage("products in banks");
  for (std::uint64_t seed = 0; seed < hd::test::cases(150, 5'000); ++seed) {
    hd::test::BankCase draw(seed);
    const hd::systems::DramGrid grid = draw.grid();
    hd::systems::Gemv gemv = draw.product();
    gemv.element = 1u << draw.below(4);
    if (gemv.layout == hd::systems::BankLayout::dealt && draw.below(2) == 0)
      gemv.reserved = gemv.inputs + static_cast<std::int64_t>(draw.below(20));
    const auto weight = [&](std::int64_t o, std::int64_t i) {
      return static_cast<std::int64_t>(
                 draw.random.below(static_cast<std::uint64_t>(1000 + o * 100 + i), 2001)) -
             1000;
    };
    const auto value = [&](std::int64_t i) {
      return static_cast<std::int64_t>(
                 draw.random.below(static_cast<std::uint64_t>(900 + i), 2001)) -
             1000;
    };
    struct Bank {
      hd::systems::BankWork work;
      std::int64_t row = -1, output = -1, segment = -1;
    };
    const auto banks = static_cast<std::size_t>(grid.all_banks());
    std::vector<Bank> by_hand(banks);
    std::vector<std::int64_t> y(static_cast<std::size_t>(gemv.outputs), 0);
    std::map<std::pair<int, std::int64_t>, std::uint64_t> in_row;
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    const auto elements = static_cast<std::int64_t>(grid.burst / gemv.element);
    hd::systems::for_each_bank_read(grid, gemv, [&](const hd::systems::BankRead& read) {
      REQUIRE(read.bank >= 0);
      REQUIRE(static_cast<std::size_t>(read.bank) < banks);
      REQUIRE(read.input % elements == 0);
      REQUIRE(read.count == std::min(elements, gemv.inputs - read.input));
      REQUIRE(read.segment == read.input * static_cast<std::int64_t>(gemv.element) /
                                  static_cast<std::int64_t>(grid.vector));
      REQUIRE(seen.emplace(read.output, read.input).second);
      REQUIRE(++in_row[{read.bank, read.row}] <= grid.row / grid.burst);
      for (std::int64_t i = read.input; i < read.input + read.count; ++i)
        y[static_cast<std::size_t>(read.output)] += weight(read.output, i) * value(i);
      Bank& bank = by_hand[static_cast<std::size_t>(read.bank)];
      ++bank.work.bursts;
      if (bank.row != read.row) ++bank.work.activations;
      if (bank.output != read.output || bank.segment != read.segment) ++bank.work.results;
      bank.row = read.row;
      bank.output = read.output;
      bank.segment = read.segment;
    });
    REQUIRE(static_cast<std::int64_t>(seen.size()) == gemv.outputs * up(gemv.inputs, elements));
    for (std::int64_t o = 0; o < gemv.outputs; ++o) {
      std::int64_t serial = 0;
      for (std::int64_t i = 0; i < gemv.inputs; ++i) serial += weight(o, i) * value(i);
      REQUIRE(y[static_cast<std::size_t>(o)] == serial);
    }
    const std::vector<hd::systems::BankWork> work = hd::systems::bank_work(grid, gemv);
    REQUIRE(work.size() == banks);
    for (std::size_t b = 0; b < banks; ++b) REQUIRE(work[b] == by_hand[b].work);
    coverage.count("packed", gemv.layout == hd::systems::BankLayout::packed);
    coverage.count("dealt with room", gemv.reserved > gemv.inputs);
    coverage.count("interleaved", gemv.layout == hd::systems::BankLayout::interleaved);
    coverage.count("idle banks", work.back().bursts == 0);
    coverage.count("several parts of the vector",
                   gemv.inputs * static_cast<std::int64_t>(gemv.element) >
                       static_cast<std::int64_t>(grid.vector));
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(5) == "");
}

TEST_CASE("a packed matrix loads its banks equally and opens each row once") {
  const hd::systems::DramGrid grid;  // 128 banks, 64 bursts of 16 elements in a row
  for (const auto& [outputs, inputs] :
       {std::pair{1000, 1000}, std::pair{3 * 1600, 1600}, std::pair{5001, 777}, std::pair{130, 768},
        std::pair{768, 3072}, std::pair{50257, 100}}) {
    const auto work = hd::systems::bank_work(grid, {.outputs = outputs, .inputs = inputs});
    const std::int64_t bursts = outputs * up(inputs, 16);
    std::int64_t sum = 0;
    for (const hd::systems::BankWork& own : work) {
      CHECK(own.bursts >= bursts / 128);
      CHECK(own.bursts <= up(bursts, 128));
      CHECK(own.activations == up(own.bursts, 64));
      sum += own.bursts;
    }
    CHECK(sum == bursts);
    CHECK(hd::systems::bank_imbalance(work) <= 1.05);
  }
  // An output of one burst for each of 128 banks, and one more: cut by outputs, one bank has twice
  // the work of the others.
  CHECK(hd::systems::bank_imbalance(hd::systems::bank_work(
            grid, {.outputs = 129, .inputs = 16, .layout = hd::systems::BankLayout::dealt})) > 1.9);
}

TEST_CASE("a packed matrix keeps more rows open than an interleaved one, and returns less") {
  const hd::systems::DramGrid grid;
  // An output has 512 bursts. If they are interleaved, a bank has 4 of them, in 4 parts of the
  // vector, so it opens each of its rows for 4 of the 8 parts.
  const hd::systems::Gemv packed{.outputs = 1024, .inputs = 8192};
  hd::systems::Gemv interleaved = packed;
  interleaved.layout = hd::systems::BankLayout::interleaved;
  const auto by_part = hd::systems::bank_work(grid, packed);
  const auto by_burst = hd::systems::bank_work(grid, interleaved);
  CHECK(hd::systems::row_hit_rate(by_part) == 1 - 1.0 / 64);
  CHECK(hd::systems::row_hit_rate(by_burst) == 1 - 4.0 / 64);
  std::int64_t few = 0;
  std::int64_t many = 0;
  for (std::size_t b = 0; b < 128; ++b) {
    few += by_part[b].results;
    many += by_burst[b].results;
  }
  CHECK(few == 8 * 1024);     // one for each output and part of the vector
  CHECK(many == 512 * 1024);  // one for each burst
  const std::vector<hd::systems::BankWork> nothing(3);
  CHECK(hd::systems::row_hit_rate(nothing) == 1);
  CHECK(hd::systems::bank_imbalance(nothing) == 1);
}

TEST_CASE("keys and values stay where they are when tokens come") {
  const hd::systems::DramGrid grid{.channels = 2, .banks = 3, .row = 64, .burst = 8, .vector = 64};
  using Place = std::tuple<int, std::int64_t>;
  const auto places = [&](const hd::systems::Gemv& gemv) {
    std::map<std::pair<std::int64_t, std::int64_t>, Place> found;
    hd::systems::for_each_bank_read(grid, gemv, [&](const hd::systems::BankRead& read) {
      found[{read.output, read.input}] = {read.bank, read.row};
    });
    return found;
  };
  const auto kept = [](const auto& before, const auto& after) {
    return std::all_of(before.begin(), before.end(),
                       [&](const auto& place) { return after.at(place.first) == place.second; });
  };
  for (std::int64_t tokens = 1; tokens < 40; ++tokens) {
    hd::systems::Gemv keys{
        .outputs = tokens, .inputs = 20, .layout = hd::systems::BankLayout::dealt};
    hd::systems::Gemv values{
        .outputs = 20, .inputs = tokens, .layout = hd::systems::BankLayout::dealt, .reserved = 40};
    const auto old_keys = places(keys);
    const auto old_values = places(values);
    ++keys.outputs;
    ++values.inputs;
    REQUIRE(kept(old_keys, places(keys)));
    REQUIRE(kept(old_values, places(values)));
  }
}

TEST_CASE("wrong memories and products are rejected") {
  const auto message = [](const hd::systems::DramGrid& grid, const hd::systems::Gemv& gemv) {
    return hd::test::message_of<hd::contract_error>(
        [&] { (void)hd::systems::bank_work(grid, gemv); });
  };
  const hd::systems::Gemv good{.outputs = 1, .inputs = 1};
  CHECK_THAT(message({.channels = 0}, good), ContainsSubstring("channels = 0"));
  CHECK_THAT(message({.row = 40}, good), ContainsSubstring("row = 40"));
  CHECK_THAT(message({.vector = 0}, good), ContainsSubstring("vector = 0"));
  CHECK_THAT(message({}, {.outputs = 0, .inputs = 2}), ContainsSubstring("outputs = 0"));
  CHECK_THAT(message({}, {.outputs = 1, .inputs = 2, .heads = 0}), ContainsSubstring("heads = 0"));
  CHECK_THAT(message({}, {.outputs = 1, .inputs = 2, .element = 3}),
             ContainsSubstring("element = 3"));
  CHECK_THAT(message({}, {.outputs = 1, .inputs = 2, .reserved = 4}),
             ContainsSubstring("reserved = 4"));
}

}  // namespace test_bank_mapping
