// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Structs of layout/ and machine/ that programs fill by hand: every door rejects a broken entry and
// names it.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/layout.hpp>
#include <heddle/machine.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/lpd/grid_order.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

#include "support/broken_entries.hpp"

namespace test_layout_broken_entries {

using namespace heddle;
using test::BrokenEntry;
using test::check_broken;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

systems::Graph graph(std::vector<std::int32_t> offsets, std::vector<std::int32_t> ends) {
  systems::Graph made;
  made.offsets = std::move(offsets);
  made.ends = std::move(ends);
  return made;
}

}  // namespace

TEST_CASE("every door of a Graph rejects offsets, ends and weights that do not fit") {
  systems::Graph weights = graph({0, 1, 2}, {1, 0});
  weights.weights = {1};
  enum class Seen { by_sizes, in_frontier, in_graph };  // the least that finds the fault
  const std::tuple<systems::Graph, const char*, Seen> broken[] = {
      {graph({0, 5}, {0}), "2 offsets and 1 edges", Seen::by_sizes},
      {graph({0, 2, 1, 2}, {0, 1}), "2 is followed by 1", Seen::in_frontier},
      {graph({0, 1, 9, 2}, {0, 1}), "1 is followed by 9", Seen::in_frontier},
      {graph({}, {}), "0 offsets and 0 edges", Seen::by_sizes},
      {graph({0, 1}, {7}), "ends at node 7", Seen::in_graph},
      {std::move(weights), "1 weights and 2 edges", Seen::by_sizes},
  };
  std::vector<BrokenEntry> table;
  for (const auto& [each, word, seen] : broken) {
    const systems::Graph* const g = &each;
    const bool by_sizes = seen == Seen::by_sizes;
    // The second node where there is one. Its offsets are wrong.
    const std::vector<std::int32_t> frontier{g->nodes() > 1 ? 1 : 0};
    table.push_back({"check", [=] { check(*g); }, {word}});
    if (by_sizes) table.push_back({"csr_words", [=] { (void)systems::csr_words(*g); }, {word}});
    if (by_sizes) table.push_back({"coo_words", [=] { (void)systems::coo_words(*g); }, {word}});
    table.push_back({"split_nodes", [=] { (void)systems::split_nodes(*g, 2); }, {word}});
    table.push_back({"degree_limit", [=] { (void)systems::degree_limit(*g); }, {word}});
    for (const systems::FrontierBalance balance :
         {systems::FrontierBalance::nodes, systems::FrontierBalance::edges,
          systems::FrontierBalance::decomposition, systems::FrontierBalance::splitting,
          systems::FrontierBalance::hierarchy}) {
      const systems::FrontierOptions options{.balance = balance, .max_degree = {}, .workers = 2};
      const bool splits = balance == systems::FrontierBalance::splitting;
      const bool all = splits || balance == systems::FrontierBalance::edges ||
                       balance == systems::FrontierBalance::hierarchy;  // reads the whole graph
      if (all || seen != Seen::in_graph)
        table.push_back({"frontier_loads",
                         [=] { (void)systems::frontier_loads(*g, frontier, options); },
                         {word}});
      if (splits || by_sizes)
        table.push_back({"graph_words", [=] { (void)systems::graph_words(*g, options); }, {word}});
    }
  }
  check_broken(table);
}

TEST_CASE("orders of grids, sets of indices and regions reject entries outside of them") {
  const auto pairs = [](systems::GridOrder order) {
    return [order = std::move(order)] { (void)systems::adjacent_pairs(order); };
  };
  const auto blocks = [](heddle::impl::SharedRun run, SharedRegion::Array array) {
    return [=] { (void)SharedRegion({{run}}).blocks(SharedRegion::Side::a, array, 8); };
  };
  const auto share = [](std::vector<std::int64_t> sums, std::int64_t worker) {
    return [=] { (void)systems::decomposed_share(sums, worker, 2); };
  };
  check_broken({
      {"cell too large", pairs({2, 2, {0, 1, 2, 9}, {{0, 1, 4}}}), {"cells[3] = 9 of 4"}},
      {"cell negative", pairs({2, 2, {0, 1, 2, -1}, {{0, 1, 4}}}), {"cells[3] = -1"}},
      {"cell twice", pairs({2, 2, {0, 0, 2, 3}, {{0, 1, 4}}}), {"cells[1] = 0"}},
      {"cells missing", pairs({2, 2, {0, 1, 2}, {{0, 1, 3}}}), {"2 columns, 3 cells"}},
      {"grid too large", pairs({20, 20, {0, 1, 2, 3}, {{0, 1, 4}}}), {"20 rows"}},
      {"grid negative", pairs({-2, -2, {0, 1, 2, 3}, {{0, 1, 4}}}), {"-2 rows"}},
      {"group too long", pairs({2, 2, {0, 1, 2, 3}, {{0, 1, 40}}}), {"group 0", "40 of 4"}},
      {"group before", pairs({2, 2, {0, 1, 2, 3}, {{-1, 1, 4}}}), {"group 0 begins at -1"}},
      {"group missing", pairs({2, 2, {0, 1, 2, 3}, {{0, 1, 2}}}), {"ends at 2 of 4"}},
      {"sizes overflow",
       [] {
         (void)systems::locality_order(2, 2, std::vector<std::int64_t>{most, most, 6});
       },
       {"sizes[0] = 9223372036854775807"}},
      {"interval",
       [] {
         IndexSet set;
         set.add({std::numeric_limits<std::int64_t>::min(), most});
       },
       {"[-9223372036854775808, 9223372036854775807)"}},
      {"position", [] { (void)IndexSet(5).at(IndexSet(9)); }, {"8 of 5"}},
      {"run negative", blocks({-3, 0, 2}, {{4}, {0}}), {"positions -3 to -2"}},
      {"run empty", blocks({0, 0, 0}, {{4}, {0}}), {"size = 0"}},
      {"run too long", blocks({0, 0, 5}, {{4}, {0}}), {"positions 0 to 4 of 4"}},
      {"first negative", blocks({0, 0, 4}, {{4}, {-2}}), {"positions -2"}},
      {"extent negative", blocks({0, 0, 4}, {{-4}, {0}}), {"of -4"}},
      {"dimension too many", blocks({0, 0, 4}, {{4, 4}, {0, 0}}), {"2 extents"}},
      {"first missing", blocks({0, 0, 4}, {{4}, {}}), {"0 first positions for 1"}},
      {"part",
       [] {
         (void)SharedRegion({{{0, 0, 4}}}).part(3, 2);
       },
       {"part 3 of 2"}},
      {"no parts",
       [] {
         (void)SharedRegion({{{0, 0, 4}}}).part(0, 0);
       },
       {"part 0 of 0"}},
      {"sets",
       [] {
         const IndexSet set(5);
         (void)SharedRegion(std::span(&set, 1), {});
       },
       {"1 and 0 sets"}},
      {"array too large",
       [] {
         (void)SharedRegion::Array{{most, most}, {0, 0}}.bytes(8);
       },
       {"9223372036854775807 x 9223372036854775807"}},
      {"first sum", share({5, 7}, 0), {"the first one is 5"}},
      {"last sum", share({0, -7}, 0), {"the last one -7"}},
      {"no sums", share({}, 0), {"there are none"}},
  });
}

TEST_CASE("memories in banks and products reject numbers that do not fit") {
  const auto work = [](systems::DramGrid grid, systems::Gemv gemv) {
    return [=] { (void)systems::bank_work(grid, gemv); };
  };
  const systems::Gemv small{.outputs = 2, .inputs = 2};
  const auto of = [&](std::int64_t systems::Gemv::*entry, std::int64_t value,
                      systems::BankLayout layout = systems::BankLayout::packed) {
    systems::Gemv made = small;
    made.layout = layout;
    made.*entry = value;
    return made;
  };
  check_broken({
      {"channels", work({.channels = 0}, small), {"channels = 0"}},
      {"banks", work({.channels = 65536, .banks = 65536}, small), {"banks = 65536"}},
      {"burst", work({.burst = 0}, small), {"burst = 0"}},
      {"outputs", work({}, of(&systems::Gemv::outputs, most)), {"outputs = 9223372036854775807"}},
      {"inputs", work({}, of(&systems::Gemv::inputs, most / 2)), {"inputs = 4611686018427387903"}},
      {"heads", work({}, of(&systems::Gemv::heads, most)), {"heads = 9223372036854775807"}},
      {"reserved",
       work({}, of(&systems::Gemv::reserved, most, systems::BankLayout::dealt)),
       {"reserved = 92233"}},
      {"reserved negative", work({}, of(&systems::Gemv::reserved, -1)), {"reserved = -1"}},
  });
}

TEST_CASE("machines reject broken devices, links, ports and numbers of ranks") {
  const Machine two = Machine::uniform(2, {}, {.latency = 1e-6, .bandwidth = 1e9});
  const auto uniform = [](Device device, Link link = {}) {
    return [=] { (void)Machine::uniform(2, device, link); };
  };
  const auto level = [](Level smallest) {
    return [=] {
      (void)Machine::hierarchical(std::vector<Device>(4), {smallest, {.name = "all", .ranks = 4}});
    };
  };
  const Device slow{.memories = {{.name = "disk", .link = {.latency = -1}}}};
  const Link wrong{.latency = 0, .bandwidth = nan};
  check_broken({
      {"speed", uniform({.speed = nan}), {"speed nan"}},
      {"units", uniform({.units = -1}), {"units -1"}},
      {"memory", uniform(slow), {"memory 'disk'", "latency -1"}},
      {"latency", uniform({}, {.latency = nan}), {"latency nan"}},
      {"bandwidth", uniform({}, wrong), {"bandwidth nan"}},
      {"ranks of a level", level({.name = "node", .ranks = -2}), {"'node'"}},
      {"link of a level", level({.name = "node", .ranks = 2, .link = wrong}), {"nan B/s"}},
      {"port", level({.name = "node", .ranks = 2, .ports = {.out = -1}}), {"out -1 B/s"}},
      {"ports", level({.name = "node", .ranks = 2, .ports = {.count = 0}}), {"count 0"}},
      {"network",
       [&] {
         (void)connect(two, {{"eth", {.latency = -1}, {0, 1}}});
       },
       {"latency -1"}},
      {"network without ranks",
       [&] {
         (void)connect(two, {{"eth", {}, {0, 1}}, {"spare", wrong, {}}});
       },
       {"'spare'", "bandwidth nan"}},
      {"too many ranks", [&] { (void)near_groups(two, 5, 1); }, {"5 of 2"}},
      {"no ranks", [&] { (void)near_groups(two, -1, 1); }, {"-1 of 2"}},
  });
}

}  // namespace test_layout_broken_entries
