// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks that text profiles of graphs become layers: bytes at cuts against a sum over edges, lists,
// order and totals of random graphs. Wrong texts are rejected by line and remedy, and mutated texts
// never crash.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/planner/plan_choice.hpp>
#include <heddle/plan/planner/search.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/pipedream/graph_profile.hpp>
#include <heddle/systems/planners.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"
#include "support/text_mutator.hpp"

namespace test_graph_profile {

namespace hd = heddle;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string node(std::string_view id, std::string_view forward, std::string_view backward,
                 std::string_view activation, std::string_view parameters) {
  return hd::text(id, " -- layer of ", id, " -- forward_compute_time=", forward,
                  ", backward_compute_time=", backward, ", activation_size=", activation,
                  ", parameter_size=", parameters, '\n');
}

/// A chain with a list of a tuple's members, and an input without a time.
std::string chain() {
  return node("node1", "0.000", "0.000", "640.0", "0.000") +
         node("node2", "1.5", "3", "[96.0; 32.0]", "4096.000") +
         node("node3", "0", "0.25", "64", "0") + node("node4", "2", "4", "8", "0") +
         "\tnode1 -- node2\n\tnode2 -- node3\n \tnode3 -- node4\n";
}

std::string error_of(std::string_view text) {
  return hd::test::message_of<hd::format_error>(
      [&] { static_cast<void>(hd::systems::read_graph_profile(text, {.name = "p.txt"})); });
}

/// What the error says if `from` is replaced by `to` in the chain.
std::string error_of(std::string_view from, std::string_view to) {
  std::string text = chain();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return error_of(text);
}

}  // namespace

TEST_CASE("a text profile of a chain becomes layers") {
  const hd::plan::Profile profile =
      hd::systems::read_graph_profile(chain(), {.model = "m", .device = "v100", .samples = 4});
  CHECK(profile.model == "m");
  CHECK(profile.reference == "v100");
  CHECK(profile.input == 160);
  REQUIRE(profile.layers.size() == 2);
  // node3 takes no forward time: it joins node2, and its value of 64 bytes crosses the cut.
  const hd::plan::ProfiledLayer& first = profile.layers[0];
  CHECK(first.name == "layer of node2");
  CHECK(first.output == 16);
  CHECK(first.saved == (640 + 96 + 32 + 64) / 4);
  CHECK(first.parameters == 4096);
  REQUIRE(first.measured.size() == 1);
  CHECK(first.measured[0].device == "v100");
  CHECK(first.measured[0].samples == 4);
  CHECK(first.measured[0].times.forward == Approx(1.5e-3));
  CHECK(first.measured[0].times.backward_weight == Approx(1.5e-3));
  CHECK(first.measured[0].times.backward_input == Approx(1.75e-3));
  const hd::plan::ProfiledLayer& second = profile.layers[1];
  CHECK(second.output == 0);
  CHECK(second.measured[0].times.backward_weight == 0);
  CHECK(second.measured[0].times.backward_input == Approx(4e-3));
  // A partition is ignored, as are blanks, the ends of lines and the order of the fields.
  std::string other = chain();
  for (std::size_t at = 0; (at = other.find("00\n", at)) != std::string::npos; at += 2)
    other.replace(at + 2, 1, " -- stage_id=1\r\n\n");
  CHECK(hd::systems::read_graph_profile(other, {.model = "m", .device = "v100", .samples = 4}) ==
        profile);
}

TEST_CASE("the values that are read behind a cut cross it") {
  // 'a' is read by 'b' and 'd', and 'b' by 'c' and 'd'. The order of the lines is not that of the
  // graph.
  const auto profile_of = [](const char* a, const char* b) {
    return hd::systems::read_graph_profile(
        node("d", "1", "1", "1", "0") + node("a", "1", "1", a, "0") + node("b", "1", "1", b, "0") +
        node("c", "1", "1", "1000", "0") + "\ta -- b\n\ta -- d\n\tb -- c\n\tb -- d\n\tc -- d\n");
  };
  const auto outputs = [](const hd::plan::Profile& profile) {
    std::vector<hd::Bytes> all;
    for (const hd::plan::ProfiledLayer& layer : profile.layers) all.push_back(layer.output);
    return all;
  };
  CHECK(profile_of("7", "20").layers[3].name == "layer of d");
  CHECK(outputs(profile_of("7", "20")) == std::vector<hd::Bytes>{7, 27, 1027, 0});
  // With an entry for each edge, and with a tuple of three for two edges.
  CHECK(outputs(profile_of("[5; 7]", "[20; 30]")) == std::vector<hd::Bytes>{12, 57, 1037, 0});
  CHECK(outputs(profile_of("[1; 2; 4]", "20")) == std::vector<hd::Bytes>{7, 27, 1027, 0});
}

TEST_CASE("every plan of an imported profile has a Schedule that can be simulated") {
  std::mt19937 random(41);
  hd::test::Coverage coverage("imported profiles");
  const hd::Machine machine = hd::Machine::uniform(3, {.name = "measured"}, {1e-6, 1e7});
  const std::uint64_t trials = hd::test::cases(60, 5000);
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    // Small sizes of a whole microbatch are few bytes a sample, also 0 or less than an element.
    const unsigned largest = trial % 2 == 0 ? 9 : 100'000;
    const std::size_t count = 1 + random() % 5;
    std::string text = node("in", "0", "0", hd::text(random() % largest, ".0"), "0");
    std::string edges;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string activation = random() % 3 == 0
                                         ? hd::text('[', random() % largest, "; 4]")
                                         : hd::text(trial == 0 ? 4 : random() % largest);
      text += node(hd::text('n', i), hd::text(1 + random() % 50), hd::text(random() % 100),
                   activation, hd::text(100 * (random() % largest) + random() % 4));
      edges += hd::text('\t', i == 0 ? "in" : hd::text('n', i - 1), " -- n", i, '\n');
    }
    const std::int64_t samples = std::vector{1, 3, 32}[random() % 3];
    const hd::plan::Profile profile =
        hd::systems::read_graph_profile(text + edges, {.samples = samples});
    const bool whole =
        std::ranges::all_of(profile.layers, [](const hd::plan::ProfiledLayer& layer) {
          return layer.saved % 4 == 0 && layer.output % 4 == 0 && layer.parameters % 4 == 0;
        });
    coverage.count("parts of elements", !whole);
    const char* schedule = trial % 3 == 0 ? "zb-h1" : "1f1b";
    const hd::plan::PlanOptions options{
        .batch = 12, .microbatches = {2, 4}, .schedule = schedule, .executable = true};
    INFO(text << edges << samples << " samples");
    const hd::plan::PlanSearch found =
        hd::plan::search(profile, machine, options, hd::systems::planners());
    for (const hd::plan::PricedPlan& priced : found.plans()) {
      if (!priced.found.plan) continue;
      const hd::Plan& plan = *priced.found.plan;
      INFO(plan);
      const hd::Schedule made = hd::plan::schedule(plan, profile, {.ranks = machine.ranks()});
      const hd::Seconds step = simulate(made, hd::plan::costs(plan, profile, machine)).makespan();
      coverage.count("several stages", plan.stages.size() > 1);
      REQUIRE(step > 0);
      REQUIRE(step <= priced.simulated + 1e-4);  // rounding sends a few bytes more
    }
    REQUIRE_NOTHROW(hd::plan::PlanChoice(profile, machine,
                                         {.search = options, .planners = hd::systems::planners()}));
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(5).empty());
}

TEST_CASE("random graphs keep their totals, and each cut has the bytes of its edges") {
  std::mt19937 random(28);
  const std::uint64_t trials = hd::test::cases(100, 10'000);
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    const std::size_t count = 1 + random() % 12;
    std::vector<std::vector<std::size_t>> readers(count);
    for (std::size_t i = 0; i + 1 < count; ++i)
      for (std::size_t j = i + 1; j < count; ++j)
        if (j == i + 1 || random() % 4 == 0) readers[i].push_back(j);
    std::string nodes, edges;
    double forward = 0, backward = 0;
    hd::Bytes saved = 0, parameters = 0;
    std::vector<std::vector<hd::Bytes>> sizes(count);
    for (std::size_t i = 0; i < count; ++i) {
      const bool by_edge = readers[i].size() > 1 && random() % 2 == 0;
      for (std::size_t e = 0; e < (by_edge ? readers[i].size() : 1); ++e)
        sizes[i].push_back(random() % 1000);
      std::string list = hd::text(sizes[i][0]);
      for (std::size_t e = 1; e < sizes[i].size(); ++e) list += hd::text("; ", sizes[i][e]);
      if (by_edge) list = '[' + list + ']';
      const auto f = 1 + random() % 50, b = random() % 100, p = random() % 2 * (random() % 5000);
      nodes += node(hd::text('n', i), hd::text(f), hd::text(b), list, hd::text(p));
      for (const std::size_t reader : readers[i])
        edges += hd::text("\tn", i, " -- n", reader, '\n');
      forward += 1e-3 * static_cast<double>(f);
      backward += 1e-3 * static_cast<double>(b);
      for (const hd::Bytes size : sizes[i]) saved += size;
      parameters += p;
    }
    const hd::plan::Profile profile = hd::systems::read_graph_profile(nodes + edges);
    REQUIRE(profile.layers.size() == count);
    const hd::LayerRange all{0, static_cast<int>(count)};
    CHECK(profile.parameters(all) == parameters);
    CHECK(profile.saved(all) == saved);
    const hd::plan::LayerTimes times = profile.times(all, {.name = "measured"}, 1, 1);
    CHECK(times.forward == Approx(forward));
    CHECK(times.backward() == Approx(backward).margin(1e-12));
    for (std::size_t cut = 0; cut < count; ++cut) {
      hd::Bytes bytes = 0;
      for (std::size_t i = 0; i <= cut; ++i) {
        hd::Bytes of_edges = 0;
        bool read = false;
        for (std::size_t e = 0; e < readers[i].size(); ++e) {
          if (readers[i][e] <= cut) continue;
          read = true;
          if (sizes[i].size() > 1) of_edges += sizes[i][e];
        }
        bytes += sizes[i].size() > 1 ? of_edges : read ? sizes[i][0] : 0;
      }
      CHECK(profile.layers[cut].output == bytes);
    }
  }
}

TEST_CASE("a wrong text profile is rejected by line and remedy") {
  CHECK_THAT(error_of(""), ContainsSubstring("'p.txt': there are no nodes; a line of a node is"));
  CHECK_THAT(error_of("\tnode1 -- node2\n"), ContainsSubstring("there are no nodes"));
  CHECK_THAT(error_of("node1 -- node2\n"),
             ContainsSubstring("'p.txt', line 1: 'node1 -- node2' is no node; write"));
  CHECK_THAT(error_of("node2 -- layer", "layer"), ContainsSubstring("line 2: "));
  CHECK_THAT(error_of(", parameter_size=4096.000", ""),
             ContainsSubstring("line 2: node 'node2' has no 'parameter_size'; add the field"));
  CHECK_THAT(error_of("backward_compute_time=3, ", ""),
             ContainsSubstring("line 2: node 'node2' has no 'backward_compute_time'"));
  CHECK_THAT(error_of("backward_compute_time=3", "backward_time=3"),
             ContainsSubstring("line 2: there is no field 'backward_time'; the fields are "));
  CHECK_THAT(error_of("backward_compute_time=3", "forward_compute_time=3"),
             ContainsSubstring("line 2: 'forward_compute_time' is given twice"));
  for (const char* const time : {"nan", "NaN", "inf", "-1.5", "-0", "1e300"})
    CHECK_THAT(error_of("time=1.5", std::string("time=") + time),
               ContainsSubstring(hd::text("line 2: 'forward_compute_time' is ", time)) &&
                   ContainsSubstring("measure it again"));
  for (const char* const time : {"", "1.5ms", "1,5", "0x1", "1e999", "one"})
    CHECK_THAT(error_of("time=1.5", std::string("time=") + time), ContainsSubstring("line 2: "));
  CHECK_THAT(error_of("96.0; 32.0]", "96.0; 32.0"),
             ContainsSubstring("line 2: the list of 'activation_size' does not end: '[96.0; 32.0'; "
                               "add what is missing"));
  CHECK_THAT(error_of("96.0; 32.0]", "96.0; ]"),
             ContainsSubstring("'activation_size' is not a number, but ''"));
  CHECK_THAT(error_of("96.0; 32.0]", "96.0;]"), ContainsSubstring("is not a number"));
  CHECK_THAT(error_of("[96.0; 32.0]", "[]"), ContainsSubstring("is not a number"));
  CHECK_THAT(error_of("96.0; 32.0]", "96.0; ;]"), ContainsSubstring("is not a number"));
  CHECK_THAT(error_of("96.0; 32.0]", "96.0, 32.0]"), ContainsSubstring("does not end"));
  CHECK_THAT(error_of("[96.0", "[96.5"), ContainsSubstring("is 96.5, expected whole bytes"));
  CHECK_THAT(error_of("[96.0", "[-96"), ContainsSubstring("'activation_size' is -96"));
  CHECK_THAT(error_of("4096.000", "4 KB"), ContainsSubstring("'parameter_size' is not a number"));
  CHECK_THAT(error_of("4096.000", "9e16"), ContainsSubstring("'parameter_size' is 9e16"));
  CHECK_THAT(error_of("[96.0; 32.0]", "[6e15; 6e15]"),
             ContainsSubstring("line 2: the sizes up to here sum to more than"));
  CHECK_THAT(error_of("node2 -- layer", "node1 -- layer"),
             ContainsSubstring("line 2: node 'node1' is given twice"));
  CHECK_THAT(error_of("-- node4\n", "-- node5\n"),
             ContainsSubstring("line 7: an edge names 'node5', which is no node; write"));
  CHECK_THAT(error_of("-- node4\n", "-- \n"), ContainsSubstring("line 7: "));
  CHECK_THAT(error_of("-- node4\n", "-- node3\n"),
             ContainsSubstring("line 7: an edge joins 'node3' to itself"));
  CHECK_THAT(error_of("-- node4\n", "-- node4\n\tnode3 -- node4\n"),
             ContainsSubstring("line 8: the edge from 'node3' to 'node4' is given twice"));
  CHECK_THAT(error_of("-- node4\n", "-- node4\n\tnode4 -- node2\n"),
             ContainsSubstring("line 2: the edges have a cycle, and 'node2' is in it"));
  CHECK_THAT(error_of(" \tnode3 -- node4\n", ""),
             ContainsSubstring("line 4: no edges join 'node4' with 'node1'; add the edges"));
  CHECK_THAT(error_of(node("a", "0", "1", "4", "0")),
             ContainsSubstring("'p.txt': no node has a forward time; measure"));
  CHECK_THROWS_AS(hd::systems::read_graph_profile(chain(), {.samples = 0}), hd::contract_error);
  CHECK_THROWS_AS(hd::systems::read_graph_profile(chain(), {.device = ""}), hd::contract_error);
}

TEST_CASE("mutated text profiles are read or rejected") {
  const std::string good = chain() + node("node5", "1", "2", "[1; 2]", "3") + "\tnode4 -- node5\n";
  hd::test::TextMutator mutator(8, {"\n", "\t", " ", "-", "=", ",", ";", "[", "]", ".", "0", "1",
                                    "8", "9", "e", "i", "n", "x"});
  std::size_t read = 0, rejected = 0;
  const auto attempt = [&](const std::string& text) {
    try {
      const hd::plan::Profile profile = hd::systems::read_graph_profile(text);
      check(profile);  // what is read is valid
      ++read;
    } catch (const hd::format_error&) {
      ++rejected;
    }
  };
  for (std::size_t size = 0; size < good.size(); ++size) attempt(good.substr(0, size));
  const std::uint64_t trials = hd::test::cases(20'000, 100'000);
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    std::string text = good;
    mutator.mutate(text, 4);
    attempt(text);
  }
  CHECK(read > trials / 100);
  CHECK(rejected > trials / 4);
}

}  // namespace test_graph_profile
