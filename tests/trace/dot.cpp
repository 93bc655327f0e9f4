// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/dot.hpp>
#include <heddle/trace/grid.hpp>
#include <heddle/trace/impl/kind_style.hpp>
#include <heddle/trace/impl/shades.hpp>
#include <heddle/trace/svg.hpp>

namespace test_dot {

using namespace heddle;

namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

Orders read(std::string_view csv, StageGraph graph = {}) {
  return schedule::read_orders(csv, {.name = "mine", .graph = std::move(graph)});
}

/// Two ranks that both have both stages; the second microbatch goes the other way.
Schedule two_directions() {
  return weave(read("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n", StageGraph::replicated_chain(2)));
}

}  // namespace

TEST_CASE("the graph has a node for each action and an edge for each dependency") {
  const Schedule schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  const std::string dot = trace::to_dot(schedule);
  CHECK(dot.starts_with("digraph \"1F1B P=2 M=2\" {\n"));
  CHECK(dot.ends_with("}\n"));
  CHECK(count(dot, "[label=") == schedule.size());
  CHECK(count(dot, "shape=ellipse") == 4);
  CHECK(count(dot, "[label=\"0SEND_F0 -> 1RECV_F0\"") == 1);
  CHECK(count(dot, "subgraph cluster_") == 2);
  CHECK(count(dot, "{") == count(dot, "}"));
  CHECK(count(dot, " -> a") ==
        schedule.all_after().size() + schedule.size() - schedule.queues().size());
  CHECK(count(dot, "[style=dotted]") == schedule.size() - schedule.queues().size());
}

TEST_CASE("names are quoted in the graph") {
  Orders orders = read("0F0");
  orders.name = "a \"b\" \\ c\n";
  CHECK(trace::to_dot(weave(orders)).starts_with("digraph \"a \\\"b\\\" \\\\ c \" {\n"));
  CHECK(trace::to_dot(Schedule{}).starts_with("digraph \"schedule\" {\n"));
}

TEST_CASE("a fused pair is joined in the graph, in brackets in the grid, stacked in the picture") {
  const Schedule schedule = weave(read("0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,0B0,1B1,0B1"));
  CHECK(count(trace::to_dot(schedule), "[dir=none, color=\"black:black\"]") == 1);
  CHECK(to_grid(schedule).find("1F0  (0F1 1B0) 1F1") != std::string::npos);
  const std::string svg =
      trace::to_svg(simulate(schedule, {.forward = 1, .backward = 2, .forward_backward = 2}));
  CHECK(count(svg, "height=\"16\"") == 2);
  CHECK(count(svg, "height=\"32\" rx=\"2\"") ==
        schedule.size() - 2 - 2);  // and two updates of no time
  CHECK(count(svg, ">0F1<") == 1);
  CHECK(count(svg, ">1B0<") == 1);
}

TEST_CASE("further stages of a rank and the other direction are darker") {
  const auto shade = [](const Schedule& schedule, std::size_t i) {
    return trace::impl::Shades(schedule).of(ActionId{i});
  };
  const Schedule one = schedule::one_f_one_b({.ranks = 4, .microbatches = 2});
  CHECK(trace::impl::Shades(one).size() == 1);
  CHECK(trace::to_svg(simulate(one, {.forward = 1})).find("darker") == std::string::npos);
  const Schedule chunks = weave(schedule::interleaved(2, 3, 4));
  CHECK(trace::impl::Shades(chunks).size() == 3);
  for (std::size_t i = 0; i < chunks.size(); ++i)
    if (chunks[ActionId{i}].kind <= Kind::backward)
      CHECK(shade(chunks, i) == +chunks[ActionId{i}].stage / 2);
  const Schedule both = two_directions();
  CHECK(trace::impl::Shades(both).size() == 2);
  for (std::size_t i = 0; i < both.size(); ++i)
    if (both[ActionId{i}].kind <= Kind::backward) CHECK(shade(both, i) == +both[ActionId{i}].item);
  const std::string svg = trace::to_svg(simulate(both, {.forward = 1, .backward = 2}));
  CHECK(count(svg, "fill=\"" + trace::impl::darker("#2f6fd0", 0.6) + "\"") == 2 + 1);  // and legend
  CHECK(count(svg, "height=\"32\" rx=\"2\"") == 8);  // the sums take no time and no room
}

TEST_CASE("the legend says the one thing that a darker shade means in a picture") {
  const auto meaning = [](const Schedule& schedule) {
    const std::string svg = trace::to_svg(simulate(schedule, {.forward = 1, .backward = 2}));
    const std::size_t at = svg.find("darker: ") + 8;
    return svg.substr(at, svg.find('<', at) - at);
  };
  CHECK(meaning(schedule::zb_v({.ranks = 4, .microbatches = 8})) == "a further stage of the rank");
  CHECK(meaning(two_directions()) == "a microbatch of the other direction");
  CHECK(meaning(schedule::chimera({.ranks = 4, .microbatches = 8, .pairs = 2})) ==
        "a microbatch that enters at a further rank");
}

TEST_CASE("a darker colour keeps its hue") {
  CHECK(trace::impl::darker("#ff8000", 1) == "#ff8000");
  CHECK(trace::impl::darker("#ff8040", 0.5) == "#7f4020");
}

}  // namespace test_dot
