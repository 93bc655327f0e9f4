// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Gravity by a mesh, trees and direct pairs against Ewald's sums; momentum, growth and balance.

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

#include "support/cases.hpp"
#include "support/ewald.hpp"
#include "support/gravity_cases.hpp"
#include "support/particle_mesh.hpp"

namespace test_tree_gravity {

using namespace heddle;
using test::Vector3;

TEST_CASE("Ewald's sums do not depend on how they divide the work") {
  const test::Particles particles = test::random_particles(24, 1);
  const auto exact = test::ewald_forces(particles);
  CHECK(test::force_errors(test::ewald_forces(particles, 2.6), exact).largest < 1e-10);
  CHECK(test::net_force(exact) < 1e-14);
  // At half the box the images cancel, and near by the force is Newton's.
  const auto pair = [](double x) {
    return test::ewald_forces({{{0, 0, 0}, {x, 0, 0}}, {1, 1}})[0][0];
  };
  CHECK(std::abs(pair(0.5)) < 1e-10);
  CHECK(std::abs(pair(0.01) * 0.01 * 0.01 - 1) < 1e-5);
}

TEST_CASE("the transform of the mesh is a discrete Fourier transform") {
  constexpr std::size_t count = 16, stride = 3;
  const Random random(2, "values");
  std::vector<std::complex<double>> values(count * stride);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = {random.normal(2 * i), random.normal(2 * i + 1)};
  auto transformed = values;
  test::transform(transformed.data(), stride, count, -1);
  for (std::size_t k = 0; k < count; ++k) {
    std::complex<double> sum = 0;
    for (std::size_t j = 0; j < count; ++j)
      sum += values[j * stride] *
             std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k) / count);
    CHECK(std::abs(sum - transformed[k * stride]) < 1e-12);
  }
}

TEST_CASE("the Taylor series of the near potential converges to it") {
  const test::NearPotential potential(0.04);
  const Vector3 r{0.06, -0.03, 0.05}, off{0.011, 0.007, -0.005};
  const double exact = potential(0, std::hypot(r[0] + off[0], r[1] + off[1], r[2] + off[2]));
  double last = 1;
  for (const int degree : {1, 3, 5, 7, 9}) {
    const test::TaylorTerms terms(degree);
    std::vector<double> powers(terms.size()), derivatives;
    terms.powers(off, powers);
    terms.derivatives(r, potential, derivatives);
    double sum = 0;
    for (std::size_t k = 0; k < terms.size(); ++k) sum += powers[k] * derivatives[k];
    const double error = std::abs(sum / exact - 1);
    CHECK(error < last / 3);
    last = error;
  }
  CHECK(last < 1e-5);
}

TEST_CASE("far and near forces together are those of Ewald") {
  const test::EwaldSets sets(test::cases(4, 40));
  for (const bool tree : {false, true}) {
    double last = 1;
    for (const double rs : {1.0, 1.25, 2.0})
      for (const double cut : {4.5, 6.0}) {
        if (cut < 6 && rs != 1.25) continue;
        const test::Splitting plain{.rs = rs, .cut = cut};
        const auto errors = sets.errors(tree ? test::with_tree(plain) : plain);
        const test::ForceErrors worst = errors.worst();
        INFO(text("rs ", rs, ", cut ", cut, ", tree ", tree, ": ", worst.global, ", ", worst.rms,
                  ", ", worst.largest));
        CHECK(errors.each_pair_once);
        CHECK(errors.net_force < 1e-10);
        CHECK((errors.far_pairs > 0) == tree);
        const double factor = tree ? 2 : 1;
        if (rs >= 1.25) CHECK(worst.global <= factor * 0.005);
        // With the shorter cut, a particle on which the others' pulls nearly cancel sees what is
        // dropped, so the relative errors of single particles have no bar there.
        if (rs >= 1.25 && cut == 6) {
          CHECK(worst.rms <= factor * 0.015);
          CHECK(worst.largest <= factor * 0.05);
        }
        if (cut == 6) {
          CHECK(errors.mean_global() < last);
          last = errors.mean_global();
        }
      }
  }
}

TEST_CASE("trees approximate the direct sum, the better the more terms they have") {
  const test::Particles particles = test::random_particles(600, 3, 4);
  const std::vector<double> weights(particles.size(), 1.0);
  const auto direct = test::gravity(particles, {.meshes = 1}, weights);
  double last = 1;
  for (const int order : {2, 4, 6}) {
    const auto tree =
        test::gravity(particles, {.theta = 0.5, .meshes = 1, .order = order}, weights, 3);
    const double error = test::force_errors(tree.forces, direct.forces).rms;
    CHECK(tree.covered == particles.size() * particles.size());
    CHECK(test::net_force(tree.forces) < 1e-10);
    CHECK(error < last / 2);
    last = error;
  }
  CHECK(last < 0.005);
}

TEST_CASE("threads compute the bits of a serial run") {
  const test::Particles particles = test::random_particles(300, 5, 3);
  const std::vector<double> weights(particles.size(), 1.0);
  const test::Splitting splitting{.mesh = 16, .cut = 4.5, .theta = 0.5};
  const auto serial = test::gravity(particles, splitting, weights, 5);
  const auto threads = test::gravity(particles, splitting, weights, 5, 3);
  CHECK(serial.forces == threads.forces);
  CHECK(serial.work == threads.work);
}

TEST_CASE("interactions grow no faster than N log N, but without trees they do") {
  for (const std::size_t clusters : {std::size_t{0}, std::size_t{5}}) {
    for (const std::size_t count : {std::size_t{2'000}, std::size_t{4'000}})
      CHECK(test::growth(count, clusters, 0.5) <= test::growth_of_n_log_n(count));
    CHECK(test::growth(2'000, clusters, 0) > test::growth_of_n_log_n(2'000) + 0.4);
  }
}

TEST_CASE("a cut by the work of the last step balances clustered particles") {
  const test::Rebalanced result = test::rebalance();
  INFO(text(result.by_count, ", ", result.predicted, ", ", result.repeated));
  CHECK(result.by_count > 1.15);
  CHECK(result.predicted <= 1.05);
  CHECK(result.repeated - 1 < (result.by_count - 1) / 2);  // the trees change with the cut
  const test::CurveComparison curves = test::compare_curves();
  CHECK(curves.imbalance <= 1.05);
  CHECK(curves.connected);
  CHECK(curves.fewer == curves.cuts);
}

}  // namespace test_tree_gravity
