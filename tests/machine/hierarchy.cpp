// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>

#include "support/complaint.hpp"

namespace test_hierarchy {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Nodes of 2, racks of 2 nodes; the last node has one rank, the last rack one node.
Machine two_levels(int ranks) {
  return Machine::hierarchical(
      std::vector<Device>(static_cast<std::size_t>(ranks), {"gpu"}),
      {{.name = "rank", .ranks = 1, .link = {0, 8e9}, .ports = {.out = 4e9, .in = 3e9}},
       {.name = "node", .ranks = 2, .link = {1e-6, 4e9}, .ports = {.out = 2e9, .in = 2e9}},
       {.name = "rack",
        .ranks = 4,
        .link = {2e-6, 2e9},
        .ports = {.out = 1e9, .in = 1e9, .count = 2}},
       {.name = "hall", .ranks = 8, .link = {5e-6, 1e9}}});
}

/// The names of what a message passes, "out | in".
std::string route(const Machine& machine, int from, int to, int lane = 0) {
  const Machine::Route route = machine.route(Rank{from}, Rank{to}, Lane{lane});
  std::string names;
  for (const SharedId id : route.out) names += machine.shared()[+id].name + ", ";
  names += "| ";
  for (const SharedId id : route.in) names += machine.shared()[+id].name + ", ";
  return names;
}

}  // namespace

TEST_CASE("a link is that of the smallest group that holds both ranks") {
  for (const int ranks : {1, 2, 5, 7, 8}) {
    const Machine machine = two_levels(ranks);
    CHECK(machine.ranks() == ranks);
    for (int a = 0; a < ranks; ++a)
      for (int b = 0; b < ranks; ++b) {
        const double expected = a == b ? 8e9 : a / 2 == b / 2 ? 4e9 : a / 4 == b / 4 ? 2e9 : 1e9;
        CHECK(machine.link(Rank{a}, Rank{b}).bandwidth == expected);
      }
  }
}

TEST_CASE("a message passes the ports of the groups that it leaves and enters, and no others") {
  const Machine machine = two_levels(7);
  CHECK(route(machine, 3, 3) == "| ");
  CHECK(route(machine, 0, 1) == "rank 0 out, | rank 1 in, ");
  CHECK(route(machine, 1, 2) == "rank 1 out, node 0 out, | node 1 in, rank 2 in, ");
  CHECK(route(machine, 6, 0) ==
        "rank 6 out, node 3 out, rack 1 out 0, | rack 0 in 0, node 0 in, rank 0 in, ");
  CHECK(route(machine, 0, 6, 3) ==
        "rank 0 out, node 0 out, rack 0 out 1, | rack 1 in 1, node 3 in, rank 6 in, ");
}

TEST_CASE("one group's ports, one pair's link and a line between some pairs can be changed") {
  Machine machine = Machine::uniform(3, {"pc"}, {1e-3, 1e8});
  CHECK_FALSE(machine.shares());
  machine.set_link(Rank{2}, Rank{0}, {2e-3, 5e7});
  CHECK(machine.link(Rank{2}, Rank{0}) == Link{2e-3, 5e7});
  CHECK(machine.link(Rank{0}, Rank{2}) == Link{1e-3, 1e8});
  CHECK(machine.link(Rank{1}, Rank{1}) == Link{1e-3, 1e8});
  CHECK_FALSE(machine.shares());
  Machine other = machine;
  other.set_device(Rank{1}, {.name = "slow", .speed = 0.5});
  CHECK(other.device(Rank{1}) == Device{.name = "slow", .speed = 0.5});
  CHECK(other.device(Rank{2}) == machine.device(Rank{2}));
  CHECK_FALSE(other == machine);
  CHECK_THAT(test::message_of<contract_error>([&] { other.set_device(Rank{3}, {}); }),
             ContainsSubstring("heddle::Machine::set_device: no such rank (rank 3 of 3)"));
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { other.set_device(Rank{0}, {.name = "off", .speed = 0}); }),
             ContainsSubstring("'off': speed 0"));
  machine.set_ports(0, 2, {.out = 1e7});
  CHECK(machine.shares());
  CHECK(machine.ports(0, 2).out == 1e7);
  CHECK(route(machine, 2, 0) == "rank 2 out, | ");
  CHECK(route(machine, 0, 2) == "| ");
  machine.share("line", 5e6, {{Rank{2}, Rank{1}}, {Rank{0}, Rank{2}}});
  machine.set_ports(0, 0, {.out = 1e8, .in = 1e8});
  CHECK(route(machine, 2, 1) == "rank 2 out, line, | ");
  CHECK(route(machine, 0, 2) == "rank 0 out, line, | ");
  CHECK(route(machine, 0, 1) == "rank 0 out, | ");
  CHECK(machine.shared().size() == 4);
  CHECK(machine.shared()[3].occupancy(10'000'000) == 2);
  CHECK(text(machine) ==
        "3 x pc\n"
        "rank of 1; from group 0 on ports of 0.1 GB/s out, 0.1 GB/s in; from group 2 on ports of "
        "0.01 GB/s out, inf GB/s in\n"
        "machine of 3\n"
        "links of pairs: 1000 to 2000 us, 0.05 to 0.1 GB/s\n"
        "line: 0.005 GB/s, shared by 2 pairs of ranks");
}

TEST_CASE("units of a device are something that queues share") {
  CHECK_FALSE(Machine::uniform(2, {.name = "gpu"}, {}).shares());
  CHECK(Machine::uniform(2, {.name = "gpu", .units = 4}, {}).shares());
}

TEST_CASE("measured links are those of ordered pairs; unequal devices print in turn") {
  std::vector<Link> links;
  for (int i = 0; i < 9; ++i) links.push_back({i * 1e-6, 1e9});
  const Machine machine = Machine::from_links({{"a"}, {"a"}, {.name = "b", .speed = 2}}, links);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) CHECK(machine.link(Rank{a}, Rank{b}).latency == (3 * a + b) * 1e-6);
  CHECK(machine.device(Rank{2}).speed == 2);
  CHECK(text(machine) ==
        "2 x a, 1 x b\nrank of 1\nmachine of 3\nlinks of pairs: 1 to 7 us, 1 to "
        "1 GB/s");
  CHECK(text(Machine::from_links({{"alone"}}, {{}})) == "1 x alone\nrank of 1\nmachine of 1");
}

TEST_CASE("a hierarchy prints a line for each level") {
  CHECK(text(two_levels(5)) ==
        "5 x gpu\n"
        "rank of 1: links of 0 us and 8 GB/s; from group 0 on ports of 4 GB/s out, 3 GB/s in\n"
        "node of 2: links of 1 us and 4 GB/s; from group 0 on ports of 2 GB/s out, 2 GB/s in\n"
        "rack of 4: links of 2 us and 2 GB/s; from group 0 on ports of 1 GB/s out, 1 GB/s in, 2 "
        "each\n"
        "hall of 8: links of 5 us and 1 GB/s");
}

TEST_CASE("a machine of nonsense is refused with its numbers") {
  const auto refusal = [](auto&& call) { return test::message_of<contract_error>(call); };
  const std::vector<Device> four(4);
  CHECK_THAT(refusal([] { (void)Machine::hierarchical({}, {{.name = "a"}}); }),
             ContainsSubstring("heddle::Machine::hierarchical: a machine needs at least one rank "
                               "(there are no devices)"));
  CHECK_THAT(refusal([&] { (void)Machine::hierarchical(four, {}); }),
             ContainsSubstring("the last level must hold all ranks (it has 0 of 4)"));
  CHECK_THAT(refusal([&] { (void)Machine::hierarchical(four, {{.name = "a", .ranks = 2}}); }),
             ContainsSubstring("the last level must hold all ranks (it has 2 of 4)"));
  for (const int ranks : {3, 1, 0, -4})
    CHECK_THAT(refusal([&] {
                 (void)Machine::hierarchical(
                     four, {{.name = "a", .ranks = 2}, {.name = "b", .ranks = ranks}});
               }),
               ContainsSubstring(text("whole groups of the level below ('b' has groups of ", ranks,
                                      " ranks, the level below of 2)")));
  CHECK_THAT(refusal([&] { (void)Machine::hierarchical(four, {{.name = "a", .ranks = 0}}); }),
             ContainsSubstring("'a' has groups of 0 ranks, the level below of 1"));
  const double nan = std::nan("");
  for (const Ports ports : {Ports{.out = 0}, Ports{.in = -1}, Ports{.out = nan}})
    CHECK_THAT(refusal([&] {
                 (void)Machine::hierarchical(four, {{.name = "a", .ranks = 4, .ports = ports}});
               }),
               ContainsSubstring("a bandwidth must be above 0 (ports of level 'a': "));
  CHECK_THAT(refusal([&] {
               (void)Machine::hierarchical(four,
                                           {{.name = "a", .ranks = 4, .ports = {.count = 0}}});
             }),
             ContainsSubstring("a group needs at least one port in each direction"));
  CHECK_THAT(refusal([&] {
               (void)Machine::hierarchical(four, {{.name = "a", .ranks = 4, .link = {-1, 1}}});
             }),
             ContainsSubstring("the latency of a link must be finite and at least 0"));
  for (const Device& device : {Device{.speed = 0}, Device{.speed = nan}, Device{.units = -1}})
    CHECK_THAT(refusal([&] { (void)Machine::uniform(2, device, {}); }),
               ContainsSubstring("a device needs a finite speed above 0 and at least 0 units"));
  CHECK_THAT(
      refusal([&] {
        (void)Machine::uniform(1, {.memories = {{.name = "hbm", .link = {0, 0}}}}, {});
      }),
      ContainsSubstring("a bandwidth must be above 0 (memory 'hbm' of 'device': bandwidth 0"));
  CHECK_THAT(
      refusal([&] { (void)Machine::from_links(four, std::vector<Link>(15)); }),
      ContainsSubstring("every ordered pair of ranks needs one link (expected 16 links for 4 "
                        "ranks, got 15)"));
  CHECK_THAT(refusal([&] { (void)Machine::from_links({{}}, {{.latency = nan}}); }),
             ContainsSubstring("heddle::Machine::from_links: the latency"));
  Machine machine = Machine::uniform(4, {}, {});
  CHECK_THAT(refusal([&] { machine.set_link(Rank{1}, Rank{4}, {}); }),
             ContainsSubstring("heddle::Machine::set_link: no such rank (rank 4 of 4)"));
  CHECK_THAT(
      refusal([&] { machine.set_link(Rank{1}, Rank{2}, {.bandwidth = 0}); }),
      ContainsSubstring("heddle::Machine::set_link: a bandwidth must be above 0 (link 1 -> 2: "));
  CHECK_THAT(
      refusal([&] { machine.set_ports(0, 4, {}); }),
      ContainsSubstring(
          "heddle::Machine::set_ports: no such group (group 4 of level 0, which has 4 groups)"));
  CHECK_THAT(refusal([&] { machine.set_ports(2, 0, {}); }), ContainsSubstring("level 2"));
  CHECK_THAT(refusal([&] { machine.set_ports(0, 0, {.in = 0}); }),
             ContainsSubstring(
                 "heddle::Machine::set_ports: a bandwidth must be above 0 (ports of group 0"));
  CHECK_THAT(
      refusal([&] { machine.share("wan", 0, {}); }),
      ContainsSubstring("heddle::Machine::share: a bandwidth must be above 0 ('wan': 0 B/s)"));
  CHECK_THAT(refusal([&] {
               machine.share("wan", 1, {{Rank{0}, Rank{9}}});
             }),
             ContainsSubstring("heddle::Machine::share: no such rank (rank 9 of 4)"));
}

}  // namespace test_hierarchy
