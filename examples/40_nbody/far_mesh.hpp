// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The far part of gravity over the ranks: a particle mesh in slabs, whose Fourier transform is
/// made of transforms of local lines and of two transposes.

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/redistribute.hpp>
#include <heddle/tensor/sharded.hpp>

#include "exchange.hpp"
#include "mesh_cells.hpp"
#include "particles.hpp"

namespace nbody {

/// Lines of `count` values each. The values of a line are `stride` apart, and the lines `apart`.
struct Lines {
  std::size_t count, stride, lines, apart;
  friend auto operator<=>(const Lines&, const Lines&) = default;
};

/// Replaces each line from `data` on by its discrete Fourier transform, sum of
/// x_j exp(sign 2 pi i j k / count).
using TransformLines = std::function<void(std::complex<double>* data, const Lines&, int sign)>;

/// A mesh of side^3 cells over the ranks of a communicator, or two of them that are half a cell
/// apart. The mean of two meshes is free of the largest errors of one, which depend on the place of
/// a pair in its cells. Both are one complex mesh: the potential is real where the density is.
class FarMesh {
 public:
  using Complex = Kokkos::complex<double>;
  using Exec = Kokkos::DefaultHostExecutionSpace;

  static constexpr std::size_t most_side = 1290;  ///< the numbers of cells have 31 bits
  static_assert(most_side * most_side * most_side <= INT32_MAX &&
                (most_side + 1) * (most_side + 1) * (most_side + 1) > INT32_MAX);

  /// `rs` is the length of the splitting, in cells. `transform` must take lines of `side` values.
  /// `side` must be at most most_side.
  FarMesh(const heddle::Communicator& comm, std::size_t side, double rs, int meshes,
          TransformLines transform)
      : m_comm(&comm),
        m_side(side),
        m_rs(rs / static_cast<double>(side)),
        m_meshes(meshes),
        m_transform(std::move(transform)),
        m_slabs(comm, layout(0)),
        m_pencils(comm, layout(1)),
        m_slot(side * side * side) {}

  /// Returns the far pull on each of this rank's particles: the force over the mass.
  [[nodiscard]] std::vector<Vector3> pulls(const Particles& particles) {
    const Slots slots = touched(particles, m_meshes, true);
    const Values potential = solved(particles, slots);
    std::vector<Vector3> pulls(particles.size());
    for (int mesh = 0; mesh < m_meshes; ++mesh)
      for (std::size_t i = 0; i < particles.size(); ++i)
        for_each_cell(
            shifted(particles.places[i], mesh), m_side, [&](const MeshPlace& at, double share) {
              for (std::size_t d = 0; d < 3; ++d) {
                const auto value = [&](std::size_t step) {
                  MeshPlace there = at;
                  there[d] = (at[d] + step) % m_side;
                  return part(potential(slot(there)), mesh);
                };
                pulls[i][d] +=
                    share / m_meshes *
                    slope(value(m_side - 2), value(m_side - 1), value(1), value(2), m_side);
              }
            });
    return pulls;
  }

  /// Returns the power of the waves of the density over its mean, by the length of the wave's
  /// number rounded to an integer, up to side / 2. A cloud's window is divided out; the noise of
  /// particles is not subtracted.
  [[nodiscard]] std::vector<double> power(const Particles& particles) {
    deposit(particles, touched(particles, 1, false), 1);
    to_waves();
    const Kokkos::View<double* [2], Kokkos::LayoutRight, Kokkos::HostSpace> bins("nbody::power",
                                                                                 m_side / 2 + 1);
    const double cells = static_cast<double>(m_side * m_side * m_side);
    Complex total = 0;  // the wave of length 0
    for_each_pencil([&](const MeshPlace& at, Complex& value) {
      double square = 0;
      for (const std::size_t n : at) square += std::pow(wave_of(n, m_side), 2);
      if (square == 0) total = value;
      const auto bin = static_cast<std::size_t>(std::sqrt(square) + 0.5);
      if (bin > m_side / 2) return;
      const double window = cloud_window(at, m_side);
      const double size = Kokkos::abs(value) / (cells * window);
      bins(bin, 0) += size * size;
      bins(bin, 1) += 1;
    });
    heddle::all_reduce(Exec{}, bins, heddle::Sum{}, *m_comm);
    const double mean = heddle::all_reduce(total.real() / cells, heddle::Sum{}, *m_comm);
    std::vector<double> result;
    for (std::size_t bin = 0; bin < bins.extent(0); ++bin)
      result.push_back(bins(bin, 1) == 0 ? 0 : bins(bin, 0) / bins(bin, 1) / (mean * mean));
    result[0] = 0;
    return result;
  }

 private:
  using Values = Kokkos::View<Complex*, Kokkos::HostSpace>;
  using Cells = Kokkos::View<std::int32_t*, Kokkos::HostSpace>;
  using Mesh = heddle::Sharded<Complex***, Exec>;

  /// The cells of the mesh that a rank's particles touch, and who has them.
  struct Slots {
    Cells cells;  ///< ascending, so in the order of their owners
    Cells asked;  ///< the cells of this rank that others touch
    examples::Exchange exchange;
  };

  [[nodiscard]] heddle::Layout layout(int dimension) const {
    const auto side = static_cast<std::int64_t>(m_side);
    return heddle::Layout(heddle::MeshShape{{"ranks", m_comm->size()}}, {side, side, side},
                          {heddle::Shard{dimension}});
  }
  [[nodiscard]] heddle::Share share(int rank) const {
    return heddle::even_share(m_side, static_cast<std::size_t>(m_comm->size()),
                              static_cast<std::size_t>(rank));
  }
  [[nodiscard]] heddle::Share mine() const { return share(static_cast<int>(+m_comm->rank())); }
  [[nodiscard]] std::size_t number(const MeshPlace& at) const {
    return (at[0] * m_side + at[1]) * m_side + at[2];
  }
  [[nodiscard]] std::size_t slot(const MeshPlace& at) const {
    return static_cast<std::size_t>(m_slot[number(at)]);
  }
  [[nodiscard]] static double part(const Complex& value, int mesh) {
    return mesh == 0 ? value.real() : value.imag();
  }
  /// Returns where a particle is on a mesh.
  [[nodiscard]] Vector3 shifted(Vector3 at, int mesh) const {
    if (mesh == 0) return at;
    for (double& x : at) {
      x += 0.5 / static_cast<double>(m_side);
      if (x >= 1) x -= 1;
    }
    return at;
  }

  /// Lists the cells that the clouds cover, with those that `gradients` there read.
  [[nodiscard]] Slots touched(const Particles& particles, int meshes, bool gradients) {
    std::fill(m_slot.begin(), m_slot.end(), -1);
    for (int mesh = 0; mesh < meshes; ++mesh)
      for (const Vector3& at : particles.places)
        for_each_cell(shifted(at, mesh), m_side,
                      [&](const MeshPlace& cell, double) { m_slot[number(cell)] = 1; });
    if (gradients) {
      const std::vector<std::int32_t> covered = m_slot;
      for (std::size_t cell = 0; cell < covered.size(); ++cell) {
        if (covered[cell] < 0) continue;
        const MeshPlace at{cell / m_side / m_side, cell / m_side % m_side, cell % m_side};
        for (std::size_t d = 0; d < 3; ++d)
          for (const std::size_t step : {m_side - 2, m_side - 1, std::size_t{1}, std::size_t{2}}) {
            MeshPlace there = at;
            there[d] = (at[d] + step) % m_side;
            m_slot[number(there)] = 1;
          }
      }
    }
    std::vector<std::int32_t> cells;
    std::vector<std::size_t> counts(static_cast<std::size_t>(m_comm->size()), 0);
    std::size_t owner = 0;
    for (std::size_t cell = 0; cell < m_slot.size(); ++cell) {
      if (m_slot[cell] < 0) continue;
      while (cell / m_side / m_side >= share(static_cast<int>(owner)).end()) ++owner;
      ++counts[owner];
      m_slot[cell] = static_cast<std::int32_t>(cells.size());
      cells.push_back(static_cast<std::int32_t>(cell));
    }
    const Cells list("nbody::cells", cells.size());
    std::copy(cells.begin(), cells.end(), list.data());
    const examples::Exchange exchange(std::move(counts), *m_comm);
    return {list, exchange.there(Exec{}, list), exchange};
  }

  /// Spreads the masses over the slabs. Each cell sums its addends in the order of the ranks.
  void deposit(const Particles& particles, const Slots& slots, int meshes) {
    const double cells = static_cast<double>(m_side * m_side * m_side);
    const Values densities("nbody::densities", slots.cells.size());
    for (int mesh = 0; mesh < meshes; ++mesh)
      for (std::size_t i = 0; i < particles.size(); ++i)
        for_each_cell(shifted(particles.places[i], mesh), m_side,
                      [&](const MeshPlace& at, double share_of_cell) {
                        const double density = particles.masses[i] * share_of_cell * cells;
                        Complex& sum = densities(slot(at));
                        sum += mesh == 0 ? Complex(density, 0) : Complex(0, density);
                      });
    const Values arrived = slots.exchange.there(Exec{}, densities);
    Complex* const slab = m_slabs.view().data();
    std::fill(slab, slab + m_slabs.view().size(), Complex(0));
    for (std::size_t i = 0; i < arrived.size(); ++i) slab[in_slab(slots.asked(i))] += arrived(i);
  }
  [[nodiscard]] std::size_t in_slab(std::int32_t cell) const {
    return static_cast<std::size_t>(cell) - mine().first * m_side * m_side;
  }

  /// Returns the potential in the slots.
  [[nodiscard]] Values solved(const Particles& particles, const Slots& slots) {
    deposit(particles, slots, m_meshes);
    to_waves();
    const double cells = static_cast<double>(m_side * m_side * m_side);
    for_each_pencil(
        [&](const MeshPlace& at, Complex& value) { value *= green(at, m_side, m_rs) / cells; });
    from_waves();
    const Values answers("nbody::answers", slots.asked.size());
    for (std::size_t i = 0; i < answers.size(); ++i)
      answers(i) = m_slabs.view().data()[in_slab(slots.asked(i))];
    return slots.exchange.back(Exec{}, answers);
  }

  /// Transforms slabs of the first dimension to waves, in pencils along it.
  void to_waves() {
    transform_slabs(-1);
    heddle::redistribute(Exec{}, m_slabs, m_pencils);
    transform_pencils(-1);
  }
  void from_waves() {
    transform_pencils(1);
    heddle::redistribute(Exec{}, m_pencils, m_slabs);
    transform_slabs(1);
  }
  void transform_slabs(int sign) {
    auto* const data = reinterpret_cast<std::complex<double>*>(m_slabs.view().data());
    const std::size_t planes = mine().count;
    if (planes == 0) return;
    m_transform(data, {m_side, 1, planes * m_side, m_side}, sign);
    for (std::size_t plane = 0; plane < planes; ++plane)
      m_transform(data + plane * m_side * m_side, {m_side, m_side, m_side, 1}, sign);
  }
  void transform_pencils(int sign) {
    auto* const data = reinterpret_cast<std::complex<double>*>(m_pencils.view().data());
    const std::size_t lines = mine().count * m_side;
    if (lines > 0) m_transform(data, {m_side, lines, lines, 1}, sign);
  }
  /// Calls `visit(place, value)` for the waves of this rank.
  template <class Visit>
  void for_each_pencil(Visit visit) {
    const heddle::Share second = mine();
    Complex* value = m_pencils.view().data();
    for (std::size_t x = 0; x < m_side; ++x)
      for (std::size_t y = second.first; y < second.end(); ++y)
        for (std::size_t z = 0; z < m_side; ++z) visit(MeshPlace{x, y, z}, *value++);
  }

  const heddle::Communicator* m_comm;
  std::size_t m_side;
  double m_rs;
  int m_meshes;
  TransformLines m_transform;
  Mesh m_slabs, m_pencils;
  std::vector<std::int32_t> m_slot;  ///< by cell of the whole mesh, its slot or -1
};

}  // namespace nbody
