// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Gravity over the ranks: the mesh for far particles, trees for near ones and direct pairs for
/// very near ones.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/systems/photons/dual_traversal.hpp>

#include "domain.hpp"
#include "far_mesh.hpp"
#include "pairs.hpp"
#include "particles.hpp"
#include "trees.hpp"

namespace nbody {

/// The rule that computes pairs of nodes at once, and lists pairs of leaves for the kernel.
class ListedPairs : public NearForces {
 public:
  using NearForces::NearForces;

  struct Source {
    std::int32_t first, last, image;
  };
  /// By leaf that has met another one: its node and its sources.
  std::vector<std::pair<std::size_t, std::vector<Source>>> targets;

  void exact(std::size_t a, std::size_t b) {
    NearPairs::exact(a, b);
    if (m_target.size() < m_forest->nodes.size()) m_target.resize(m_forest->nodes.size(), 0);
    if (m_target[a] == 0) {
      targets.push_back({a, {}});
      m_target[a] = targets.size();
    }
    const Forest::Node& to = m_forest->nodes[a];
    const Forest::Node& from = m_forest->nodes[b];
    Source source{static_cast<std::int32_t>(from.items.first),
                  static_cast<std::int32_t>(from.items.last), 0};
    // All pairs have the same image if they lie within half the box of each other's.
    for (std::size_t d = 0; d < 3; ++d) {
      const double off = from.centre[d] - to.centre[d], shift = std::round(off);
      if (std::abs(off - shift) + to.radius + from.radius >= 0.5)
        source.image = PairTask::each_image;
      if (source.image != PairTask::each_image)
        source.image = 3 * source.image + static_cast<int>(1 - shift);
    }
    targets[m_target[a] - 1].second.push_back(source);
  }

 private:
  std::vector<std::size_t> m_target;  // by node: its place among the targets, from 1
};

/// What the last force took, of all ranks.
struct Interactions {
  std::int64_t pairs = 0;    ///< of particles, computed directly
  std::int64_t nodes = 0;    ///< pairs of nodes that the trees approximated
  std::int64_t covered = 0;  ///< ordered pairs of particles that were dropped or computed
};

/// Computes the pulls on the particles of all ranks. All ranks call its functions together.
class Gravity {
 public:
  /// @throws contract_error if a cut-off reaches half the box or if numbers make no sense.
  Gravity(const heddle::Communicator& comm, const Splitting& splitting, double softening,
          TransformLines transform)
      : m_comm(&comm),
        m_splitting(checked(splitting, softening)),
        m_softening(softening),
        m_domain(comm, cut()),
        m_cubes(m_domain.cube_cut()),
        m_window(m_splitting.rs / static_cast<double>(m_splitting.mesh), cut()),
        m_mesh(comm, m_splitting.mesh, m_splitting.rs, m_splitting.meshes, std::move(transform)) {}

  /// Divides the particles among the ranks, and computes pull and work of each.
  void compute(std::vector<Body>& bodies) {
    bodies = m_domain.divided(bodies);
    Particles mine;
    for (const Body& body : bodies) {
      mine.places.push_back(body.place);
      mine.masses.push_back(body.mass);
    }
    const std::vector<Vector3> far = m_mesh.pulls(mine);
    for (std::size_t i = 0; i < bodies.size(); ++i) bodies[i].pull = far[i];
    add_near(bodies);
  }

  [[nodiscard]] const Interactions& interactions() const { return m_last; }
  [[nodiscard]] double imbalance() const { return m_domain.imbalance(); }
  [[nodiscard]] FarMesh& mesh() { return m_mesh; }

 private:
  using Exec = examples::Space;
  template <class T>
  using Array = Kokkos::View<T*, Exec::memory_space>;

  static Splitting checked(Splitting splitting, double softening) {
    heddle::expects(splitting.mesh <= FarMesh::most_side, [&] {
      return heddle::ErrorInfo{"nbody", "the mesh has too many cells for numbers of 31 bits",
                               heddle::text("--mesh ", splitting.mesh),
                               heddle::text("give at most --mesh ", FarMesh::most_side)};
    });
    const double cut = splitting.cut * splitting.rs / static_cast<double>(splitting.mesh);
    heddle::expects(splitting.mesh >= 8 && splitting.rs > 0 && splitting.cut > 0 && cut < 0.5, [&] {
      return heddle::ErrorInfo{
          "nbody", "near forces must end before half the box, and a mesh has at least 8 cells",
          heddle::text("a mesh of ", splitting.mesh, " cells, --rs ", splitting.rs, ", --cut ",
                       splitting.cut, ": near forces reach ", cut, " of the box"),
          "give a larger --mesh, or a smaller --rs or --cut"};
    });
    heddle::expects(splitting.theta >= 0 && splitting.theta < 1 && softening >= 0 &&
                        softening < cut && splitting.leaf_size >= 1 && splitting.order >= 1 &&
                        splitting.order <= 12 && (splitting.meshes == 1 || splitting.meshes == 2),
                    [&] {
                      return heddle::ErrorInfo{
                          "nbody", "these settings make no sense",
                          heddle::text("--theta ", splitting.theta, ", --softening ", softening,
                                       ", --leaf ", splitting.leaf_size, ", --order ",
                                       splitting.order, ", --meshes ", splitting.meshes),
                          heddle::text("give theta in [0, 1), a softening below ", cut,
                                       ", leaves of at least 1, an order of 1 to 12 and 1 or 2 "
                                       "meshes")};
                    });
    if (splitting.theta == 0) splitting.order = 1;  // no expansion is used
    return splitting;
  }
  [[nodiscard]] double cut() const {
    return m_splitting.cut * m_splitting.rs / static_cast<double>(m_splitting.mesh);
  }

  void add_near(std::vector<Body>& bodies) {
    const Domain::WithHalo all = m_domain.with_halo(bodies);
    std::vector<std::uint64_t> keys;
    for (const Vector3& at : all.particles.places) keys.push_back(key_of(at));
    const Forest forest(all.particles, keys, m_cubes, m_splitting.leaf_size);
    ListedPairs near(all.particles, forest, m_splitting);
    std::int64_t dropped = 0, particles = 0;
    for (const std::int64_t count : m_domain.counts()) particles += count;
    for (std::size_t cube = 0; cube < m_domain.cubes(); ++cube) {
      if (m_domain.counts()[cube] == 0 || !m_domain.owns(cube)) continue;
      std::int64_t reached = 0;
      for (const std::size_t other : m_domain.neighbours(cube)) {
        heddle::systems::dual_traversal(forest.roots[cube], forest.roots[other], near);
        reached += m_domain.counts()[other];
      }
      dropped += m_domain.counts()[cube] * (particles - reached);
    }
    near.finish();
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      add_to(bodies[i].pull, near.fields()[all.first + i]);
      // A pair of nodes takes as long as some pairs of particles.
      bodies[i].work = std::ceil(near.work()[all.first + i]) * far_work();
    }
    launch(all, near, forest, bodies);
    const auto sum = [&](std::uint64_t value) {
      return heddle::all_reduce(static_cast<std::int64_t>(value), heddle::Sum{}, *m_comm);
    };
    m_last = {sum(near.exact_pairs), sum(near.far_pairs),
              sum(near.covered + static_cast<std::uint64_t>(dropped))};
  }
  [[nodiscard]] double far_work() const { return m_splitting.order * m_splitting.order; }

  /// Computes the listed pairs, and adds their pulls.
  void launch(const Domain::WithHalo& all, const ListedPairs& near, const Forest& forest,
              std::vector<Body>& bodies) {
    const std::size_t count = all.particles.size();
    std::vector<double> values(4 * count);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t d = 0; d < 3; ++d) values[d * count + i] = all.particles.places[i][d];
      values[3 * count + i] = all.particles.masses[i];
    }
    std::vector<std::int32_t> targets, begins{0}, sources;
    for (const auto& [node, list] : near.targets) {
      const systems::CurveNode& items = forest.nodes[node].items;
      targets.push_back(static_cast<std::int32_t>(items.first));
      targets.push_back(static_cast<std::int32_t>(items.last));
      double pairs = 0;
      for (const ListedPairs::Source& source : list) {
        sources.insert(sources.end(), {source.first, source.last, source.image});
        pairs += source.last - source.first;
      }
      begins.push_back(static_cast<std::int32_t>(sources.size() / 3));
      for (std::size_t i = items.first; i < items.last; ++i) bodies[i - all.first].work += pairs;
    }
    const auto on_device = [](const auto& host) {
      using T = typename std::decay_t<decltype(host)>::value_type;
      const Array<T> device(Kokkos::view_alloc(Kokkos::WithoutInitializing, "nbody::pairs"),
                            host.size());
      const auto mirror = heddle::host_mirror(device);
      std::copy(host.begin(), host.end(), mirror.data());
      Kokkos::deep_copy(device, mirror);
      return device;
    };
    const Array<double> in = on_device(values), out("nbody::pulls", 3 * count);
    const Array<std::int32_t> lists[] = {on_device(targets), on_device(begins), on_device(sources)};
    PairTask task{.window = m_window, .cut = cut(), .softening = m_softening};
    task.x = in.data();
    task.y = task.x + count;
    task.z = task.y + count;
    task.mass = task.z + count;
    task.pull_x = out.data();
    task.pull_y = task.pull_x + count;
    task.pull_z = task.pull_y + count;
    task.targets = lists[0].data();
    task.begins = lists[1].data();
    task.sources = lists[2].data();
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Dynamic>,
                                       Kokkos::IndexType<std::int32_t>>;
    Kokkos::parallel_for("nbody::pull_leaves",
                         Policy(0, static_cast<std::int32_t>(near.targets.size())),
                         PullLeaves{task, pair_function()});
    const auto pulls = heddle::host_mirror(out);
    Kokkos::deep_copy(pulls, out);
    for (std::size_t i = 0; i < bodies.size(); ++i)
      for (std::size_t d = 0; d < 3; ++d) bodies[i].pull[d] += pulls(d * count + all.first + i);
  }

  const heddle::Communicator* m_comm;
  Splitting m_splitting;
  double m_softening;
  Domain m_domain;
  systems::CurveCut m_cubes;
  PairWindow m_window;
  FarMesh m_mesh;
  Interactions m_last;
};

}  // namespace nbody
