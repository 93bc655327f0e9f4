// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Costs that are no times, and machines of nonsense: negative, infinite, not a number.

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>
#include <heddle/systems/hap/axis_costs.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/rhino/rhino.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/shared_costs.hpp"

namespace test_no_times {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;
using test::Rational;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
const std::vector<double> no_times = {-1, -1e-300, -infinity, infinity, nan};

const Schedule& pipeline() {
  static const Schedule schedule =
      schedule::one_f_one_b({.ranks = 2, .microbatches = 3, .sizes = {.activation = 8}});
  return schedule;
}

/// Costs of the user's own, one of which is set for one action.
struct OwnCosts {
  using Time = double;
  double work = 1, pair = 1, occupancy = 1, latency = 1;
  std::size_t at = 0;  ///< the action

  double time(const Schedule&, ActionId id) const { return +id == at ? work : 1; }
  double fused(const Schedule&, ActionId) const { return pair; }
  Transfer<double> transfer(const Schedule&, ActionId id) const {
    return +id == at ? Transfer<double>{occupancy, latency} : Transfer<double>{1, 1};
  }
};

using Member = double StageCosts::*;
const std::vector<std::pair<const char*, Member>> members = {
    {"forward", &StageCosts::forward},
    {"backward_input", &StageCosts::backward_input},
    {"backward_weight", &StageCosts::backward_weight},
    {"backward", &StageCosts::backward},
    {"forward_backward", &StageCosts::forward_backward},
    {"combine", &StageCosts::combine},
    {"cast", &StageCosts::cast},
    {"group", &StageCosts::group},
    {"update", &StageCosts::update},
    {"user", &StageCosts::user},
    {"latency", &StageCosts::latency},
    {"per_byte", &StageCosts::per_byte}};

}  // namespace

TEST_CASE("a stage cost that is no time is refused, and the member is named") {
  CHECK(message_of<contract_error>([] { (void)simulate(pipeline(), {.forward = -1}); }) ==
        "heddle::StageCosts: a cost is negative, infinite or not a number (forward = -1); every "
        "cost is a finite time of at least 0; 0 is for what takes no time");
  for (const double bad : no_times)
    for (const auto& [name, member] : members) {
      StageCosts costs{.forward = 1, .backward = 2};
      costs.*member = bad;
      const std::string says = text(name, " = ", bad);
      INFO(says);
      const Machine machine = Machine::uniform(2, {}, {});
      CHECK_THAT(message_of<contract_error>([&] { (void)simulate(pipeline(), costs); }),
                 ContainsSubstring(says));
      CHECK_THAT(message_of<contract_error>([&] { (void)MachineCosts(costs, machine); }),
                 ContainsSubstring(says));
      CHECK_THAT(message_of<contract_error>([&] { (void)simulate(pipeline(), costs, machine); }),
                 ContainsSubstring(says));
    }
  CHECK(simulate(pipeline(), StageCosts{}).makespan() == 0);
  CHECK(simulate(pipeline(), {.forward = -0.0, .backward = 1}).makespan() > 0);
}

TEST_CASE("a rational or an integer cost below 0 is refused") {
  CHECK_THAT(message_of<contract_error>([] {
               (void)simulate(pipeline(), BasicStageCosts<Rational>{.backward = {-1, 3}});
             }),
             ContainsSubstring("(backward = -1/3)"));
  CHECK_THAT(message_of<contract_error>(
                 [] { (void)simulate(pipeline(), BasicStageCosts<int>{.forward = -2}); }),
             ContainsSubstring("(forward = -2)"));
}

TEST_CASE("a table's cost that is no time is refused, pairs among them") {
  for (const double bad : no_times) {
    TableCosts table(Machine::uniform(2, {}, {}), 2);
    table.at(Kind::backward, Stage{1}) = bad;
    CHECK_THAT(message_of<contract_error>([&] { (void)simulate(pipeline(), table); }),
               ContainsSubstring(text("heddle::TableCosts: ")) &&
                   ContainsSubstring(text("(B of stage 1 = ", bad, ")")));
    table.at(Kind::backward, Stage{1}) = 1;
    CHECK_NOTHROW(simulate(pipeline(), table));
    table.at(Kind::forward, Stage{0}, Kind::backward, Stage{1}) = bad;
    CHECK_THAT(message_of<contract_error>([&] { (void)simulate(pipeline(), table); }),
               ContainsSubstring(text("(F of stage 0 fused with B of stage 1 = ", bad, ")")));
  }
}

TEST_CASE("costs of the user's own that return no time are refused at the action") {
  CHECK(message_of<contract_error>([] { (void)simulate(pipeline(), OwnCosts{.work = nan}); }) ==
        "heddle::Costs of '1F1B P=2 M=3': a cost is negative, infinite or not a number (time() of "
        "0F0 on rank 0 = nan); every cost is a finite time of at least 0; 0 is for what takes no "
        "time");
  const Schedule pair = weave(Orders{"pair",
                                     {{{Kind::forward, Stage{0}, Item{0}},
                                       {Kind::forward, Stage{0}, Item{1}, true},
                                       {Kind::backward, Stage{0}, Item{0}},
                                       {Kind::backward, Stage{0}, Item{1}}}}});
  std::size_t move = 0;
  while (pipeline()[ActionId{move}].kind != Kind::move) ++move;
  for (const double bad : no_times) {
    CHECK_THAT(message_of<contract_error>([&] { (void)simulate(pair, OwnCosts{.pair = bad}); }),
               ContainsSubstring(text("(fused() of 0F1 on rank 0 = ", bad, ")")));
    for (const OwnCosts& costs :
         {OwnCosts{.occupancy = bad, .at = move}, OwnCosts{.latency = bad, .at = move}})
      CHECK_THAT(message_of<contract_error>([&] { (void)simulate(pipeline(), costs); }),
                 ContainsSubstring("(transfer().") &&
                     ContainsSubstring(text(" of 0SEND_F0 -> 1RECV_F0 on rank 0 = ", bad, ")")));
    // Those that a plan asks.
    CHECK_THROWS_AS(plan::ListScheduler(schedule::zb_h1(2, 3), OwnCosts{.work = bad}),
                    contract_error);
    CHECK_THROWS_AS(plan::place_weights(schedule::zb_h1(2, 3), OwnCosts{.work = bad}),
                    contract_error);
  }
}

TEST_CASE("finite costs that add up to infinity are refused") {
  CHECK_THAT(message_of<contract_error>([] { (void)simulate(pipeline(), {.forward = 1e308}); }),
             ContainsSubstring("add up to more than their type can hold"));
}

TEST_CASE("costs of messages and observed ones are refused at their doors") {
  for (const double bad : no_times) {
    CHECK_THAT(message_of<contract_error>(
                   [&] { (void)plan::MessageCosts(Machine::uniform(2, {}, {}), 1024, bad); }),
               ContainsSubstring(text("heddle::plan::MessageCosts: ")) &&
                   ContainsSubstring(text("(per_byte = ", bad, ")")));
    Timeline step = simulate(pipeline(), {.forward = 1, .backward = 2});
    step.spans()[0].end = step.spans()[0].start + bad;
    plan::ObservedCosts costs;
    CHECK_THAT(message_of<contract_error>([&] { costs.observe(step); }),
               ContainsSubstring(text("heddle::plan::ObservedCosts::observe: ")) &&
                   ContainsSubstring(text("(duration of 0F0 = ", bad, ")")));
    CHECK(costs.time(pipeline(), ActionId{0}) == 0);
  }
}

TEST_CASE("a machine's numbers are refused at its doors and named") {
  const std::vector<Device> two(2);
  const auto said = [](auto&& call) { return message_of<contract_error>(call); };
  for (const double bad : {-1.0, -infinity, nan, infinity}) {
    const std::string number = text(bad);
    const auto latency = [&](auto&& call) {
      CHECK_THAT(said(call), ContainsSubstring("latency " + number + " s"));
    };
    const Link link{.latency = bad};
    latency([&] { (void)Machine::uniform(2, {}, link); });
    latency([&] { (void)Machine::from_links(two, {{}, link, {}, {}}); });
    latency([&] { (void)Machine::hierarchical(two, {{.name = "all", .ranks = 2, .link = link}}); });
    latency([&] { Machine::uniform(2, {}, {}).set_link(Rank{0}, Rank{1}, link); });
    latency([&] { (void)Machine::uniform(2, {.memories = {{.name = "host", .link = link}}}, {}); });
    CHECK_THAT(said([&] { (void)Machine::uniform(1, {.speed = bad}, {}); }),
               ContainsSubstring("'device': speed " + number));
  }
  for (const double bad : {0.0, -1.0, -infinity, nan}) {
    const std::string number = text(bad, " B/s");
    const auto bandwidth = [&](auto&& call) {
      CHECK_THAT(said(call),
                 ContainsSubstring("a bandwidth must be above 0") && ContainsSubstring(number));
    };
    const Link link{.bandwidth = bad};
    bandwidth([&] { (void)Machine::uniform(2, {}, link); });
    bandwidth([&] { (void)Machine::from_links(two, {{}, {}, link, {}}); });
    bandwidth([&] { (void)network({{{}, link}, {{}, {}}}, {}); });
    bandwidth([&] { Machine::uniform(2, {}, {}).share("line", bad, {{Rank{0}, Rank{1}}}); });
    for (const Ports& ports : {Ports{.out = bad}, Ports{.in = bad}}) {
      bandwidth([&] { Machine::uniform(2, {}, {}).set_ports(0, 1, ports); });
      bandwidth(
          [&] { (void)Machine::hierarchical(two, {{.name = "all", .ranks = 2, .ports = ports}}); });
    }
  }
  CHECK_THAT(said([&] {
               (void)Machine::from_links(two, {{}, {.latency = -1}, {}, {}});
             }),
             ContainsSubstring("(link 0 -> 1: latency -1 s)"));
  CHECK_NOTHROW(Machine::uniform(2, {}, {.latency = 0, .bandwidth = infinity}));
}

TEST_CASE("whatever costs and machine say, the step is made of times or refused") {
  std::mt19937_64 random(25);
  const auto one_of = [&](const std::vector<double>& values) {
    return values[random() % values.size()];
  };
  const std::vector<double> times = {0, 1, 0.3, 1e-9, 1e9};
  const std::vector<double> no_rates = {0, -1, -infinity, nan};
  const Schedule schedule =
      weave(schedule::interleaved(3, 2, 6), {.activation = 8, .parameters = 8});
  enum class Spoilt { nothing, costs, machine };
  const auto run = [&](Spoilt spoilt, bool refused, auto&& step) {
    try {
      const Timeline timeline = step();
      for (const Span& span : timeline.spans())
        if (!(span.start >= 0 && span.start <= span.end && span.end <= span.arrival &&
              span.arrival < infinity))
          FAIL("a span is not made of times");
      if (refused) FAIL("nothing was thrown, spoilt: " << static_cast<int>(spoilt));
    } catch (const contract_error& error) {
      if (!refused) FAIL(error.what());
    }
  };
  for (int round = 0; round < 1000; ++round) {
    const Spoilt spoilt = static_cast<Spoilt>(round % 3);
    StageCosts costs;
    for (const auto& [name, member] : members) costs.*member = one_of(times);
    Link link{.latency = one_of(times), .bandwidth = 1 + one_of(times)};
    Ports ports{.out = 1 + one_of(times), .in = 1 + one_of(times)};
    Device device{.speed = 1 + one_of(times)};
    if (spoilt == Spoilt::costs)
      costs.*members[random() % members.size()].second = one_of(no_times);
    if (spoilt == Spoilt::machine) {
      switch (random() % 5) {
        case 0: link.latency = one_of(no_times); break;
        case 1: link.bandwidth = one_of(no_rates); break;
        case 2: ports.out = one_of(no_rates); break;
        case 3: ports.in = one_of(no_rates); break;
        default: device.speed = one_of(no_rates);
      }
    }
    run(spoilt, spoilt == Spoilt::costs, [&] { return simulate(schedule, costs); });
    run(spoilt, spoilt != Spoilt::nothing, [&] {
      return simulate(schedule, costs,
                      Machine::hierarchical(std::vector<Device>(3, device),
                                            {{.name = "rank", .ranks = 1, .ports = ports},
                                             {.name = "all", .ranks = 3, .link = link}}));
    });
  }
}

TEST_CASE("planners that are given no times name the number") {
  const Machine machine = Machine::uniform(2, Device{}, {.latency = 1, .bandwidth = 1});
  systems::TensorProgram program;
  for (const double wrong : no_times) {
    INFO(wrong);
    CHECK_THAT(message_of<contract_error>([&] {
                 (void)systems::axis_costs(machine, {{Rank{0}, Rank{1}}}, wrong);
               }),
               ContainsSubstring("heddle::systems::axis_costs") && ContainsSubstring("start = "));
    for (const bool start : {false, true}) {
      systems::RhinoOptions options;
      (start ? options.start : options.flops) = wrong;
      CHECK_THAT(
          message_of<contract_error>([&] { (void)systems::rhino(program, machine, options); }),
          ContainsSubstring(start ? "start = " : "flops = "));
    }
    using Part = double systems::FlexSpModel::*;
    for (const auto& [name, part] : std::vector<std::pair<const char*, Part>>{
             {"square = ", &systems::FlexSpModel::square},
             {"token = ", &systems::FlexSpModel::token},
             {"fixed = ", &systems::FlexSpModel::fixed},
             {"activation = ", &systems::FlexSpModel::activation},
             {"parameters = ", &systems::FlexSpModel::parameters}}) {
      systems::FlexSpModel model = systems::flexsp_7b;
      model.*part = wrong;
      CHECK_THAT(message_of<contract_error>([&] { (void)systems::flexsp_costs(model, 8, 76); }),
                 ContainsSubstring("heddle::systems::flexsp_costs") && ContainsSubstring(name));
    }
    CHECK_THAT(message_of<contract_error>([&] {
                 (void)systems::flexsp_costs(systems::flexsp_7b, 8, 76, std::vector{100.0, wrong});
               }),
               ContainsSubstring("bandwidths 100 "));
  }
}

}  // namespace test_no_times
