// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Which ranks of a machine are near each other: by its levels, and by its links alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>
#include <heddle/machine.hpp>

namespace test_near_groups {

using namespace heddle;
using Groups = std::vector<std::uint32_t>;
using Nest = std::vector<Groups>;

namespace {

/// A measured network, whose levels say nothing.
Machine measured(std::size_t ranks, const std::function<Link(std::size_t, std::size_t)>& link) {
  std::vector<std::vector<Link>> links(ranks, std::vector<Link>(ranks));
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b)
      if (a != b) links[a][b] = link(a, b);
  return network(links, {.name = "node"});
}

/// Groups of `size` of so many ranks, the last of which may have fewer.
Groups of_size(std::uint32_t size, std::uint32_t ranks) {
  Groups groups;
  for (std::uint32_t r = 0; r < ranks; ++r) groups.push_back(r / size);
  return groups;
}

/// Hosts as near or far as links say, slower by up to 60 % here and there.
Machine hosts(const Groups& host, const Link& inside, const Link& between) {
  return measured(host.size(), [&](std::size_t a, std::size_t b) {
    const double slower = 1 + 0.1 * static_cast<double>((3 * a + 5 * b) % 7);
    const Link& link = host[a] == host[b] ? inside : between;
    return Link{link.latency * slower, link.bandwidth / slower};
  });
}

constexpr Link near{1e-6, 1e10}, far{1e-3, 1e8}, farther{1e-2, 1e7};

}  // namespace

TEST_CASE("groups are found by links alone, however far apart each two are") {
  const Machine machine = hosts(of_size(4, 8), near, far);
  CHECK(near_groups(machine, 8, 0) == Nest{of_size(4, 8)});
  CHECK(near_groups(machine, 8, Bytes{1} << 30) == Nest{of_size(4, 8)});
  CHECK(near_groups(machine, 4, 0).empty());
  CHECK(near_groups(machine, 6, 0) == Nest{of_size(4, 6)});  // of 4 and of 2
}

TEST_CASE("groups of several sizes are found, and such whose ranks are dealt out in turns") {
  for (const Groups& groups : {Groups{0, 0, 0, 1},
                               {0, 1, 1, 1},
                               {0, 0, 1, 2},
                               {0, 0, 0, 1, 1, 1, 2},
                               {0, 0, 0, 0, 0, 1, 1},
                               {0, 1, 0, 1},
                               {0, 1, 2, 0, 1, 2},
                               {0, 1, 1, 0},
                               {0, 1, 0, 0, 2, 1, 0},
                               {0, 1, 1, 0, 1, 2, 1, 1, 2}}) {
    const auto ranks = static_cast<int>(groups.size());
    CHECK(near_groups(hosts(groups, near, far), ranks, 0) == Nest{groups});
    CHECK(near_groups(hosts(groups, near, far), ranks, 1 << 20) == Nest{groups});
    // A little nearer is noise.
    CHECK(near_groups(hosts(groups, near, {1.9e-6, 0.53e10}), ranks, 8).empty());
  }
  // Hosts in turns, two of them on a rack.
  CHECK(near_groups(measured(8,
                             [](std::size_t a, std::size_t b) {
                               return a % 4 == b % 4 ? near : a % 2 == b % 2 ? far : farther;
                             }),
                    8, 8) == Nest{{0, 1, 2, 3, 0, 1, 2, 3}, {0, 1, 0, 1, 0, 1, 0, 1}});
  // A rank whose links are slow is alone, however slow it is.
  CHECK(near_groups(measured(4, [](std::size_t a,
                                   std::size_t b) { return a == 1 || b == 1 ? farther : near; }),
                    4, 8) == Nest{{0, 1, 0, 0}});
}

TEST_CASE("the noise of links that are alike makes no groups") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Random random(seed, "links");
    const int ranks = 3 + static_cast<int>(seed % 7);
    std::vector<double> slower;
    for (std::uint64_t i = 0; i < 81; ++i) slower.push_back(1 + 0.9 * random.uniform(i));
    // Alike both ways, as half of a round trip is.
    const Machine machine =
        measured(static_cast<std::size_t>(ranks), [&](std::size_t a, std::size_t b) {
          return Link{1e-6 * slower[9 * std::min(a, b) + std::max(a, b)], 1e10};
        });
    for (const Groups& groups : near_groups(machine, ranks, 0)) {
      const auto count = std::ranges::max(groups) + 1;
      CHECK(groups ==
            of_size(static_cast<std::uint32_t>(ranks) / count, static_cast<std::uint32_t>(ranks)));
    }
  }
}

TEST_CASE("groups in groups are found, too") {
  const Machine machine = measured(16, [](std::size_t a, std::size_t b) {
    return a / 2 == b / 2 ? near : a / 8 == b / 8 ? far : farther;
  });
  CHECK(near_groups(machine, 16, 8) == Nest{of_size(2, 16), of_size(8, 16)});
  CHECK(near_groups(machine, 8, 8) == Nest{of_size(2, 8)});
  CHECK(near_groups(machine, 10, 8) == Nest{of_size(2, 10), of_size(8, 10)});
}

TEST_CASE("which ranks are near depends on the size of a message") {
  // Pairs answer soon, fours have the bandwidth.
  const Machine machine = measured(8, [](std::size_t a, std::size_t b) {
    return Link{a / 2 == b / 2 ? 1e-6 : 1e-3, a / 4 == b / 4 ? 1e10 : 1e6};
  });
  CHECK(near_groups(machine, 8, 0) == Nest{of_size(2, 8)});
  CHECK(near_groups(machine, 8, 4 << 10) == Nest{of_size(2, 8), of_size(4, 8)});
  CHECK(near_groups(machine, 8, Bytes{1} << 30) == Nest{of_size(2, 8), of_size(4, 8)});
}

TEST_CASE("the levels of a machine are its groups, whatever their links") {
  const auto of = [](int ranks, std::vector<Level> levels) {
    return Machine::hierarchical(std::vector<Device>(static_cast<std::size_t>(ranks)),
                                 std::move(levels));
  };
  const Level rank{.name = "rank", .ranks = 1}, all{.name = "all", .ranks = 12, .link = far};
  const Level two{.name = "two", .ranks = 2, .link = near};
  const Level six{.name = "six", .ranks = 6, .link = far};
  CHECK(near_groups(of(12, {rank, two, six, all}), 12, 8) == Nest{of_size(2, 12), of_size(6, 12)});
  CHECK(near_groups(of(12, {rank, six, all}), 12, 8) == Nest{of_size(6, 12)});
  CHECK(near_groups(of(12, {rank, all}), 12, 8).empty());
  // The last group of six has five.
  CHECK(near_groups(of(11, {rank, six, all}), 11, 8) == Nest{of_size(6, 11)});
  CHECK(near_groups(of(12, {rank, two, six, all}), 10, 8) == Nest{of_size(2, 10), of_size(6, 10)});
}

TEST_CASE("where links are alike, or there are few ranks, there are no groups") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    CHECK(near_groups(Machine::uniform(ranks, {}, near), ranks, 8).empty());
    CHECK(near_groups(Machine::uniform(ranks, {}, {}), ranks, 8).empty());
  }
  // One pair of a group is far apart.
  Machine broken =
      measured(8, [](std::size_t a, std::size_t b) { return a / 4 == b / 4 ? near : far; });
  broken.set_link(Rank{5}, Rank{7}, far);
  CHECK(near_groups(broken, 8, 8).empty());
  CHECK(near_groups(broken, 0, 8).empty());
}

}  // namespace test_near_groups
