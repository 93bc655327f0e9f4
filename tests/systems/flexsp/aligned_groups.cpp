// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// aligned_groups(): one split of a communicator for each level has the groups of every composition.

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/flexsp/aligned_groups.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>

#include "support/complaint.hpp"

namespace test_aligned_groups {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The members of each group after a split of `ranks` ranks by colours rank >> level.
std::vector<std::vector<std::size_t>> split(std::size_t ranks, int level) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t colour = rank >> level;
    if (groups.size() <= colour) groups.resize(colour + 1);
    groups[colour].push_back(rank);
  }
  return groups;
}

/// Whether the groups of all compositions of `ranks` ranks are groups of the splits of all levels.
/// Returns the number of compositions; `used` gets the groups.
std::size_t check_compositions(int ranks, int least, std::set<std::pair<int, std::size_t>>& used) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::vector<std::vector<std::size_t>>> splits;
  for (int level = 0; level < systems::group_levels(ranks); ++level)
    splits.push_back(split(count, level));
  std::vector<int> degrees;
  for (int degree = least; degree <= ranks; degree *= 2) degrees.push_back(degree);
  const auto all = systems::group_compositions(ranks, degrees);
  for (const std::vector<int>& sizes : all) {
    const auto groups = systems::aligned_groups(sizes);
    bool good = groups.size() == count;
    std::size_t rank = 0;
    for (const int size : sizes) {
      std::vector<std::size_t> members;
      for (int i = 0; i < size && good; ++i, ++rank) members.push_back(rank);
      for (const std::size_t member : members) {
        const systems::AlignedGroup& group = groups[member];
        const auto level = static_cast<std::size_t>(group.level);
        good = good && level < splits.size() && group.index < splits[level].size() &&
               splits[level][group.index] == members && group.ranks() == members.size() &&
               +group.first() == members.front();
        used.insert({group.level, group.index});
      }
    }
    if (!good) FAIL_CHECK(ranks << " ranks: a composition whose largest group has " << sizes[0]);
  }
  return all.size();
}

}  // namespace

TEST_CASE("aligned groups: 7 splits of 64 ranks have the groups of all 202 compositions") {
  std::set<std::pair<int, std::size_t>> used;
  CHECK(systems::group_levels(64) == 7);
  CHECK(check_compositions(64, 2, used) == 202);
  // Every aligned group of 2 ranks or more is a group of some composition.
  CHECK(used.size() == 32 + 16 + 8 + 4 + 2 + 1);
}

TEST_CASE("aligned groups: any number of ranks, with groups of one rank") {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    std::set<std::pair<int, std::size_t>> used;
    CHECK(check_compositions(ranks, 1, used) >= 1);
    int levels = 0;
    for (int size = 1; size <= ranks; size *= 2) ++levels;
    CHECK(systems::group_levels(ranks) == levels);
  }
}

TEST_CASE("aligned groups: sizes that are not falling powers of two are rejected") {
  const auto complaint = [](std::vector<int> sizes) {
    return test::message_of<contract_error>([&] { (void)systems::aligned_groups(sizes); });
  };
  CHECK_THAT(complaint({2, 4}), ContainsSubstring("group 1 of 4 ranks behind one of 2"));
  CHECK_THAT(complaint({4, 3}), ContainsSubstring("group 1 of 3 ranks"));
  CHECK_THAT(complaint({0}), ContainsSubstring("group 0 of 0 ranks"));
  CHECK(systems::aligned_groups({}).empty());
  CHECK_THROWS_AS(systems::group_levels(0), contract_error);
}

}  // namespace test_aligned_groups
