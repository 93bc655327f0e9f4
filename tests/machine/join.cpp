// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks that join() keeps the links, ports, lines and levels of its machines, that messages
// between machines share the line, and machines with groups of unequal size.

#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_join {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;

namespace {

constexpr hd::Link near{1e-6, 100e9};
constexpr hd::Link middle{5e-6, 10e9};
constexpr hd::Link far{20e-3, 1e9};

/// `count` nodes of `size` devices, each node with ports.
hd::Machine site(const char* device, int size, int count) {
  return hd::Machine::hierarchical(
      std::vector<hd::Device>(static_cast<std::size_t>(size * count), {device}),
      {{.name = "rank", .link = {0, 1e12}},
       {.name = "node", .ranks = size, .link = near, .ports = {20e9, 30e9}},
       {.name = "site", .ranks = size * count, .link = middle}});
}

/// The names of the resources that a message passes.
std::vector<std::string> names(const hd::Machine& machine, int from, int to) {
  const hd::Machine::Route route = machine.route(hd::Rank{from}, hd::Rank{to}, hd::Lane{0});
  std::vector<std::string> all;
  for (const auto* way : {&route.out, &route.in})
    for (const hd::SharedId id : *way) all.push_back(machine.shared()[+id].name);
  return all;
}

/// Every pair of ranks of `part`, whose first rank is `first` in `whole`, has its own link there
/// and the same number of resources on its route.
void check_part(const hd::Machine& whole, const hd::Machine& part, int first) {
  for (int a = 0; a < part.ranks(); ++a) {
    CHECK(whole.device(hd::Rank{first + a}) == part.device(hd::Rank{a}));
    for (int b = 0; b < part.ranks(); ++b) {
      CHECK(whole.link(hd::Rank{first + a}, hd::Rank{first + b}) ==
            part.link(hd::Rank{a}, hd::Rank{b}));
      CHECK(names(whole, first + a, first + b).size() == names(part, a, b).size());
    }
  }
}

/// A message of 1000 bytes from each of `from` to its partner in `to`, all at once: the makespan.
double exchange(const hd::Machine& machine, const std::vector<std::pair<int, int>>& pairs) {
  hd::Builder builder("messages", machine.ranks());
  for (const auto& [from, to] : pairs) {
    const hd::Rank sender{from}, receiver{to};
    const auto source = builder.add_buffer({.rank = sender, .transient = false, .bytes = 1000});
    const auto target = builder.add_buffer({.rank = receiver, .bytes = 1000});
    builder.add({.kind = hd::Kind::move, .queue = builder.queue(sender, receiver)},
                {hd::schedule::read(source), hd::schedule::write(target)});
  }
  return hd::simulate(std::move(builder).build(), hd::StageCosts{}, machine).makespan();
}

}  // namespace

TEST_CASE("equal machines keep their levels and links by level") {
  const hd::Machine one = site("a100", 4, 2);
  const hd::Machine two = hd::join({one, one}, far);
  REQUIRE(two.ranks() == 16);
  CHECK(two.links().empty());
  REQUIRE(two.levels().size() == 4);
  CHECK(two.levels()[1].name == "node");
  CHECK(two.levels()[1].ranks == 4);
  CHECK(two.levels()[2].ranks == 8);
  CHECK(two.levels()[3].ranks == 16);
  CHECK_FALSE(two.unequal(1));
  CHECK(two.link(hd::Rank{7}, hd::Rank{8}) == far);
  check_part(two, one, 0);
  check_part(two, one, 8);
  CHECK(two == hd::join({one, one}, far));
  CHECK(two != hd::join({one, one}, near));
}

TEST_CASE("unequal machines keep theirs, and the last level but one are the machines") {
  hd::Machine first = site("a100", 4, 2);
  first.set_link(1, 6, {7e-6, 3e9});
  first.set_ports(1, 1, {5e9, 6e9, 2});
  first.share("mirror", 4e9, {{0, 7}, {7, 0}});
  const hd::Machine second = site("v100", 3, 1);
  const hd::Machine third = hd::Machine::uniform(2, {"cpu", 0.1}, middle);
  const hd::Machine all = hd::join({first, second, third}, far);
  REQUIRE(all.ranks() == 13);
  REQUIRE(all.levels().size() == 4);
  check_part(all, first, 0);
  check_part(all, second, 8);
  check_part(all, third, 11);
  CHECK(all.groups(0) == 13);
  CHECK(all.groups(1) == 4);  // 4 + 4 + 3 + 2
  REQUIRE(all.groups(2) == 3);
  CHECK(all.groups(3) == 1);
  CHECK(all.levels()[2].ranks == 8);
  for (int r = 0; r < 13; ++r) CHECK(all.group(2, hd::Rank{r}) == (r < 8 ? 0u : r < 11 ? 1u : 2u));
  CHECK(all.ports(1, 0) == first.ports(1, 0));
  CHECK(all.ports(1, 1) == hd::Ports{5e9, 6e9, 2});
  CHECK(all.ports(1, 2) == second.ports(1, 0));
  CHECK(all.ports(1, 3) == hd::Ports{});
  for (const auto& [a, b] : {std::pair{0, 8}, {7, 12}, {12, 10}})
    CHECK(all.link(hd::Rank{a}, hd::Rank{b}) == far);
  CHECK(names(all, 0, 7) == std::vector<std::string>{"node 0 out", "mirror", "node 1 in 0"});
  CHECK_THAT(hd::text(all), ContainsSubstring("8 x a100, 3 x v100, 2 x cpu") &&
                                ContainsSubstring("node of 4 + 4 + 3 + 2") &&
                                ContainsSubstring("site of 8 + 3 + 2"));
  // near_groups() finds the sites.
  const auto groups = near_groups(all, 13, 1000);
  REQUIRE_FALSE(groups.empty());
  CHECK(groups.back() == std::vector<std::uint32_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2});
  // A joined machine can be joined again.
  const hd::Machine again = hd::join({all, third}, {1, 1});
  check_part(again, all, 0);
  check_part(again, third, 13);
  CHECK(again.groups(again.levels().size() - 2) == 2);
}

TEST_CASE("all messages from one machine to another share its line") {
  const hd::Machine small = hd::Machine::uniform(2, {"gpu"}, {0, 1e6});
  const hd::Link wide{0.5, 1e3};
  const hd::Machine free = hd::join({small, small, small}, wide);
  const hd::Machine shared = hd::join({small, small, small}, wide, hd::Shared{"line", 1e3});
  CHECK(names(shared, 0, 1).empty());
  CHECK(names(shared, 1, 2) == std::vector<std::string>{"line 0 -> 1"});
  CHECK(names(shared, 2, 1) == std::vector<std::string>{"line 1 -> 0"});
  CHECK(names(shared, 5, 0) == std::vector<std::string>{"line 2 -> 0"});
  // Messages of 1 s, and half a second of latency.
  CHECK(exchange(free, {{0, 2}, {1, 3}}) == 1.5);
  CHECK(exchange(shared, {{0, 2}, {1, 3}}) == 2.5);
  CHECK(exchange(shared, {{0, 2}, {3, 1}}) == 1.5);          // the other direction
  CHECK(exchange(shared, {{0, 2}, {1, 4}, {2, 5}}) == 1.5);  // other pairs of machines
  CHECK(exchange(shared, {{0, 1}}) == 1e-3);
  // A slower line delays also one message.
  CHECK(exchange(hd::join({small, small}, wide, hd::Shared{"line", 500}), {{0, 3}}) == 2.5);
}

TEST_CASE("one machine alone gets a level, none is rejected") {
  const hd::Machine one = site("a100", 4, 2);
  const hd::Machine alone = hd::join({one}, far, hd::Shared{"line", 1});
  CHECK(alone.ranks() == 8);
  CHECK(alone.lines().empty());
  check_part(alone, one, 0);
  CHECK_THAT(message_of<hd::contract_error>([] { (void)hd::join({}, far); }),
             ContainsSubstring("at least one machine"));
  CHECK_THAT(message_of<hd::contract_error>([&] {
               (void)hd::join({one, one}, {-1, 1});
             }),
             ContainsSubstring("level 'joined'") && ContainsSubstring("-1 s"));
  CHECK_THAT(message_of<hd::contract_error>([&] {
               (void)hd::join({one, one}, far, hd::Shared{"wire", 0});
             }),
             ContainsSubstring("'wire 0 -> 1'"));
}

TEST_CASE("groups may have any sizes if they nest") {
  const std::vector<hd::Device> devices(6, hd::Device{"gpu"});
  const std::vector<hd::Level> levels{{.name = "node", .link = near},
                                      {.name = "site", .link = middle},
                                      {.name = "all", .link = far}};
  const auto make = [&](const std::vector<std::vector<int>>& sizes) {
    return hd::Machine::hierarchical(devices, levels, sizes);
  };
  const hd::Machine machine = make({{1, 2, 1, 2}, {3, 3}, {6}});
  CHECK(machine.link(hd::Rank{1}, hd::Rank{2}) == near);
  CHECK(machine.link(hd::Rank{0}, hd::Rank{2}) == middle);
  CHECK(machine.link(hd::Rank{2}, hd::Rank{3}) == far);
  CHECK(machine.levels()[0].ranks == 2);
  const auto error = [&](const std::vector<std::vector<int>>& sizes) {
    return message_of<hd::contract_error>([&] { (void)make(sizes); });
  };
  CHECK_THAT(error({{1, 2, 1, 2}, {2, 4}, {6}}),
             ContainsSubstring("level 'site' divides a group before rank 2"));
  CHECK_THAT(error({{1, 2, 1, 2}, {3, 2}, {6}}),
             ContainsSubstring("level 'site' has groups for 5 of 6 ranks"));
  CHECK_THAT(error({{1, 2, 1, 2}, {3, 4}, {6}}),
             ContainsSubstring("level 'site' has groups for 7"));
  CHECK_THAT(error({{1, 2, 0, 3}, {3, 3}, {6}}), ContainsSubstring("a group of 0"));
  CHECK_THAT(error({{1, 2, 1, 2}, {3, 3}}), ContainsSubstring("2 lists for 3 levels"));
  CHECK_THAT(error({{1, 2, 1, 2}, {3, 3}, {3, 3}}),
             ContainsSubstring("the last level must hold all ranks"));
}

}  // namespace test_join
