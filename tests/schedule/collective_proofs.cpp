// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Every algorithm of every collective is proved to leave what the collective says. Lists with one
// action less or in another place are found.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/coverage.hpp"

namespace test_collective_proofs {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using schedule::CollectiveOptions;
using schedule::why_not_equivalent;

namespace {

template <class Check>
void for_all(Check&& check) {
  for (std::size_t c = 0; c < schedule::collective_count; ++c)
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a)
      check(static_cast<Collective>(c), static_cast<Algorithm>(a));
}

void expect_proof(Collective collective, Algorithm algorithm, const CollectiveOptions& options) {
  if (!schedule::why_not(collective, algorithm, options).empty()) return;
  const Schedule made = schedule::collective(collective, algorithm, options);
  INFO(made.name() << ", " << options.bytes << " bytes, root " << options.root);
  REQUIRE(why_not_equivalent(made, collective, options) == "");
  REQUIRE(why_not_equivalent(schedule::fold(made), collective, options) == "");
  if (collective != Collective::all_gather || options.apart) return;
  CollectiveOptions apart = options;
  apart.apart = true;
  expect_proof(collective, algorithm, apart);
}

}  // namespace

TEST_CASE("every algorithm is proved to perform its collective") {
  const int most = static_cast<int>(std::min<std::uint64_t>(33, test::cases(9, 66)));
  for_all([&](Collective collective, Algorithm algorithm) {
    for (int p = 1; p <= most + 1; ++p) {
      const int ranks = p > most ? 16 : p;
      for (const Bytes elements : {0, 1, 5, 101})
        for (const int chunks : {1, 3})
          expect_proof(collective, algorithm,
                       {.ranks = ranks,
                        .bytes = 8 * elements,
                        .chunks = chunks,
                        .root = Rank{(ranks - 1) / 2}});
      CollectiveOptions uneven{.ranks = ranks};
      const int blocks = collective == Collective::all_to_all ? ranks * ranks : ranks;
      for (int b = 0; b < blocks; ++b) uneven.blocks.push_back(Bytes{8} * ((b * 7) % 5));
      expect_proof(collective, algorithm, uneven);
    }
  });
}

TEST_CASE("levels of groups keep the proof of a collective") {
  for (std::size_t c = 0; c < schedule::collective_count; ++c)
    for (std::size_t inner = 0; inner < schedule::algorithm_count; ++inner)
      for (std::size_t outer = 0; outer < schedule::algorithm_count; ++outer) {
        const CollectiveOptions options{
            .ranks = 8,
            .bytes = Bytes{8} * 61,
            .levels = {{4, static_cast<Algorithm>(inner)}, {2, static_cast<Algorithm>(outer)}}};
        expect_proof(static_cast<Collective>(c), Algorithm::hierarchical, options);
      }
}

TEST_CASE("messages of fewer bits keep the proof of a collective") {
  const CollectiveOptions options{.ranks = 5, .bytes = Bytes{8} * 61};
  for_all([&](Collective collective, Algorithm algorithm) {
    if (!schedule::why_not(collective, algorithm, options).empty() ||
        collective == Collective::barrier)
      return;
    INFO(collective << ' ' << algorithm);
    const Schedule cast =
        schedule::cast_at_cut(schedule::collective(collective, algorithm, options),
                              {.type = Scalar::f32}, [](Rank, Rank) { return true; });
    INFO(cast.name());
    CHECK(why_not_equivalent(cast, collective, options) == "");
  });
}

TEST_CASE("a difference of a collective is named") {
  const CollectiveOptions options{.ranks = 3, .bytes = 24};
  const Schedule good = schedule::collective(Collective::all_reduce, Algorithm::ring, options);
  const auto without = [&](std::size_t dropped, std::size_t repeated) {
    Builder builder = Builder::like(good, [](const Buffer& buffer) { return buffer; });
    for (std::size_t i = 0; i < good.size(); ++i)
      for (int n = 0; n < (i == repeated ? 2 : i != dropped); ++n)
        builder.add(good, ActionId{i}, good.uses(ActionId{i}));
    return why_not_equivalent(std::move(builder).build(), Collective::all_reduce, options);
  };
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> sums;
  for (std::size_t i = 0; i < good.size(); ++i)
    if (good[ActionId{i}].kind == Kind::combine) sums.push_back(i);
  REQUIRE(sums.size() == 6);
  CHECK(without(none, none) == "");
  CHECK(without(sums[0], none).find(" lack what 'data' of rank ") != std::string::npos);
  CHECK(without(none, sums[0]).find(" twice") != std::string::npos);
  CHECK(without(good.size() - 1, none).find(" lack what 'data' of rank ") != std::string::npos);
  // Each list without one of its actions is found.
  test::Coverage coverage("dropped actions");
  for_all([&](Collective collective, Algorithm algorithm) {
    CollectiveOptions of{.ranks = 4, .bytes = 64, .root = Rank{1}};
    if (!schedule::why_not(collective, algorithm, of).empty() || collective == Collective::barrier)
      return;
    const Schedule whole = schedule::collective(collective, algorithm, of);
    for (std::size_t dropped = 0; dropped < whole.size(); ++dropped) {
      Builder builder = Builder::like(whole, [](const Buffer& buffer) { return buffer; });
      bool rejected = false;
      for (std::size_t i = 0; i < whole.size() && !rejected; ++i) try {
          if (i != dropped) builder.add(whole, ActionId{i}, whole.uses(ActionId{i}));
        } catch (const contract_error&) {
          rejected = true;
        }
      coverage.count("rejected by the Builder", rejected);
      if (rejected) continue;
      INFO(whole.name() << " without " << schedule::action_text(whole, ActionId{dropped}));
      CHECK(why_not_equivalent(std::move(builder).build(), collective, of) != "");
      coverage.count("found", true);
    }
  });
  INFO(coverage);
  CHECK(coverage.rarer_than(20) == "");
}

}  // namespace test_collective_proofs
