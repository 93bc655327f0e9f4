// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A network of parallel streams on threads against one loop over its layers, its placements against
// all orders and workers, and its merged kernels against their branches.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute/runner.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/plan/place_branches.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/simulate.hpp>

#include "stream_network.hpp"
#include "support/branch_times.hpp"

namespace test_placed_branches {

using namespace heddle;
using examples::Reals;
using examples::StreamBlock;
using examples::StreamLayer;
using examples::StreamNetwork;
using examples::StreamShape;
using test::BranchTimes;
using test::Rational;

namespace {

const StreamShape small{.image = 32, .stem = 3, .planes = {4, 8, 16}, .last = 32};

/// Returns the times of the layers, in multiply-adds.
BranchTimes times_of(const std::vector<StreamLayer>& layers) {
  BranchTimes costs;
  for (const StreamLayer& layer : layers)
    costs.times.emplace_back(static_cast<long long>(layer.work()));
  return costs;
}

}  // namespace

TEST_CASE("streams on 1 to 4 workers give the scores of one loop, bit for bit") {
  const auto layers = examples::stream_layers(small);
  const BranchTimes costs = times_of(layers);
  const auto outputs = examples::output_bytes(layers);
  const StageGraph graph = examples::graph_of(layers);
  for (const bool merged : {false, true}) {
    const std::vector<Reals> images{examples::random_image(small, 1),
                                    examples::random_image(small, 2)};
    std::vector<Reals> serial;
    for (const Reals& image : images)
      serial.push_back(StreamNetwork(layers, 7, merged).forward(image));
    REQUIRE(serial[0] != serial[1]);
    for (const int workers : {1, 2, 3, 4}) {
      const auto placed =
          plan::place_branches(graph, costs, {.workers = workers, .outputs = outputs});
      std::vector<Reals> scores;
      run_threads(workers, [&](ThreadTransport& transport) {
        StreamNetwork network(layers, 7, merged);
        Runner runner(network, placed.schedule, transport);
        for (const Reals& image : images) {
          runner.step(image);
          if (!network.scores.empty()) scores.push_back(network.scores);  // one rank has them
        }
      });
      INFO(workers << " workers");
      CHECK(scores == serial);
      // Each edge between two workers moves the output of its layer, and nothing else is moved.
      std::map<std::size_t, std::size_t> worker_of;
      for (std::size_t w = 0; w < placed.orders.ranks.size(); ++w)
        for (const Order& order : placed.orders.ranks[w]) worker_of[+order.stage] = w;
      Bytes expected = 0, moved = 0;
      for (const StageGraph::Edge& edge : graph.edges)
        if (worker_of[+edge.from] != worker_of[+edge.to]) expected += outputs[+edge.from];
      for (std::size_t i = 0; i < placed.schedule.size(); ++i)
        if (placed.schedule[ActionId{i}].kind == Kind::move)
          moved += placed.schedule.bytes(placed.schedule.uses(ActionId{i}).back());
      CHECK(moved == expected);
    }
  }
}

TEST_CASE("no placement of the streams is faster on 1 to 3 workers") {
  const auto layers = examples::stream_layers(small);
  const BranchTimes costs = times_of(layers);
  const auto sum = [&](std::vector<std::size_t> some) {
    Rational time;
    for (const std::size_t l : some) time = time + costs.times[l];
    return time;
  };
  // Layers 0 to 3 begin the streams, 4 to 8 are the first stream, 9 to 14 the second with its
  // fusion, 15 to 20 the third with its fusion, and 21 and 22 are the end.
  REQUIRE(layers.size() == 23);
  const std::vector<Rational> times{
      sum({0, 1}), sum({4, 5, 6, 7, 8}),         sum({2}),         sum({9, 10, 11, 12, 13}),
      sum({14}),   sum({3, 15, 16, 17, 18, 19}), sum({20, 21, 22})};
  const std::vector<std::vector<std::size_t>> inputs{{}, {0}, {0}, {2}, {1, 3}, {2}, {4, 5}};
  Rational longest;
  for (const int workers : {1, 2, 3}) {
    const auto placed =
        plan::place_branches(examples::graph_of(layers), costs, {.workers = workers});
    CHECK(placed.optimal);
    CHECK(placed.makespan == test::least_makespan(times, inputs, workers));
    longest = placed.makespan;
  }
  // 3 workers: the longest path.
  CHECK(longest == sum({0, 1, 2, 9, 10, 11, 12, 13, 14, 20, 21, 22}));
}

TEST_CASE("a merged kernel equals its three branches to 1e-6") {
  const auto layers = examples::stream_layers({});
  std::size_t compared = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const StreamLayer& layer = layers[l];
    if (layer.head) continue;
    const StreamBlock apart(layer, 3, l);
    StreamBlock merged = apart;
    merged.merge(layer);
    CHECK(merged.narrow.empty());
    const Random random(5, text("input", l));
    Reals input;
    for (int i = 0; i < layer.channels * layer.side * layer.side; ++i)
      input.push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(i))));
    Reals three(layer.out_size()), one(layer.out_size());
    apart.sum_of_branches(layer, input, three);
    merged.sum_of_branches(layer, input, one);
    float most = 0, apart_by = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      most = std::max(most, std::abs(three[i]));
      apart_by = std::max(apart_by, std::abs(three[i] - one[i]));
    }
    INFO("layer " << l << ": " << apart_by << " of " << most);
    CHECK(apart_by <= 1e-6f * most);
    compared += !apart.identity.empty();
  }
  CHECK(compared == 14);
}

}  // namespace test_placed_branches
