// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Forces of gravity in a periodic box of side 1 by Ewald's sums (G = 1), and the errors of other
/// forces against these.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "../../examples/40_nbody/particles.hpp"

namespace heddle::test {

using nbody::add_to;
using nbody::dot;
using nbody::minus;
using nbody::nearest_image;
using nbody::net_force;
using nbody::Particles;
using nbody::random_particles;
using nbody::Vector3;

/// Returns the force on each particle from all others and from all periodic images, with a uniform
/// background that makes the mean density 0. `alpha` divides the sum between space and waves, and
/// the result does not depend on it while both sums converge, as they do for 2 to 3: what is left
/// out is below 1e-10 of a term.
[[nodiscard]] inline std::vector<Vector3> ewald_forces(const Particles& particles,
                                                       double alpha = 2) {
  struct Wave {
    Vector3 k;
    double weight;
  };
  std::vector<Wave> waves;
  constexpr int reach = 7;
  for (int x = -reach; x <= reach; ++x)
    for (int y = -reach; y <= reach; ++y)
      for (int z = -reach; z <= reach; ++z) {
        constexpr double turn = 2 * std::numbers::pi;
        const Vector3 k{turn * x, turn * y, turn * z};
        const double square = dot(k, k);
        const double weight = std::exp(-square / (4 * alpha * alpha));
        // k and -k give the same term.
        if (std::array{x, y, z} > std::array{0, 0, 0} && weight > 1e-16)
          waves.push_back({k, 2 * 4 * std::numbers::pi * weight / square});
      }
  std::vector<Vector3> forces(particles.size());
  for (std::size_t i = 0; i < particles.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Vector3 r = nearest_image(particles.places[i], particles.places[j]);
      Vector3 field{};
      for (int x = -2; x <= 2; ++x)
        for (int y = -2; y <= 2; ++y)
          for (int z = -2; z <= 2; ++z) {
            const Vector3 image{r[0] + x, r[1] + y, r[2] + z};
            const double d = std::sqrt(dot(image, image));
            if (alpha * d > 6) continue;
            add_to(field, image,
                   (std::erfc(alpha * d) / d +
                    2 * alpha * std::numbers::inv_sqrtpi * std::exp(-alpha * alpha * d * d)) /
                       (d * d));
          }
      for (const Wave& wave : waves) add_to(field, wave.k, wave.weight * std::sin(dot(wave.k, r)));
      const double masses = particles.masses[i] * particles.masses[j];
      add_to(forces[i], field, masses);
      add_to(forces[j], field, -masses);
    }
  return forces;
}

/// How far forces are from the exact ones.
struct ForceErrors {
  double global = 0;   ///< sqrt(sum of squared errors / sum of squared exact forces)
  double rms = 0;      ///< root of the mean of the squared relative errors
  double largest = 0;  ///< the largest relative error
};

[[nodiscard]] inline ForceErrors force_errors(const std::vector<Vector3>& forces,
                                              const std::vector<Vector3>& exact) {
  ForceErrors errors;
  double wrong = 0, all = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const Vector3 off = minus(forces[i], exact[i]);
    const double square = dot(exact[i], exact[i]);
    wrong += dot(off, off);
    all += square;
    errors.rms += dot(off, off) / square / static_cast<double>(exact.size());
    errors.largest = std::max(errors.largest, std::sqrt(dot(off, off) / square));
  }
  errors.global = std::sqrt(wrong / all);
  errors.rms = std::sqrt(errors.rms);
  return errors;
}

}  // namespace heddle::test
