// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Branches of unequal length that run side by side. The first part is a network of 12 layers on the
// longest path: three streams compute at three resolutions, and fusions join them. The second part
// is a solver whose positions and values are two branches, joined in every step. Each branch goes
// to a worker, the longest first. The results are the same, bit for bit, on any number of workers.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <vector>

#include <heddle/execute.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/place_branches.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/grid.hpp>

#include "characteristics.hpp"
#include "stream_network.hpp"

namespace hd = heddle;

namespace {

hd::Bytes moved_bytes(const hd::Schedule& schedule) {
  hd::Bytes bytes = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[hd::ActionId{i}].kind == hd::Kind::move)
      bytes += schedule.bytes(schedule.uses(hd::ActionId{i}).front());
  return bytes;
}

/// Returns the scores of an image on so many threads.
examples::Reals scores_of(const examples::Reals& image, const hd::Schedule& schedule,
                          const std::vector<examples::StreamLayer>& layers) {
  examples::Reals scores;
  hd::run_threads(schedule.ranks(), [&](hd::ThreadTransport& transport) {
    examples::StreamNetwork network(layers, 1);
    hd::Runner(network, schedule, transport).step(image);
    if (!network.scores.empty()) scores = network.scores;  // on the rank of the last layer
  });
  return scores;
}

void streams() {
  const examples::StreamShape shape;
  const std::vector<examples::StreamLayer> layers = examples::stream_layers(shape);
  const hd::StageGraph graph = examples::graph_of(layers);
  // The time of a layer is its number of multiply-adds; layer 4, inside a stream, counts as 1.
  hd::TableCosts costs(hd::Machine::uniform(4, {}, {}), graph.stages);
  for (int l = 0; l < graph.stages; ++l)
    costs.at(hd::Kind::forward, hd::Stage{l}) =
        layers[static_cast<std::size_t>(l)].work() / layers[4].work();

  const examples::Reals image = examples::random_image(shape, 1);
  const examples::Reals serial = examples::StreamNetwork(layers, 1).forward(image);
  for (const int workers : {1, 2, 3, 4}) {
    const auto placed = hd::plan::place_branches(
        graph, costs, {.workers = workers, .outputs = examples::output_bytes(layers)});
    const bool same = scores_of(image, placed.schedule, layers) == serial;
    std::cout << workers << (workers == 1 ? " worker: " : " workers: ") << placed.makespan
              << " layers long, " << moved_bytes(placed.schedule) << " bytes in messages, "
              << (same ? "the scores of one loop\n" : "other scores\n");
    if (workers == 3) std::cout << hd::to_grid(placed.schedule);
  }
}

void coupled() {
  // 10 turns of a wave around a circle, with viscosity: upwind differences would flatten it.
  const examples::Convection problem{
      .points = 64, .speed = 62.83185307179586, .viscosity = 0.1, .joins = 50};
  std::vector<double> serial;
  for (const int workers : {1, 2}) {
    const auto placed =
        hd::plan::place_branches(examples::graph_of(problem), hd::StageCosts{.forward = 1},
                                 {.workers = workers, .outputs = examples::output_bytes(problem)});
    std::vector<double> grid;
    hd::run_threads(workers, [&](hd::ThreadTransport& transport) {
      examples::MovingPoints solver(problem);
      hd::Runner(solver, placed.schedule, transport).step();
      if (!solver.grid.empty()) grid = solver.grid;  // on the rank of the last join
    });
    double height = 0;
    for (const double value : grid) height = std::max(height, value);
    if (workers == 1) serial = grid;
    std::cout << workers << (workers == 1 ? " worker: " : " workers: ") << placed.makespan
              << " stages long, the wave is " << std::round(1e3 * height) / 1e3
              << " high (exact: " << std::round(1e3 * std::exp(-0.1)) / 1e3 << "), "
              << (grid == serial ? "the same bits\n" : "other bits\n");
  }
}

}  // namespace

int main() {
  streams();
  coupled();
}
