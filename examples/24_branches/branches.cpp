// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Branches of unequal length that run side by side. A network of 12 layers on the longest path has
// three streams at three resolutions, and fusions join them. Each stream goes to a worker, the
// longest first. The scores are the same, bit for bit, for any number of workers.

#include <iostream>
#include <vector>

#include <heddle/execute.hpp>
#include <heddle/plan/place_branches.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace.hpp>

#include "stream_network.hpp"

namespace hd = heddle;

namespace {

/// Returns the scores of `image` on so many threads.
examples::Reals run(const hd::Schedule& schedule, const std::vector<examples::StreamLayer>& layers,
                    const examples::Reals& image) {
  examples::Reals scores;
  hd::run_threads(schedule.ranks(), [&](hd::ThreadTransport& transport) {
    examples::StreamNetwork network(layers, 1);
    hd::Runner runner(network, schedule, transport);
    runner.step(image);
    if (!network.scores.empty()) scores = network.scores;
  });
  return scores;
}

}  // namespace

int main() {
  const examples::StreamShape shape;
  const std::vector<examples::StreamLayer> layers = examples::stream_layers(shape);
  const hd::StageGraph graph = examples::graph_of(layers);

  // The time of a layer is its number of multiply-adds. A layer inside a stream counts as 1.
  hd::TableCosts costs(hd::Machine::uniform(4, {}, {}), graph.stages);
  for (int l = 0; l < graph.stages; ++l)
    costs.at(hd::Kind::forward, hd::Stage{l}) =
        layers[static_cast<std::size_t>(l)].work() / layers[4].work();

  const examples::Reals image = examples::random_image(shape, 1);
  const examples::Reals serial = examples::StreamNetwork(layers, 1).forward(image);
  for (const int workers : {1, 2, 3, 4}) {
    const auto placed = hd::plan::place_branches(
        graph, costs, {.workers = workers, .outputs = examples::output_bytes(layers)});
    hd::Bytes moved = 0;
    for (std::size_t i = 0; i < placed.schedule.size(); ++i)
      if (placed.schedule[hd::ActionId{i}].kind == hd::Kind::move)
        moved += placed.schedule.bytes(placed.schedule.uses(hd::ActionId{i}).front());
    const bool same = run(placed.schedule, layers, image) == serial;
    std::cout << workers << (workers == 1 ? " worker: " : " workers: ") << placed.makespan
              << " layers long, " << moved << " bytes in messages, "
              << (same ? "the scores of one loop\n" : "other scores\n");
    if (workers == 3) std::cout << hd::to_grid(hd::simulate(placed.schedule, costs), 60);
  }
}
