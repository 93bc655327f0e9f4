// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// NanoFlow: pieces of the operations of a layer that share one device.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>
#include <heddle/systems/nanoflow/nano_search.hpp>

#include "../../tests/support/all_nano_plans.hpp"
#include "../../tests/support/serving_layer.hpp"
#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

hd::Timeline times(const hd::systems::NanoLayer& layer, const hd::systems::NanoPlan& plan) {
  return hd::simulate(hd::systems::nano_schedule(layer, plan),
                      hd::systems::InterferenceCosts(layer));
}

/// The largest sum of units at the start of an action.
int most_units(const hd::Timeline& timeline) {
  int most = 0;
  for (const hd::Span& event : timeline.spans()) {
    int sum = 0;
    for (std::size_t i = 0; i < timeline.spans().size(); ++i) {
      const hd::Span& span = timeline[hd::ActionId{i}];
      if (span.start <= event.start && event.start < span.end)
        sum += timeline.schedule()[hd::ActionId{i}].units;
    }
    most = std::max(most, sum);
  }
  return most;
}

/// The layer without a guess about its resources `from` and those behind it: the speed of each is
/// its share of the device.
hd::systems::NanoLayer neutral(hd::systems::NanoLayer layer, std::size_t from) {
  for (std::size_t r = from; r < layer.performance.size(); ++r)
    layer.performance[r] = hd::systems::performance_between(layer.units, {});
  return layer;
}

}  // namespace

std::vector<Comparison> nano_flow() {
  using Division = std::vector<std::int64_t>;
  using Units = std::vector<std::vector<int>>;
  std::vector<Comparison> lines;
  const hd::systems::NanoLayer layer = hd::test::serving_layer();
  const hd::Seconds serial =
      times(layer, hd::systems::serial_nano_plan(layer, {layer.samples})).makespan();
  for (const Division& division : {Division{640, 1408}, {640, 704, 704}}) {
    const std::string shape = hd::text("serving layer, ", division.size(), " pieces, first 640");
    const double alone =
        serial / times(layer, hd::systems::serial_nano_plan(layer, division)).makespan();
    lines.push_back({hd::text(shape, ": speed without overlap over that of whole operations"),
                     "-13.2%", hd::text(alone, 'x'), "below 1", verdict(alone < 1)});
    const auto found = hd::systems::search_nano_plan(layer, {.divisions = {division}});
    const double gain = serial / found.makespan;
    const auto neutral_gain = [&](std::size_t from) {
      return serial / hd::systems::search_nano_plan(neutral(layer, from), {.divisions = {division}})
                          .makespan;
    };
    lines.push_back(
        {"the same, overlapped by the plan that the search finds, if the network has the assumed "
         "speed of 0.8 with a share of 0.4",
         "1.07x to 1.17x",
         hd::text(gain, "x; ", neutral_gain(hd::test::network),
                  "x if the network's speed is its share, ", neutral_gain(0),
                  "x if that of all resources is"),
         "at least 1.07 with the assumed speed", verdict(gain >= 1.07)});
    const int most = most_units(times(layer, found.plan));
    lines.push_back({"the same, most units of the device at any event", "at most all",
                     hd::text(most, " of ", layer.units), "at most all",
                     verdict(most <= layer.units)});
  }
  double worst = 1;
  std::size_t plans = 0, tried = 0;
  for (const auto& [division, units] :
       {std::pair<Division, Units>{{640, 1408}, {{6, 7, 8, 10}, {2, 4, 10}, {2, 3, 4, 10}}},
        {{256, 768, 1024}, {{6, 10}, {4, 10}, {4, 10}}}}) {
    const auto found =
        hd::systems::search_nano_plan(layer, {.divisions = {division}, .units = units});
    const hd::test::AllNanoPlans all(layer, division, units, found.makespan);
    worst = std::max(worst, found.makespan / all.best);
    plans += all.simulated;
    tried += found.simulated;
  }
  lines.push_back(
      {"time of the found plan over the best of all plans, 2 and 3 pieces of 5 "
       "operations",
       "", hd::text(worst, "x (", tried, " plans simulated, ", plans, " for the proof)"),
       "at most 1.02", verdict(worst <= 1.02)});
  lines.push_back({"throughput of serving, and its share of the optimum", "1.91x; 59-72%", "",
                   "none",
                   "not reproducible: needs 8 A100, the published kernels and the measured "
                   "interference of all their pairs"});
  return lines;
}

}  // namespace report
