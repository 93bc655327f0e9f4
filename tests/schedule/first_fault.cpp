// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_first_fault {

using namespace heddle;

namespace {

constexpr Kind F = Kind::forward, I = Kind::backward_input, W = Kind::backward_weight,
               B = Kind::backward;

Order order(Kind kind, int stage, int item) { return {kind, Stage{stage}, Item{item}}; }
Order fused(Kind kind, int stage, int item) { return {kind, Stage{stage}, Item{item}, true}; }

/// "rank.entry: what (why)", or "" where there is no fault.
std::string said(const Orders& orders) {
  const std::optional<Fault> fault = schedule::first_fault(orders);
  if (!fault) return {};
  return text(fault->rank, ".", fault->entry, ": ", fault->what, " (", fault->why, ")");
}
std::string said(std::vector<std::vector<Order>> ranks, StageGraph graph = {}) {
  return said(Orders{"mine", std::move(ranks), std::move(graph)});
}

bool woven(const Orders& orders) {
  try {
    (void)weave(orders);
  } catch (const error&) {
    return false;
  }
  return true;
}

/// A small change somewhere: an entry lost, doubled, moved, swapped or renamed.
void mutate(Orders& orders, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return random() % n; };
  auto& list = orders.ranks[below(orders.ranks.size())];
  if (list.empty()) return;
  const auto at = list.begin() + static_cast<std::ptrdiff_t>(below(list.size()));
  const auto other = list.begin() + static_cast<std::ptrdiff_t>(below(list.size()));
  switch (below(8)) {
    case 0: list.erase(at); break;
    case 1: list.insert(other, Order(*at)); break;
    case 2:
    case 3: std::swap(*at, *other); break;
    case 4: at->stage = Stage{below(orders.ranks.size() + 1)}; break;
    case 5: at->item = Item{below(6)}; break;
    case 6: at->kind = static_cast<Kind>(below(5)); break;
    default: at->fused = !at->fused;
  }
}

}  // namespace

TEST_CASE("the orders of the generators have no fault") {
  for (const auto& entry : schedule::catalogue()) {
    INFO(entry.name);
    CHECK(said(entry.orders({})).empty());
  }
}

TEST_CASE("a fault that a list shows by itself is found at its entry") {
  CHECK(said({{order(F, 0, 0)}, {order(F, 1, 0), order(F, 0, 1)}}) ==
        "1.1: a stage is on two ranks (stage 0 is on rank 0 already)");
  CHECK(said({{order(F, 0, 0), order(F, 0, 1), order(F, 0, 0)}}) ==
        "0.2: an action appears twice (0F0)");
  CHECK(said({{order(F, 0, 0), order(I, 0, 0), order(B, 0, 0)}}) ==
        "0.2: an action appears twice (0B0)");
  CHECK(said({{order(F, 0, 0), order(B, 0, 0), order(W, 0, 0)}}) ==
        "0.2: an action appears twice (0W0)");
  CHECK(said({{order(B, 0, 0), order(F, 0, 0)}}) ==
        "0.0: an action comes before what it needs (0B0 before 0F0)");
  CHECK(said({{order(F, 0, 0), order(W, 0, 0), order(I, 0, 0)}}) ==
        "0.1: an action comes before what it needs (0W0 before 0I0)");
  CHECK(said({{order(F, 2, 0)}}, StageGraph::chain(2)) ==
        "0.0: an action names a stage that is not in the graph (2F0, stages 0 to 1)");
  CHECK(said({{order(Kind::cast, 0, 0)}}) ==
        "0.0: orders may contain only F, I, W, B and UPDATE (0CAST0)");
  CHECK(said({{order(F, 0, 0), fused(B, 0, 0)}}) ==
        "0.1: a fused entry needs one partner, the entry after it (0B0)");
  CHECK(said({{order(F, 0, 0)}, {order(F, 0, 0)}}, StageGraph::replicated_chain(1)) ==
        "1.0: a microbatch of a stage is on two ranks (0F0, and on rank 0)");
}

TEST_CASE("where an action is missing the fault is at one that shows it") {
  CHECK(said(Orders{}) == "0.0: the orders contain no action ()");
  CHECK(said(Orders{"mine", {{}, {}}}) == "0.0: the orders contain no action ()");
  CHECK(said({{order(F, 0, 0), order(F, 0, 1)}, {order(F, 1, 0)}}) ==
        "0.1: an action is missing (no rank has 1F1, which comes after 0F1)");
  CHECK(said({{order(F, 0, 0)}, {order(F, 1, 0), order(F, 1, 1)}}) ==
        "1.1: an action is missing (no rank has 0F1, which comes before 1F1)");
  CHECK(said({{order(F, 0, 0)}, {order(F, 2, 0)}}) ==
        "0.0: an action is missing (no rank has 1F0, which comes after 0F0)");
  CHECK(said({{order(F, 0, 2)}}).starts_with("0.0: an action is missing (no rank has 0F0, but"));
  CHECK(said({{order(F, 0, 0), order(F, 0, 1), order(B, 0, 1)}}) ==
        "0.0: a stage does not finish a microbatch (no 0B0, or 0I0 and 0W0, after 0F0)");
  CHECK(said({{order(F, 0, 0), order(W, 0, 0)}}) ==
        "0.1: an action is missing (rank 0 has no 0I0 before 0W0)");
  CHECK(said({{order(F, 0, 0), order(B, 0, 0)}, {order(B, 1, 0)}}) ==
        "1.0: an action is missing (rank 1 has no 1F0 before 1B0)");
  CHECK(said({{order(F, 0, 0), order(I, 0, 0)}}) ==
        "0.1: a stage does not finish a microbatch (no 0W0 after 0I0)");
  // Numbers so large that no table could hold them.
  CHECK(
      said({{order(F, 0, 0), {F, Stage{4294967295u}, Item{4294967295u}}}}) ==
      "0.0: an action is missing (no rank has 0F1, but every stage must compute every microbatch; "
      "there is 0F0)");
}

TEST_CASE("orders that cannot progress have their fault at the first stuck head") {
  CHECK(said({{order(F, 0, 0), order(F, 0, 1)}, {order(F, 1, 1), order(F, 1, 0)}}).empty());
  CHECK(said({{order(F, 0, 0), order(B, 0, 0), order(F, 0, 1), order(B, 0, 1)},
              {order(F, 1, 1), order(B, 1, 1), order(F, 1, 0), order(B, 1, 0)}}) ==
        "0.1: the orders cannot progress (rank 0 waits at 0B0 for 1B0, rank 1 waits at 1F1 for "
        "0F1)");
  // Where backward passes are split, what is waited for is an I.
  CHECK(said({{order(F, 0, 0), order(I, 0, 0), order(W, 0, 0), order(F, 0, 1), order(I, 0, 1),
               order(W, 0, 1)},
              {order(F, 1, 1), order(I, 1, 1), order(W, 1, 1), order(F, 1, 0), order(I, 1, 0),
               order(W, 1, 0)}}) ==
        "0.1: the orders cannot progress (rank 0 waits at 0I0 for 1I0, rank 1 waits at 1F1 for "
        "0F1)");
  // A pair waits for the inputs of both of its actions.
  CHECK(said({{fused(F, 0, 0), order(B, 0, 0)}}) ==
        "0.1: the orders cannot progress (rank 0 waits at 0B0 for 0F0)");
  StageGraph cyclic{.stages = 2, .edges = {{Stage{0}, Stage{1}}, {Stage{1}, Stage{0}}}};
  CHECK(said({{order(F, 0, 0)}, {order(F, 1, 0)}}, cyclic) ==
        "0.0: the orders cannot progress (rank 0 waits at 0F0 for 1F0, rank 1 waits at 1F0 for "
        "0F0)");
}

TEST_CASE("a graph with an edge to no stage is refused") {
  const StageGraph graph{.stages = 2, .edges = {{Stage{0}, Stage{2}}}};
  CHECK(test::message_of<contract_error>([&] { (void)said({{order(F, 0, 0)}}, graph); }) ==
        "heddle::schedule::first_fault: the stage graph has an edge to no stage (0 -> 2, stages 0 "
        "to 1)");
  const StageGraph weights{.stages = 2, .edges = {{Stage{0}, Stage{1}, Kind::backward_weight}}};
  CHECK(test::message_of<contract_error>([&] { (void)said({{order(F, 0, 0)}}, weights); }) ==
        "heddle::schedule::first_fault: an edge must end at a forward (F) or a backward pass (B) "
        "(0 -> 1 at "
        "W)");
}

TEST_CASE("orders have a fault if and only if weave refuses them") {
  std::mt19937 random(20);
  int refused = 0;
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    const int ranks = 1 + round % 4;
    const auto& entry = schedule::catalogue()[random() % schedule::catalogue().size()];
    Orders orders;
    try {
      orders = entry.orders({.ranks = ranks, .microbatches = 4});
    } catch (const infeasible&) {
      continue;
    }
    for (std::size_t changes = random() % 3; changes > 0; --changes) mutate(orders, random);
    const auto holds_updates = [](const std::vector<Order>& list) {
      return std::any_of(list.begin(), list.end(),
                         [](const Order& each) { return each.kind == Kind::update; });
    };
    if (std::any_of(orders.ranks.begin(), orders.ranks.end(), holds_updates)) continue;
    const bool fault = schedule::first_fault(orders).has_value();
    INFO(entry.name << "\n" << to_string(orders) << said(orders));
    if (fault == woven(orders)) FAIL("they disagree");
    refused += fault;
  }
  CHECK(refused > rounds / 4);
  CHECK(refused < 3 * rounds / 4);
}

TEST_CASE("the grid of a fault marks its entry and shows what is near") {
  const Orders small{"mine", {{order(F, 0, 0), order(F, 0, 1)}, {order(F, 1, 0), order(F, 0, 2)}}};
  CHECK(to_grid(small, {Rank{1}, 1, "", ""}) ==
        "cell     1      2\n"
        "rank 0   0F0    0F1\n"
        "rank 1   1F0  > 0F2 <\n");
  const std::string far = to_grid(schedule::one_f_one_b(20, 40), {Rank{9}, 30, "", ""});
  CHECK(far.starts_with("cell      26"));
  CHECK(far.find("\n...\nrank 4 ") != std::string::npos);
  CHECK(far.find("> 9F20 <") != std::string::npos);
  CHECK(far.find("rank 14 ") != std::string::npos);
  CHECK(far.ends_with("\n...\n"));
  CHECK(far.find("rank 15 ") == std::string::npos);
}

}  // namespace test_first_fault
