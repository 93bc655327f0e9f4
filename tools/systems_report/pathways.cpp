// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Pathways: the dispatch of a chain of functions, simulated; and the order and the dispatch
/// messages of an island, executed.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/text.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/pathways/dispatch_costs.hpp>
#include <heddle/systems/pathways/gang_dispatch.hpp>
#include <heddle/systems/pathways/gang_order.hpp>
#include <heddle/systems/pathways/island.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

constexpr int functions = 128;
constexpr hd::systems::DispatchCosts base{.prepare = 1, .enqueue = 0.2, .compute = 0};

double simulated(hd::systems::Dispatch dispatch, double compute) {
  hd::systems::DispatchCosts costs = base;
  costs.compute = compute;
  const auto chain = hd::systems::gang_dispatch(
      {.functions = functions, .hosts = functions, .dispatch = dispatch});
  return hd::simulate(chain, costs).makespan();
}

/// One line for functions that take `compute`. The closed forms are the reference.
Comparison dispatch(double compute, const std::string& published, bool short_ones) {
  using hd::systems::Dispatch;
  const double n = functions, h = base.prepare, p = base.enqueue;
  const double in_turn = simulated(hd::systems::Dispatch::sequential, compute);
  const double at_once = simulated(hd::systems::Dispatch::parallel, compute);
  const double formula = compute >= p ? h + p + n * compute : h + n * p + compute;
  const bool exact = std::abs(in_turn - n * (h + p + compute)) < 1e-9 * in_turn &&
                     std::abs(at_once - formula) < 1e-9 * at_once;
  const double ratio = in_turn / at_once;
  return {hd::text("simulated chain of ", functions, " functions of x = ", compute,
                   ", dispatch in turn over at once, h = ", h, ", p = ", p),
          published,
          hd::text(in_turn, " / ", at_once, " = ", ratio, "x",
                   exact ? ", equal to the closed forms" : ", not the closed forms"),
          short_ones ? "exact; at least 4" : "exact; at most 1.15",
          verdict(exact && (short_ones ? ratio >= 4 : ratio <= 1.15))};
}

/// The shares of 1,000 programs of four clients that always have some.
Comparison shares() {
  const std::vector<std::uint32_t> weights{1, 2, 4, 8};
  constexpr int programs = 1000;
  hd::systems::GangOrder order(hd::systems::GangPolicy::share, weights);
  for (std::size_t client = 0; client < weights.size(); ++client)
    for (int k = 0; k < programs; ++k) order.submit(client);
  std::vector<double> counts(weights.size(), 0.0);
  for (int k = 0; k < programs; ++k) counts[*order.next()] += 1;
  double worst = 0;
  for (std::size_t client = 0; client < weights.size(); ++client) {
    const double share = programs * weights[client] / 15.0;
    worst = std::max(worst, std::abs(counts[client] / share - 1));
  }
  return {"programs of clients of weights 1:2:4:8, of the first 1,000", "proportional share",
          hd::text(counts[0], " : ", counts[1], " : ", counts[2], " : ", counts[3], ", at most ",
                   100 * worst, "% off"),
          "within 5%", verdict(worst <= 0.05)};
}

/// The dispatch messages of programs of several calls, on an island of this process.
Comparison messages() {
  using Vector = hd::Sharded<double*, Kokkos::DefaultHostExecutionSpace>;
  const std::string what = "dispatch messages for each host and program of 3 calls";
  const std::string published = "one for all calls of a program";
  int up = 0, over = 0;
  MPI_Finalized(&over);
  if (over != 0) return {what, published, "", "1", "skipped: MPI has ended"};
  MPI_Initialized(&up);
  if (up == 0) {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    std::atexit([] { MPI_Finalize(); });
  }
  constexpr int programs = 100;
  const hd::DeviceMesh mesh(MPI_COMM_SELF, {{"all", 1}});
  hd::systems::Island island(mesh);
  const hd::Layout one(mesh.shape(), {8}, {hd::Replicate{}});
  const auto input = island.input<Vector>("input", one);
  const auto copy = island.add<Vector(Vector)>(
      "copy", {one}, one,
      [](const Vector& in, Vector& out) { Kokkos::deep_copy(out.view(), in.view()); });
  island.serve([&](hd::systems::IslandClient& client) {
    for (int k = 0; k < programs; ++k) {
      const auto x = client.put(input, Vector::View("x", 8));
      (void)client.call(copy, client.call(copy, x));
      client.start();
    }
  });
  const double each = static_cast<double>(island.counts().dispatches) / programs / mesh.size();
  return {what, published,
          hd::text(each, " (", island.counts().dispatches, " for ", island.counts().programs,
                   " programs)"),
          "1", verdict(island.counts().programs == programs && each == 1)};
}

}  // namespace

std::vector<Comparison> pathways() {
  return {dispatch(0.1, "faster than dispatch in turn", true),
          dispatch(10, "parity for long functions", false),
          shares(),
          messages(),
          {"utilisation", "~100% of 2,048 TPUs", "", "none",
           "not reproducible: it needs the authors' TPUs and their network"}};
}

}  // namespace report
