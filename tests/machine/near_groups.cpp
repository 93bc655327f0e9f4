// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Which ranks of a machine are near each other: by its levels, and by its links alone.

#include <cstddef>
#include <functional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>
#include <heddle/machine.hpp>

namespace test_near_groups {

using namespace heddle;
using Sizes = std::vector<int>;

namespace {

/// A measured network, whose levels say nothing.
Machine measured(std::size_t ranks, const std::function<Link(std::size_t, std::size_t)>& link) {
  std::vector<std::vector<Link>> links(ranks, std::vector<Link>(ranks));
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b)
      if (a != b) links[a][b] = link(a, b);
  return network(links, {.name = "node"});
}

constexpr Link near{1e-6, 1e10}, far{1e-3, 1e8}, farther{1e-2, 1e7};

}  // namespace

TEST_CASE("groups are found by links alone, however far apart each two are") {
  const Machine machine = measured(8, [](std::size_t a, std::size_t b) {
    const double slower = 1 + 0.1 * static_cast<double>((3 * a + 5 * b) % 7);
    const Link& link = a / 4 == b / 4 ? near : far;
    return Link{link.latency * slower, link.bandwidth / slower};
  });
  CHECK(near_groups(machine, 8, 0) == Sizes{4});
  CHECK(near_groups(machine, 8, Bytes{1} << 30) == Sizes{4});
  CHECK(near_groups(machine, 4, 0).empty());
  CHECK(near_groups(machine, 6, 0).empty());  // of 4 and of 2
}

TEST_CASE("groups in groups are found, too") {
  const Machine machine = measured(16, [](std::size_t a, std::size_t b) {
    return a / 2 == b / 2 ? near : a / 8 == b / 8 ? far : farther;
  });
  CHECK(near_groups(machine, 16, 8) == Sizes{2, 8});
  CHECK(near_groups(machine, 8, 8) == Sizes{2});
  CHECK(near_groups(machine, 10, 8) == Sizes{2});
}

TEST_CASE("which ranks are near depends on the size of a message") {
  // Pairs answer soon, fours have the bandwidth.
  const Machine machine = measured(8, [](std::size_t a, std::size_t b) {
    return Link{a / 2 == b / 2 ? 1e-6 : 1e-3, a / 4 == b / 4 ? 1e10 : 1e6};
  });
  CHECK(near_groups(machine, 8, 0) == Sizes{2});
  CHECK(near_groups(machine, 8, 4 << 10) == Sizes{2, 4});
  CHECK(near_groups(machine, 8, Bytes{1} << 30) == Sizes{2, 4});
}

TEST_CASE("the levels of a machine are its groups, whatever their links") {
  const auto of = [](int ranks, std::vector<Level> levels) {
    return Machine::hierarchical(std::vector<Device>(static_cast<std::size_t>(ranks)),
                                 std::move(levels));
  };
  const Level rank{.name = "rank", .ranks = 1}, all{.name = "all", .ranks = 12, .link = far};
  const Level two{.name = "two", .ranks = 2, .link = near};
  const Level six{.name = "six", .ranks = 6, .link = far};
  CHECK(near_groups(of(12, {rank, two, six, all}), 12, 8) == Sizes{2, 6});
  CHECK(near_groups(of(12, {rank, six, all}), 12, 8) == Sizes{6});
  CHECK(near_groups(of(12, {rank, all}), 12, 8).empty());
  // The last group of six has five.
  CHECK(near_groups(of(11, {rank, six, all}), 11, 8).empty());
  CHECK(near_groups(of(12, {rank, two, six, all}), 10, 8) == Sizes{2});
}

TEST_CASE("where links are alike, ranks are near in turns, or there are few, there are no groups") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    CHECK(near_groups(Machine::uniform(ranks, {}, near), ranks, 8).empty());
    CHECK(near_groups(Machine::uniform(ranks, {}, {}), ranks, 8).empty());
  }
  const Machine turns =
      measured(8, [](std::size_t a, std::size_t b) { return a % 2 == b % 2 ? near : far; });
  CHECK(near_groups(turns, 8, 8).empty());
  // One pair of a group is far apart.
  Machine broken =
      measured(8, [](std::size_t a, std::size_t b) { return a / 4 == b / 4 ? near : far; });
  broken.set_link(Rank{5}, Rank{7}, far);
  CHECK(near_groups(broken, 8, 8).empty());
  CHECK(near_groups(broken, 0, 8).empty());
}

}  // namespace test_near_groups
