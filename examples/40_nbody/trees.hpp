// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The near part of gravity in a periodic box: trees on pieces of a Hilbert curve, whose pairs of
/// nodes are dropped, approximated or computed exactly.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include <heddle/systems/photons/curve_cut.hpp>
#include <heddle/systems/photons/curve_tree.hpp>
#include <heddle/systems/photons/dual_traversal.hpp>
#include <heddle/systems/photons/grid_curve.hpp>

#include "near_potential.hpp"
#include "particles.hpp"

namespace nbody {

namespace systems = heddle::systems;

/// How gravity is divided into far, near and exact.
struct Splitting {
  std::size_t mesh = 32;      ///< cells of the mesh in each dimension, at least 8
  double rs = 1.25;           ///< length at which near becomes far, in cells
  double cut = 6;             ///< near pairs beyond this many rs are dropped
  double theta = 0;           ///< opening angle of the trees; at 0 all near pairs are exact
  int meshes = 2;             ///< 2: the mean of two meshes, half a cell apart
  int order = 4;              ///< terms of the trees' expansions: potentials up to this degree
  std::size_t leaf_size = 8;  ///< most particles of a leaf
};

inline constexpr int key_bits = 21;  ///< of each coordinate

/// Returns the place of a particle on the Hilbert curve.
[[nodiscard]] inline std::uint64_t key_of(const Vector3& at) {
  const systems::GridCurve<3> curve(systems::CurveKind::hilbert, key_bits);
  systems::GridCurve<3>::Cell cell{};
  for (std::size_t d = 0; d < 3; ++d)
    cell[d] = static_cast<std::uint32_t>(at[d] * static_cast<double>(curve.side()));
  return curve.key(cell);
}

/// The particles in the order of a curve, in pieces that have a tree each.
struct Forest {
  struct Node {
    Vector3 centre{};  ///< of mass
    double mass = 0;
    double radius = 0;         ///< the largest distance of a particle from the centre
    systems::CurveNode items;  ///< numbers in `order`, and of nodes of the forest
  };

  std::vector<std::size_t> order;  ///< the particles by their keys
  std::vector<Node> nodes;
  std::vector<std::size_t> roots;  ///< by piece

  static constexpr std::size_t none = SIZE_MAX;  ///< the root of a piece without particles

  /// Makes a tree of each piece of `cut`. `keys` are the particles', by key_of().
  Forest(const Particles& particles, std::span<const std::uint64_t> keys,
         const systems::CurveCut& cut, std::size_t leaf_size) {
    order.resize(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(keys[i], i); });
    std::vector<std::uint64_t> sorted;
    for (const std::size_t i : order) sorted.push_back(keys[i]);
    std::size_t first = 0;
    for (std::size_t p = 0; p < cut.begins.size(); ++p) {
      std::size_t last = first;
      while (last < sorted.size() && cut.owner(sorted[last]) == static_cast<int>(p)) ++last;
      if (first == last)
        roots.push_back(none);
      else
        add_tree(particles,
                 systems::CurveTree(std::span(sorted).subspan(first, last - first), 3, key_bits,
                                    leaf_size),
                 first);
      first = last;
    }
  }

 private:
  void add_tree(const Particles& particles, const systems::CurveTree& tree,
                std::size_t first_item) {
    const std::size_t first_node = nodes.size();
    roots.push_back(first_node);
    for (systems::CurveNode items : tree.nodes()) {
      items.first += first_item;
      items.last += first_item;
      items.first_child += first_node;
      Node node{.items = items};
      for (std::size_t at = items.first; at < items.last; ++at) {
        const double mass = particles.masses[order[at]];
        node.mass += mass;
        add_to(node.centre, particles.places[order[at]], mass);
      }
      for (double& x : node.centre) x /= node.mass;
      for (std::size_t at = items.first; at < items.last; ++at) {
        const Vector3 off = minus(particles.places[order[at]], node.centre);
        node.radius = std::max(node.radius, std::sqrt(dot(off, off)));
      }
      nodes.push_back(node);
    }
  }
};

/// The rule of a near traversal, which only counts.
class NearPairs {
 public:
  NearPairs(const Forest& forest, double cut, double theta)
      : m_forest(&forest), m_cut(cut), m_theta(theta) {}

  std::uint64_t covered = 0;      ///< pairs of particles in all pairs of nodes that ended
  std::uint64_t far_pairs = 0;    ///< pairs of nodes that were approximated
  std::uint64_t exact_pairs = 0;  ///< pairs of particles that were computed

  /// Says the same for (a, b) and (b, a), so momentum is conserved.
  systems::PairStep decide(std::size_t a, std::size_t b) {
    const Forest::Node& one = m_forest->nodes[a];
    const Forest::Node& other = m_forest->nodes[b];
    const std::uint64_t pairs = one.items.size() * other.items.size();
    const Vector3 r = nearest_image(one.centre, other.centre);
    const double distance = std::sqrt(dot(r, r)), radii = one.radius + other.radius;
    if (pairs == 0 || distance - radii > m_cut) {
      covered += pairs;
      return systems::PairStep::drop;
    }
    // The second condition: all pairs of particles have the same nearest image.
    if (radii < m_theta * distance && distance + radii < 0.5) {
      covered += pairs;
      return systems::PairStep::far;
    }
    if (one.items.is_leaf() && other.items.is_leaf()) {
      covered += pairs;
      return systems::PairStep::exact;
    }
    if (other.items.is_leaf()) return systems::PairStep::open_first;
    if (one.items.is_leaf()) return systems::PairStep::open_second;
    if (one.radius == other.radius) return systems::PairStep::open_both;
    return one.radius > other.radius ? systems::PairStep::open_first
                                     : systems::PairStep::open_second;
  }
  [[nodiscard]] auto children(std::size_t node) const {
    const systems::CurveNode& items = m_forest->nodes[node].items;
    return std::views::iota(items.first_child, items.first_child + items.children);
  }
  void far(std::size_t, std::size_t) { ++far_pairs; }
  void exact(std::size_t a, std::size_t b) {
    exact_pairs += m_forest->nodes[a].items.size() * m_forest->nodes[b].items.size();
  }

 protected:
  const Forest* m_forest;
  double m_cut;
  double m_theta;
};

/// The rule that computes the near forces on the particles of the first nodes.
class NearForces : public NearPairs {
 public:
  NearForces(const Particles& particles, const Forest& forest, const Splitting& splitting)
      : NearPairs(forest, splitting.cut * splitting.rs / static_cast<double>(splitting.mesh),
                  splitting.theta),
        m_particles(&particles),
        m_pull(splitting.rs / static_cast<double>(splitting.mesh)),
        m_terms(splitting.order),
        m_fields(particles.size()),
        m_work(particles.size()),
        m_moments(forest.nodes.size() * m_terms.size()),
        m_local(forest.nodes.size() * m_terms.size()),
        m_far_of(forest.nodes.size()) {
    std::vector<double> powers(m_terms.size());
    for (std::size_t n = 0; n < forest.nodes.size(); ++n)
      for_each_item(n, [&](std::size_t item, const Vector3& off) {
        m_terms.powers(off, powers);
        for (std::size_t t = 0; t < powers.size(); ++t)
          m_moments[n * powers.size() + t] += particles.masses[item] * powers[t];
      });
  }

  /// Adds the expansion of b's masses to the one of a's potential. All terms are derivatives of
  /// the potential up to one degree, so what a and b do to each other sums to 0.
  void far(std::size_t a, std::size_t b) {
    NearPairs::far(a, b);
    const Vector3 r = nearest_image(m_forest->nodes[a].centre, m_forest->nodes[b].centre);
    const std::size_t count = m_terms.size();
    m_terms.derivatives(r, m_pull, m_derivatives);
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t n = 0; n < count; ++n)
        if (const std::size_t sum = m_terms.sum(k, n); sum < count)
          m_local[a * count + k] += m_derivatives[sum] * m_moments[b * count + n];
    ++m_far_of[a];
  }

  void exact(std::size_t a, std::size_t b) {
    NearPairs::exact(a, b);
    const systems::CurveNode& to = m_forest->nodes[a].items;
    const systems::CurveNode& from = m_forest->nodes[b].items;
    for (std::size_t i = to.first; i < to.last; ++i)
      for (std::size_t j = from.first; j < from.last; ++j) {
        if (i == j) continue;
        const std::size_t target = m_forest->order[i], source = m_forest->order[j];
        const Vector3 r = nearest_image(m_particles->places[target], m_particles->places[source]);
        const double distance = std::sqrt(dot(r, r));
        if (distance > m_cut) continue;
        add_to(m_fields[target], r, m_particles->masses[source] * m_pull(1, distance));
        ++m_work[target];
      }
  }

  /// Takes the expansions of nodes to their particles.
  void finish() {
    const std::size_t count = m_terms.size();
    std::vector<double> powers(count);
    for (std::size_t n = 0; n < m_far_of.size(); ++n) {
      if (m_far_of[n] == 0) continue;
      for_each_item(n, [&](std::size_t item, const Vector3& off) {
        m_terms.powers({-off[0], -off[1], -off[2]}, powers);
        for (std::size_t d = 0; d < 3; ++d)
          for (std::size_t k = 0; k < count; ++k)
            if (const std::size_t sum = m_terms.raised(k, d); sum < count)
              m_fields[item][d] -= powers[k] * m_local[n * count + sum];
        m_work[item] += m_far_of[n] / static_cast<double>(m_forest->nodes[n].items.size());
      });
    }
  }

  [[nodiscard]] const std::vector<Vector3>& fields() const { return m_fields; }
  /// Interactions by particle; what a node shares is divided equally.
  [[nodiscard]] const std::vector<double>& work() const { return m_work; }

 private:
  /// Calls `visit(particle, its place from the node's centre)`.
  template <class Visit>
  void for_each_item(std::size_t node, Visit visit) const {
    const Forest::Node& parent = m_forest->nodes[node];
    for (std::size_t i = parent.items.first; i < parent.items.last; ++i) {
      const std::size_t item = m_forest->order[i];
      visit(item, minus(m_particles->places[item], parent.centre));
    }
  }

  const Particles* m_particles;
  NearPotential m_pull;
  TaylorTerms m_terms;
  std::vector<Vector3> m_fields;
  std::vector<double> m_work;
  std::vector<double> m_moments;  // by node and term
  std::vector<double> m_local;    // by node and term
  std::vector<double> m_far_of;   // by node, how many others it has met
  std::vector<double> m_derivatives;
};

/// Returns the largest of the numbers over their mean.
[[nodiscard]] inline double imbalance(const std::vector<double>& work) {
  return std::ranges::max(work) * static_cast<double>(work.size()) /
         std::reduce(work.begin(), work.end());
}

}  // namespace nbody
