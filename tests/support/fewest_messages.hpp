// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The fewest messages with which one element gets from a layout to another: by a closed form, and
/// by a search through all that ranks can send, with nothing of the planner.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include <heddle/layout.hpp>

#include "support/redistribution_case.hpp"

namespace heddle::test {

/// An element, and of what stays Partial one part: that is moved as an element of its own.
struct MovedElement {
  std::map<std::size_t, std::vector<int>> holds;  ///< which part a rank has of it
  std::set<std::size_t> needs;                    ///< the ranks that are to have all parts merged
};

[[nodiscard]] inline std::vector<MovedElement> moved_elements(const RedistributionCase& test) {
  using Key = std::pair<std::vector<std::int64_t>, std::vector<int>>;  // index, and what stays
  std::map<Key, MovedElement> all;
  const bool stays = test.target.partial().has_value();
  const auto visit = [&](const Layout& layout, const auto& note) {
    for (int r = 0; r < layout.mesh().size(); ++r) {
      const auto staying = stays ? part_of(test.target, Rank{r}) : std::vector<int>{};
      for_each_element(layout, Rank{r}, [&](std::size_t, const auto& global) {
        note(all[{global, staying}], +layout.ranks()[static_cast<std::size_t>(r)], Rank{r});
      });
    }
  };
  visit(test.source, [&](MovedElement& element, std::size_t rank, Rank place) {
    element.holds.emplace(rank, part_of(test.source, place));
  });
  visit(test.target,
        [](MovedElement& element, std::size_t rank, Rank) { element.needs.insert(rank); });
  std::vector<MovedElement> elements;
  for (auto& [key, element] : all) elements.push_back(std::move(element));
  return elements;
}

/// For p parts and k ranks that need them. See Redistribution.
[[nodiscard]] inline std::int64_t least_messages(const MovedElement& element) {
  std::set<std::vector<int>> parts;
  std::int64_t held = 0;
  for (const auto& [rank, part] : element.holds) {
    parts.insert(part);
    held += element.needs.contains(rank) ? 1 : 0;
  }
  const auto p = static_cast<std::int64_t>(parts.size());
  const auto k = static_cast<std::int64_t>(element.needs.size());
  // Values: whoever has none gets one. Parts: they meet on one rank, which tells the others.
  return p == 1 ? k - held : p - (held > 0 ? 1 : 0) + k - 1;
}

/// The same by breadth-first search, among 4 ranks, those without a part that need nothing too: a
/// message brings a rank any one value that the sender can make of what it has, and a rank keeps
/// all that it gets. A value is the set of the parts that are merged in it; sets may overlap, which
/// is more than a sum permits.
class FewestMessages {
 public:
  static constexpr std::size_t ranks = 4;  ///< elements are on ranks below

  [[nodiscard]] int operator()(const MovedElement& element) {
    std::map<std::vector<int>, std::size_t> parts;  // numbered in the order of their first ranks
    State start = 0;
    for (const auto& [rank, part] : element.holds)
      start |= bit(rank, 1u << parts.emplace(part, parts.size()).first->second);
    std::size_t needs = 0;
    for (const std::size_t rank : element.needs) needs |= std::size_t{1} << rank;
    const auto [found, fresh] = m_known.try_emplace(start);
    if (fresh) found->second = search(start, (std::size_t{1} << parts.size()) - 1);
    return found->second[needs];
  }

 private:
  /// 16 bits a rank: which of the sets of 4 parts it has or can make.
  using State = std::uint64_t;
  /// By the set of ranks that need the element.
  using Fewest = std::array<int, std::size_t{1} << ranks>;

  static State bit(std::size_t rank, std::size_t set) { return State{1} << (16 * rank + set); }

  /// After a message with `set` to `rank`, which merges it with each that it has.
  static State after(State state, std::size_t rank, std::size_t set) {
    State result = state | bit(rank, set);
    for (std::size_t other = 1; other < 16; ++other)
      if (state & bit(rank, other)) result |= bit(rank, other | set);
    return result;
  }

  static Fewest search(State start, std::size_t all) {
    Fewest fewest;
    fewest.fill(-1);
    std::unordered_set<State> seen = {start};
    std::vector<State> now = {start};
    for (int messages = 0;; ++messages) {
      for (const State state : now) {
        std::size_t have = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank)
          if (state & bit(rank, all)) have |= std::size_t{1} << rank;
        for (std::size_t needs = 0; needs < fewest.size(); ++needs)
          if (fewest[needs] < 0 && (needs & have) == needs) fewest[needs] = messages;
      }
      if (std::ranges::find(fewest, -1) == fewest.end()) return fewest;
      std::vector<State> next;
      for (const State state : now)
        for (std::size_t from = 0; from < ranks; ++from)
          for (std::size_t set = 1; set <= all; ++set)
            for (std::size_t to = 0; (state & bit(from, set)) && to < ranks; ++to) {
              const State then = after(state, to, set);
              if (then != state && seen.insert(then).second) next.push_back(then);
            }
      now = std::move(next);
    }
  }

  std::map<State, Fewest> m_known;
};

}  // namespace heddle::test
