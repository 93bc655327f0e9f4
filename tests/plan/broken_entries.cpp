// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Structs of plan/ that programs fill by hand: every door rejects a broken entry and names it.

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan.hpp>
#include <heddle/plan/planner.hpp>
#include <heddle/plan/solver.hpp>
#include <heddle/schedule/attention.hpp>
#include <heddle/schedule/generator.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>
#include <heddle/simulate/attention_costs.hpp>
#include <heddle/systems/aiperf/operation_count.hpp>
#include <heddle/systems/c4/path_plan.hpp>
#include <heddle/systems/co2/local_steps.hpp>
#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/flexpipe/flexpipe.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>
#include <heddle/systems/flow_splitting/flow_splitting.hpp>
#include <heddle/systems/frontier_3d/frontier.hpp>
#include <heddle/systems/hap/axis_costs.hpp>
#include <heddle/systems/hap/factored_gradient.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/reverse_program.hpp>
#include <heddle/systems/hap/shard_ratios.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/hap/transformer_program.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>
#include <heddle/systems/holmes/holmes.hpp>
#include <heddle/systems/metis/metis.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>
#include <heddle/systems/parscale/stream_law.hpp>
#include <heddle/systems/pathways/gang_order.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>
#include <heddle/systems/rhino/stage_cut.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

#include "support/broken_entries.hpp"

namespace test_plan_broken_entries {

using namespace heddle;
using namespace heddle::plan;
using schedule::Algorithm;
using schedule::AttentionForm;
using schedule::Collective;
using test::BrokenEntry;
using test::check_broken;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most = std::numeric_limits<int>::max();
constexpr std::int64_t most64 = std::numeric_limits<std::int64_t>::max();
constexpr auto no_scalar = static_cast<Scalar>(99);
constexpr Bytes large = Bytes{1} << 63;

Machine two_ranks() { return Machine::uniform(2, {.name = "d"}, {1e-6, 1e9}); }

plan::Profile four_layers() {
  plan::Profile profile{.model = "m", .input = 4, .layers = {}, .reference = "d"};
  for (int l = 0; l < 4; ++l)
    profile.layers.push_back({.name = "l",
                              .output = 4,
                              .saved = 4,
                              .delta = 4,
                              .parameters = 8,
                              .measured = {{"d", 1, 1, {1, 1, 1, 0.1}}}});
  return profile;
}

Plan two_stages() {
  return {.stages = {{.layers = {0, 2}, .ranks = {Rank{0}}, .samples = {1}},
                     {.layers = {2, 4}, .ranks = {Rank{1}}, .samples = {1}}},
          .microbatches = 2};
}

systems::TensorProgram product() {
  systems::TensorProgram program;
  program.dimensions = {{"b", 64}, {"i", 8}, {"o", 8}};
  program.tensors = {{"x", {"b", "i"}, systems::TensorRole::input},
                     {"w", {"i", "o"}, systems::TensorRole::parameter},
                     {"y", {"b", "o"}, systems::TensorRole::output}};
  program.operations = {{systems::OperationKind::matmul, {"x", "w"}, "y"}};
  return program;
}

}  // namespace

TEST_CASE("laws, counts and distributions reject numbers that are none of theirs") {
  const auto fit = [](std::size_t at, systems::StreamLoss one) {
    std::vector<systems::StreamLoss> losses{{1e9, 1, 3}, {2e9, 1, 2}, {1e9, 2, 2}, {2e9, 2, 1.5}};
    losses[at] = one;
    return [=] { (void)systems::StreamLaw::fit(losses); };
  };
  const std::vector<systems::StreamLoss> equal{{1e9, 1, 3}, {1e9, 1, 3}};
  const auto sum = [](systems::FactoredGradient gradient) {
    return [=] { (void)systems::bytes_of_sum(gradient); };
  };
  const auto axis = [](systems::AxisCosts costs, double n) {
    return [=] { (void)costs.all_reduce(n); };
  };
  const auto kind = static_cast<systems::ElementLayer::Kind>(77);
  check_broken({
      {"streams", [] { (void)systems::StreamLaw{}.factor(0); }, {"streams = 0"}},
      {"parameters", [] { (void)systems::StreamLaw{}.loss(-1, 1); }, {"parameters = -1"}},
      {"scale", [] { (void)systems::StreamLaw{.scale = nan}.loss(1, 1); }, {"scale = nan"}},
      {"loss", fit(2, {1e9, 2, infinity}), {"losses[2]", "loss = inf"}},
      {"fitted parameters", fit(1, {infinity, 1, 2}), {"losses[1]", "parameters = inf"}},
      {"fitted streams", fit(3, {2e9, 0, 1}), {"losses[3]", "streams = 0"}},
      {"no loss", [] { (void)systems::explained({}, {}); }, {"0 losses"}},
      {"equal losses", [=] { (void)systems::explained({}, equal); }, {"2 losses"}},
      {"layers",
       [] { (void)systems::StreamMemory{.layers = large, .keys = large}.added(2); },
       {"layers = 9"}},
      {"ranks", sum({4, 4, 4, 0}), {"ranks = 0"}},
      {"type", sum({4, 4, 4, 2, no_scalar}), {"unknown type 99"}},
      {"inputs", sum({large, 4, 4, 2}), {"inputs = 9223372036854775808"}},
      {"per_byte",
       [] {
         (void)systems::prefers_factors({4, 4, 4, 2}, nan, 1);
       },
       {"per_byte = nan"}},
      {"least",
       [] {
         (void)systems::ShiftedExponential{-1, 1}.mean_of_least(2);
       },
       {"least = -1"}},
      {"mean_excess",
       [] {
         (void)systems::ShiftedExponential{1, nan}.share_within(2);
       },
       {"mean_excess"}},
      {"deviation",
       [] {
         (void)systems::LognormalTimes{0, -1}.mean_of_least(2);
       },
       {"deviation = -1"}},
      {"mean",
       [] {
         (void)systems::LognormalTimes{nan, 1}.share_within(2);
       },
       {"mean_logarithm = nan"}},
      {"time",
       [] {
         (void)systems::EmpiricalTimes({1, 2}).share_within(nan);
       },
       {"nan"}},
      {"add",
       [] {
         (void)systems::operations(systems::DenseLayer{4, 4}, {.add = -5});
       },
       {"add = -5"}},
      {"dense",
       [] {
         (void)systems::operations(systems::DenseLayer{most64, 4});
       },
       {"inputs = 9223372036854775807"}},
      {"size",
       [] { (void)systems::operations(systems::ConvolutionLayer{.height = 0}); },
       {"height = 0"}},
      {"kind",
       [=] {
         (void)systems::operations(systems::ElementLayer{kind, 4, 1});
       },
       {"kind = 77"}},
      {"epochs",
       [] {
         (void)systems::search_operations(std::vector<systems::TrainedNetwork>{{{4, 4}, -1, 5, 3}});
       },
       {"networks[0].epochs = -1"}},
      {"operations", [] { (void)systems::search_score(nan, 1, 0.5); }, {"operations = nan"}},
      {"ways", axis({.ways = -3}, 4), {"ways = -3"}},
      {"ring", axis({.ways = 2, .ring = nan}, 4), {"ring = nan"}},
      {"n", axis({.ways = 2}, -4), {"n = -4"}},
      {"rank of an axis",
       [] {
         (void)systems::axis_costs(two_ranks(), {{Rank{0}, Rank{9}}});
       },
       {"groups[0][1]", "rank 9 of 2"}},
      {"rank twice",
       [] {
         (void)systems::axis_costs(two_ranks(), {{Rank{0}, Rank{0}}});
       },
       {"groups[0][1]"}},
  });
}

TEST_CASE("flows, pieces of state and nano-batches reject what does not exist") {
  IndexSet four;
  four.add({0, 4});
  const auto piece = [=](Rank to, Bytes bytes) {
    return [=] {
      const std::vector<StatePiece> pieces{{Rank{0}, to, 0, four}};
      (void)migration_schedule(pieces, 2, std::vector<Bytes>{bytes});
    };
  };
  const auto sizes = [](double per_parameter) {
    return [=] { (void)state_sizes(four_layers(), per_parameter); };
  };
  const systems::NanoLayer one{"l", 4, 2, {{"a", 0, {}, 1, 0}}, {{0.5, 1}}};
  systems::NanoLayer two = one;
  two.operations.push_back({"b", 0, {0}, 1, 0});
  systems::NanoLayer wide = one;
  wide.units = 70000;
  const Schedule of_two = systems::nano_schedule(two, systems::serial_nano_plan(two, {4}));
  check_broken({
      {"leaf",
       [] {
         systems::PathPlan({{0xffffffffu, 0}}, 2);
       },
       {"flow 0", "4294967295"}},
      {"spines",
       [] {
         systems::PathPlan({{0, 1}}, most);
       },
       {"2147483647 spines"}},
      {"stays", piece(Rank{0}, 4), {"from rank 0 to rank 0"}},
      {"bytes", piece(Rank{1}, large), {"9223372036854775808"}},
      {"nan", sizes(nan), {"per_parameter = nan"}},
      {"negative", sizes(-1), {"per_parameter = -1"}},
      {"too much", sizes(1e300), {"layer 0", "1e+300"}},
      {"units", [=] { (void)systems::serial_nano_plan(wide, {4}); }, {"units = 70000"}},
      {"operation",
       [=] { (void)simulate(of_two, systems::InterferenceCosts(one)); },
       {"operation 1 of 1", "not one of this layer"}},
  });
}

TEST_CASE("list schedules reject empty rules and activations below zero") {
  const Orders base = schedule::one_f_one_b(2, 2);
  const StageCosts costs{.forward = 1, .backward = 2};
  const auto list = [=](ListOptions options) {
    return [=] { (void)list_schedule(base, costs, options); };
  };
  const auto search = [=](CoordinateOptions options) {
    return [=] { (void)coordinate(base, costs, options); };
  };
  const auto policy = static_cast<systems::GangPolicy>(9);
  StageGraph graph;
  graph.stages = 2;
  check_broken({
      {"priority", list({.priority = {}}), {"ListOptions::priority"}},
      {"rule of W", list({.priority = WeightsLast{.rule = {}}}), {"WeightsLast::rule"}},
      {"activations", list({.cap = 1, .activations = {3, -4}}), {"activations[1] = -4"}},
      {"rule", search({.rules = {{"x", {}}}}), {"rule 'x'"}},
      {"cap", search({.cap = most64}), {"cap = 9223372036854775807"}},
      {"ranks", [] { (void)systems::branch_rules(0); }, {"ranks = 0"}},
      {"workers",
       [=] { (void)place_branches(graph, costs, {.workers = most}); },
       {"workers = 2147483647"}},
      {"policy", [=] { systems::GangOrder(policy, {1}); }, {"policy = 9"}},
  });
}

TEST_CASE("plans of sequences reject forms, methods and costs that do not fit") {
  AttentionForm form;
  form.ranks = 2;
  form.tokens = 16;
  form.heads = 2;
  form.head_width = 2;
  const auto with = [=](SequenceCandidate candidate, std::size_t sequences = 1) {
    return [=] { (void)sequence_schedule(candidate, form, false, sequences); };
  };
  const auto of = [=](const std::function<void(AttentionForm&)>& change) {
    AttentionForm other = form;
    change(other);
    return [=] { (void)sequence_schedule({.heads = 2}, other, false); };
  };
  const auto no_method = static_cast<SequenceMethod>(77);
  const auto no_axis = static_cast<NearAxis>(9);
  using enum SequenceMethod;
  const Schedule ring_of_two = schedule::drop_unread(schedule::ring_attention(form));
  const auto fold_as = [=](const std::function<void(AttentionForm&)>& change) {
    AttentionForm other = form;
    change(other);
    return [=] { (void)schedule::fold_attention(ring_of_two, other); };
  };
  const auto price_as = [=](const std::function<void(AttentionForm&)>& change) {
    AttentionForm other = form;
    change(other);
    return [=] { (void)simulate(ring_of_two, AttentionCosts(other, 1, two_ranks())); };
  };
  const auto model = [](int layers, int hidden) {
    systems::FlexSpModel each = systems::flexsp_7b;
    each.layers = layers;
    each.hidden = hidden;
    return [=] { (void)systems::flexsp_costs(each, 8, 80); };
  };
  check_broken({
      {"method", with({.method = no_method, .ring = 2}), {"method = 77"}},
      {"near", with({.method = usp, .heads = 2, .near = no_axis}), {"near = 9"}},
      {"ulysses", with({.method = ulysses, .ring = 2}), {"ulysses", "2 ring ranks"}},
      {"rsa", with({.method = rsa, .heads = 2}), {"rsa", "2 heads ranks"}},
      {"product", with({.method = usp, .heads = 65536, .ring = 65536}), {"65536 heads ranks"}},
      {"sequences", with({.heads = 2}, 0), {"0 sequences"}},
      {"ranks", of([](AttentionForm& f) { f.ranks = -2; }), {"ranks = -2"}},
      {"heads", of([](AttentionForm& f) { f.heads = 0; }), {"heads = 0"}},
      {"tokens", of([](AttentionForm& f) { f.tokens = -5; }), {"tokens = -5"}},
      {"type", of([](AttentionForm& f) { f.type = no_scalar; }), {"unknown type 99"}},
      {"folded tokens", fold_as([](AttentionForm& f) { f.tokens = 8; }), {"256 bytes of queries"}},
      {"folded ranks", fold_as([](AttentionForm& f) { f.ranks = 4; }), {"the form"}},
      {"folded ways", fold_as([](AttentionForm& f) { f.ways = 2; }), {"keys_values in 1 parts"}},
      {"folded slots",
       [=] { (void)schedule::fold_attention(ring_of_two, form, 0); },
       {"slots = 0"}},
      {"folded pipeline",
       [=] {
         (void)schedule::fold_attention(schedule::gpipe({.ranks = 2, .microbatches = 2}), form);
       },
       {"no queries"}},
      {"priced tokens", price_as([](AttentionForm& f) { f.tokens = 8; }), {"256 bytes of queries"}},
      {"priced ways", price_as([](AttentionForm& f) { f.ways = 2; }), {"keys_values in 1 parts"}},
      {"layers", model(-1, 4096), {"layers = -1"}},
      {"hidden", model(32, -2), {"hidden = -2"}},
      {"length",
       [] {
         (void)systems::divide_evenly(std::vector<std::int64_t>{3, -5}, 2);
       },
       {"lengths[1] = -5"}},
      {"sum of lengths",
       [] {
         (void)systems::divide_evenly(std::vector<std::int64_t>{most64, most64}, 2);
       },
       {"lengths[0] = 9223372036854775807"}},
      {"compositions",
       [] {
         (void)systems::group_compositions(4096, std::vector<int>{1, 2, 4, 8, 16, 32});
       },
       {"4096 ranks"}},
      {"ranks of groups",
       [] { (void)systems::group_compositions(most, std::vector<int>{1}); },
       {"2147483647 ranks"}},
  });
  CHECK(systems::group_compositions(64, std::vector<int>{2, 4, 8, 16, 32, 64}).size() == 202);
  CHECK(systems::group_compositions(5, std::vector<int>{1, 2, 4}) ==
        std::vector<std::vector<int>>{{4, 1}, {2, 2, 1}, {2, 1, 1, 1}, {1, 1, 1, 1, 1}});
}

TEST_CASE("choices of collectives reject algorithms, collectives and pieces that do not exist") {
  const schedule::CollectiveOptions options{.ranks = 2, .bytes = 1024};
  const auto no_collective = static_cast<Collective>(99);
  const auto no_algorithm = static_cast<Algorithm>(99);
  const auto choice = [=](plan::CollectiveChoice each,
                          Collective collective = Collective::all_reduce, Bytes bytes = 1024) {
    schedule::CollectiveOptions of = options;
    of.bytes = bytes;
    return [=] { (void)plan::to_schedule(each, collective, of, two_ranks()); };
  };
  const plan::CostTable table(two_ranks());
  check_broken({
      {"algorithm", choice({.algorithm = no_algorithm}), {"no algorithm 99"}},
      {"collective", choice({}, no_collective), {"no collective 99"}},
      {"piece", choice({.piece = 1}, Collective::all_reduce, Bytes{1} << 40), {"pieces of 1"}},
      {"predicted", [=] { (void)plan::predict(no_collective, options, two_ranks()); }, {"unknown"}},
      {"set", [=] { plan::CostTable(table).set(no_collective, 4, {}, 1); }, {"unknown"}},
      {"set algorithm",
       [=] {
         plan::CostTable(table).set(Collective::all_reduce, 4, {.algorithm = no_algorithm}, 1);
       },
       {"unknown"}},
      {"best", [=] { (void)table.best(no_collective, 4); }, {"collective = 99"}},
      {"times", [=] { (void)table.times(no_collective, 4); }, {"collective = 99"}},
      {"sizes", [=] { (void)table.sizes(no_collective); }, {"collective = 99"}},
      {"local steps",
       [=] {
         (void)systems::local_steps(
             {.ranks = 2, .steps = 4, .algorithm = no_algorithm, .bytes = 32});
       },
       {"no algorithm 99"}},
      {"domains",
       [=] {
         schedule::CollectiveOptions levels = options;
         (void)heddle::impl::shared_algorithm(Collective::all_reduce, Algorithm::ring, levels, {});
       },
       {"0 domains, 2 ranks"}},
  });
}

TEST_CASE("profiles, problems, planners and costs of plans reject numbers that do not fit") {
  const plan::Profile profile = four_layers();
  const Machine machine = two_ranks();
  const Plan plan = two_stages();
  const PlanProblem problem(profile, machine, {.batch = 4});
  const auto times = [&](Device device, double samples) {
    return [=, &profile] { (void)profile.times(0, device, 1, samples); };
  };
  const auto measured = [&](const std::function<void(plan::LayerMeasurement&)>& change) {
    plan::Profile broken = profile;
    change(broken.layers[0].measured[0]);
    return [=] { (void)broken.times(0, {.name = "d"}, 1, 2); };
  };
  const auto options = [&](PlanOptions each) {
    return [=, &profile, &machine] { PlanProblem(profile, machine, each); };
  };
  const auto search = [&](auto planner) {
    return [=, &problem] { (void)planner.search(problem); };
  };
  plan::Profile heavy = profile;
  heavy.layers[0].saved = heavy.layers[1].saved = large;
  plan::Profile heavier = profile;
  heavier.layers[0].delta = large;
  const auto latency = [](systems::LatencyStage stage) {
    return [=] {
      (void)systems::pivot_latency(std::vector<systems::LatencyStage>{{1, 1, 1}, stage}, 2);
    };
  };
  const auto ring = [&](Rank last, double bytes) {
    return [=, &machine] {
      (void)ring_all_reduce_time(machine, std::vector<Rank>{Rank{0}, last}, bytes);
    };
  };
  const RankCosts rank_costs(plan, profile, machine);
  const Schedule longer = schedule::looped_bfs({.ranks = 2, .microbatches = 2});
  check_broken({
      {"speed", times({.name = "e", .speed = 0}, 1), {"speed = 0"}},
      {"samples", times({.name = "d"}, nan), {"samples = nan"}},
      {"measured samples",
       measured([](plan::LayerMeasurement& m) { m.samples = 0; }),
       {"forward = inf"}},
      {"activation", options({.batch = 2, .activation = no_scalar}), {"activation = 99"}},
      {"attention",
       options({.batch = 2, .attention = static_cast<SequenceMethod>(99)}),
       {"attention = 99"}},
      {"share", search(systems::Frontier3D{.share = nan}), {"share = nan"}},
      {"window", search(systems::HGTrainer{.window = -4}), {"window = -4"}},
      {"alpha", search(systems::Holmes{.alpha = nan}), {"alpha = nan"}},
      {"buckets", search(systems::Holmes{.buckets = 0}), {"buckets = 0"}},
      {"variance", search(systems::Metis{.variance = nan}), {"variance = nan"}},
      {"refined", search(systems::Metis{.refined = -1}), {"refined = -1"}},
      {"groups", [] { (void)systems::device_group_lists(4, 2, 3, nan); }, {"variance = nan"}},
      {"forward", latency({nan, 1, 1}), {"stages[1]", "forward = nan"}},
      {"tail", latency({1, 1, -5}), {"stages[1]", "tail = -5"}},
      {"ring's rank", ring(Rank{9}, 4), {"ranks[1]", "rank 9 of 2"}},
      {"ring's bytes", ring(Rank{1}, -4), {"bytes = -4"}},
      {"type", [&] { (void)plan::schedule(plan, profile, {.type = no_scalar}); }, {"type = 99"}},
      {"ranks", [&] { (void)plan::schedule(plan, profile, {.ranks = -5}); }, {"ranks = -5"}},
      {"saved", [&] { (void)plan::schedule(plan, heavy); }, {"layer 1", "9223372036854775808"}},
      {"delta", [&] { (void)plan::schedule(plan, heavier); }, {"delta of layers 0 to 2"}},
      {"costs' type", [&] { (void)costs(plan, profile, machine, no_scalar); }, {"type = 99"}},
      {"stage", [&] { (void)simulate(longer, rank_costs); }, {"not one of this plan"}},
      {"costs' rank", [&] { (void)rank_costs.times(Rank{99}); }, {"rank 99 of 2"}},
      {"gain",
       [&] {
         PlanChoice(profile, machine,
                    {.search = {.batch = 4}, .gain = infinity, .planners = systems::planners()});
       },
       {"gain = inf"}},
      {"pause",
       [&] {
         PlanChoice(profile, machine,
                    {.search = {.batch = 4}, .pause = infinity, .planners = systems::planners()});
       },
       {"pause = inf"}},
  });
}

TEST_CASE("tensor programs reject kinds, roles, types and shares that do not exist") {
  const systems::TensorProgram program = product();
  const Machine machine = two_ranks();
  const auto broken = [&](const std::function<void(systems::TensorProgram&)>& change) {
    systems::TensorProgram each = program;
    change(each);
    return [=] { systems::check(each); };
  };
  const systems::HapResult found = systems::hap(program, machine);
  const auto sharded = [&](const std::function<void(systems::ShardInstruction&)>& change) {
    systems::ShardedProgram each = found.program;
    change(each.instructions[0]);
    return [=, &program] { systems::check(program, each); };
  };
  using Shares = std::vector<std::vector<double>>;
  const auto shares = [&](Shares each) {
    return [=, &program, &machine, &found] {
      std::size_t candidates = 0;
      (void)systems::hap_search(program, machine, found.groups, each, {}, candidates);
    };
  };
  Shares negative = found.shares, shorter = found.shares;
  negative[0][1] = -1;
  shorter[0].pop_back();
  const auto no_kind = static_cast<systems::OperationKind>(99);
  const auto no_form = static_cast<systems::TensorForm::Kind>(9);
  const auto shape = [](systems::TransformerShape each) {
    return [=] { (void)systems::transformer_program(each); };
  };
  systems::TensorProgram other;
  other.dimensions = {{"q", 4}};
  systems::Operation unknown = program.operations[0];
  unknown.kind = no_kind;
  check_broken({
      {"kind",
       broken([=](systems::TensorProgram& p) { p.operations[0].kind = no_kind; }),
       {"kind = 99"}},
      {"factor",
       broken([](systems::TensorProgram& p) { p.operations[0].factor = nan; }),
       {"factor = nan"}},
      {"role",
       broken([](systems::TensorProgram& p) {
         p.tensors[1].role = static_cast<systems::TensorRole>(99);
       }),
       {"role = 99"}},
      {"type",
       broken([](systems::TensorProgram& p) { p.tensors[1].type = no_scalar; }),
       {"type = 99"}},
      {"bytes",
       [&] { (void)program.bytes({.name = "z", .dims = {"b"}, .type = no_scalar}); },
       {"type = 99"}},
      {"flops", [&] { (void)program.flops(unknown); }, {"kind = 99"}},
      {"rules", [&] { (void)systems::shard_rules(program, unknown); }, {"kind = 99"}},
      {"instruction",
       sharded([](systems::ShardInstruction& i) {
         i.kind = static_cast<systems::ShardInstructionKind>(99);
       }),
       {"kind = 99"}},
      {"form",
       sharded([=](systems::ShardInstruction& i) { i.to.kind = no_form; }),
       {"TensorForm::kind = 9"}},
      {"ranks", [&] { systems::ShardGroups(program, -1); }, {"ranks = -1"}},
      {"blocks", [&] { (void)found.groups.blocks(program, {}); }, {"0 lists of shares"}},
      {"shares", shares({}), {"0 lists of shares"}},
      {"share", shares(negative), {"shares[0][1] = -1"}},
      {"short shares", shares(shorter), {"shares[0] has 1 for 2 ranks"}},
      {"groups",
       [&] {
         std::size_t candidates = 0;
         (void)systems::hap_search(program, machine, systems::ShardGroups(other, 2), found.shares,
                                   {}, candidates);
       },
       {"1 dimensions", "3"}},
      {"ratios",
       [&] { (void)systems::hap_ratios(program, found.program, machine, found.groups, {}, {}); },
       {"0 lists of shares"}},
      {"apportioned",
       [] {
         (void)systems::apportion(4, std::vector<double>{infinity, 1});
       },
       {"sum inf"}},
      {"state",
       [&] { (void)systems::hap(program, machine, {.state_per_parameter = infinity}); },
       {"inf"}},
      {"prescribed",
       [&] {
         (void)systems::hap(program, machine, {.forms = {{"x", systems::TensorForm{no_form, {}}}}});
       },
       {"kind = 9"}},
      {"step", [&] { (void)systems::reverse(program, "y", {.step = nan}); }, {"step = nan"}},
      {"layers", shape({.layers = most64}), {"layers = 9223372036854775807"}},
      {"kv_heads", shape({.kv_heads = most64}), {"kv_heads = 9223372036854775807"}},
      {"width", shape({.width = most64 - 3}), {"width = 9223372036854775804"}},
      {"epsilon", shape({.epsilon = nan}), {"epsilon = nan"}},
      {"shape's type", shape({.type = no_scalar}), {"type = 99"}},
  });
}

TEST_CASE("solvers reject costs, vertices and strategies that do not exist") {
  const auto cut = [](systems::OperationGraph graph, double tolerance = 0.1) {
    return [=] { (void)systems::cut_stages(graph, 2, {.tolerance = tolerance}); };
  };
  const systems::StrategyGraph graph{.nodes = {{"a", {1, 2}}, {"b", {1, 2}}},
                                     .edges = {{0, 1, {0, 1, 1, 0}}}};
  const auto choose = [=](const std::function<void(systems::StrategyGraph&)>& change) {
    systems::StrategyGraph each = graph;
    change(each);
    return [=] { (void)systems::choose_strategies(each); };
  };
  const auto constraint = [](std::size_t variable, double factor, double side, Relation relation) {
    return [=] {
      LinearProgram<double> program;
      (void)program.add_variable("x", 1);
      (void)program.add_constraint("c", {{variable, factor}}, relation, side);
    };
  };
  systems::RatioProblem<double> ratios{.devices = 2, .least = {0}};
  ratios.steps = {{"s", {{0, 0, -1.0}}}};
  check_broken({
      {"work", cut({.work = {1, nan}}), {"work[1] = nan"}},
      {"negative work", cut({.work = {-1, 2}}), {"work[0] = -1"}},
      {"bytes", cut({.work = {1, 1}, .data = {{{0, 1}, nan}}}), {"data[0].bytes = nan"}},
      {"vertex", cut({.work = {1, 1}, .data = {{{0, 9}, 1}}}), {"vertex 9 of 2"}},
      {"tolerance", cut({.work = {1, 1}}, nan), {"tolerance = nan"}},
      {"stages",
       [] {
         (void)systems::OperationGraph{.work = {1, 1}, .data = {{{0, 1}, 1}}}.bytes({0});
       },
       {"vertex 1", "1 stages"}},
      {"choice",
       [=] {
         (void)graph.cost({0, 7});
       },
       {"choice[1] = 7"}},
      {"short choice", [=] { (void)graph.bytes({0}); }, {"1 strategies for 2 nodes"}},
      {"cost",
       choose([](systems::StrategyGraph& g) { g.nodes[1].costs[0] = -3; }),
       {"node 1 'b'", "-3"}},
      {"capacity", choose([](systems::StrategyGraph& g) { g.capacity = nan; }), {"capacity = nan"}},
      {"rule",
       [] { (void)systems::split_flows(2, 2, static_cast<systems::SplitRule>(9)); },
       {"rule = 9"}},
      {"function",
       [] {
         (void)tune({{"a", 2}}, {});
       },
       {"`cost` is empty"}},
      {"variable", constraint(4, 1, 1, Relation::equal), {"'c'", "variable 4 of 1"}},
      {"factor", constraint(0, nan, 1, Relation::equal), {"'c'", "factor nan"}},
      {"side", constraint(0, 1, infinity, Relation::equal), {"'c'", "side inf"}},
      {"relation", constraint(0, 1, 1, static_cast<Relation>(9)), {"relation = 9"}},
      {"bound",
       [] { LinearProgram<double>().add_variable("x", 1, nan); },
       {"variable 'x'", "lower nan"}},
      {"coefficient", [=] { (void)systems::ratio_program(ratios); }, {"step 's'", "-1"}},
      {"devices",
       [] { (void)systems::ratio_program(systems::RatioProblem<double>{.devices = 0}); },
       {"devices = 0"}},
  });
}

}  // namespace test_plan_broken_entries
