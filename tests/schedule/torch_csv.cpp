// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_torch_csv {

using namespace heddle;
using schedule::CsvContents;
using schedule::read_orders;
using schedule::to_csv;

namespace {

/// "line.cell: message" of the wrong cell, without where it was found.
std::string said(const std::string& csv, const schedule::CsvOptions& options = {}) {
  try {
    (void)read_orders(csv, options);
  } catch (const schedule::wrong_cell& error) {
    const std::string message = error.what();
    return text(error.line(), ".", error.cell(), message.substr(message.find("): ") + 1));
  }
  return {};
}

constexpr const char* pairs = "0F0,0F1,(0F2;1B0)OVERLAP_F_B";

/// What a file of `orders` does not say.
schedule::CsvOptions unsaid(const Orders& orders) {
  return {.name = orders.name, .graph = orders.graph, .vertical_sync = orders.vertical_sync};
}

/// The catalogue's schedules for few and odd ranks and microbatches, where they exist, and for the
/// usual shape.
std::vector<Orders> many_orders() {
  std::vector<schedule::PipelineShape> shapes = {
      {},
      {.ranks = 2, .microbatches = 5, .stages_per_rank = 3},
      {.ranks = 1, .microbatches = 2, .stages_per_rank = 1}};
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (int microbatches = 1; microbatches <= 3; ++microbatches)
      shapes.push_back({.ranks = ranks, .microbatches = microbatches, .group = 1});
  std::vector<Orders> all;
  for (const auto& entry : schedule::catalogue()) {
    const std::size_t before = all.size();
    for (const schedule::PipelineShape& shape : shapes) {
      try {
        all.push_back(entry.orders(shape));
      } catch (const infeasible&) {  // not for this shape
      }
    }
    INFO(entry.name);
    REQUIRE(all.size() > before);
  }
  return all;
}

}  // namespace

TEST_CASE("files of the catalogue's schedules are read as they were written") {
  for (const Orders& orders : many_orders()) {
    for (const CsvContents contents : {CsvContents::compute, CsvContents::transfers}) {
      const std::string csv = to_csv(orders, contents);
      INFO(orders.name << "\n" << csv);
      CHECK(read_orders(csv, unsaid(orders)) == orders);
    }
  }
}

TEST_CASE("a compute file is a line per rank") {
  const Orders orders = read_orders("0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n", {.name = "mine"});
  CHECK(orders.name == "mine");
  CHECK(to_string(orders) == "0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(weave(orders).ranks() == 2);
}

TEST_CASE("idle cells, blanks, CR LF and a last line without its end are read over") {
  const Orders plain = read_orders("0F0,0B0\n1F0,1B0\n");
  CHECK(read_orders("0F0, ,,0B0\r\n,1F0\t,  1B0,,\r\n").ranks == plain.ranks);
  CHECK(read_orders("0F0,0B0\n1F0,1B0").ranks == plain.ranks);
  CHECK(read_orders("0F0,0B0\n1F0,1B0\n\n").ranks == plain.ranks);
  CHECK(read_orders("\xEF\xBB\xBF"
                    "0F0,0B0\n1F0,1B0\n")
            .ranks == plain.ranks);
  CHECK(read_orders("0F0,0B0\r\n1F0,1B0\r\n\r\n  \n").ranks == plain.ranks);
}

TEST_CASE("cells may be quoted, and halves of a pair have blanks around them") {
  const Orders plain = read_orders("0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,0B0,1B1,0B1");
  for (const char* pair : {"(0F1; 1B0)OVERLAP_F_B", "(0F1 ;1B0)OVERLAP_F_B",
                           "( 0F1;1B0 )OVERLAP_F_B", "\"(0F1; 1B0)OVERLAP_F_B\""})
    CHECK(read_orders(text("\"0F0\",\" 1F0 \" ,", pair, ",\"\",1F1,0B0,1B1,\"0B1\"\r\n")).ranks ==
          plain.ranks);
  for (const char* bad : {"\"0F0", "0F0\"", "\"0F0\"\"", "\"0F0\"x", " \"0F0\"", "\"0F0,0F1\"",
                          "0\"F0\"", "\"0F0\n\""})
    CHECK(said(bad).starts_with("1.1: a cell is not an action (line 1, cell 1: '"));
}

TEST_CASE("a fused pair is two entries, the first of them fused") {
  const Orders orders =
      read_orders("0F0,0F1,1F0,(0F2;1B0)OVERLAP_F_B,1F1,1F2,0B0,1B1,1B2,(0B1;0B2)OVERLAP_F_B");
  REQUIRE(orders.ranks[0].size() == 12);
  CHECK(orders.ranks[0][3] == Order{Kind::forward, Stage{0}, Item{2}, true});
  CHECK(orders.ranks[0][4] == Order{Kind::backward, Stage{1}, Item{0}});
  CHECK(to_csv(orders).find("1F0,(0F2;1B0)OVERLAP_F_B,1F1") != std::string::npos);
  for (const char* bad :
       {"(0F0;1B0)", "(0F0,1B0)OVERLAP_F_B", "(0F0;1B0)OVERLAP", "(0F0)OVERLAP_F_B",
        "(0F0;1B0;2B0)OVERLAP_F_B", "(0F0;UNSHARD)OVERLAP_F_B", "()OVERLAP_F_B",
        "(0SEND_F0;1B0)OVERLAP_F_B", "(", ")OVERLAP_F_B"})
    CHECK(said(bad).starts_with("1.1: a cell is not an action (line 1, cell 1: '"));
}

TEST_CASE("transfers stand where torch's lowering places them") {
  // By hand: rank 0 does 0F0, then rank 1 has what 1F0 needs within the same sweep, and so on.
  const Orders orders = schedule::one_f_one_b(2, 2);
  const std::string csv =
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n";
  CHECK(to_csv(schedule::LoweredOrders{orders}) == csv);
  CHECK(read_orders(csv).ranks == orders.ranks);
  // Between two stages of a rank there is none.
  const auto transfers = [](const char* compute) {
    return to_csv(schedule::LoweredOrders{read_orders(compute)});
  };
  CHECK(transfers("0F0,1F0") == "0F0,1F0\n");
  CHECK(transfers("0F0,(1F0;0F1)OVERLAP_F_B,1F1\n2F0,2F1") ==
        "0F0,(1F0;0F1)OVERLAP_F_B,1SEND_F0,1F1,1SEND_F1\n2RECV_F0,2F0,2RECV_F1,2F1\n");
}

TEST_CASE("writing transfers of orders with a fault is refused") {
  const Orders orders{"mine", {{{Kind::forward, Stage{1}, Item{0}}}}};
  CHECK(test::message_of<infeasible>([&] { (void)to_csv(orders, CsvContents::transfers); }) ==
        "heddle::schedule::to_csv(mine): an action is missing (no rank has 0F0, which comes before "
        "1F0)");
}

TEST_CASE("the old dialect is translated on request") {
  const std::string old = "0F0,0F1,0B0,0W0,0BW1";
  CHECK(to_string(read_orders(old, {.old_dialect = true})) == "0F0,0F1,0I0,0W0,0B1\n");
  CHECK(said(old) ==
        "1.5: a cell is not an action (line 1, cell 5: '0BW1'); this looks like the old dialect, "
        "where "
        "B is the backward for the input and BW the whole backward: read it with "
        "CsvOptions::old_dialect, or schedule check --old-dialect");
  CHECK(
      said("0F0,0B0,0W0") ==
      "1.3: an action appears twice (line 1, cell 3: '0W0', 0W0); this looks like the old dialect, "
      "where B is the backward for the input and BW the whole backward: read it with "
      "CsvOptions::old_dialect, or schedule check --old-dialect");
  // The other way round, too.
  CHECK(
      said("0F0,0B0", {.old_dialect = true}) ==
      "1.2: a stage does not finish a microbatch (line 1, cell 2: '0B0', no 0W0 after 0I0); in the "
      "current dialect B is the whole backward: read the file without the old dialect");
  CHECK(said("0F0,0I0,0W0", {.old_dialect = true}).starts_with("1.2: a cell is not an action"));
}

TEST_CASE("the error names line, cell and text of the first cell that is not an action") {
  CHECK(
      said("0F0,0B0\n1F0,1X0\n") ==
      "2.2: a cell is not an action (line 2, cell 2: '1X0'); write 2F0: the stage, one of F I W B, "
      "SEND_F, RECV_F, SEND_B, RECV_B, the microbatch; or 2UNSHARD, 2RESHARD, 2REDUCE_GRAD; or "
      "(2F1;3B0)OVERLAP_F_B");
  for (const char* bad :
       {"F0", "0", "0F", "0f0", "-1F0", "0F-1", "0F0x", "0 F0", "4294967296F0", "0F4294967296",
        "0SEND0", "0SEND_F", "0RECV_W0", "0CAST0", "\"0F0", "0F0;0B0", "\xff", "0OVERLAP_F_B0"}) {
    INFO(bad);
    CHECK(said(text("0F0,", bad)).starts_with("1.2: a cell is not an action (line 1, cell 2: '"));
  }
  const std::string strange = said(std::string("\x01\xf0", 2) + std::string(100, 'z'));
  CHECK(strange.find(text("'\\x01\\xf0", std::string(30, 'z'), "...'")) != std::string::npos);
}

TEST_CASE("a file or line without actions is refused") {
  CHECK(test::message_of<format_error>([] { (void)read_orders(""); }) ==
        "heddle::schedule::read_orders(CSV): the file is empty");
  CHECK(test::message_of<format_error>([] { (void)read_orders(" \r\n\n"); }) ==
        "heddle::schedule::read_orders(CSV): the file is empty");
  CHECK(said("0F0\n\n1F0") ==
        "2.1: a rank has no action (line 2, cell 1: ''); each line is a rank, also for torch: give "
        "it an action or delete the line");
  CHECK(said(",,\n0F0").starts_with("1.1: a rank has no action"));
  CHECK(said("0F0\n,,").starts_with("2.1: a rank has no action"));
  CHECK(said("0F0\n,,\n").starts_with("2.1: a rank has no action"));
  CHECK(said("0F0\n\n \n").empty());
  CHECK(said("0UNSHARD").starts_with("1.1: a rank has no action"));
}

TEST_CASE("a fault of the orders is at its cell, idle cells and transfers counted") {
  CHECK(said("0F0,,0SEND_F0,0F0\n1F0") ==
        "1.4: an action appears twice (line 1, cell 4: '0F0', 0F0)");
  CHECK(said("0F0,1F0\n,,1B0") ==
        "2.3: a stage is on two ranks (line 2, cell 3: '1B0', stage 1 is on rank 0 already); "
        "to read copies of a stage, set CsvOptions::graph.replicas or use schedule check "
        "--replicas; torch cannot load them");
  CHECK(said(",0F0,0W0,0I0").starts_with("1.3: an action comes before what it needs"));
  CHECK(said("0F0,,0B0\n1B0,1F0").starts_with("2.1: an action comes before what it needs"));
  CHECK(said("0F0,0F1\n1F0,").starts_with("1.2: an action is missing (line 1, cell 2: '0F1', no "));
  CHECK(said(",0F0,0B0\n1F0").starts_with("2.1: a stage does not finish a microbatch"));
  CHECK(
      said("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0") ==
      "1.2: the orders cannot progress (line 1, cell 2: '0B0', rank 0 waits at 0B0 for 1B0, rank 1 "
      "waits at 1F1 for 0F1)");
  CHECK(said("(0F0;0B0)OVERLAP_F_B") ==
        "1.1: the orders cannot progress (line 1, cell 1: '(0F0;0B0)OVERLAP_F_B', rank 0 waits at "
        "0B0 "
        "for 0F0)");
  CHECK(said(pairs).starts_with("1.3: an action is missing (line 1, cell 3: '(0F2;"));
}

TEST_CASE("transfers that weave would not insert are refused at their cell") {
  CHECK(said("0F0,1F0,1RECV_F0") ==
        "1.3: no such transfer is needed (line 1, cell 3: '1RECV_F0', 1RECV_F0 on rank 0 "
        "matches no value that ranks exchange)");
  CHECK(said("0F0,0SEND_F0,0SEND_F0\n1RECV_F0,1F0") ==
        "1.3: a transfer appears twice (line 1, cell 3: '0SEND_F0', 0SEND_F0)");
  CHECK(said("0SEND_F0,0F0\n1RECV_F0,1F0") ==
        "1.1: a value is sent before it is made (line 1, cell 1: '0SEND_F0', 0SEND_F0 before 0F0)");
  CHECK(said("0F0,0SEND_F0\n1F0,1RECV_F0") ==
        "2.2: a value is received after it is needed (line 2, cell 2: '1RECV_F0', 1RECV_F0 after "
        "1F0)");
  CHECK(said("0F0\n1RECV_F0,1F0") ==
        "1.1: a transfer is missing (line 1, cell 1: '0F0', no 0SEND_F0 after 0F0)");
  CHECK(said("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0") ==
        "1.3: a transfer is missing (line 1, cell 3: '0B0', no 0RECV_B0 before 0B0)");
  CHECK(said("0F0,0F1,0SEND_F0,0SEND_F1\n1RECV_F1,1RECV_F0,1F0,1F1") ==
        "2.1: two ranks order their messages differently (line 2, cell 1: '1RECV_F1', "
        "message 1 from rank 0 is 0SEND_F0, but the receive is 1RECV_F1)");
  // Receives may stand anywhere before what needs them.
  CHECK(said("0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F0,1RECV_F1,1F0,1F1").empty());
}

TEST_CASE("a receive may bring any input of its stage, in whatever order the graph names them") {
  // The last stages of two branches get what comes before them and each other's output.
  Orders orders = schedule::flexpipe(2, 2);
  for (const bool reversed : {false, true}) {
    if (reversed) std::reverse(orders.graph.edges.begin(), orders.graph.edges.end());
    const std::string csv = to_csv(orders, CsvContents::transfers);
    CHECK(read_orders(csv, {.graph = orders.graph}).ranks == orders.ranks);
  }
}

TEST_CASE("transfers of forward passes alone are those that the forward passes need") {
  Orders orders = schedule::flexpipe(2, 2);
  for (auto& list : orders.ranks)
    std::erase_if(list, [](const Order& order) { return order.kind != Kind::forward; });
  const std::string csv = to_csv(orders, CsvContents::transfers);
  CHECK(csv.find("SEND_F") != std::string::npos);
  CHECK(read_orders(csv, {.graph = orders.graph}).ranks == orders.ranks);
}

TEST_CASE("the grid of a wrong cell marks it among its neighbours") {
  try {
    (void)read_orders("0F0,,0SEND_F0\n1RECV_F0,1F0,1F0\n");
    FAIL("nothing was thrown");
  } catch (const schedule::wrong_cell& error) {
    CHECK(error.grid() ==
          "cell     1           2           3\n"
          "rank 0   0F0         .           0SEND_F0\n"
          "rank 1   1RECV_F0    1F0       > 1F0 <\n");
  }
}

TEST_CASE("timelines of the catalogue's schedules are read as their orders, recomputed or not") {
  const StageCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1, .update = 1};
  for (const Orders& orders : many_orders()) {
    for (const Schedule& woven : {weave(orders), schedule::recompute(weave(orders))}) {
      const std::string csv = to_csv(simulate(woven, costs));
      INFO(orders.name << "\n" << csv);
      CHECK(read_orders(csv, unsaid(orders)) == orders);
    }
  }
  // The forward that runs again stands right before its backward, unnamed.
  CHECK(to_csv(simulate(schedule::recompute(schedule::gpipe({.ranks = 1, .microbatches = 2})),
                        {.forward = 1, .backward = 2})) == "0F0,0F1,,0B0,,,0B1\n");
}

TEST_CASE("an update among the passes takes a slot of its own, or is refused") {
  const Schedule woven = schedule::pipedream({.ranks = 1, .microbatches = 2});
  CHECK(to_csv(simulate(woven, {.forward = 1, .backward = 1, .update = 1})) ==
        "0F0,0B0,0UPDATE0,0F1,0B1,0UPDATE1\n");
  // One that is the last action of its step too, where it has a name.
  const StageCosts units{.forward = 1, .backward = 1, .update = 1};
  CHECK(to_csv(simulate(schedule::pipedream({.ranks = 1}), units)) == "0F0,0B0,0UPDATE0\n");
  CHECK(to_csv(simulate(schedule::pipedream({.ranks = 2}), units)) ==
        "0F0,,,0B0,0UPDATE0\n,1F0,1B0,1UPDATE0\n");
  CHECK(to_csv(simulate(schedule::one_f_one_b({.ranks = 1, .microbatches = 1}), units)) ==
        "0F0,0B0\n");
  CHECK(test::message_of<contract_error>(
            [&] { (void)to_csv(simulate(woven, {.forward = 1, .backward = 1})); }) ==
        "heddle::schedule::to_csv: an action does not begin at the start of a time slot (0F1 on "
        "rank 0); "
        "simulate with costs that are whole numbers of slots");
}

TEST_CASE("a timeline in unit slots is written with its idle cells") {
  const Schedule schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  const std::string unit = "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n";
  CHECK(to_csv(simulate(schedule, {.forward = 1, .backward = 1})) == unit);
  CHECK(to_csv(simulate(schedule,
                        BasicStageCosts<test::Rational>{.forward = {1, 3}, .backward = {1, 3}}),
               test::Rational{1, 3}) == unit);
  CHECK(to_csv(simulate(schedule, {.forward = 1, .backward = 2})) ==
        "0F0,0F1,,,0B0,,,0B1\n,1F0,1B0,,1F1,1B1\n");
  CHECK(read_orders(unit).ranks == schedule::one_f_one_b(2, 2).ranks);
  const Schedule pair = weave(read_orders("0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,0B0,1B1,0B1"));
  CHECK(to_csv(simulate(pair, {.forward = 1, .backward = 1, .forward_backward = 1})) ==
        "0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,0B0,1B1,0B1\n");
  CHECK(test::message_of<contract_error>(
            [&] { (void)to_csv(simulate(schedule, {.forward = 1, .backward = 1}), 2.0); }) ==
        "heddle::schedule::to_csv: an action does not begin at the start of a time slot (0F1 on "
        "rank 0); "
        "simulate with costs that are whole numbers of slots");
  CHECK(test::message_of<contract_error>([&] { (void)to_csv(simulate(schedule, {}), 0.0); }) ==
        "heddle::schedule::to_csv: the duration of a slot must be above 0");
}

}  // namespace test_torch_csv
