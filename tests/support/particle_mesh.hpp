// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The far part of gravity in a periodic box of side 1, in one process and by another transform
/// than the one of example 40.

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>
#include <numbers>
#include <utility>
#include <vector>

#include "../../examples/40_nbody/mesh_cells.hpp"
#include "support/ewald.hpp"

namespace heddle::test {

/// Replaces values at `first`, `first + stride`, ... (count of them, a power of two) by their
/// discrete Fourier transform, sum of x_j exp(sign 2 pi i j k / count), by radix 2.
inline void transform(std::complex<double>* first, std::size_t stride, std::size_t count,
                      double sign) {
  const auto at = [&](std::size_t i) -> std::complex<double>& { return first[i * stride]; };
  for (std::size_t i = 1, j = 0; i < count; ++i) {
    std::size_t bit = count >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(at(i), at(j));
  }
  for (std::size_t half = 1; half < count; half *= 2)
    for (std::size_t k = 0; k < half; ++k) {
      const auto turn = std::polar(
          1.0, sign * std::numbers::pi * static_cast<double>(k) / static_cast<double>(half));
      for (std::size_t i = k; i < count; i += 2 * half) {
        const auto odd = turn * at(i + half);
        at(i + half) = at(i) - odd;
        at(i) += odd;
      }
    }
}

/// A mesh of side^3 cells, or two of them that are half a cell apart. The mean of two meshes is
/// free of the largest errors of one, which depend on the place of a pair in its cells.
class ParticleMesh {
 public:
  /// `side` is a power of two; `rs` is the length of the splitting, in cells.
  ParticleMesh(std::size_t side, double rs, int meshes)
      : m_side(side), m_rs(rs / static_cast<double>(side)), m_meshes(meshes) {}

  /// Returns the far force on each particle, the mean of the meshes.
  [[nodiscard]] std::vector<Vector3> forces(Particles particles) const {
    std::vector<Vector3> sum(particles.size());
    for (int mesh = 0; mesh < m_meshes; ++mesh) {
      const std::vector<Vector3> forces = forces_of_one(particles);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        add_to(sum[i], forces[i], 1.0 / m_meshes);
        for (double& x : particles.places[i]) {
          x += 1.0 / static_cast<double>(m_side) / m_meshes;
          if (x >= 1) x -= 1;
        }
      }
    }
    return sum;
  }

 private:
  using Place = nbody::MeshPlace;

  /// Returns the far force on each particle: masses spread on the mesh by cloud in cell, the
  /// potential -4 pi rho / k^2 exp(-k^2 rs^2) with the window of the cloud taken out twice, its
  /// gradient by 4 points, and cloud in cell back to the particles.
  [[nodiscard]] std::vector<Vector3> forces_of_one(const Particles& particles) const {
    const double cells = static_cast<double>(m_side * m_side * m_side);
    std::vector<std::complex<double>> mesh(m_side * m_side * m_side);
    for (std::size_t i = 0; i < particles.size(); ++i)
      nbody::for_each_cell(particles.places[i], m_side, [&](const Place& at, double share) {
        mesh[number(at)] += particles.masses[i] * share * cells;
      });
    transform_all(mesh, -1);
    for_each_place(
        [&](const Place& at) { mesh[number(at)] *= nbody::green(at, m_side, m_rs) / cells; });
    transform_all(mesh, 1);
    std::vector<Vector3> pull(mesh.size());
    for_each_place([&](const Place& at) {
      for (std::size_t d = 0; d < 3; ++d) {
        const auto potential = [&](std::size_t step) {
          Place there = at;
          there[d] = (at[d] + step) % m_side;
          return mesh[number(there)].real();
        };
        pull[number(at)][d] = nbody::slope(potential(m_side - 2), potential(m_side - 1),
                                           potential(1), potential(2), m_side);
      }
    });
    std::vector<Vector3> forces(particles.size());
    for (std::size_t i = 0; i < particles.size(); ++i)
      nbody::for_each_cell(particles.places[i], m_side, [&](const Place& at, double share) {
        add_to(forces[i], pull[number(at)], particles.masses[i] * share);
      });
    return forces;
  }

  [[nodiscard]] std::size_t number(const Place& at) const {
    return (at[0] * m_side + at[1]) * m_side + at[2];
  }

  template <class Visit>
  void for_each_place(Visit visit) const {
    for (std::size_t x = 0; x < m_side; ++x)
      for (std::size_t y = 0; y < m_side; ++y)
        for (std::size_t z = 0; z < m_side; ++z) visit(Place{x, y, z});
  }

  void transform_all(std::vector<std::complex<double>>& mesh, double sign) const {
    const auto transform_lines = [&](auto first, std::size_t stride) {
      for (std::size_t a = 0; a < m_side; ++a)
        for (std::size_t b = 0; b < m_side; ++b)
          transform(&mesh[number(first(a, b))], stride, m_side, sign);
    };
    transform_lines([](std::size_t a, std::size_t b) { return Place{a, b, 0}; }, 1);
    transform_lines([](std::size_t a, std::size_t b) { return Place{a, 0, b}; }, m_side);
    transform_lines([](std::size_t a, std::size_t b) { return Place{0, a, b}; }, m_side * m_side);
  }

  std::size_t m_side;
  double m_rs;
  int m_meshes;
};

}  // namespace heddle::test
