// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// AIPerf: counts of operations, a search over networks on a farm, and its weak scaling in virtual
/// time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/farm_forecast.hpp>
#include <heddle/systems/aiperf/farm_search.hpp>
#include <heddle/systems/aiperf/operation_count.hpp>

#include "comparison.hpp"
#include "support/counted.hpp"
#include "support/network_search.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::plan::TunePoint;
using hd::plan::TuneTrial;

/// Returns how many of 200 random layers have the operations that counting numbers find.
int equal_layers() {
  int equal = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const hd::Random random(seed, "layers");
    const auto draw = [&](std::uint64_t index, std::uint64_t most) {
      return 1 + static_cast<std::int64_t>(random.below(index, most));
    };
    const hd::systems::OperationWeights weights;
    if (seed % 3 == 0) {
      const hd::systems::ConvolutionLayer layer{.inputs = draw(0, 4),
                                                .outputs = draw(1, 4),
                                                .kernel = draw(2, 5),
                                                .height = draw(3, 7),
                                                .width = draw(4, 7),
                                                .first = draw(5, 2) == 1};
      equal += hd::systems::operations(layer, weights) == hd::test::count_layer(layer, weights);
    } else if (seed % 3 == 1) {
      const hd::systems::DenseLayer layer{draw(0, 50), draw(1, 50)};
      equal += hd::systems::operations(layer, weights) == hd::test::count_layer(layer, weights);
    } else {
      const hd::systems::ElementLayer layer{
          static_cast<hd::systems::ElementLayer::Kind>(random.below(0, 5)), draw(1, 50),
          draw(2, 4)};
      equal += hd::systems::operations(layer, weights) == hd::test::count_layer(layer, weights);
    }
  }
  return equal;
}

std::vector<TuneTrial> search_with(const hd::test::NetworkSearch& search, int workers,
                                   std::int64_t trials, int lag) {
  return hd::systems::farm_search<TuneTrial>(
      {.workers = workers, .lag = lag}, trials,
      [&](std::uint64_t number, std::span<const TuneTrial> history) {
        return search.propose(number, history);
      },
      [&](const TunePoint& point) { return search.loss(point); });
}

/// Returns the search one trial after another; proposal i sees the trials up to i - lag.
std::vector<TuneTrial> serial_search(const hd::test::NetworkSearch& search, std::size_t trials,
                                     std::size_t lag) {
  std::vector<TuneTrial> made;
  for (std::size_t i = 0; i < trials; ++i) {
    TuneTrial next;
    next.point = search.propose(i, {made.data(), i + 1 > lag ? i + 1 - lag : 0});
    next.cost = search.loss(next.point);
    made.push_back(next);
  }
  return made;
}

/// Returns how many of 20 searches make the trials of a serial one on each of 1 to 8 workers.
int equal_searches() {
  int equal = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const hd::test::NetworkSearch search{.seed = seed};
    const std::vector<TuneTrial> expected = serial_search(search, 60, 8);
    bool same = true;
    for (const int workers : {1, 2, 4, 8}) {
      const std::vector<TuneTrial> trials = search_with(search, workers, 60, 8);
      same = same && std::equal(trials.begin(), trials.end(), expected.begin(), expected.end(),
                                [](const TuneTrial& a, const TuneTrial& b) {
                                  return a.point == b.point && a.cost == b.cost;
                                });
    }
    equal += same;
  }
  return equal;
}

/// Returns the operations per second of `workers` over those of the speed of one worker, for
/// 20 networks a worker whose training takes 1 plus or minus 50%: mean of 20.
double speed_of(int workers) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const hd::Random random(seed, "networks");
    std::vector<hd::systems::TrainedNetwork> networks;
    constexpr double speed = 1e12;  // operations a second of a worker
    const auto forecast = hd::pattern::forecast_farm(
        {.workers = workers, .lag = 2 * workers}, 20 * workers,
        [&](hd::Worker, const hd::pattern::FarmTask& task) {
          const hd::systems::TrainedNetwork network{
              {500'000, 1'000'000},
              1,
              50'000 + static_cast<std::int64_t>(
                           random.below(static_cast<std::uint64_t>(task.item), 100'001)),
              10'000};
          networks.push_back(network);
          return hd::pattern::FarmForecast::Attempt{
              hd::systems::search_operations({&network, 1}) / speed, true};
        });
    sum += hd::systems::search_operations(networks) / forecast.makespan / speed;
  }
  return sum / 20;
}

/// Returns the share of time in which 64 workers work if a trial takes as long as the operations of
/// its network.
double utilisation_of_networks(int lag) {
  const hd::test::NetworkSearch search{.seed = 1};
  const std::vector<TuneTrial> trials = search_with(search, 2, 64 * 40, lag);
  return hd::pattern::forecast_farm(
             {.workers = 64, .lag = lag}, 64 * 40,
             [&](hd::Worker, const hd::pattern::FarmTask& task) {
               const TunePoint& point = trials[static_cast<std::size_t>(task.item)].point;
               return hd::pattern::FarmForecast::Attempt{
                   1e-9 * static_cast<double>(search.operations(point).training()), true};
             })
      .utilisation();
}

/// Returns whether each trial of 64 workers, of which one is killed, counts once and begins once,
/// but for the trial that the worker had.
bool survives() {
  std::vector<int> begun(64 * 20, 0);
  const auto forecast =
      hd::pattern::forecast_farm({.workers = 64, .lag = 128, .lease = 5}, 64 * 20,
                                 [](hd::Worker worker, const hd::pattern::FarmTask& task) {
                                   return hd::pattern::FarmForecast::Attempt{
                                       +worker == 1 && task.item >= 128 ? 1e6 : 1.0, true};
                                 });
  for (const hd::pattern::FarmTask& task : forecast.begun)
    ++begun[static_cast<std::size_t>(task.item)];
  return forecast.failed.empty() && forecast.late == 1 &&
         std::count(begun.begin(), begun.end(), 1) == 64 * 20 - 1 &&
         std::count(begun.begin(), begun.end(), 2) == 1;
}

/// Returns the mean of the least losses of 40 searches of 80 trials with a lag of 16, of which the
/// first `startup` are random.
double least_loss(std::size_t startup) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const hd::test::NetworkSearch search{.seed = seed};
    const auto trials = hd::systems::farm_search<TuneTrial>(
        {.workers = 2, .lag = 16}, 80,
        [&](std::uint64_t number, std::span<const TuneTrial> history) {
          return hd::systems::propose_by_tpe(search.axes, history, number,
                                             {.startup = startup, .seed = seed});
        },
        [&](const TunePoint& point) { return search.loss(point); });
    double least = std::numeric_limits<double>::infinity();
    for (const TuneTrial& trial : trials) least = std::min(least, *trial.cost);
    sum += least;
  }
  return sum / 40;
}

}  // namespace

std::vector<Comparison> aiperf() {
  std::vector<Comparison> lines;
  const int layers = equal_layers();
  lines.push_back({"analytic operations of random layers equal those of numbers that count", "",
                   hd::text(layers, " of 200"), "all", verdict(layers == 200)});
  const int searches = equal_searches();
  lines.push_back({"searches with a lag of 8 on 1, 2, 4 and 8 workers equal a serial one", "",
                   hd::text(searches, " of 20"), "all", verdict(searches == 20)});
  std::string scaling;
  double worst = 1;
  for (const int workers : {1, 2, 4, 8, 16, 32, 64}) {
    const double share = speed_of(workers) / workers;
    scaling += hd::text(scaling.empty() ? "" : ", ", share);
    worst = std::min(worst, share);
  }
  lines.push_back(
      {"virtual time: analytic operations a second of 1 to 64 workers over the speed of "
       "as many, 20 networks a worker whose time varies by 50%",
       "56 TOPS to 194 POPS, near linear", scaling, "at least 0.95", verdict(worst >= 0.95)});
  lines.push_back(
      {"the same with 40 trials a worker that take as long as the operations of the "
       "networks of a search: 64 workers, lag of 2, 8 and 32 times the workers",
       "",
       hd::text(utilisation_of_networks(128), ", ", utilisation_of_networks(512), ", ",
                utilisation_of_networks(2048)),
       "none", not_judged(no_reference)});
  lines.push_back({"one of 64 workers is killed: trials that are lost or counted twice", "",
                   survives() ? "none; one trial has a second attempt" : "some", "none",
                   verdict(survives())});
  const double found = least_loss(10);
  const double chance = least_loss(1000);
  lines.push_back(
      {"least loss of 80 trials of TPE, and of 80 random ones (least possible: 1 to 1.1)", "",
       hd::text(found, " and ", chance), "less", verdict(found < chance)});
  lines.push_back({"operations a second on 4,096 accelerators", "194.53 POPS", "", "none",
                   "not reproducible: it needs the machine"});
  return lines;
}

}  // namespace report
