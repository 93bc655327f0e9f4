// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Non-deep networks: unequal streams on workers. Lagrangian PINN: positions and values as two
/// coupled branches.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/plan/place_branches.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "characteristics.hpp"
#include "comparison.hpp"
#include "stream_network.hpp"
#include "support/branch_times.hpp"
#include "support/convection.hpp"
#include "support/rational.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::test::BranchTimes;
using hd::test::ForkedStages;
using hd::test::Rational;

hd::Bytes bytes_of_moves(const hd::Schedule& schedule) {
  hd::Bytes bytes = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[hd::ActionId{i}].kind == hd::Kind::move)
      bytes += schedule.bytes(schedule.uses(hd::ActionId{i}).front());
  return bytes;
}

/// Returns on how many of 1, 2, 3 and 4 workers the scores have the bits of one loop.
int workers_with_equal_scores() {
  const examples::StreamShape shape;
  const auto layers = examples::stream_layers(shape);
  const examples::Reals image = examples::random_image(shape, 4);
  const examples::Reals serial = examples::StreamNetwork(layers, 9).forward(image);
  int equal = 0;
  for (const int workers : {1, 2, 3, 4}) {
    const auto placed =
        hd::plan::place_branches(examples::graph_of(layers), hd::StageCosts{.forward = 1},
                                 {.workers = workers, .outputs = examples::output_bytes(layers)});
    examples::Reals scores;
    hd::run_threads(workers, [&](hd::ThreadTransport& transport) {
      examples::StreamNetwork network(layers, 9);
      hd::Runner(network, placed.schedule, transport).step(image);
      if (!network.scores.empty()) scores = network.scores;
    });
    equal += scores == serial ? 1 : 0;
  }
  return equal;
}

constexpr int random_forks = 300;

struct ForkCounts {
  int three = 0;          ///< forks of three on three workers that take the longest stream
  int two = 0;            ///< forks on two workers that take the least time of all partitions
  int longest_first = 0;  ///< of these, those in which longest first takes it as well
  int bytes = 0;          ///< forks of three whose messages are the outputs at the fusion
};

/// Counts random forks whose times, on rationals, and bytes are those of the brute force.
ForkCounts fork_counts() {
  std::mt19937_64 random(31);
  ForkCounts counts;
  for (int c = 0; c < random_forks; ++c) {
    const ForkedStages three({.branches = 3, .stem = 1, .most_stages = 4}, random);
    std::vector<Rational> times;
    for (const auto& branch : three.branches) times.push_back(three.time_of(branch));
    const Rational longest = *std::max_element(times.begin(), times.end());
    counts.three +=
        hd::plan::place_branches(three.graph, BranchTimes{three.times}, {.workers = 3}).makespan ==
                three.time_of(three.stem) + longest + three.times.back()
            ? 1
            : 0;

    const ForkedStages many(
        {.branches = 2 + static_cast<int>(random() % 5), .stem = 0, .most_stages = 4}, random);
    times.clear();
    for (const auto& branch : many.branches) times.push_back(many.time_of(branch));
    const Rational least = hd::test::least_largest_sum(times, 2) + many.times.back();
    const BranchTimes costs{many.times};
    counts.two +=
        hd::plan::place_branches(many.graph, costs, {.workers = 2}).makespan == least ? 1 : 0;
    counts.longest_first +=
        hd::plan::place_branches(many.graph, costs, {.workers = 2, .steps = 0}).makespan == least
            ? 1
            : 0;

    // Streams of equal length, so that each has a worker of its own.
    const ForkedStages even({.branches = 3, .stem = 0, .most_stages = 1}, random);
    std::vector<hd::Bytes> outputs;
    for (int s = 0; s < even.graph.stages; ++s) outputs.push_back(4 * (1 + random() % 1'000));
    const auto placed =
        hd::plan::place_branches(even.graph, BranchTimes{std::vector<Rational>(4, Rational(1))},
                                 {.workers = 3, .outputs = outputs});
    const hd::Bytes at_fusion = outputs[0] + outputs[1] + outputs[2] -
                                *std::max_element(outputs.begin(), outputs.begin() + 3);
    counts.bytes += bytes_of_moves(placed.schedule) == at_fusion ? 1 : 0;
  }
  return counts;
}

/// Returns the largest difference of a merged kernel from its branches, relative to the largest
/// output, over the layers of the network.
double merge_error() {
  const auto layers = examples::stream_layers({});
  double most = 0;
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
    const examples::StreamBlock apart(layers[l], 3, l);
    examples::StreamBlock merged = apart;
    merged.merge(layers[l]);
    const hd::Random random(5, hd::text("input", l));
    examples::Reals input;
    for (int i = 0; i < layers[l].channels * layers[l].side * layers[l].side; ++i)
      input.push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(i))));
    examples::Reals three(layers[l].out_size()), one(layers[l].out_size());
    apart.sum_of_branches(layers[l], input, three);
    merged.sum_of_branches(layers[l], input, one);
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      largest = std::max(largest, std::abs(three[i]));
      difference = std::max(difference, std::abs(three[i] - one[i]));
    }
    most = std::max(most, static_cast<double>(difference / largest));
  }
  return most;
}

/// The published network ParNet-L: its layers, and its branches as jobs that wait for each other.
struct PublishedStreams {
  std::vector<examples::StreamLayer> layers = examples::stream_layers(
      {.image = 224, .stem = 64, .planes = {160, 320, 640}, .last = 2560, .classes = 1000});
  BranchTimes costs;

  PublishedStreams() {
    for (const examples::StreamLayer& layer : layers)
      costs.times.emplace_back(static_cast<std::int64_t>(layer.work()));
  }
  [[nodiscard]] Rational makespan(int workers) const {
    return hd::plan::place_branches(examples::graph_of(layers), costs, {.workers = workers})
        .makespan;
  }
  /// Returns the speed-up over one worker, from the same times as floating-point numbers.
  [[nodiscard]] double speed_up(int workers, std::uint64_t steps) const {
    hd::TableCosts table(hd::Machine::uniform(workers, {}, {}), static_cast<int>(layers.size()));
    double all = 0;
    for (std::size_t l = 0; l < layers.size(); ++l)
      all += table.at(hd::Kind::forward, hd::Stage{l}) = layers[l].work();
    return all / hd::plan::place_branches(examples::graph_of(layers), table,
                                          {.workers = workers, .steps = steps})
                     .makespan;
  }
  /// Returns the least makespan of all orders and workers. Layers 0 to 3 begin the streams, each
  /// but the first stream ends with a fusion, and two layers follow.
  [[nodiscard]] Rational least(int workers) const {
    const std::vector<std::pair<int, int>> runs{{0, 1},   {4, 8},   {2, 2},   {9, 13},
                                                {14, 14}, {15, 19}, {20, 22}, {3, 3}};
    std::vector<Rational> times;
    for (const auto& [first, last] : runs) {
      times.emplace_back();
      for (int l = first; l <= last; ++l)
        times.back() = times.back() + costs.times[static_cast<std::size_t>(l)];
    }
    times[5] = times[5] + times[7];  // layer 3 begins the third stream
    times.pop_back();
    return hd::test::least_makespan(times, {{}, {0}, {0}, {2}, {1, 3}, {2}, {4, 5}}, workers);
  }
};

std::string three_digits(double value) { return hd::text(std::round(1e3 * value) / 1e3); }

/// Returns the solver after a run on `workers` threads.
examples::MovingPoints solution_of(const examples::Convection& problem, int workers) {
  return hd::test::solve(
      problem, hd::plan::place_branches(
                   examples::graph_of(problem), hd::StageCosts{.forward = 1},
                   {.workers = workers, .outputs = examples::output_bytes(problem), .steps = 0})
                   .schedule);
}

/// Returns on how many of 30 random orders, on 1 to 3 ranks, the solver has the bits of one worker.
int equal_orders() {
  const examples::Convection problem{
      .points = 32, .speed = 2, .burgers = true, .viscosity = 0.05, .time = 0.3, .joins = 8};
  const examples::MovingPoints serial = solution_of(problem, 1);
  const hd::StageGraph graph = examples::graph_of(problem);
  std::mt19937_64 random(23);
  int equal = 0;
  for (int c = 0; c < 30; ++c) {
    const std::size_t ranks = 1 + random() % 3;
    hd::Orders orders{"any order", std::vector<std::vector<hd::Order>>(ranks), graph};
    std::vector<int> missing(static_cast<std::size_t>(graph.stages), 0);
    for (const hd::StageGraph::Edge& edge : graph.edges) ++missing[+edge.to];
    std::vector<hd::Stage> ready{hd::Stage{0}};
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const hd::Stage stage = ready.back();
      ready.pop_back();
      orders.ranks[random() % ranks].push_back({hd::Kind::forward, stage, hd::Item{0}});
      for (const hd::StageGraph::Edge& edge : graph.edges)
        if (edge.from == stage && --missing[+edge.to] == 0) ready.push_back(edge.to);
    }
    const examples::MovingPoints other =
        hd::test::solve(problem, hd::weave(orders, {.activation = 32 * sizeof(double)}));
    equal += other.grid == serial.grid && other.positions == serial.positions ? 1 : 0;
  }
  return equal;
}

}  // namespace

std::vector<Comparison> non_deep() {
  const int equal = workers_with_equal_scores();
  const ForkCounts counts = fork_counts();
  const double merged = merge_error();
  const PublishedStreams published;
  const hd::plan::BranchOptions usual;
  const auto gain = [&](int workers, std::uint64_t steps) {
    return three_digits(published.speed_up(workers, steps));
  };
  const auto of_all = [](int count) { return hd::text(count, " of ", random_forks); };
  const bool best =
      published.makespan(2) == published.least(2) && published.makespan(3) == published.least(3);
  return {
      {"three streams on 1, 2, 3 and 4 workers have the scores of one loop, bit for bit", "",
       hd::text(equal, " of 4"), "all", verdict(equal == 4)},
      {"3 workers: stem, longest stream and fusion, on rationals", "", of_all(counts.three), "all",
       verdict(counts.three == random_forks)},
      {"2 workers: the least time of all partitions of 2 to 6 streams", "",
       hd::text(of_all(counts.two), "; longest first alone: ", counts.longest_first), "all",
       verdict(counts.two == random_forks)},
      {"bytes in messages are the outputs at the fusion, without the largest", "",
       of_all(counts.bytes), "all", verdict(counts.bytes == random_forks)},
      {"a merged 3x3 kernel and its three branches: largest difference, relative", "",
       hd::text(merged), "at most 1e-6", verdict(merged <= 1e-6)},
      {"streams of 5, 6 and 6 layers with 160, 320 and 640 channels: the least makespan of all "
       "orders on 2 and 3 workers",
       "",
       hd::text("speed-up ", gain(2, usual.steps), " and ", gain(3, usual.steps),
                " without messages; longest first alone on 2 workers: ", gain(2, 0)),
       "equal to the brute force", verdict(best)},
      {"accuracy of a network of 12 layers", "over 80% on ImageNet", "", "none",
       "not reproducible: it needs the training, and the design of a network is not the library's"},
  };
}

std::vector<Comparison> lagrangian_pinn() {
  double rounding = 0;
  std::string upwind;
  for (const double speed : {1.0, 10.0, 100.0}) {
    const examples::Convection problem{.points = 64, .speed = speed, .time = 1, .steps = 20};
    const examples::MovingPoints end = solution_of(problem, 2);
    for (std::size_t i = 0; i < end.values.size(); ++i)
      rounding =
          std::max(rounding, std::abs(end.values[i] - std::sin(end.positions[i] - speed)) / speed);
    const double error =
        hd::test::largest_error(hd::test::upwind(problem.points, speed, problem.time),
                                [&](double x) { return std::sin(x - speed); });
    upwind += hd::text(upwind.empty() ? "" : ", ", three_digits(error));
  }
  const double before_shock = hd::test::largest_error(
      solution_of({.points = 256, .burgers = true, .time = 0.5, .steps = 10}, 2).grid,
      [](double x) { return hd::test::burgers(x, 0.5); });

  const examples::Convection viscous{
      .points = 256, .burgers = true, .viscosity = 0.1, .time = 1, .joins = 800};
  const std::vector<double> fine = hd::test::viscous_burgers(1024, viscous.viscosity, viscous.time);
  const std::vector<double> ours = solution_of(viscous, 2).grid;
  double remapped = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    remapped = std::max(remapped, std::abs(ours[i] - fine[4 * i]));

  const int orders = equal_orders();
  return {
      {"convection at speeds 1, 10 and 100: error of the moving points over the speed", "",
       hd::text(rounding, "; upwind differences on a fixed grid: ", upwind), "none",
       not_judged("points that move by x + c t are exact at a constant speed")},
      {"Burgers' equation at half the time of the shock, on the grid behind the join", "",
       hd::text(before_shock), "at most 1e-4 from the implicit solution",
       verdict(before_shock <= 1e-4)},
      {"Burgers' equation with viscosity 0.1 at time 1, diffused on the grid of 800 joins", "",
       hd::text(remapped), "at most 1e-3 from 1,024 fixed points", verdict(remapped <= 1e-3)},
      {"random orders of the two branches on 1 to 3 workers give the same bits", "",
       hd::text(orders, " of 30"), "all", verdict(orders == 30)},
      {"a network learns where a plain PINN fails", "at high speeds of convection", "", "none",
       "not reproducible: training networks is not the library's; the two branches are"},
  };
}

}  // namespace report
