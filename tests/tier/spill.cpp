// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Spilling: the choice that transfers least, as trying all choices finds it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/spill.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/random_symbols.hpp"

namespace test_spill {

namespace hd = heddle;
namespace tier = heddle::tier;
using Catch::Matchers::ContainsSubstring;
using hd::Bytes;
using hd::test::fewest_transfers;
using hd::test::peak_of;
using hd::test::random_symbols;
using tier::SpilledSymbols;
using tier::Symbol;

namespace {

/// Returns true if what a choice says of itself is so.
bool is_sound(const std::vector<Symbol>& symbols, const SpilledSymbols& choice) {
  unsigned stays = (1u << symbols.size()) - 1;
  Bytes transferred = 0;
  for (const std::size_t s : choice.spilled) {
    stays &= ~(1u << s);
    transferred += symbols[s].transferred;
  }
  return choice.transferred == transferred && choice.peak == peak_of(symbols, stays) &&
         std::ranges::is_sorted(choice.spilled);
}

}  // namespace

TEST_CASE("spilled symbols are those of the best of all choices, up to 12 symbols") {
  const std::uint64_t cases = hd::test::cases(200, 5'000);
  std::uint64_t spilled = 0, better = 0;
  for (std::uint64_t c = 0; c < cases; ++c) {
    const hd::Random random(c, "symbols");
    const std::vector<Symbol> symbols = random_symbols(random);
    const Bytes capacity = random.below(500, 40);
    const Bytes fewest = fewest_transfers(symbols, capacity);
    const SpilledSymbols best = tier::spill(symbols, capacity);
    CHECK(best.is_best);
    CHECK(best.transferred == fewest);
    CHECK(best.peak <= capacity);
    CHECK(is_sound(symbols, best));
    const SpilledSymbols greedy = tier::spill_fewest_transfers(symbols, capacity);
    CHECK(is_sound(symbols, greedy));
    CHECK(greedy.peak <= capacity);
    CHECK(greedy.transferred >= fewest);
    CHECK((!greedy.is_best || greedy.transferred == fewest));
    spilled += !best.spilled.empty();
    better += greedy.transferred > fewest;
  }
  CHECK(spilled > cases / 2);
  CHECK(better > cases / 20);
}

TEST_CASE("symbols that do not live at the same time share the same bytes") {
  const std::vector<Symbol> symbols{
      {"a", 10, 0, 3, 70}, {"b", 10, 4, 6, 80}, {"c", 10, 7, 9, 90}, {"d", 5, 0, 9, 50}};
  CHECK(tier::spill(symbols, 15).spilled.empty());
  CHECK(tier::spill(symbols, 15).peak == 15);
  // One unit less: d goes, with the fewest bytes of the two choices {d} and {a, b, c}.
  const SpilledSymbols one = tier::spill(symbols, 14);
  CHECK(one.spilled == std::vector<std::size_t>{3});
  CHECK(one.transferred == 50);
  CHECK(one.peak == 10);
}

TEST_CASE("the greedy choice is not the best one where one large symbol has room for two") {
  // The greedy rule spills both small symbols, of 3 and 4 bytes transferred, before the large one.
  const std::vector<Symbol> symbols{
      {"large", 10, 0, 1, 5}, {"one", 5, 0, 1, 3}, {"two", 5, 0, 1, 4}};
  CHECK(tier::spill_fewest_transfers(symbols, 10).transferred == 7);
  const SpilledSymbols best = tier::spill(symbols, 10);
  CHECK(best.spilled == std::vector<std::size_t>{0});
  CHECK(best.transferred == 5);
}

TEST_CASE("a model of 400 symbols is divided, and sizes of real models are exact") {
  std::vector<Symbol> symbols;
  constexpr Bytes layer = 436'207'616;  // a layer of a 7B model in 16 bits, about
  for (std::int64_t s = 0; s < 200; ++s) {
    symbols.push_back({hd::text("weights ", s), layer, 0, 399, layer});
    symbols.push_back({hd::text("activation ", s), 33'554'432, s, s + 1, 67'108'864});
  }
  const SpilledSymbols choice = tier::spill(symbols, 64'000'000'000);
  CHECK(choice.is_best);
  CHECK(choice.peak <= 64'000'000'000);
  // Activations: at most two at once; all weights weigh the same.
  const Bytes stay = (64'000'000'000 - 2 * 33'554'432ull) / layer;
  CHECK(choice.transferred == (200 - stay) * layer);
}

TEST_CASE("nothing to spill, nothing that fits, and a symbol that ends before it begins") {
  CHECK(tier::spill({}, 0).is_best);
  const std::vector<Symbol> large{{"a", 10, 0, 1, 7}};
  CHECK(tier::spill(large, 9).spilled == std::vector<std::size_t>{0});
  CHECK(tier::spill(large, 0).transferred == 7);
  const std::vector<Symbol> wrong{{"a", 10, 2, 1, 7}};
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([&] { static_cast<void>(tier::spill(wrong, 9)); }),
      ContainsSubstring("symbol 'a' ends before it begins (steps 2 to 1)"));
}

}  // namespace test_spill
