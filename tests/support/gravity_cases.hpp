// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the tests and the report of gravity by mesh, trees and pairs compute.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <span>
#include <vector>

#include <heddle/pattern/fork_join.hpp>
#include <heddle/systems/photons/curve_cut.hpp>
#include <heddle/systems/photons/dual_traversal.hpp>
#include <heddle/systems/photons/grid_curve.hpp>

#include "../../examples/40_nbody/trees.hpp"
#include "support/curve_surface.hpp"
#include "support/ewald.hpp"
#include "support/particle_mesh.hpp"

namespace heddle::test {

using nbody::Forest;
using nbody::imbalance;
using nbody::key_of;
using nbody::NearForces;
using nbody::NearPairs;
using nbody::NearPotential;
using nbody::Splitting;
using nbody::TaylorTerms;

/// Returns the trees of pieces of about equal weight.
[[nodiscard]] inline Forest forest_of(const Particles& particles, std::span<const double> weights,
                                      int pieces, std::size_t leaf_size) {
  std::vector<std::uint64_t> keys;
  for (const Vector3& at : particles.places) keys.push_back(key_of(at));
  return Forest(particles, keys, systems::cut_curve(keys, weights, pieces), leaf_size);
}

/// What gravity() returns.
struct Gravity {
  std::vector<Vector3> forces;
  std::vector<double> work;        ///< near interactions by particle
  std::vector<double> piece_work;  ///< the same by piece
  std::uint64_t covered = 0;       ///< pairs of particles that the traversals covered
  std::uint64_t far_pairs = 0;     ///< pairs of nodes that the trees approximated
};

/// Computes the forces on all particles: on one path of a fork the far part, on the others the near
/// part of one piece each, from the trees of all pieces.
[[nodiscard]] inline Gravity gravity(const Particles& particles, const Splitting& splitting,
                                     std::span<const double> weights, int pieces = 1,
                                     int threads = 1) {
  const Forest forest = forest_of(particles, weights, pieces, splitting.leaf_size);
  const auto far_part = [&] {
    Gravity part;
    part.forces = ParticleMesh(splitting.mesh, splitting.rs, splitting.meshes).forces(particles);
    part.work.resize(particles.size());
    return part;
  };
  const auto near_part = [&](std::size_t target) {
    NearForces near(particles, forest, splitting);
    for (const std::size_t source : forest.roots)
      if (target != Forest::none && source != Forest::none)
        systems::dual_traversal(target, source, near);
    near.finish();
    Gravity part{near.fields(), near.work(), {}, near.covered, near.far_pairs};
    for (std::size_t i = 0; i < particles.size(); ++i)
      for (double& x : part.forces[i]) x *= particles.masses[i];
    part.piece_work.push_back(std::reduce(part.work.begin(), part.work.end()));
    return part;
  };
  const auto add = [&](const std::vector<Gravity>& parts) {
    Gravity sum = parts.front();
    for (const Gravity& part : parts | std::views::drop(1)) {
      for (std::size_t i = 0; i < particles.size(); ++i) {
        add_to(sum.forces[i], part.forces[i]);
        sum.work[i] += part.work[i];
      }
      sum.piece_work.push_back(part.piece_work.front());
      sum.covered += part.covered;
      sum.far_pairs += part.far_pairs;
    }
    return sum;
  };
  return heddle::pattern::fork_join({.threads = threads}, [&](heddle::pattern::Fork& fork) {
    return fork.map(
        std::views::iota(0, pieces + 1),
        [&](heddle::pattern::Fork&, int path) {
          return path == 0 ? far_part()
                           : near_part(forest.roots[static_cast<std::size_t>(path - 1)]);
        },
        add);
  });
}

/// Errors of gravity() against Ewald's sums over several sets of 64 random particles.
struct ErrorsOfSets {
  std::vector<ForceErrors> sets;
  double net_force = 0;         ///< the largest
  std::uint64_t far_pairs = 0;  ///< of all sets
  bool each_pair_once = true;   ///< whether every traversal covered 64^2 pairs

  /// Returns the largest of each error over all sets.
  [[nodiscard]] ForceErrors worst() const {
    ForceErrors most;
    for (const ForceErrors& set : sets) {
      most.global = std::max(most.global, set.global);
      most.rms = std::max(most.rms, set.rms);
      most.largest = std::max(most.largest, set.largest);
    }
    return most;
  }
  /// Returns the number of sets with errors of at most `factor` times 0.5% (global), 1.5% (rms) and
  /// 5% (largest).
  [[nodiscard]] std::size_t within(double factor) const {
    return static_cast<std::size_t>(std::ranges::count_if(sets, [&](const ForceErrors& set) {
      return set.global <= factor * 0.005 && set.rms <= factor * 0.015 &&
             set.largest <= factor * 0.05;
    }));
  }
  /// Returns the mean of the global errors.
  [[nodiscard]] double mean_global() const {
    double sum = 0;
    for (const ForceErrors& set : sets) sum += set.global / static_cast<double>(sets.size());
    return sum;
  }
};

/// Sets of 64 random particles with their exact forces.
class EwaldSets {
 public:
  explicit EwaldSets(std::uint64_t count) {
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
      m_particles.push_back(random_particles(64, seed));
      m_exact.push_back(ewald_forces(m_particles.back()));
    }
  }

  /// Computes the forces in three pieces and compares them.
  [[nodiscard]] ErrorsOfSets errors(const Splitting& splitting) const {
    ErrorsOfSets errors;
    for (std::size_t s = 0; s < m_particles.size(); ++s) {
      const Particles& particles = m_particles[s];
      const Gravity result =
          gravity(particles, splitting, std::vector<double>(particles.size(), 1.0), 3);
      errors.sets.push_back(force_errors(result.forces, m_exact[s]));
      errors.net_force = std::max(errors.net_force, net_force(result.forces));
      errors.far_pairs += result.far_pairs;
      errors.each_pair_once =
          errors.each_pair_once && result.covered == particles.size() * particles.size();
    }
    return errors;
  }

 private:
  std::vector<Particles> m_particles;
  std::vector<std::vector<Vector3>> m_exact;
};

/// The tree of the comparison with Ewald's sums. Leaves of one particle, so that nodes meet at all
/// among so few.
[[nodiscard]] inline Splitting with_tree(Splitting splitting) {
  splitting.theta = 0.5;
  splitting.order = 8;
  splitting.leaf_size = 1;
  return splitting;
}

/// Interactions of a near traversal of `count` particles: pairs of nodes and pairs of particles.
[[nodiscard]] inline double near_interactions(std::size_t count, std::size_t clusters,
                                              double theta) {
  const Particles particles = random_particles(count, 7, clusters);
  const Forest forest = forest_of(particles, std::vector<double>(count, 1.0), 1, 8);
  const Splitting usual;
  NearPairs pairs(forest, usual.cut * usual.rs / static_cast<double>(usual.mesh), theta);
  systems::dual_traversal(forest.roots[0], forest.roots[0], pairs);
  return pairs.covered == count * count ? static_cast<double>(pairs.far_pairs + pairs.exact_pairs)
                                        : -1;  // pairs were lost
}

/// Returns the exponent with which a count grows from `count` particles to 8 times as many: whole
/// levels of an octree, so that its leaves are equally full.
[[nodiscard]] inline double growth(std::size_t count, std::size_t clusters, double theta) {
  return std::log(near_interactions(8 * count, clusters, theta) /
                  near_interactions(count, clusters, theta)) /
         std::log(8.0);
}

/// Returns the same exponent of N log N.
[[nodiscard]] inline double growth_of_n_log_n(std::size_t count) {
  const auto n = static_cast<double>(count);
  return std::log(8 * n * std::log(8 * n) / (n * std::log(n))) / std::log(8.0);
}

/// Returns weights of the cells of a grid with 32^3 cells, by Morton keys: 1 and the number of
/// particles in the cell.
[[nodiscard]] inline std::vector<double> particle_weights(const Particles& particles) {
  const systems::GridCurve<3> morton(systems::CurveKind::morton, 5);
  std::vector<double> weights(morton.size(), 1.0);
  for (const Vector3& at : particles.places) {
    systems::GridCurve<3>::Cell cell{};
    for (std::size_t d = 0; d < 3; ++d) cell[d] = static_cast<std::uint32_t>(32 * at[d]);
    weights[morton.key(cell)] += 1;
  }
  return weights;
}

/// Two curves through the same weighted grid, in the same numbers of pieces.
struct CurveComparison {
  double imbalance = 0;            ///< the largest of Hilbert's
  bool connected = true;           ///< whether all of Hilbert's pieces are connected
  std::size_t hilbert_ghosts = 0;  ///< sum over the numbers of pieces
  std::size_t morton_ghosts = 0;
  int fewer = 0;  ///< in how many of the cuts Hilbert's are fewer
  int cuts = 0;
};

[[nodiscard]] inline CurveComparison compare_curves() {
  CurveComparison both;
  for (const std::size_t clusters : {std::size_t{0}, std::size_t{5}}) {
    const auto weights = particle_weights(random_particles(60'000, 11, clusters));
    for (const int pieces : {3, 5, 7, 23}) {
      const CurvePieces hilbert = cut_grid<3>(systems::CurveKind::hilbert, 5, weights, pieces);
      const CurvePieces morton = cut_grid<3>(systems::CurveKind::morton, 5, weights, pieces);
      both.imbalance = std::max(both.imbalance, hilbert.imbalance);
      both.connected = both.connected && hilbert.components == static_cast<std::size_t>(pieces);
      both.hilbert_ghosts += hilbert.ghosts;
      both.morton_ghosts += morton.ghosts;
      both.fewer += hilbert.ghosts < morton.ghosts;
      ++both.cuts;
    }
  }
  return both;
}

/// How 7 pieces of clustered particles are balanced.
struct Rebalanced {
  double by_count = 0;   ///< work of the heaviest piece over the mean, equally many particles each
  double predicted = 0;  ///< cut by the work of that run, with this work as weights
  double repeated = 0;   ///< work that was then done, after two more cuts by the last work
};

[[nodiscard]] inline Rebalanced rebalance() {
  constexpr int pieces = 7;
  const Particles particles = random_particles(3'000, 3, 4);
  const Splitting splitting{.theta = 0.5, .order = 2};
  std::vector<double> weights(particles.size(), 1.0);
  Rebalanced result;
  for (int round = 0; round < 3; ++round) {
    const Gravity run = gravity(particles, splitting, weights, pieces);
    if (round == 0) {
      result.by_count = imbalance(run.piece_work);
      const Forest forest = forest_of(particles, run.work, pieces, splitting.leaf_size);
      std::vector<double> work;
      for (const std::size_t root : forest.roots) {
        work.push_back(0);
        const systems::CurveNode& items = forest.nodes[root].items;
        for (std::size_t i = items.first; i < items.last; ++i)
          work.back() += run.work[forest.order[i]];
      }
      result.predicted = imbalance(work);
    }
    result.repeated = imbalance(run.piece_work);
    weights = run.work;
  }
  return result;
}

}  // namespace heddle::test
