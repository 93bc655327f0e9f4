// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// dual_traversal(): visits all pairs of items of two trees, as pairs of nodes that are as large as
/// the caller's rule permits. self_traversal(): the same for the unordered pairs of one tree.
///
/// These are the loops of sums over pairs that are split by distance: far pairs of nodes are
/// approximated, near pairs of leaves are computed exactly, and pairs that another method sums (for
/// example a transform on a mesh beyond a cut-off) are dropped.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>

namespace heddle::inline v0::systems {

/// The next step of a traversal with a pair of nodes.
enum class PairStep : std::uint8_t {
  drop,         ///< nothing; the pair needs no work here
  far,          ///< calls far(a, b), which treats both nodes as wholes
  exact,        ///< calls exact(a, b), which treats all pairs of their items
  open_first,   ///< continues with the pairs of the children of `a` with `b`
  open_second,  ///< continues with the pairs of `a` with the children of `b`
  open_both,    ///< continues with the pairs of the children of both
};

/// A rule for pairs of nodes. `decide(a, b)` is called once for each pair that the traversal
/// reaches, and far(a, b) or exact(a, b) at once if it says so. `children(a)` is a range of nodes
/// that divide the items of `a` among them. A and B may be handles of any types that can be copied,
/// such as numbers or pointers.
template <class Rule, class A, class B>
concept PairRule = requires(Rule& rule, const A& a, const B& b) {
  { rule.decide(a, b) } -> std::same_as<PairStep>;
  { rule.children(a) } -> std::ranges::forward_range;
  { rule.children(b) } -> std::ranges::forward_range;
  rule.far(a, b);
  rule.exact(a, b);
};

namespace impl {

/// @throws contract_error if a node without children was opened: its items would be lost.
inline void expect_children(bool any) {
  expects(any, [] {
    return ErrorInfo{"heddle::systems::dual_traversal",
                     "the rule opens a node that has no children",
                     "the pairs of its items would be lost",
                     "return PairStep::exact if neither node has children, and otherwise open one "
                     "that has"};
  });
}

/// Visits all pairs that `first` leads to, depth first. With `unordered`, a pair (a, a) stands for
/// the unordered pairs of the items of a.
template <bool unordered, class A, class B, class Rule>
void traverse_pairs(std::pair<A, B> first, Rule& rule) {
  std::vector<std::pair<A, B>> open{std::move(first)};
  while (!open.empty()) {
    const auto [a, b] = std::move(open.back());
    open.pop_back();
    const PairStep step = rule.decide(a, b);
    const std::size_t waiting = open.size();
    if constexpr (unordered)
      if (a == b && step >= PairStep::open_first && step <= PairStep::open_both) {
        auto children = rule.children(a);
        for (auto i = std::ranges::begin(children); i != std::ranges::end(children); ++i)
          for (auto j = i; j != std::ranges::end(children); ++j) open.emplace_back(*i, *j);
        expect_children(open.size() > waiting);
        std::reverse(open.begin() + static_cast<std::ptrdiff_t>(waiting), open.end());
        continue;
      }
    switch (step) {
      case PairStep::drop: continue;
      case PairStep::far: rule.far(a, b); continue;
      case PairStep::exact: rule.exact(a, b); continue;
      case PairStep::open_first:
        for (auto&& child : rule.children(a)) open.emplace_back(child, b);
        break;
      case PairStep::open_second:
        for (auto&& child : rule.children(b)) open.emplace_back(a, child);
        break;
      case PairStep::open_both:
        for (auto&& child : rule.children(a))
          for (auto&& other : rule.children(b)) open.emplace_back(child, other);
        break;
      default:
        heddle::impl::expect_enumerator("heddle::systems::dual_traversal", "decide(a, b)", step,
                                        PairStep::open_both);
    }
    expect_children(open.size() > waiting);
    std::reverse(open.begin() + static_cast<std::ptrdiff_t>(waiting), open.end());
  }
}

}  // namespace impl

/// Visits every pair of an item below `a` and an item below `b` exactly once, depth first and in
/// the order of the children: in one call of far() or exact(), or in one pair that decide() drops.
/// The nodes may be of two trees or of one; in one tree each pair of items is then visited in both
/// orders, and each item with itself.
/// @throws contract_error if the rule opens a node that has no children, or if decide() returns no
///         enumerator. What the rule throws passes through.
template <std::copyable A, std::copyable B, PairRule<A, B> Rule>
void dual_traversal(A a, B b, Rule&& rule) {
  impl::traverse_pairs<false>(std::pair<A, B>(std::move(a), std::move(b)), rule);
}

/// Visits every unordered pair of items below `root` exactly once, and each item with itself: rules
/// whose far() and exact() act on both nodes compute each pair once. A pair of a node with itself,
/// (a, a), stands for the unordered pairs of its items. If decide(a, a) opens it in any way, the
/// pairs of its children follow, each with itself and with the later ones.
/// @throws contract_error if the rule opens a node that has no children, or if decide() returns no
///         enumerator.
template <std::copyable A, PairRule<A, A> Rule>
requires std::equality_comparable<A>
void self_traversal(A root, Rule&& rule) {
  impl::traverse_pairs<true>(std::pair<A, A>(root, root), rule);
}

}  // namespace heddle::inline v0::systems
