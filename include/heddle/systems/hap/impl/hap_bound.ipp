// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HapBound: the lower bound of the best-first search of hap().

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/systems/hap/impl/tensor_forms.hpp>

namespace heddle::inline v0::systems::impl {

/// The least time of the nodes that a HapSearch has not decided, from below.
///
/// The time of a program is the sum of the seconds of all choices and of the price of each tensor,
/// which depends on the choices of all nodes that name it. If every node and every tensor has its
/// minimum by itself, their sum is a bound. It stays one if a tensor moves an amount that depends
/// on what a node does with it from its own price to the seconds of the node's choices. tighten()
/// moves amounts so that the bound rises: max-product linear programming for a factor of any size
/// (Globerson and Jaakkola, "Fixing max-product: convergent message passing algorithms for MAP
/// LP-relaxations", 2007). The bound is exact if the program is a tree.
class HapBound {
 public:
  static constexpr std::uint8_t none = 255;

  /// The use of one tensor by a choice: the form in which the choice makes it, or `none`, and a
  /// mask of the forms that it needs.
  struct Use {
    std::uint8_t made = none;
    std::uint16_t needed = 0;
    friend bool operator==(const Use&, const Use&) = default;
  };
  struct Choice {
    double seconds = 0;
    std::vector<Use> uses = {};  ///< by tensor of the node
  };
  struct Node {
    std::vector<std::size_t> tensors = {};
    std::vector<Choice> choices = {};
  };

  /// Constructs the bound. `paths` are by tensor, `nodes` in the order of their decisions.
  HapBound(const std::vector<FormPaths>& paths, std::vector<Node> nodes)
      : m_nodes(std::move(nodes)) {
    for (const FormPaths& each : paths) m_factors.push_back({.paths = &each});
    m_places.resize(m_nodes.size());
    for (std::size_t n = 0; n < m_nodes.size(); ++n)
      for (std::size_t i = 0; i < m_nodes[n].tensors.size(); ++i) {
        Factor& factor = m_factors[m_nodes[n].tensors[i]];
        m_places[n].push_back(factor.places.size());
        Place place{.node = n, .index = i};
        for (const Choice& choice : m_nodes[n].choices) {
          const auto found = std::ranges::find(place.uses, choice.uses[i]);
          place.use_of.push_back(static_cast<std::size_t>(found - place.uses.begin()));
          if (found == place.uses.end()) place.uses.push_back(choice.uses[i]);
        }
        place.moved.assign(place.uses.size(), 0);
        factor.places.push_back(std::move(place));
      }
    for (Factor& factor : m_factors) find_states(factor);
    finish();
  }

  /// Raises the bound until a round gains less than one part in 10^5, `most` rounds at most.
  void tighten(int most = 200) {
    for (int round = 0; round < most; ++round) {
      const double before = start();
      for (std::size_t t = 0; t < m_factors.size(); ++t) move(m_factors[t]);
      finish();
      if (!(start() > before * (1 + 1e-5))) return;
    }
  }

  /// Returns the bound before the first decision.
  [[nodiscard]] double start() const {
    double sum = m_rest[0];
    for (const Factor& factor : m_factors) sum += factor.rest[0][state(factor, {})];
    return sum;
  }
  /// Returns what the decision of a node adds to the bound, if its i-th tensor had the use
  /// `before(i)` in all earlier decisions together, or `never` if it is impossible.
  template <class Before>
  [[nodiscard]] double added(std::size_t node, std::size_t choice, const Before& before) const {
    double sum = m_nodes[node].choices[choice].seconds + m_rest[node + 1] - m_rest[node];
    for (std::size_t i = 0; i < m_nodes[node].tensors.size(); ++i) {
      const Factor& factor = m_factors[m_nodes[node].tensors[i]];
      const std::size_t place = m_places[node][i];
      const Use use = before(i);
      const double after =
          factor.rest[place + 1][state(factor, both(use, m_nodes[node].choices[choice].uses[i]))];
      if (after == FormPaths::never) return FormPaths::never;
      sum += after - factor.rest[place][state(factor, use)];
    }
    return sum;
  }
  [[nodiscard]] const Node& node(std::size_t n) const { return m_nodes[n]; }
  /// Returns two uses of one tensor together.
  [[nodiscard]] static Use both(const Use& a, const Use& b) {
    return {b.made == none ? a.made : b.made, static_cast<std::uint16_t>(a.needed | b.needed)};
  }

 private:
  /// A node that names a tensor.
  struct Place {
    std::size_t node;
    std::size_t index;                     ///< of the tensor in the node
    std::vector<Use> uses = {};            ///< that its choices have
    std::vector<std::size_t> use_of = {};  ///< by choice
    std::vector<double> moved = {};        ///< by use: seconds that the node has, not the tensor
  };
  /// A tensor.
  struct Factor {
    const FormPaths* paths;
    std::vector<Place> places = {};                     ///< in the order of decisions
    std::vector<std::vector<std::size_t>> states = {};  ///< by decided places: those that occur
    std::vector<std::vector<double>> rest = {};  ///< by decided places and state: the least price
  };

  [[nodiscard]] static std::size_t states(const Factor& factor) {
    return (factor.paths->forms() + 1) << factor.paths->forms();
  }
  [[nodiscard]] static std::size_t state(const Factor& factor, const Use& use) {
    const std::size_t forms = factor.paths->forms();
    return (use.made == none ? forms : use.made) << forms | use.needed;
  }
  [[nodiscard]] static Use use(const Factor& factor, std::size_t state) {
    const std::size_t forms = factor.paths->forms(), made = state >> forms;
    return {made == forms ? none : static_cast<std::uint8_t>(made),
            static_cast<std::uint16_t>(state & ((std::size_t{1} << forms) - 1))};
  }

  static void find_states(Factor& factor) {
    factor.states.assign(factor.places.size() + 1, {});
    factor.states[0] = {state(factor, {})};
    for (std::size_t p = 0; p < factor.places.size(); ++p) {
      std::vector<bool> seen(states(factor));
      for (const std::size_t s : factor.states[p])
        for (const Use& next : factor.places[p].uses) {
          const std::size_t to = state(factor, both(use(factor, s), next));
          if (!seen[to]) factor.states[p + 1].push_back(to);
          seen[to] = true;
        }
    }
  }
  /// Returns, by decided places and state, the least sum of cost(place, use) of the others and of
  /// the price.
  template <class Cost>
  static std::vector<std::vector<double>> backwards(const Factor& factor, const Cost& cost) {
    const std::size_t count = factor.places.size();
    std::vector<std::vector<double>> least(count + 1,
                                           std::vector(states(factor), FormPaths::never));
    for (const std::size_t s : factor.states[count]) {
      const Use all = use(factor, s);
      least[count][s] = all.made == none ? factor.paths->price(all.needed)
                                         : factor.paths->price(all.made, all.needed);
    }
    for (std::size_t p = count; p-- > 0;)
      for (const std::size_t s : factor.states[p])
        for (std::size_t u = 0; u < factor.places[p].uses.size(); ++u)
          least[p][s] = std::min(
              least[p][s],
              cost(p, u) +
                  least[p + 1][state(factor, both(use(factor, s), factor.places[p].uses[u]))]);
    return least;
  }

  /// Moves amounts between a tensor and its nodes, so that each node gets an equal part of what
  /// they cost together.
  void move(Factor& factor) {
    const std::size_t count = factor.places.size();
    if (count == 0) return;
    std::vector<std::vector<double>> own;  // of the nodes, without this tensor
    for (const Place& place : factor.places) {
      std::vector<double>& costs = own.emplace_back(place.uses.size(), FormPaths::never);
      for (std::size_t c = 0; c < place.use_of.size(); ++c)
        costs[place.use_of[c]] =
            std::min(costs[place.use_of[c]], seconds(place.node, c, place.index));
    }
    const auto behind = backwards(factor, [&](std::size_t p, std::size_t u) { return own[p][u]; });
    std::vector<double> ahead(states(factor), FormPaths::never);
    ahead[state(factor, {})] = 0;
    for (std::size_t p = 0; p < count; ++p) {
      Place& place = factor.places[p];
      std::vector<double> next(states(factor), FormPaths::never);
      std::vector<double> together(place.uses.size(), FormPaths::never);
      for (const std::size_t s : factor.states[p]) {
        if (ahead[s] == FormPaths::never) continue;
        for (std::size_t u = 0; u < place.uses.size(); ++u) {
          const std::size_t to = state(factor, both(use(factor, s), place.uses[u]));
          const double here = ahead[s] + own[p][u];
          next[to] = std::min(next[to], here);
          together[u] = std::min(together[u], here + behind[p + 1][to]);
        }
      }
      for (std::size_t u = 0; u < place.uses.size(); ++u)
        place.moved[u] = together[u] == FormPaths::never
                             ? FormPaths::never
                             : together[u] / static_cast<double>(count) - own[p][u];
      ahead = std::move(next);
    }
  }
  /// Returns the seconds of a choice with what its tensors have moved to it, but for one.
  [[nodiscard]] double seconds(std::size_t node, std::size_t choice, std::size_t without) const {
    double sum = m_nodes[node].choices[choice].seconds;
    for (std::size_t i = 0; i < m_nodes[node].tensors.size(); ++i) {
      if (i == without) continue;
      const Place& place = m_factors[m_nodes[node].tensors[i]].places[m_places[node][i]];
      sum += place.moved[place.use_of[choice]];
    }
    return sum;
  }
  /// Computes the tables of the bound from what was moved.
  void finish() {
    m_rest.assign(m_nodes.size() + 1, 0);
    for (std::size_t n = m_nodes.size(); n-- > 0;) {
      double least = FormPaths::never;
      for (std::size_t c = 0; c < m_nodes[n].choices.size(); ++c)
        least = std::min(least, seconds(n, c, m_nodes[n].tensors.size()));
      m_rest[n] = m_rest[n + 1] + least;
    }
    for (Factor& factor : m_factors)
      factor.rest = backwards(factor, [&](std::size_t p, std::size_t u) {
        const double moved = factor.places[p].moved[u];
        return moved == FormPaths::never ? moved : -moved;
      });
  }

  std::vector<Node> m_nodes;
  std::vector<Factor> m_factors;                   ///< by tensor
  std::vector<std::vector<std::size_t>> m_places;  ///< by node and tensor: its place there
  std::vector<double> m_rest;                      ///< by node: of it and those behind it
};

}  // namespace heddle::inline v0::systems::impl
