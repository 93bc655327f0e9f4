// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// How a collective is chosen: by simulation on a Machine, and from a table of measured times, which
// is kept in a file.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/collective/group_level.hpp>

#include "support/complaint.hpp"

namespace test_collective_choice {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using hd::Bytes;
using hd::Link;
using hd::Machine;
using hd::Rank;
using hd::Seconds;
using hd::plan::CollectiveChoice;
using hd::plan::CostTable;
using hd::schedule::Algorithm;
using hd::schedule::Collective;
using hd::test::message_of;

namespace {

/// Links of nodes that answer after `delay` at rate `rate`, the slower end counting.
Machine nodes(const std::vector<Link>& each) {
  std::vector<std::vector<Link>> links(each.size(), std::vector<Link>(each.size()));
  for (std::size_t a = 0; a < each.size(); ++a)
    for (std::size_t b = 0; b < each.size(); ++b)
      if (a != b)
        links[a][b] = {(each[a].latency + each[b].latency) / 2,
                       std::min(each[a].bandwidth, each[b].bandwidth)};
  return hd::network(links, {.name = "node"});
}

constexpr Link near{1e-4, 1e9}, far{20e-3, 1e6};

/// Eight nodes with these links between those of one site, of four, and of two sites.
Machine sites(const Link& inside, const Link& between) {
  std::vector<std::vector<Link>> links(8, std::vector<Link>(8, between));
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = a / 4 * 4; b < a / 4 * 4 + 4; ++b) links[a][b] = inside;
  return hd::network(links, {.name = "node"});
}

hd::schedule::CollectiveOptions floats(int ranks, Bytes bytes) {
  return {.ranks = ranks, .bytes = bytes, .type = hd::Scalar::f32};
}

using Levels = std::vector<std::vector<hd::schedule::GroupLevel>>;

/// Those of the candidates, each once.
Levels levels_in(Collective collective, const hd::schedule::CollectiveOptions& options,
                 const Machine& machine) {
  Levels found;
  for (const CollectiveChoice& choice : hd::plan::candidates(collective, options, machine)) {
    CHECK(choice.levels.empty() == (choice.algorithm != Algorithm::hierarchical));
    if (!choice.levels.empty() && std::ranges::find(found, choice.levels) == found.end())
      found.push_back(choice.levels);
  }
  return found;
}

/// The text of a table with these lines.
std::string sealed(const std::string& lines) {
  std::ostringstream out;
  out << "heddle-costs 1 " << std::hex << hd::fnv1a(lines) << '\n' << lines;
  return out.str();
}

CostTable some_times() {
  CostTable table(nodes({{1e-3, 1e8}, {1e-3, 1e8}, {5e-3, 1e7}}));
  const CollectiveChoice star{.algorithm = Algorithm::star, .piece = 4096, .root = Rank{1}};
  const CollectiveChoice ring{.algorithm = Algorithm::ring};
  table.set(Collective::all_reduce, 1 << 10, star, 1e-3);
  table.set(Collective::all_reduce, 1 << 10, ring, 4e-3);
  table.set(Collective::all_reduce, 1 << 14, star, 16e-3);
  table.set(Collective::all_reduce, 1 << 14, ring, 8e-3);
  table.set(Collective::all_reduce, 1 << 14, {.library = true}, 9e-3);
  table.set(Collective::barrier, 0, {.library = true}, 1.0 / 3);
  return table;
}

}  // namespace

TEST_CASE("a network has a port for each rank, as fast as its fastest link") {
  const Machine machine = nodes({{1e-3, 4e8}, {1e-3, 1e8}, {5e-3, 1e7}});
  CHECK(machine.ports(0, 0).out == 1e8);
  CHECK(machine.ports(0, 1).in == 1e8);
  CHECK(machine.ports(0, 2).in == 1e7);
  CHECK(machine.shares());
  CHECK(machine.link(Rank{2}, Rank{0}) == Link{3e-3, 1e7});
  CHECK_FALSE(hd::network({{Link{}}}, {}).shares());
  CHECK_THAT(message_of<hd::contract_error>([] {
               static_cast<void>(hd::network({{Link{}, Link{}}}, {}));
             }),
             ContainsSubstring("a link is missing for an ordered pair") &&
                 ContainsSubstring("expected 1 links in each row, got 2"));
  const std::vector<hd::Device> kinds{{.name = "fast"}, {.name = "slow"}};
  const std::vector<std::vector<Link>> pairs(2, std::vector<Link>(2));
  CHECK(hd::impl::network_of(pairs, kinds).device(Rank{1}).name == "slow");
  CHECK_THAT(message_of<hd::contract_error>(
                 [&] { static_cast<void>(hd::impl::network_of({{Link{}}}, kinds)); }),
             ContainsSubstring("expected 1 devices, got 2"));
}

TEST_CASE("a message above the eager limit waits for its receiver's answer") {
  const Machine machine = Machine::uniform(2, {}, {1.0, 1000});
  const auto takes = [&](Bytes bytes) {
    const hd::Schedule schedule =
        hd::schedule::collective(Collective::all_gather, Algorithm::ring,
                                 {.ranks = 2, .bytes = 2 * bytes, .type = hd::Scalar::byte});
    return hd::simulate(schedule, hd::plan::MessageCosts(machine, 500)).makespan();
  };
  CHECK_THAT(takes(500), WithinRel(1.5, 1e-12));
  CHECK_THAT(takes(501), WithinRel(3.501, 1e-12));
}

TEST_CASE("the choice is the candidate with the least simulated time") {
  const Machine machine = nodes({{0.2e-3, 1e8}, {1e-3, 1e8}, {5e-3, 1e7}, {20e-3, 1e6}});
  for (const Bytes bytes : {8u, 4096u, 1u << 20}) {
    const hd::schedule::CollectiveOptions options{
        .ranks = 4, .bytes = bytes, .type = hd::Scalar::f32};
    const auto all = hd::plan::predict(Collective::all_reduce, options, machine);
    REQUIRE(all.size() >= 2);
    CHECK(all.front().choice == hd::plan::choose(Collective::all_reduce, options, machine));
    for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].time <= all[i].time);
    // In the order of time it still is that collective, and takes as long.
    const hd::Schedule made =
        hd::plan::to_schedule(all.front().choice, Collective::all_reduce, options, machine);
    CHECK_THAT(hd::simulate(made, hd::plan::MessageCosts(machine)).makespan(),
               WithinRel(all.front().time, 1e-9));
  }
}

TEST_CASE("pieces are cut from the blocks of the algorithm") {
  const Machine machine = nodes({{1e-3, 1e8}, {1e-3, 1e8}, {1e-3, 1e8}});
  const auto messages = [&](Algorithm algorithm, Bytes bytes, Bytes piece) {
    std::size_t count = 0;
    const hd::Schedule made =
        hd::plan::to_schedule({.algorithm = algorithm, .piece = piece}, Collective::all_reduce,
                              {.ranks = 3, .bytes = bytes, .type = hd::Scalar::f32}, machine);
    for (const hd::Action& action : made.actions()) count += action.kind == hd::Kind::move;
    return count;
  };
  CHECK(messages(Algorithm::ring, 3 * 4096, 0) == 12);
  CHECK(messages(Algorithm::ring, 3 * 4096, 4096) == 12);
  CHECK(messages(Algorithm::ring, 3 * 4096, 1024) == 4 * 12);
  CHECK(messages(Algorithm::ring, 3 * 4096, 4095) == 2 * 12);
  CHECK(messages(Algorithm::ring, 0, 4096) == 0);
  CHECK_THAT(message_of<hd::contract_error>([&] {
               static_cast<void>(hd::plan::to_schedule({.library = true}, Collective::all_reduce,
                                                       {.ranks = 3}, machine));
             }),
             ContainsSubstring("the MPI library performs this call, so it has no Schedule"));
}

TEST_CASE("groups of near ranks are levels of a choice, where that is faster") {
  // With one line each way between the sites, and as the levels of a machine.
  Machine joined = sites(near, far);
  for (const std::uint32_t from : {0u, 4u}) {
    std::vector<std::pair<Rank, Rank>> pairs;
    for (std::uint32_t a = from; a < from + 4; ++a)
      for (std::uint32_t b = 4 - from; b < 8 - from; ++b) pairs.emplace_back(Rank{a}, Rank{b});
    joined.share("line", far.bandwidth, pairs);
  }
  const Machine said = Machine::hierarchical(
      std::vector<hd::Device>(8), {{.name = "site", .ranks = 4, .link = near, .ports = {1e6, 1e6}},
                                   {.name = "all", .ranks = 8, .link = far}});
  for (const Machine& machine : {joined, said}) {
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
          Collective::broadcast, Collective::reduce}) {
      INFO(collective);
      auto options = floats(8, 1 << 20);
      // From the first rank a tree over all is one over the sites, and trees inside.
      if (collective == Collective::broadcast || collective == Collective::reduce)
        options.root = Rank{3};
      const auto all = hd::plan::predict(collective, options, machine);
      const CollectiveChoice& chosen = all.front().choice;
      CHECK(chosen.algorithm == Algorithm::hierarchical);
      REQUIRE(chosen.levels.size() == 2);
      CHECK(chosen.levels[0].ranks == 4);
      CHECK(chosen.levels[1].ranks == 2);
      for (const auto& [choice, time] : all)
        if (choice.algorithm != Algorithm::hierarchical) CHECK(time > all.front().time);
      const hd::Schedule made = hd::plan::to_schedule(chosen, collective, options, machine);
      CHECK_THAT(hd::simulate(made, hd::plan::MessageCosts(machine)).makespan(),
                 WithinRel(all.front().time, 1e-9));
    }
    // What they do not perform has no levels.
    for (const Collective collective :
         {Collective::all_to_all, Collective::gather, Collective::scatter, Collective::barrier})
      CHECK(
          levels_in(collective, floats(8, collective == Collective::barrier ? 0 : 1 << 20), machine)
              .empty());
  }
  // Where messages share nothing, too: one step between sites, of a quarter of the data each.
  for (const Bytes bytes : {4u << 10, 16u << 10})
    CHECK_FALSE(hd::plan::choose(Collective::all_reduce, floats(8, bytes), sites(near, far))
                    .levels.empty());
  // The caller's levels are taken instead; where links are alike there are none.
  const Machine equal = sites(near, near);
  auto options = floats(8, 1 << 20);
  CHECK(levels_in(Collective::all_reduce, options, equal).empty());
  CHECK(hd::plan::choose(Collective::all_reduce, options, equal).levels.empty());
  options.levels = {{2, Algorithm::ring}, {4, Algorithm::ring}};
  CHECK(levels_in(Collective::all_reduce, options, equal) == Levels{options.levels});
  CHECK(levels_in(Collective::all_reduce, options, said) == Levels{options.levels});
  options.levels = {{2, Algorithm::ring}};
  CHECK(levels_in(Collective::all_reduce, options, said).empty());
  options = floats(8, 0);
  CHECK_FALSE(levels_in(Collective::all_reduce, options, said).empty());
  options.blocks = {4, 0, 4, 4, 0, 0, 0, 0};
  CHECK_FALSE(levels_in(Collective::all_gather, options, said).empty());
}

TEST_CASE("groups in groups are two choices of two levels, and one of three") {
  const Machine machine = Machine::hierarchical(std::vector<hd::Device>(8),
                                                {{.name = "pair", .ranks = 2, .link = {1e-6, 1e10}},
                                                 {.name = "four", .ranks = 4, .link = {1e-5, 1e9}},
                                                 {.name = "all", .ranks = 8, .link = {1e-3, 1e8}}});
  std::vector<std::vector<int>> found;
  for (const auto& levels : levels_in(Collective::all_reduce, floats(8, 1 << 10), machine)) {
    std::vector<int> sizes;
    for (const auto& level : levels) sizes.push_back(level.ranks);
    if (std::ranges::find(found, sizes) == found.end()) found.push_back(sizes);
  }
  CHECK(found == std::vector<std::vector<int>>{{2, 4}, {4, 2}, {2, 2, 2}});
  for (const auto& levels : levels_in(Collective::broadcast, floats(8, 1 << 10), machine))
    CHECK(levels.front().algorithm == Algorithm::binomial_tree);
}

TEST_CASE("hosts of several sizes, and ranks dealt to them in turns, are levels of a choice") {
  using Groups = std::vector<std::uint32_t>;
  for (const Groups& host : {Groups{0, 0, 0, 1},
                             {0, 0, 0, 1, 1, 1, 2},
                             {0, 0, 0, 0, 0, 1, 1},
                             {0, 1, 0, 1, 0, 1, 0, 1},
                             {0, 1, 2, 0, 1, 2},
                             {0, 1, 0, 0, 2, 1, 0}}) {
    const auto ranks = static_cast<int>(host.size());
    const auto hosts = static_cast<int>(std::ranges::max(host)) + 1;
    std::vector<std::vector<Link>> links(host.size(), std::vector<Link>(host.size(), far));
    for (std::size_t a = 0; a < host.size(); ++a)
      for (std::size_t b = 0; b < host.size(); ++b)
        if (host[a] == host[b]) links[a][b] = near;
    Machine machine = hd::network(links, {.name = "node"});
    for (std::uint32_t h = 0; h < static_cast<std::uint32_t>(hosts); ++h) {  // a line out of each
      std::vector<std::pair<Rank, Rank>> pairs;
      for (std::size_t a = 0; a < host.size(); ++a)
        for (std::size_t b = 0; b < host.size(); ++b)
          if (host[a] == h && host[b] != h) pairs.emplace_back(Rank{a}, Rank{b});
      machine.share(hd::text("line ", h), far.bandwidth, pairs);
    }
    std::vector<int> sizes(static_cast<std::size_t>(hosts));
    for (const std::uint32_t h : host) ++sizes[h];
    const bool even = std::ranges::min(sizes) == std::ranges::max(sizes);
    for (const Collective collective :
         {Collective::all_reduce, Collective::broadcast, Collective::reduce,
          Collective::reduce_scatter, Collective::all_gather}) {
      INFO(collective << " of " << hd::text(hd::schedule::level_of(host, Algorithm::direct)));
      const bool by_rank =
          collective == Collective::reduce_scatter || collective == Collective::all_gather;
      auto options = floats(ranks, 1 << 20);
      for (const auto& levels : levels_in(collective, options, machine)) {
        CHECK((even || !by_rank));
        REQUIRE(levels.size() == 2);
        CHECK(levels[0].groups == host);
        CHECK(levels[0].ranks == std::ranges::max(sizes));
        CHECK(levels[1].ranks == hosts);
      }
      CHECK(levels_in(collective, options, machine).empty() == (by_rank && !even));
      if (by_rank && !even) continue;
      if (collective == Collective::broadcast || collective == Collective::reduce)
        options.root = Rank{ranks - 1};
      const auto all = hd::plan::predict(collective, options, machine);
      Seconds nested = std::numeric_limits<Seconds>::infinity(), flat = nested;
      for (const auto& [choice, time] : all) {
        Seconds& least = choice.levels.empty() ? flat : nested;
        least = std::min(least, time);
      }
      // A message inside takes a thousandth of one between.
      CHECK(nested <= flat * (1 + 5e-3));
      if (collective == Collective::all_reduce && even) CHECK(nested < flat);
      const hd::Schedule made =
          hd::plan::to_schedule(all.front().choice, collective, options, machine);
      CHECK_THAT(hd::simulate(made, hd::plan::MessageCosts(machine)).makespan(),
                 WithinRel(all.front().time, 1e-9));
    }
  }
}

TEST_CASE("groups in groups of several sizes, in turns") {
  // Hosts 0 1 2 in turns, of which the first two are on a rack.
  const std::vector<std::uint32_t> host = {0, 1, 2, 0, 1, 2, 0};
  std::vector<std::vector<Link>> links(7, std::vector<Link>(7));
  for (std::size_t a = 0; a < 7; ++a)
    for (std::size_t b = 0; b < 7; ++b)
      links[a][b] = host[a] == host[b]           ? Link{1e-6, 1e10}
                    : host[a] / 2 == host[b] / 2 ? Link{1e-5, 1e9}
                                                 : Link{1e-3, 1e8};
  using Level = hd::schedule::GroupLevel;
  const Level hosts{3, Algorithm::direct, host}, racks{5, Algorithm::direct, {0, 0, 1, 0, 0, 1, 0}};
  const Level of_hosts{2, Algorithm::direct, {0, 0, 1}};
  const Level three{3, Algorithm::ring}, two{2, Algorithm::ring};
  const Levels found =
      levels_in(Collective::all_reduce, floats(7, 1 << 10), hd::network(links, {.name = "node"}));
  for (const auto& levels : Levels{{hosts, three}, {racks, two}, {hosts, of_hosts, two}})
    CHECK(std::ranges::count(found, levels) == 1);
  for (const auto& levels : found) {
    const std::vector<Level> below(levels.begin(), levels.end() - 1);
    CHECK((below == std::vector{hosts} || below == std::vector{racks} ||
           below == std::vector{hosts, of_hosts}));
  }
}

TEST_CASE("choices that cut nothing are the same") {
  const CollectiveChoice star{.algorithm = Algorithm::star, .piece = 16 << 10, .root = Rank{1}};
  const auto pieces_at = [&](Bytes bytes) {
    std::vector<Bytes> pieces;
    for (const auto& same : hd::plan::same_at(
             Collective::all_reduce, star, {.ranks = 3, .bytes = bytes, .type = hd::Scalar::f32})) {
      CHECK(same.algorithm == Algorithm::star);
      CHECK(same.root == Rank{1});
      pieces.push_back(same.piece);
    }
    return pieces;
  };
  CHECK(pieces_at(4 << 10) == std::vector<Bytes>{0, 48 << 10, 16 << 10, 4 << 10});
  CHECK(pieces_at(8 << 10) == std::vector<Bytes>{0, 48 << 10, 16 << 10});
  CHECK(pieces_at(32 << 10) == std::vector<Bytes>{16 << 10});
  CHECK(hd::plan::same_at(Collective::barrier, {.library = true}, {.ranks = 3}).size() == 1);
}

TEST_CASE("a table gives the fastest, between sizes by their logarithms") {
  const CostTable table = some_times();
  const auto best = [&](Bytes bytes) { return table.best(Collective::all_reduce, bytes); };
  CHECK(best(1 << 10).choice.algorithm == Algorithm::star);
  CHECK_THAT(best(1 << 10).time, WithinRel(1e-3, 1e-12));
  CHECK(best(1 << 14).choice.algorithm == Algorithm::ring);
  CHECK_THAT(best(1 << 14).time, WithinRel(8e-3, 1e-12));
  // Half way: the star 4 ms, the ring sqrt(32) ms, the library at most the 9 ms of the larger size.
  CHECK(best(1 << 12).choice.algorithm == Algorithm::star);
  CHECK_THAT(best(1 << 12).time, WithinRel(4e-3, 1e-12));
  CHECK(best(10 << 10).choice.algorithm == Algorithm::ring);
  // Beyond: as long as the smallest, in proportion to the largest.
  CHECK_THAT(best(8).time, WithinRel(1e-3, 1e-12));
  CHECK_THAT(best(1 << 15).time, WithinRel(16e-3, 1e-12));
  CHECK(table.choose(Collective::broadcast, 8).library);
  CHECK(table.best(Collective::broadcast, 8).time == 0);
  CHECK(table.choose(Collective::barrier, 0).library);
  CHECK(table.sizes(Collective::all_reduce) == std::vector<Bytes>{1 << 10, 1 << 14});
  CHECK(table.times(Collective::all_reduce, 1 << 14).size() == 3);
  CHECK(table.times(Collective::all_reduce, 7).empty());
}

TEST_CASE("the library's own call is preferred where nothing is lost") {
  CostTable table(nodes({{}, {}}));
  table.set(Collective::all_reduce, 8, {.algorithm = Algorithm::star}, 1);
  table.set(Collective::all_reduce, 8, {.library = true}, 1);
  CHECK(table.choose(Collective::all_reduce, 8).library);
  CHECK(table.best(Collective::all_reduce, 8).time == 1);
  // A call that the library cannot make has the fastest of the others, and nothing where there is
  // none.
  CHECK(table.choose(Collective::all_reduce, 8, false).algorithm == Algorithm::star);
  CHECK(table.best(Collective::all_reduce, 8, false).time == 1);
  table.set(Collective::broadcast, 8, {.library = true}, 1);
  CHECK(table.choose(Collective::broadcast, 8, false).library);
  CHECK(table.best(Collective::broadcast, 8, false).time == 0);
  // What gains less than a tenth is not worth the risk.
  table.set(Collective::all_reduce, 8, {.algorithm = Algorithm::star}, 0.92);
  CHECK(table.choose(Collective::all_reduce, 8).library);
  CHECK(table.best(Collective::all_reduce, 8).time == 1);
  CHECK(table.choose(Collective::all_reduce, 8, false).algorithm == Algorithm::star);
  table.set(Collective::all_reduce, 8, {.algorithm = Algorithm::star}, 0.9);
  CHECK(table.choose(Collective::all_reduce, 8).algorithm == Algorithm::star);
  CHECK_FALSE(table.choose(Collective::all_reduce, 8).library);
}

TEST_CASE("times that change by less than the margin make no choice slower than the library") {
  std::size_t ours = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const hd::Random random(seed, "change");
    const Seconds later = 0.5 + random.uniform(0);  // of the star; the library takes 1
    const double change = std::pow(CostTable::margin, 2 * random.uniform(1) - 1);
    CostTable table(nodes({{}, {}}));
    table.set(Collective::all_reduce, 8, {.library = true}, 1);
    table.set(Collective::all_reduce, 8, {.algorithm = Algorithm::star}, later * change);
    const bool library = table.choose(Collective::all_reduce, 8).library;
    ours += !library;
    REQUIRE((library ? later * CostTable::margin * CostTable::margin > 1 : later < 1));
  }
  CHECK(ours > 200);
}

TEST_CASE("between two sizes the choice is no worse than either neighbour's") {
  // Random times, some choices measured at one size only.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const hd::Random random(seed, "times");
    CostTable table(nodes({{}, {}}));
    std::uint64_t drawn = 0;
    for (const Bytes bytes : {1000u, 8000u})
      for (std::size_t a = 0; a < 4; ++a)
        if (a == 0 || random.uniform(drawn++) < 0.6)
          table.set(Collective::all_reduce, bytes, {.algorithm = static_cast<Algorithm>(a)},
                    static_cast<double>(bytes) * (0.1 + random.uniform(drawn++)));
    const auto left = table.best(Collective::all_reduce, 1000);
    const auto right = table.best(Collective::all_reduce, 8000);
    for (const Bytes bytes : {1001u, 2000u, 4000u, 7999u}) {
      const Seconds time = table.best(Collective::all_reduce, bytes).time;
      for (const auto& neighbour : {left, right}) {
        const auto at = [&](Bytes size) {
          for (const auto& entry : table.times(Collective::all_reduce, size))
            if (entry.choice == neighbour.choice) return entry.time;
          return std::numeric_limits<Seconds>::quiet_NaN();
        };
        const double share = std::log(bytes / 1000.0) / std::log(8.0);
        const Seconds line = at(1000) * std::pow(at(8000) / at(1000), share);
        const Seconds known = std::isnan(at(1000))   ? at(8000)
                              : std::isnan(at(8000)) ? at(1000) * static_cast<double>(bytes) / 1000
                                                     : line;
        CHECK(time <= known * (1 + 1e-12));
      }
    }
  }
}

TEST_CASE("times of nonsense are refused") {
  CostTable table = some_times();
  CHECK_THAT(message_of<hd::contract_error>([&] { table.set(Collective::barrier, 0, {}, 0); }),
             ContainsSubstring(
                 "the choice must exist for these ranks, and its time must be above 0 and finite"));
  CHECK_THAT(message_of<hd::contract_error>(
                 [&] { table.set(Collective::barrier, 0, {.root = Rank{3}}, 1); }),
             ContainsSubstring("barrier, direct by rank 3, 1 s, 3 ranks"));
  const auto refused = [&](Collective collective, const CollectiveChoice& choice) {
    return !message_of<hd::contract_error>([&] { table.set(collective, 8, choice, 1); }).empty();
  };
  using Level = hd::schedule::GroupLevel;
  const Level three{3, Algorithm::ring};
  CHECK(refused(Collective::all_reduce, {.algorithm = Algorithm::hierarchical}));
  CHECK(refused(Collective::all_reduce, {.algorithm = Algorithm::ring, .levels = {three}}));
  CHECK(refused(Collective::all_reduce, {.library = true, .levels = {three}}));
  CHECK(refused(Collective::all_reduce,
                {.algorithm = Algorithm::hierarchical, .levels = {three}, .shared = true}));
  CHECK(refused(Collective::all_to_all, {.algorithm = Algorithm::hierarchical, .levels = {three}}));
  CHECK(refused(Collective::all_reduce,
                {.algorithm = Algorithm::hierarchical, .levels = {{2, Algorithm::direct}, three}}));
  const auto partition = [&](Collective collective, std::vector<std::uint32_t> groups) {
    return refused(collective,
                   {.algorithm = Algorithm::hierarchical,
                    .levels = {{2, Algorithm::direct, std::move(groups)}, {2, Algorithm::ring}}});
  };
  CHECK(partition(Collective::all_reduce, {0, 1}));
  CHECK(partition(Collective::all_reduce, {0, 1, 0, 1}));
  CHECK(partition(Collective::all_reduce, {0, 2, 0}));
  CHECK(partition(Collective::all_reduce, {1, 0, 1}));
  CHECK(partition(Collective::all_gather, {0, 1, 0}));
  CHECK_NOTHROW(table.set(Collective::all_reduce, 8,
                          {.algorithm = Algorithm::hierarchical,
                           .levels = {{2, Algorithm::direct, {0, 1, 0}}, {2, Algorithm::ring}}},
                          1));
  CHECK_NOTHROW(table.set(Collective::all_reduce, 8,
                          {.algorithm = Algorithm::hierarchical, .levels = {three}}, 1));
}

TEST_CASE("levels are written and read") {
  const CollectiveChoice levels{
      .algorithm = Algorithm::hierarchical,
      .levels = {{2, Algorithm::direct}, {1, Algorithm::binomial_tree}, {2, Algorithm::ring}},
      .piece = 4096};
  CHECK(hd::text(levels) ==
        "hierarchical of 2 by direct, 1 by binomial_tree, 2 by ring in pieces of 4096 bytes");
  CollectiveChoice others = levels;
  others.levels = {{4, Algorithm::star}};
  CostTable table(nodes({{}, {}, {}, {}}));
  table.set(Collective::all_reduce, 64, levels, 1);
  table.set(Collective::all_reduce, 64, others, 2);
  table.set(Collective::all_reduce, 64, {.algorithm = Algorithm::ring}, 3);
  const CostTable read = CostTable::parse(table.to_text());
  CHECK(read.to_text() == table.to_text());
  CHECK(read.choose(Collective::all_reduce, 64) == levels);
  REQUIRE(read.times(Collective::all_reduce, 64).size() == 3);
  CHECK(read.times(Collective::all_reduce, 64)[1].choice == others);
}

TEST_CASE("levels of groups that are not alike are written and read") {
  const auto choice = [](std::vector<std::uint32_t> groups) {
    return CollectiveChoice{
        .algorithm = Algorithm::hierarchical,
        .levels = {hd::schedule::level_of(groups, Algorithm::direct), {2, Algorithm::ring}}};
  };
  const CollectiveChoice uneven = choice({0, 0, 0, 1}), turns = choice({0, 1, 0, 1});
  CHECK(hd::text(uneven) == "hierarchical of 3 by direct in groups 3x0 1, 2 by ring");
  CHECK(hd::text(turns) == "hierarchical of 2 by direct in groups 0 1 0 1, 2 by ring");
  CostTable table(nodes({{}, {}, {}, {}}));
  table.set(Collective::all_reduce, 64, uneven, 1);
  table.set(Collective::all_reduce, 64, turns, 2);
  table.set(Collective::all_reduce, 64, choice({0, 0, 1, 1}), 3);
  CHECK_THAT(table.to_text(), ContainsSubstring(" levels 3:0,0,0,1 direct 2 ring\n") &&
                                  ContainsSubstring(" levels 2:0,1,0,1 direct 2 ring\n") &&
                                  ContainsSubstring(" levels 2 direct 2 ring\n"));
  const CostTable read = CostTable::parse(table.to_text());
  CHECK(read.to_text() == table.to_text());
  CHECK(read.choose(Collective::all_reduce, 64) == uneven);
  REQUIRE(read.times(Collective::all_reduce, 64).size() == 3);
  CHECK(read.times(Collective::all_reduce, 64)[1].choice == turns);
}

TEST_CASE("a table in a file is read back without loss") {
  const CostTable table = some_times();
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / hd::text("heddle-costs-", ::getpid());
  table.write(path);
  const CostTable read = CostTable::read(path);
  std::filesystem::remove(path);
  CHECK(read.to_text() == table.to_text());
  CHECK(read.best(Collective::barrier, 0).time == 1.0 / 3);
  CHECK(read.machine().link(Rank{0}, Rank{2}) == table.machine().link(Rank{0}, Rank{2}));
  CHECK(std::isinf(read.machine().link(Rank{1}, Rank{1}).bandwidth));
  CHECK(read.machine().device(Rank{0}).name == "node");
  CHECK_THAT(message_of<hd::format_error>([&] { static_cast<void>(CostTable::read(path)); }),
             ContainsSubstring("cannot read '" + path.string()));
}

TEST_CASE("lines of nonsense are refused") {
  const std::string two =
      "ranks 2 node\nlink 0 0 0 inf\nlink 0 1 1 1\nlink 1 0 1 1\n"
      "link 1 1 0 inf\n";
  const auto parse = [&](const char* line) {
    return CostTable::parse(sealed(two + "time all_reduce 8 " + line + '\n'));
  };
  for (const char* line :
       {"1 library", "1 ring 0 1", "1 ring 0 1 shared", "1 hierarchical 0 0 levels 2 ring",
        "1 hierarchical 0 1 levels 1 direct 2 ring", "1 hierarchical 0 1 levels 2:0,0 ring",
        "1 hierarchical 0 1 levels 1:0,1 direct 2:0,0 ring"})
    CHECK(parse(line).times(Collective::all_reduce, 8).size() == 1);
  for (const char* line : {"0 library",
                           "nan library",
                           "1 library levels",
                           "1 ring 0 2",
                           "1 ring 0 0 levels",
                           "1 ring 0 0 levels 2 ring",
                           "1 ring 0 0 shared 2",
                           "1 hierarchical 0 0",
                           "1 hierarchical 0 0 shared",
                           "1 hierarchical 0 0 levels",
                           "1 hierarchical 0 0 levels 2",
                           "1 hierarchical 0 0 levels 2 comet",
                           "1 hierarchical 0 0 levels 2 ring 1",
                           "1 hierarchical 0 0 levels 2 ring x",
                           "1 hierarchical 0 0 levels 3 ring",
                           "1 hierarchical 0 0 levels 2 hierarchical",
                           "1 hierarchical 0 0 levels -2 ring",
                           "1 hierarchical 0 0 levels 2: ring",
                           "1 hierarchical 0 0 levels 2:0 ring",
                           "1 hierarchical 0 0 levels 2:0,0,0 ring",
                           "1 hierarchical 0 0 levels 2:0,1 ring",
                           "1 hierarchical 0 0 levels 1:0,0 ring",
                           "1 hierarchical 0 0 levels 2:1,1 ring",
                           "1 hierarchical 0 0 levels 2:0,-1 ring",
                           "1 hierarchical 0 0 levels 2:0,x ring",
                           "1 hierarchical 0 0 levels 2:0,0, ring",
                           "1 hierarchical 0 0 levels 2,0,0 ring",
                           "1 hierarchical 0 0 levels 2:0,99999999999 ring",
                           "1 hierarchical 0 0 levels 2:0,0"})
    CHECK_THAT(message_of<hd::format_error>([&] { static_cast<void>(parse(line)); }),
               ContainsSubstring("a line is not valid") && ContainsSubstring(line));
}

TEST_CASE("a table that was changed, cut or is none is refused") {
  const std::string whole = some_times().to_text();
  const auto refusal = [](const std::string& text) {
    return message_of<hd::format_error>([&] { static_cast<void>(CostTable::parse(text)); });
  };
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_FALSE(refusal(whole.substr(0, length)).empty());
  std::string changed = whole;
  changed[changed.rfind('9')] = '8';
  CHECK_THAT(refusal(changed), ContainsSubstring("it was changed or cut"));
  CHECK_THAT(refusal("ranks 3\n"), ContainsSubstring("it is not a table of costs"));
  CHECK_THAT(refusal("heddle-costs 2 0\n"), ContainsSubstring("version 2, this is 1"));
  CHECK_THAT(refusal(sealed("")), ContainsSubstring("the number of ranks is missing"));
  CHECK_THAT(refusal(sealed("ranks 1 node\n")), ContainsSubstring("a link is missing"));
  const std::string one = "ranks 1 node\nlink 0 0 0 inf\n";
  CHECK_NOTHROW(CostTable::parse(sealed(one)));
  CHECK_THAT(refusal(sealed(one + "time all_reduce 8 1 comet 0 0\n")),
             ContainsSubstring("a line is not valid") && ContainsSubstring("comet"));
}

TEST_CASE("domains of memory are of all ranks, or there are none") {
  const hd::schedule::CollectiveOptions options{.ranks = 4, .bytes = 1 << 20};
  const Machine machine = Machine::uniform(4, {}, {1e-6, 1e9});
  const CollectiveChoice shared{.shared = true};
  const std::vector<std::uint32_t> three = {0, 0, 0};
  const auto check = [](auto&& call) {
    CHECK_THAT(
        message_of<hd::contract_error>(call),
        ContainsSubstring("heddle::plan::CollectiveChoice: every rank needs one memory domain") &&
            ContainsSubstring("3 domains, 4 ranks"));
  };
  check([&] { (void)hd::plan::choose(Collective::all_reduce, options, machine, three); });
  check([&] {
    (void)hd::plan::to_schedule(shared, Collective::all_reduce, options, machine, three);
  });
  check(
      [&] { (void)hd::plan::to_shared_schedule(shared, Collective::all_reduce, options, three); });
}

}  // namespace test_collective_choice
