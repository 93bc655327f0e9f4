// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The patterns of the room kernel and the staging below them, for scripts/gate.

#include <cstddef>
#include <cstdint>

#include <heddle/device.hpp>
#include <heddle/kernel.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/graph_traversal.hpp>

#include "support.hpp"

namespace {

namespace hk = heddle::kernel;

struct Product {
  template <class T>
  KOKKOS_FUNCTION T operator()(const T& x, const T& y) const {
    return x * y;
  }
};

/// Reads a neighbour along every axis.
template <std::size_t Rank>
struct Neighbours {
  template <class U>
  KOKKOS_FUNCTION double operator()(const U& u) const {
    if constexpr (Rank == 1) return u(-1) + u(1);
    if constexpr (Rank == 2) return u(-1, 0) + u(0, 1);
    if constexpr (Rank == 3) return u(-1, 0, 0) + u(0, 1, 0) + u(0, 0, 1);
    if constexpr (Rank == 5) return u(-1, 0, 0, 0, 0) + u(0, 0, 1, 0, 0) + u(0, 0, 0, 0, 1);
  }
};

/// Rows to scratch and back.
struct RoundTrip {
  using Member = Kokkos::TeamPolicy<gate::Exec>::member_type;
  Kokkos::View<double**, Kokkos::LayoutRight, gate::Exec> values;
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto* const tile = static_cast<double*>(team.team_scratch(0).get_shmem(64 * sizeof(double)));
    heddle::staging<gate::Exec> stage(team);
    stage.get(tile, values.data(), heddle::Rows{8, 8, 8});
    stage.wait();
    stage.put(values.data(), tile, heddle::Rows{8, 8, 8});
    stage.put(values.data(), tile, 8);
    stage.wait();
  }
};

template <class DataType, class Layout>
void stencil_on(const gate::Exec& exec) {
  const Kokkos::View<DataType, Layout, gate::Exec> now, next;
  hk::stencil(exec, 1, Neighbours<now.rank>{}, next, now, {.boundary = hk::Boundary::periodic});
}

}  // namespace

void gate_kernel_patterns() {
  const gate::Exec exec;
  const auto a = gate::matrix<double>(), b = gate::matrix<double>(), c = gate::matrix<double>();
  const auto x = gate::vector<std::int64_t>(), y = gate::vector<std::int64_t>();

  hk::map(exec, Product{}, c, a, b);
  hk::map(exec, Product{}, x, x, y);
  double sum = 0;
  hk::reduce(exec, Kokkos::Sum<double>(sum), Product{}, a, b);
  std::int64_t largest = 0;
  hk::reduce(exec, Kokkos::Max<std::int64_t>(largest), Product{}, x, y);

  stencil_on<double*, Kokkos::LayoutRight>(exec);
  stencil_on<double**, Kokkos::LayoutRight>(exec);
  stencil_on<double***, Kokkos::LayoutRight>(exec);
  stencil_on<double***, Kokkos::LayoutLeft>(exec);
  stencil_on<double*****, Kokkos::LayoutRight>(exec);

  Kokkos::parallel_for("heddle::gate::round_trip",
                       Kokkos::TeamPolicy<gate::Exec>(exec, 1, Kokkos::AUTO)
                           .set_scratch_size(0, Kokkos::PerTeam(512)),
                       RoundTrip{a});

  const heddle::systems::Graph graph;
  for (const heddle::systems::FrontierBalance balance :
       {heddle::systems::FrontierBalance::nodes, heddle::systems::FrontierBalance::edges,
        heddle::systems::FrontierBalance::decomposition,
        heddle::systems::FrontierBalance::splitting, heddle::systems::FrontierBalance::hierarchy}) {
    heddle::systems::GraphTraversal<gate::Exec> traversal(exec, graph, {.balance = balance});
    (void)traversal.breadth_first(0);
    (void)traversal.shortest_paths(0);
  }
}
