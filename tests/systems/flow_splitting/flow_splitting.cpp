// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/flow_splitting/flow_splitting.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_flow_splitting {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using systems::SplitRule;
using test::Rational;

namespace {

constexpr SplitRule rules[] = {systems::SplitRule::equal_pieces,
                               systems::SplitRule::whole_flows_first,
                               systems::SplitRule::fill_in_turn};

/// The formulas of the sheet.
std::size_t pieces_expected(std::size_t r, std::size_t s, SplitRule rule) {
  const std::size_t rest = r % s;
  switch (rule) {
    case systems::SplitRule::equal_pieces: return r * s / std::gcd(r, s);
    case systems::SplitRule::whole_flows_first:
      return r - rest + (rest == 0 ? 0 : rest * s / std::gcd(rest, s));
    case systems::SplitRule::fill_in_turn: return r + s - std::gcd(r, s);
  }
  return 0;
}

}  // namespace

TEST_CASE("for all r, s up to 64: every link carries r f / s, every flow is covered once") {
  for (int r = 0; r <= 64; ++r)
    for (int s = 1; s <= 64; ++s)
      for (const SplitRule rule : rules) {
        const auto pieces = systems::split_flows(r, s, rule);
        const auto links = static_cast<std::size_t>(s);
        std::vector<Rational> load(links);
        std::vector<std::uint32_t> covered(static_cast<std::size_t>(r), 0);
        bool good = pieces.size() ==
                    (r == 0 ? 0 : pieces_expected(static_cast<std::size_t>(r), links, rule));
        for (const systems::FlowPiece& piece : pieces) {
          good = good && piece.count >= 1 && covered[piece.flow] == piece.first;
          covered[piece.flow] += piece.count;
          load[piece.link] = load[piece.link] + Rational(piece.count, s);  // of f = 1
        }
        for (const std::uint32_t units : covered) good = good && units == links;
        for (const Rational& each : load) good = good && each == Rational(r, s);
        if (!good) FAIL("r=" << r << " s=" << s << " rule " << static_cast<int>(rule));
      }
}

TEST_CASE("the examples of the sheet: 12, 8 and 8 pieces for 6 over 4; 80, 80, 24 for 10 over 16") {
  for (const auto& [r, s, equal, whole, fill] :
       {std::tuple{6, 4, 12, 8, 8}, {10, 16, 80, 80, 24}}) {
    CHECK(systems::split_flows(r, s, systems::SplitRule::equal_pieces).size() ==
          std::size_t(equal));
    CHECK(systems::split_flows(r, s, systems::SplitRule::whole_flows_first).size() ==
          std::size_t(whole));
    CHECK(systems::split_flows(r, s, systems::SplitRule::fill_in_turn).size() == std::size_t(fill));
  }
  CHECK(systems::split_flows(3, 2, systems::SplitRule::fill_in_turn) ==
        std::vector<systems::FlowPiece>{{0, 0, 0, 2}, {1, 0, 0, 1}, {1, 1, 1, 1}, {2, 1, 0, 2}});
}

TEST_CASE("no links, and fewer than no flows, are refused") {
  const auto refusal = [](int flows, int links) {
    return test::message_of<contract_error>(
        [&] { (void)systems::split_flows(flows, links, systems::SplitRule::equal_pieces); });
  };
  CHECK_THAT(refusal(1, 0),
             ContainsSubstring("heddle::systems::split_flows: flows must be at least 0 "
                               "and links at least 1 (1 flows over 0 links)"));
  CHECK_THAT(refusal(1, -3), ContainsSubstring("1 flows over -3 links"));
  CHECK_THAT(refusal(-1, 1), ContainsSubstring("-1 flows over 1 links"));
}

namespace {

Schedule all_to_all(int ranks, Bytes bytes) {
  return schedule::collective(schedule::Collective::all_to_all, schedule::Algorithm::direct,
                              {.ranks = ranks, .bytes = bytes});
}

/// Leaves of `hosts` ranks, whose `links` ways out carry 1 byte in the unit of time.
Machine leaves(int ranks, int hosts, int links) {
  return Machine::hierarchical(
      std::vector<Device>(static_cast<std::size_t>(ranks)),
      {{.name = "leaf", .ranks = hosts, .ports = {.out = 1, .in = 1, .count = links}},
       {.name = "fabric", .ranks = ranks}});
}

}  // namespace

TEST_CASE("an all-to-all over divided uplinks takes the time of ideal spraying") {
  for (const int hosts : {1, 2, 3})
    for (const int links : {1, 3, 4})
      for (const SplitRule rule : rules) {
        const int ranks = 4 * hosts;
        const Bytes block = 8 * 12;
        const Schedule whole = all_to_all(ranks, block * static_cast<Bytes>(ranks));
        const Schedule split =
            systems::over_uplinks(whole, {.ranks = hosts, .links = links, .rule = rule});
        const Timeline t = simulate(split, {}, leaves(ranks, hosts, links));
        const double leave = static_cast<double>(block) * hosts * (ranks - hosts);
        CHECK(t.makespan() == leave / links);
      }
}

TEST_CASE("pieces of a message carry all of it, and what stays in a leaf is not cut") {
  const Schedule whole = all_to_all(6, 6 * 40);
  const Schedule split = systems::over_uplinks(whole, {.ranks = 2, .links = 3});
  std::vector<Bytes> before(36, 0);
  std::vector<Bytes> after(36, 0);
  std::size_t inside = 0;
  for (const auto& [schedule, bytes] : {std::pair{&whole, &before}, std::pair{&split, &after}})
    for (std::size_t i = 0; i < schedule->size(); ++i) {
      const ActionId id{i};
      const Queue& queue = (*schedule)[(*schedule)[id].queue];
      (*bytes)[6 * +queue.from + +queue.to] += schedule->bytes(schedule->uses(id)[1]);
      inside += schedule == &split && +queue.from / 2 == +queue.to / 2 ? 1 : 0;
    }
  CHECK(before == after);
  CHECK(inside == 6 + 6);  // to the other, and to oneself
  CHECK(split.size() == 12 + 3 * (8 + 3 - 1));
}

TEST_CASE("flows of unequal size, groups without ranks or links are refused") {
  Builder builder("unequal", 2);
  for (const Bytes bytes : {8, 16}) {
    const BufferId from = builder.add_buffer({.transient = false, .bytes = bytes});
    const BufferId to = builder.add_buffer({.rank = Rank{1}, .bytes = bytes});
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
                {schedule::read(from), schedule::write(to)});
  }
  const Schedule unequal = std::move(builder).build();
  const auto refusal = [&](int ranks, int links) {
    return test::message_of<contract_error>(
        [&] { (void)systems::over_uplinks(unequal, {.ranks = ranks, .links = links}); });
  };
  CHECK_THAT(refusal(1, 2), ContainsSubstring("heddle::systems::over_uplinks: the flows of a group "
                                              "must have equal sizes (16 and 8 bytes)"));
  CHECK_THAT(refusal(0, 2), ContainsSubstring("a group needs at least one rank and one link (0 "
                                              "ranks, 2 links)"));
  CHECK_THAT(refusal(1, 0), ContainsSubstring("(1 ranks, 0 links)"));
}

}  // namespace test_flow_splitting
