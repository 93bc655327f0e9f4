// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Particles in a periodic box of side 1, their forces of gravity by Ewald's sums (G = 1), and the
/// errors of other forces against these.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <heddle/core/random.hpp>

namespace heddle::test {

using Vector3 = std::array<double, 3>;

[[nodiscard]] inline double dot(const Vector3& a, const Vector3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
inline void add_to(Vector3& sum, const Vector3& v, double factor = 1) {
  for (std::size_t d = 0; d < 3; ++d) sum[d] += factor * v[d];
}
[[nodiscard]] inline Vector3 minus(const Vector3& a, const Vector3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

/// Returns the shortest of the vectors from `from` to the periodic images of `to`.
[[nodiscard]] inline Vector3 nearest_image(const Vector3& from, const Vector3& to) {
  Vector3 r = minus(to, from);
  for (double& x : r) x -= std::round(x);
  return r;
}

struct Particles {
  std::vector<Vector3> places;  ///< each coordinate in [0, 1)
  std::vector<double> masses;

  [[nodiscard]] std::size_t size() const { return places.size(); }
};

/// Returns particles of masses 1 to 2. `clusters` of 0 spreads them evenly. Otherwise most of them
/// gather around as many random centres, with a density that rises towards these.
[[nodiscard]] inline Particles random_particles(std::size_t count, std::uint64_t seed,
                                                std::size_t clusters = 0) {
  const Random place(seed, "places"), mass(seed, "masses"), centre(seed, "centres");
  Particles particles;
  for (std::size_t i = 0; i < count; ++i) {
    Vector3 at;
    for (std::size_t d = 0; d < 3; ++d) at[d] = place.uniform(4 * i + d);
    if (clusters > 0 && i % 8 != 0) {
      const double width = 0.2 * place.uniform(4 * i + 3);
      for (std::size_t d = 0; d < 3; ++d) {
        at[d] = centre.uniform(3 * (i % clusters) + d) + width * (at[d] - 0.5);
        at[d] -= std::floor(at[d]);
        if (at[d] >= 1) at[d] = 0;
      }
    }
    particles.places.push_back(at);
    particles.masses.push_back(1 + mass.uniform(i));
  }
  return particles;
}

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

/// Returns the length of the sum of all forces over the sum of their lengths: 0 if momentum is
/// conserved.
[[nodiscard]] inline double net_force(const std::vector<Vector3>& forces) {
  Vector3 sum{};
  double lengths = 0;
  for (const Vector3& force : forces) {
    add_to(sum, force);
    lengths += std::sqrt(dot(force, force));
  }
  return std::sqrt(dot(sum, sum)) / lengths;
}

}  // namespace heddle::test
