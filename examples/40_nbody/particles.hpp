// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Vectors, particles in a periodic box of side 1, and random ones.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/random.hpp>

namespace nbody {

using heddle::Random;

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

}  // namespace nbody
