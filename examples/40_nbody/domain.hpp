// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Particles over the ranks: cubes of a coarse grid along a Hilbert curve, cut by measured work,
/// and the copies of other ranks' particles that near forces need.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/photons/curve_cut.hpp>
#include <heddle/systems/photons/grid_curve.hpp>

#include "exchange.hpp"
#include "particles.hpp"
#include "trees.hpp"

namespace nbody {

/// A particle.
struct Body {
  Vector3 place{};  ///< in the box, each coordinate in [0, 1)
  Vector3 speed{};  ///< a^2 dx/dt in an expanding box of scale a
  Vector3 pull{};   ///< the last force over the mass
  double mass = 0;
  double work = 0;  ///< interactions of the last force, a whole number
  std::int64_t number = 0;
};

/// The division of the box into cubes, and of the cubes among ranks. A cube is never divided, so
/// its tree and the order of its sums do not depend on the number of ranks.
class Domain {
 public:
  /// Cubes are at least half as wide as the cut-off of near forces.
  Domain(const heddle::Communicator& comm, double cut) : m_comm(&comm), m_cut(cut) {
    while (m_bits < 6 && cut * (2 << m_bits) <= 2) ++m_bits;
  }

  /// Returns the number of cubes.
  [[nodiscard]] std::size_t cubes() const { return std::size_t{1} << (3 * m_bits); }
  /// Returns the cut of the curve at all cubes.
  [[nodiscard]] heddle::systems::CurveCut cube_cut() const {
    heddle::systems::CurveCut cut;
    for (std::uint64_t cube = 0; cube < cubes(); ++cube)
      cut.begins.push_back(cube << (3 * (key_bits - m_bits)));
    return cut;
  }
  /// Returns the number of particles in each cube, of all ranks.
  [[nodiscard]] const std::vector<std::int64_t>& counts() const { return m_counts; }
  /// Returns true if this rank owns a cube.
  [[nodiscard]] bool owns(std::size_t cube) const { return owner(cube) == here(); }
  /// Returns the work of the busiest rank over the mean, as the weights of the last cut say.
  [[nodiscard]] double imbalance() const { return m_imbalance; }

  /// Sends each particle to the rank of its cube, after a cut by the work of the last force.
  /// Returns this rank's particles in the order of the curve. All ranks call it.
  /// @throws contract_error, on all ranks, if a position is not finite.
  [[nodiscard]] std::vector<Body> divided(const std::vector<Body>& bodies) {
    check(bodies);
    const std::size_t n = cubes();
    const Kokkos::View<double* [2], Kokkos::LayoutRight, Kokkos::HostSpace> cells("nbody::cubes",
                                                                                  n);
    std::vector<std::size_t> cube_of;
    for (const Body& body : bodies) {
      cube_of.push_back(key_of(body.place) >> (3 * (key_bits - m_bits)));
      cells(cube_of.back(), 0) += 1 + body.work;  // whole numbers: the same sum in any order
      cells(cube_of.back(), 1) += 1;
    }
    heddle::all_reduce(Kokkos::DefaultHostExecutionSpace{}, cells, heddle::Sum{}, *m_comm);
    std::vector<std::uint64_t> keys(n);
    std::vector<double> weights(n);
    m_counts.assign(n, 0);
    for (std::size_t cube = 0; cube < n; ++cube) {
      keys[cube] = cube;
      weights[cube] = cells(cube, 0);
      m_counts[cube] = static_cast<std::int64_t>(cells(cube, 1));
    }
    m_cut_of_cubes = heddle::systems::cut_curve(keys, weights, m_comm->size());
    std::vector<double> by_rank(static_cast<std::size_t>(m_comm->size()), 0.0);
    for (std::size_t cube = 0; cube < n; ++cube)
      by_rank[static_cast<std::size_t>(owner(cube))] += weights[cube];
    m_imbalance = nbody::imbalance(by_rank);

    const auto target = [&](std::size_t i) { return static_cast<std::size_t>(owner(cube_of[i])); };
    const auto received = sent<Body>(bodies.size(), [&](std::size_t i, auto&& send) {
      send(target(i), [&](Body& to) { to = bodies[i]; });
    });
    std::vector<Body> mine(received.data(), received.data() + received.size());
    std::ranges::sort(mine, {},
                      [](const Body& body) { return std::pair(key_of(body.place), body.number); });
    return mine;
  }

  /// The particles of this rank's cubes and of all cubes within reach.
  struct WithHalo {
    Particles particles;    ///< in the order of the curve
    std::size_t first = 0;  ///< the first of this rank; the others follow
  };
  /// Returns them. All ranks call it.
  [[nodiscard]] WithHalo with_halo(const std::vector<Body>& bodies) const {
    struct Copy {
      Vector3 place;
      double mass;
    };
    // A cube goes to each rank with a cube in its reach.
    std::vector<std::size_t> ranks;
    std::size_t last_cube = cubes();
    const auto received = sent<Copy>(bodies.size(), [&](std::size_t i, auto&& send) {
      const std::size_t cube = key_of(bodies[i].place) >> (3 * (key_bits - m_bits));
      if (cube != last_cube) {
        last_cube = cube;
        ranks.clear();
        for (const std::size_t other : neighbours(cube))
          if (!owns(other)) ranks.push_back(static_cast<std::size_t>(owner(other)));
        std::ranges::sort(ranks);
        ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      }
      for (const std::size_t rank : ranks)
        send(rank, [&](Copy& to) { to = {bodies[i].place, bodies[i].mass}; });
    });
    // Ranks own intervals of the curve in ascending order, and so did their messages arrive.
    WithHalo all;
    const auto add = [&](const Vector3& place, double mass) {
      all.particles.places.push_back(place);
      all.particles.masses.push_back(mass);
    };
    std::size_t next = 0;
    const auto add_received = [&](bool before) {
      for (; next < received.size(); ++next) {
        const Copy& copy = received(next);
        const std::size_t cube = key_of(copy.place) >> (3 * (key_bits - m_bits));
        if (before && owner(cube) > here()) return;
        add(copy.place, copy.mass);
      }
    };
    add_received(true);
    all.first = all.particles.size();
    for (const Body& body : bodies) add(body.place, body.mass);
    add_received(false);
    return all;
  }

  /// Returns the cubes with particles, itself among them, that have a point nearer than the
  /// cut-off.
  [[nodiscard]] std::vector<std::size_t> neighbours(std::size_t cube) const {
    const heddle::systems::GridCurve<3> curve(heddle::systems::CurveKind::hilbert, m_bits);
    const auto side = static_cast<int>(curve.side());
    const auto here = curve.cell(cube);
    const int reach = std::min(side / 2, static_cast<int>(std::ceil(m_cut * side)));
    std::vector<std::size_t> found;
    const auto last = [&](int d) { return d == reach && 2 * reach == side; };  // -reach again
    for (int x = -reach; x <= reach; ++x)
      for (int y = -reach; y <= reach; ++y)
        for (int z = -reach; z <= reach; ++z) {
          if (last(x) || last(y) || last(z)) continue;
          const std::array<int, 3> step{x, y, z};
          double square = 0;
          heddle::systems::GridCurve<3>::Cell there{};
          for (std::size_t d = 0; d < 3; ++d) {
            const double apart = std::max(0, std::abs(step[d]) - 1) / static_cast<double>(side);
            square += apart * apart;
            there[d] =
                static_cast<std::uint32_t>((static_cast<int>(here[d]) + step[d] + side) % side);
          }
          if (square > m_cut * m_cut) continue;
          const std::size_t other = curve.key(there);
          if (m_counts[other] > 0) found.push_back(other);
        }
    std::ranges::sort(found);
    return found;
  }

 private:
  [[nodiscard]] int owner(std::size_t cube) const { return m_cut_of_cubes.owner(cube); }
  [[nodiscard]] int here() const { return static_cast<int>(+m_comm->rank()); }

  /// Lets `each(i, send)` call send(rank, write) for the i-th of `count` particles. Returns what
  /// the ranks sent to this one, in their order.
  template <class T, class Each>
  [[nodiscard]] Kokkos::View<T*, Kokkos::HostSpace> sent(std::size_t count, Each each) const {
    std::vector<std::size_t> counts(static_cast<std::size_t>(m_comm->size()), 0);
    for (std::size_t i = 0; i < count; ++i)
      each(i, [&](std::size_t rank, auto&&) { ++counts[rank]; });
    std::vector<std::size_t> at(counts.size(), 0);
    for (std::size_t q = 1; q < at.size(); ++q) at[q] = at[q - 1] + counts[q - 1];
    const Kokkos::View<T*, Kokkos::HostSpace> send(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, "nbody::sent"), at.back() + counts.back());
    for (std::size_t i = 0; i < count; ++i)
      each(i, [&](std::size_t rank, auto&& write) { write(send(at[rank]++)); });
    return examples::Exchange(std::move(counts), *m_comm)
        .there(Kokkos::DefaultHostExecutionSpace{}, send);
  }

  void check(const std::vector<Body>& bodies) const {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::int64_t bad = none;
    for (const Body& body : bodies)
      for (const double x : body.place)
        if (!(x >= 0 && x < 1)) bad = std::min(bad, body.number);
    bad = heddle::all_reduce(bad, heddle::Min{}, *m_comm);
    heddle::expects(bad == none, [&] {
      return heddle::ErrorInfo{
          "nbody", heddle::text("the position of particle ", bad, " is no point of the box"),
          "a coordinate is not a number, or a particle has become infinitely fast",
          "take shorter steps (--steps, --dt) or a larger --softening"};
    });
  }

  const heddle::Communicator* m_comm;
  double m_cut;
  int m_bits = 1;
  std::vector<std::int64_t> m_counts;
  heddle::systems::CurveCut m_cut_of_cubes;
  double m_imbalance = 1;
};

}  // namespace nbody
