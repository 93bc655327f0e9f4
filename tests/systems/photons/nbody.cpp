// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4

// The gravity of example 40 over ranks against Ewald's sums, the mesh of one process and one rank.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/layout/share.hpp>

#include "../../../examples/40_nbody/gravity.hpp"
#include "support/ewald.hpp"
#include "support/particle_mesh.hpp"

namespace test_nbody {

namespace hd = heddle;
using hd::test::Particles;
using hd::test::Vector3;

namespace {

void transform_lines(std::complex<double>* data, const nbody::Lines& lines, int sign) {
  for (std::size_t line = 0; line < lines.lines; ++line)
    hd::test::transform(data + line * lines.apart, lines.stride, lines.count, sign);
}

hd::Share share_of(std::size_t count, const hd::Communicator& comm) {
  return hd::even_share(count, static_cast<std::size_t>(comm.size()),
                        static_cast<std::size_t>(+comm.rank()));
}

/// Returns the vectors of all ranks by number, on each rank; `mine` has a number each.
std::vector<Vector3> joined(std::size_t count, const std::vector<std::size_t>& numbers,
                            const std::vector<Vector3>& mine, const hd::Communicator& comm) {
  const Kokkos::View<double* [3], Kokkos::LayoutRight, Kokkos::HostSpace> all("joined", count);
  for (std::size_t i = 0; i < mine.size(); ++i)
    for (std::size_t d = 0; d < 3; ++d) all(numbers[i], d) = mine[i][d];
  hd::all_reduce(Kokkos::DefaultHostExecutionSpace{}, all, hd::Sum{}, comm);
  std::vector<Vector3> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back({all(i, 0), all(i, 1), all(i, 2)});
  return result;
}

struct Forces {
  std::vector<Vector3> forces;  ///< by number of the particle, of all ranks
  nbody::Interactions interactions;
};

/// Computes the forces twice, so that the second time the particles are cut by their work.
Forces forces_on(const Particles& particles, const nbody::Splitting& splitting,
                 const hd::Communicator& comm) {
  nbody::Gravity gravity(comm, splitting, 0, transform_lines);
  std::vector<nbody::Body> bodies;
  const hd::Share share = share_of(particles.size(), comm);
  for (std::size_t i = share.first; i < share.end(); ++i)
    bodies.push_back({.place = particles.places[i],
                      .mass = particles.masses[i],
                      .number = static_cast<std::int64_t>(i)});
  for (int round = 0; round < 2; ++round) gravity.compute(bodies);
  std::vector<std::size_t> numbers;
  std::vector<Vector3> mine;
  for (const nbody::Body& body : bodies) {
    numbers.push_back(static_cast<std::size_t>(body.number));
    mine.push_back({});
    hd::test::add_to(mine.back(), body.pull, body.mass);
  }
  return {joined(particles.size(), numbers, mine, comm), gravity.interactions()};
}

/// Returns the largest difference over the largest length.
double difference(const std::vector<Vector3>& one, const std::vector<Vector3>& other) {
  double most = 0, length = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const Vector3 off = hd::test::minus(one[i], other[i]);
    most = std::max(most, std::sqrt(hd::test::dot(off, off)));
    length = std::max(length, std::sqrt(hd::test::dot(other[i], other[i])));
  }
  return most / length;
}

}  // namespace

TEST_CASE("the mesh over ranks computes what the mesh of one process does") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const std::size_t side : {std::size_t{8}, std::size_t{16}})
    for (const int meshes : {1, 2}) {
      const Particles particles = hd::test::random_particles(101, side, meshes == 1 ? 0 : 3);
      std::vector<Vector3> expected = hd::test::ParticleMesh(side, 1.25, meshes).forces(particles);
      nbody::FarMesh mesh(comm, side, 1.25, meshes, transform_lines);
      const hd::Share share = share_of(particles.size(), comm);
      Particles mine;
      std::vector<std::size_t> numbers;
      for (std::size_t i = share.first; i < share.end(); ++i) {
        mine.places.push_back(particles.places[i]);
        mine.masses.push_back(particles.masses[i]);
        numbers.push_back(i);
      }
      std::vector<Vector3> pulls = joined(particles.size(), numbers, mesh.pulls(mine), comm);
      for (std::size_t i = 0; i < pulls.size(); ++i)
        for (double& x : pulls[i]) x *= particles.masses[i];
      CHECK(difference(pulls, expected) < 1e-12);
    }
}

TEST_CASE("the forces over ranks are those of Ewald's sums") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const std::uint64_t seed : {1, 2}) {
    const Particles particles = hd::test::random_particles(64, seed);
    const auto exact = hd::test::ewald_forces(particles);
    for (const bool tree : {false, true}) {
      nbody::Splitting splitting;
      if (tree) splitting.theta = 0.5, splitting.order = 8, splitting.leaf_size = 1;
      const Forces result = forces_on(particles, splitting, comm);
      const auto errors = hd::test::force_errors(result.forces, exact);
      const double factor = tree ? 2 : 1;
      CHECK(errors.global <= factor * 0.005);
      CHECK(errors.rms <= factor * 0.015);
      CHECK(errors.largest <= factor * 0.05);
      CHECK(hd::test::net_force(result.forces) < 1e-12);
      CHECK(result.interactions.covered == 64 * 64);
      CHECK((result.interactions.nodes > 0) == tree);
    }
  }
}

TEST_CASE("any number of ranks computes the forces of one") {
  const hd::Communicator comm(MPI_COMM_WORLD), alone(MPI_COMM_SELF);
  for (const std::size_t clusters : {std::size_t{0}, std::size_t{3}}) {
    Particles particles = hd::test::random_particles(307, 5, clusters);
    particles.places[1] = particles.places[0];  // two at one point pull nothing on each other
    const nbody::Splitting splitting{.theta = 0.5, .leaf_size = 4};
    const Forces one = forces_on(particles, splitting, alone);
    const Forces all = forces_on(particles, splitting, comm);
    CHECK(difference(all.forces, one.forces) < 1e-10);
    CHECK(all.interactions.pairs == one.interactions.pairs);
    CHECK(all.interactions.nodes == one.interactions.nodes);
    CHECK(all.interactions.covered == 307 * 307);
  }
  // All in one cube: other ranks have none.
  Particles cluster = hd::test::random_particles(20, 6);
  for (Vector3& at : cluster.places)
    for (double& x : at) x = 0.01 + 0.01 * x;
  const Forces one = forces_on(cluster, {}, alone), all = forces_on(cluster, {}, comm);
  CHECK(difference(all.forces, one.forces) < 1e-10);
  CHECK(all.interactions.covered == 400);
}

TEST_CASE("the polynomial of the pair kernel is near the window") {
  const double rs = 0.04;
  const nbody::NearPotential pull(rs);
  for (const double cut : {4.5 * rs, 6 * rs}) {
    const nbody::PairWindow window(rs, cut);
    double worst = 0;
    for (int i = 1; i <= 1000; ++i) {
      const double r = cut * i / 1000, t = 2 * r / cut - 1;
      double value = 0;
      for (int power = nbody::PairWindow::degree; power >= 0; --power)
        value = value * t + window.coefficients[power];
      worst = std::max(worst, std::abs(value - pull(1, r) * r * r * r));
    }
    CHECK(worst < 1e-4);
  }
}

}  // namespace test_nbody
