// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of expert_placement.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE ExpertAffinity::ExpertAffinity(const ExpertTrace& trace)
    : m_layers(trace.layers), m_experts(trace.experts) {
  constexpr const char* where = "heddle::systems::ExpertAffinity";
  expects(m_layers >= 1 && m_experts >= 1 && trace.routes.size() % m_layers == 0, [&] {
    return ErrorInfo{where, "the trace is not complete routes",
                     text(trace.layers, " layers, ", trace.experts, " experts, ",
                          trace.routes.size(), " entries"),
                     "give each token one expert in each layer"};
  });
  const auto wrong = std::ranges::find_if(trace.routes, [&](auto e) { return e >= m_experts; });
  expects(wrong == trace.routes.end(), [&] {
    return ErrorInfo{where, "a route names an expert that does not exist",
                     text("expert ", *wrong, " of ", m_experts)};
  });
  m_counts.assign((m_layers - 1) * m_experts * m_experts, 0);
  for (std::size_t t = 0; t < trace.tokens(); ++t)
    for (std::size_t l = 0; l + 1 < m_layers; ++l, ++m_steps)
      ++m_counts[(l * m_experts + trace.expert(t, l)) * m_experts + trace.expert(t, l + 1)];
}

HEDDLE_INLINE void ExpertPlacement::expect_valid(const char* where) const {
  expects(ranks >= 1, [&] {
    return ErrorInfo{where, "a placement needs at least one rank", text("ranks = ", ranks)};
  });
  const bool complete = experts == 0
                            ? ranks_of.empty()
                            : ranks_of.size() % experts == 0 && ranks_of.size() / experts == layers;
  expects(complete, [&] {
    return ErrorInfo{where, "a placement needs the rank of each expert of each layer",
                     text("ranks_of has ", ranks_of.size(), " entries for ", layers, " layers of ",
                          experts, " experts")};
  });
  for (std::size_t i = 0; i < ranks_of.size(); ++i)
    expects(ranks_of[i] < static_cast<std::uint32_t>(ranks), [&] {
      return ErrorInfo{where, "a placement names a rank that does not exist",
                       text("ranks_of[", i, "], expert ", i % experts, " of layer ", i / experts,
                            ", is rank ", ranks_of[i], " of ", ranks),
                       "number the ranks from 0"};
    });
}

HEDDLE_INLINE ExpertPlacement ExpertPlacement::of_nodes(int node) const {
  expect_valid("heddle::systems::ExpertPlacement::of_nodes");
  expects(node >= 1 && ranks % node == 0, [&] {
    return ErrorInfo{"heddle::systems::ExpertPlacement::of_nodes",
                     "the ranks do not fill whole nodes", text(ranks, " ranks, nodes of ", node)};
  });
  ExpertPlacement nodes = *this;
  nodes.ranks = ranks / node;
  for (std::uint32_t& rank : nodes.ranks_of) rank /= static_cast<std::uint32_t>(node);
  return nodes;
}

namespace impl {

inline void expect_divisible(const char* where, std::size_t layers, std::size_t experts,
                             int ranks) {
  expects(
      layers >= 1 && ranks >= 1 && experts >= 1 && experts % static_cast<std::size_t>(ranks) == 0,
      [&] {
        return ErrorInfo{where, "the ranks do not divide the experts",
                         text(layers, " layers, ", experts, " experts, ", ranks, " ranks"),
                         "use a number of ranks that divides the experts of a layer"};
      });
}

/// One level of a placement: divides the experts of every group of the level above, which is
/// `parent`, into `children` groups.
class PlacementLevel {
 public:
  using Division = std::vector<std::uint32_t>;  ///< the group of each expert of a layer

  PlacementLevel(const ExpertAffinity& affinity, const ExpertPlacement& parent, int children)
      : m_affinity(affinity),
        m_experts(affinity.experts()),
        m_children(static_cast<std::size_t>(children)),
        m_groups(static_cast<std::size_t>(parent.ranks) * m_children) {
    for (std::size_t l = 0; l < affinity.layers(); ++l) {
      const auto begin = parent.ranks_of.begin() + static_cast<std::ptrdiff_t>(l * m_experts);
      m_parents.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(m_experts));
    }
  }

  ExpertPlacement solve(const ExpertPlacementOptions& options) {
    std::vector<Division> found = exact(options.exact);
    if (found.empty()) {
      std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
      for (int r = 0; r < options.restarts; ++r) {
        std::vector<Division> candidate = start(Random(options.seed, "expert placement"), r);
        improve(candidate);
        const std::uint64_t cost = changes(candidate);
        if (cost < least) std::tie(least, found) = std::pair{cost, std::move(candidate)};
      }
    }
    ExpertPlacement placement{static_cast<int>(m_groups), m_affinity.layers(), m_experts, {}};
    for (const Division& layer : found)
      placement.ranks_of.insert(placement.ranks_of.end(), layer.begin(), layer.end());
    return placement;
  }

 private:
  [[nodiscard]] std::size_t capacity() const { return m_experts / m_groups; }
  [[nodiscard]] std::uint64_t changes(const std::vector<Division>& divisions) const {
    std::uint64_t sum = 0;
    for (std::size_t l = 0; l + 1 < divisions.size(); ++l)
      for (std::size_t i = 0; i < m_experts; ++i)
        for (std::size_t k = 0; k < m_experts; ++k)
          if (divisions[l][i] != divisions[l + 1][k]) sum += m_affinity.at(l, i, k);
    return sum;
  }
  /// Adds to `tokens[k * groups + g]` the tokens that come to expert k of layer `l` + 1 from
  /// experts of group g, if `layer` is the division of layer `l`.
  void add_from(std::size_t l, const Division& layer, std::vector<std::uint64_t>& tokens) const {
    for (std::size_t i = 0; i < m_experts; ++i)
      for (std::size_t k = 0; k < m_experts; ++k)
        tokens[k * m_groups + layer[i]] += m_affinity.at(l, i, k);
  }
  /// Adds to `tokens[i * groups + g]` the tokens that go from expert i of layer `l` to experts of
  /// group g, if `next` is the division of layer `l` + 1.
  void add_to(std::size_t l, const Division& next, std::vector<std::uint64_t>& tokens) const {
    for (std::size_t i = 0; i < m_experts; ++i)
      for (std::size_t k = 0; k < m_experts; ++k)
        tokens[i * m_groups + next[k]] += m_affinity.at(l, i, k);
  }

  /// Appends all divisions of a layer to `all`, but at most `limit` + 1.
  void enumerate(std::size_t l, std::size_t limit, Division& division,
                 std::vector<std::size_t>& room, std::vector<Division>& all) const {
    if (all.size() > limit) return;
    if (division.size() == m_experts) return all.push_back(division);
    const std::size_t first = m_parents[l][division.size()] * m_children;
    for (std::size_t g = first; g < first + m_children; ++g) {
      if (room[g] == 0) continue;
      --room[g];
      division.push_back(static_cast<std::uint32_t>(g));
      enumerate(l, limit, division, room, all);
      division.pop_back();
      ++room[g];
    }
  }
  /// Returns the best divisions, by the shortest path through the divisions of all layers, or
  /// nothing if a layer has more than `limit` of them.
  [[nodiscard]] std::vector<Division> exact(std::size_t limit) const {
    std::vector<std::vector<Division>> all(m_affinity.layers());
    for (std::size_t l = 0; l < all.size(); ++l) {
      Division division;
      std::vector<std::size_t> room(m_groups, capacity());
      enumerate(l, limit, division, room, all[l]);
      if (all[l].size() > limit) return {};
    }
    std::vector<std::uint64_t> kept(all[0].size(), 0);  // most tokens that stay, up to a layer
    std::vector<std::vector<std::size_t>> before(all.size());  // by which division
    for (std::size_t l = 0; l + 1 < all.size(); ++l) {
      std::vector<std::uint64_t> next(all[l + 1].size(), 0);
      before[l + 1].assign(next.size(), 0);
      for (std::size_t a = 0; a < all[l].size(); ++a) {
        std::vector<std::uint64_t> tokens(m_experts * m_groups, 0);
        add_from(l, all[l][a], tokens);
        for (std::size_t b = 0; b < next.size(); ++b) {
          std::uint64_t stay = kept[a];
          for (std::size_t k = 0; k < m_experts; ++k)
            stay += tokens[k * m_groups + all[l + 1][b][k]];
          if (stay > next[b]) std::tie(next[b], before[l + 1][b]) = std::pair{stay, a};
        }
      }
      kept = std::move(next);
    }
    auto at = static_cast<std::size_t>(std::ranges::max_element(kept) - kept.begin());
    std::vector<Division> best(all.size());
    for (std::size_t l = all.size(); l-- > 0;) {
      best[l] = all[l][at];
      if (l > 0) at = before[l][at];
    }
    return best;
  }

  /// Returns the division that gives each expert a group of its parent in which it has many
  /// `tokens`, best pairs first.
  [[nodiscard]] Division greedy(std::size_t l, const std::vector<std::uint64_t>& tokens) const {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t e = 0; e < m_experts; ++e)
      for (std::size_t c = 0; c < m_children; ++c)
        pairs.emplace_back(e, m_parents[l][e] * m_children + c);
    std::ranges::stable_sort(pairs, [&](const auto& a, const auto& b) {
      return tokens[a.first * m_groups + a.second] > tokens[b.first * m_groups + b.second];
    });
    const auto none = static_cast<std::uint32_t>(m_groups);
    Division division(m_experts, none);
    std::vector<std::size_t> room(m_groups, capacity());
    for (const auto& [expert, group] : pairs) {
      if (division[expert] != none || room[group] == 0) continue;
      division[expert] = static_cast<std::uint32_t>(group);
      --room[group];
    }
    return division;
  }
  /// Returns the start of restart `number`: a random first layer, and greedy layers behind it. The
  /// first start begins in the order of the experts.
  [[nodiscard]] std::vector<Division> start(const Random& random, int number) const {
    std::vector<std::uint64_t> tokens(m_experts * m_groups, 0);
    for (std::size_t i = 0; number > 0 && i < tokens.size(); ++i)
      tokens[i] = random.bits(static_cast<std::uint64_t>(number) * tokens.size() + i);
    std::vector<Division> divisions{greedy(0, tokens)};
    for (std::size_t l = 0; l + 1 < m_affinity.layers(); ++l) {
      std::ranges::fill(tokens, 0);
      add_from(l, divisions[l], tokens);
      divisions.push_back(greedy(l + 1, tokens));
    }
    return divisions;
  }

  /// Swaps experts of a layer while this keeps more tokens on their rank.
  void improve(std::vector<Division>& divisions) const {
    std::vector<std::uint64_t> tokens(m_experts * m_groups, 0);
    for (bool better = true; better;) {
      better = false;
      for (std::size_t l = 0; l < divisions.size(); ++l) {
        std::ranges::fill(tokens, 0);
        if (l > 0) add_from(l - 1, divisions[l - 1], tokens);
        if (l + 1 < divisions.size()) add_to(l, divisions[l + 1], tokens);
        while (swap_any(l, tokens, divisions[l])) better = true;
      }
    }
  }
  [[nodiscard]] bool swap_any(std::size_t l, const std::vector<std::uint64_t>& tokens,
                              Division& division) const {
    bool any = false;
    for (std::size_t e = 0; e < m_experts; ++e)
      for (std::size_t f = e + 1; f < m_experts; ++f) {
        if (m_parents[l][e] != m_parents[l][f]) continue;
        const auto of = [&](std::size_t expert, std::size_t group_of) {
          return tokens[expert * m_groups + division[group_of]];
        };
        if (of(e, f) + of(f, e) <= of(e, e) + of(f, f)) continue;
        std::swap(division[e], division[f]);
        any = true;
      }
    return any;
  }

  const ExpertAffinity& m_affinity;
  std::size_t m_experts;
  std::size_t m_children;
  std::size_t m_groups;
  std::vector<Division> m_parents;  ///< by layer
};

}  // namespace impl

HEDDLE_INLINE ExpertPlacement contiguous_experts(std::size_t layers, std::size_t experts,
                                                 int ranks) {
  impl::expect_divisible("heddle::systems::contiguous_experts", layers, experts, ranks);
  ExpertPlacement placement{ranks, layers, experts, {}};
  const std::size_t each = experts / static_cast<std::size_t>(ranks);
  for (std::size_t i = 0; i < layers * experts; ++i)
    placement.ranks_of.push_back(static_cast<std::uint32_t>(i % experts / each));
  return placement;
}

HEDDLE_INLINE std::uint64_t rank_changes(const ExpertAffinity& affinity,
                                         const ExpertPlacement& placement) {
  constexpr const char* where = "heddle::systems::rank_changes";
  placement.expect_valid(where);
  expects(placement.layers == affinity.layers() && placement.experts == affinity.experts(), [&] {
    return ErrorInfo{where, "the placement is for another model",
                     text(placement.layers, " x ", placement.experts, " experts, traced ",
                          affinity.layers(), " x ", affinity.experts())};
  });
  std::uint64_t sum = 0;
  for (std::size_t l = 0; l + 1 < affinity.layers(); ++l)
    for (std::size_t i = 0; i < affinity.experts(); ++i)
      for (std::size_t k = 0; k < affinity.experts(); ++k)
        if (placement.rank(l, i) != placement.rank(l + 1, k)) sum += affinity.at(l, i, k);
  return sum;
}

HEDDLE_INLINE ExpertPlacement place_experts(const ExpertAffinity& affinity,
                                            const ExpertPlacementOptions& options) {
  constexpr const char* where = "heddle::systems::place_experts";
  expects(!options.levels.empty() &&
              std::ranges::all_of(options.levels, [](int size) { return size >= 1; }) &&
              options.restarts >= 1,
          [&] {
            return ErrorInfo{where, "levels and restarts must be at least 1",
                             text(options.levels.size(), " levels, the least of ",
                                  options.levels.empty() ? 0 : std::ranges::min(options.levels),
                                  " groups, restarts = ", options.restarts)};
          });
  const int ranks =
      std::accumulate(options.levels.begin(), options.levels.end(), 1, std::multiplies<>());
  impl::expect_divisible(where, affinity.layers(), affinity.experts(), ranks);
  ExpertPlacement placement = contiguous_experts(affinity.layers(), affinity.experts(), 1);
  for (const int size : options.levels)
    placement = impl::PlacementLevel(affinity, placement, size).solve(options);
  return placement;
}

}  // namespace heddle::inline v0::systems
