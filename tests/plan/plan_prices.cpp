// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the prices of plans by numbers computed by hand and by closed forms: all-reduces, messages
// between unequal groups, the simulated step of 1F1B, GPipe and ZB-H1, and the memory of ranks. A
// recurrence predicts 1F1B on random plans.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/codec.hpp>
#include <heddle/core/error.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/cut_messages.hpp>
#include <heddle/plan/impl/sequence_program.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_plan_prices {

namespace hd = heddle;
namespace hp = heddle::plan;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using hd::test::message_of;

namespace {

constexpr hd::Link free_link{};
constexpr hd::Link slow{0.5, 100};  // half a second, 100 B/s

/// Equal layers: F 1, I 2, W 1 a sample, update 0.25; 100 bytes between layers.
hd::plan::Profile profile_of(int layers) {
  const hd::plan::ProfiledLayer layer{
      .output = 100,
      .saved = 40,
      .delta = 10,
      .parameters = 200,
      .measured = {{"gpu", 1, 1, {1, 2, 1, 0.25}}, {"gpu", 2, 1, {0.5, 1, 0.5, 0.125}}}};
  return {.model = "equal",
          .input = 60,
          .layers = std::vector<hd::plan::ProfiledLayer>(static_cast<std::size_t>(layers), layer),
          .reference = "gpu"};
}

hd::PlanStage stage(int first, int last, std::vector<hd::Rank> ranks,
                    std::vector<std::int64_t> samples) {
  return {.layers = {first, last}, .ranks = std::move(ranks), .samples = std::move(samples)};
}

/// One layer and one rank a stage, a sample a microbatch.
hd::Plan pipeline(int stages, int microbatches, const std::string& schedule = "1f1b") {
  hd::Plan plan{.microbatches = microbatches, .schedule = schedule};
  for (int s = 0; s < stages; ++s) plan.stages.push_back(stage(s, s + 1, {hd::Rank{s}}, {1}));
  return plan;
}

/// The simulated time of the messages of the first cut of a plan, which all begin together.
double simulated_cut(const hp::PlanProblem& problem, const hd::Plan& plan, bool forward) {
  std::vector<hp::StatePiece> pieces;
  hp::impl::each_message(plan, 0, problem.profile(), problem.options().activation,
                         [&](hd::Rank from, hd::Rank to, hd::Bytes bytes) {
                           hp::StatePiece& piece = pieces.emplace_back();
                           piece.from = forward ? from : to;
                           piece.to = forward ? to : from;
                           piece.elements.add({0, static_cast<std::int64_t>(bytes)});
                         });
  const hd::Bytes one = 1;
  return hd::simulate(hp::migration_schedule(pieces, problem.machine().ranks(), {&one, 1}), {},
                      problem.machine())
      .makespan();
}

/// The time of the messages of the only cut of a plan.
double cut_time(const hd::plan::Profile& profile, const hd::Machine& machine,
                const hd::Plan& plan) {
  const hp::PlanProblem problem(profile, machine, {.batch = plan.batch()});
  const std::vector<hp::StagePrice> prices = hp::stage_prices(plan, problem);
  REQUIRE(prices.size() == 2);
  CHECK(prices[1].send_forward == 0);
  CHECK(prices[1].send_backward == 0);
  CHECK(prices[0].send_forward == simulated_cut(problem, plan, true));
  CHECK(prices[0].send_backward == simulated_cut(problem, plan, false));
  CHECK(prices[0].send_forward == prices[0].send_backward);
  return prices[0].send_forward;
}

/// An independent prediction of 1F1B: every time is the latest of what it waits for, by recursion.
class OneForwardOneBackward {
 public:
  OneForwardOneBackward(std::vector<hp::StagePrice> prices, int microbatches)
      : m_prices(std::move(prices)),
        m_microbatches(microbatches),
        m_times(m_prices.size() * static_cast<std::size_t>(microbatches) * 4, -1) {}

  [[nodiscard]] double step() {
    double last = 0;
    for (int s = 0; s < stages(); ++s)
      last = std::max(last, end(1, s, m_microbatches - 1) + at(s).gradient_sum + at(s).update);
    return last;
  }

 private:
  [[nodiscard]] int stages() const { return static_cast<int>(m_prices.size()); }
  [[nodiscard]] const hp::StagePrice& at(int s) const {
    return m_prices[static_cast<std::size_t>(s)];
  }
  /// The end of a forward (pass 0) or backward (1), or of the message behind it (2, 3).
  double end(int pass, int s, int m) {
    double& known = m_times[static_cast<std::size_t>((pass * stages() + s) * m_microbatches + m)];
    if (known < 0) known = pass < 2 ? compute(pass == 0, s, m) : send(pass == 2, s, m);
    return known;
  }
  double compute(bool forward, int s, int m) {
    const int warm_up =
        std::min(m_microbatches, stages() - s);  // forwards before the first backward
    double start = 0;
    if (forward) {
      if (m >= warm_up) start = end(1, s, m - warm_up);
      if (m > 0) start = std::max(start, end(0, s, m - 1));
      if (s > 0) start = std::max(start, end(2, s - 1, m));
      return start + at(s).forward;
    }
    start = end(0, s, std::min(m + warm_up - 1, m_microbatches - 1));
    if (m > 0) start = std::max(start, end(1, s, m - 1));
    if (s + 1 < stages()) start = std::max(start, end(3, s + 1, m));
    return start + at(s).backward;
  }
  double send(bool forward, int s, int m) {
    const double before = m > 0 ? end(forward ? 2 : 3, s, m - 1) : 0;
    return std::max(before, end(forward ? 0 : 1, s, m)) +
           (forward ? at(s).send_forward : at(s - 1).send_backward);
  }

  std::vector<hp::StagePrice> m_prices;
  int m_microbatches;
  std::vector<double> m_times;  // by pass, stage and microbatch; -1: unknown
};

/// The collectives of a ShardGroup over 8 ranks in nodes of 4 and pairs of 2, as Schedules.
class ShardCalls {
 public:
  explicit ShardCalls(hd::Machine machine) : m_machine(std::move(machine)) {}

  /// Adds a gather from the level with `from` lines to that with `to`; blocks are halved by each
  /// line of `elements` elements in all.
  ShardCalls& gather(int from, int to, std::optional<hd::Codec> codec) {
    for (int line = from; line-- > to;)
      add(hd::schedule::Collective::all_gather, hd::schedule::Algorithm::ring, line, codec);
    return *this;
  }
  ShardCalls& reduce(int from, int to, std::optional<hd::Codec> codec) {
    for (int line = from; line < to; ++line)
      add(hd::schedule::Collective::reduce_scatter, hd::schedule::Algorithm::direct, line, codec);
    return *this;
  }
  [[nodiscard]] double time() {
    return hd::simulate(std::move(m_program).build(), {}, m_machine).makespan();
  }

 private:
  void add(hd::schedule::Collective collective, hd::schedule::Algorithm algorithm, int line,
           const std::optional<hd::Codec>& codec) {
    hd::Schedule one = hd::schedule::collective(
        collective, algorithm,
        {.ranks = 2, .bytes = hd::Bytes{4096} >> line, .type = hd::Scalar::f32});
    if (codec)
      one = hd::schedule::cast_at_cut(one, *codec, [](hd::Rank, hd::Rank) { return true; });
    std::vector<std::vector<hd::Rank>> groups;
    const std::size_t stride = std::size_t{1} << line;
    for (std::size_t r = 0; r < 8; ++r)
      if (r / stride % 2 == 0) groups.push_back({hd::Rank{r}, hd::Rank{r + stride}});
    m_program.add(std::vector(groups.size(), one), groups);
  }

  hd::Machine m_machine;
  hp::impl::SequenceProgram m_program{"shards", 8};
};

/// 8 ranks in pairs and nodes, with slower links at each level.
hd::Machine pairs_and_nodes(const hd::Ports& ports = {}) {
  return hd::Machine::hierarchical(
      std::vector<hd::Device>(8, {"gpu"}),
      {{.name = "pair", .ranks = 2, .link = {0.125, 4096}},
       {.name = "node", .ranks = 4, .link = {0.25, 1024}, .ports = ports},
       {.name = "all", .ranks = 8, .link = {0.5, 256}}});
}

}  // namespace

TEST_CASE("a ring takes the least bandwidth and the greatest latency of its ranks") {
  hd::Machine machine = hd::Machine::uniform(4, {"gpu"}, slow);
  const std::vector<hd::Rank> all{0, 1, 2, 3}, three{0, 1, 2}, one{2}, others{0, 1, 3};
  CHECK(hp::ring_all_reduce_time(machine, all, 400) == 6 + 3);
  CHECK(hp::ring_all_reduce_time(machine, one, 400) == 0);
  CHECK(hp::ring_all_reduce_time(machine, {}, 400) == 0);
  machine.set_link(2, 1, {1, 50});
  CHECK(hp::ring_all_reduce_time(machine, three, 300) == 8 + 4);
  CHECK(hp::ring_all_reduce_time(machine, others, 300) == 4 + 2);
  // Nodes of two ranks with one port of 10 B/s: only rings in one node avoid it.
  const hd::Machine nodes =
      hd::Machine::hierarchical(std::vector<hd::Device>(4, {"gpu"}),
                                {{.name = "node", .ranks = 2, .link = {0, 100}, .ports = {10, 20}},
                                 {.name = "all", .ranks = 4, .link = {0, 100}}});
  CHECK(hp::ring_all_reduce_time(nodes, std::vector<hd::Rank>{2, 3}, 100) == 1);
  CHECK(hp::ring_all_reduce_time(nodes, std::vector<hd::Rank>{1, 2}, 100) == 10);
}

TEST_CASE("a stage takes the times of its slowest rank") {
  const std::vector<hd::Device> devices{{"gpu"}, {"old", 0.25}, {"gpu"}, {"gpu"}};
  const hd::plan::Profile profile = profile_of(4);
  const hd::Machine machine = hd::Machine::from_links(devices, std::vector<hd::Link>(16, slow));
  hd::Plan plan{.stages = {stage(0, 3, {0, 1}, {6, 2}), stage(3, 4, {2, 3}, {5, 3})}};
  const hp::PlanProblem problem(profile, machine, {.batch = 8});
  auto prices = hp::stage_prices(plan, problem);
  // Rank 0: 3 layers of 6 samples, rank 1: 3 layers of 2 samples at a quarter of the speed.
  CHECK(prices[0].forward == 3 * 2 * 4);
  CHECK(prices[0].backward == 3 * 2 * 4 * 3);
  CHECK(prices[0].update == 3 * 0.25 * 4);
  CHECK(prices[1].forward == 5);
  // 600 and 200 bytes over rings of two: bytes / bandwidth + 2 latencies.
  CHECK(prices[0].gradient_sum == 6 + 1);
  CHECK(prices[1].gradient_sum == 2 + 1);
  plan.stages[1].recompute = true;
  CHECK(hp::stage_prices(plan, problem)[1].backward == 5 * 4);
  // Tensor degree 2: the measured times of that degree, half the weights, no sum of one group.
  plan.stages[1] = stage(3, 4, {2, 3}, {8});
  plan.stages[1].tensor = 2;
  prices = hp::stage_prices(plan, problem);
  CHECK(prices[1].forward == 4);
  CHECK(prices[1].gradient_sum == 0);
  // Sequence degree 2: half of the samples' time each, and a sum over both.
  plan.stages[1].tensor = 1;
  plan.stages[1].sequence = 2;
  prices = hp::stage_prices(plan, problem);
  CHECK(prices[1].forward == 4);
  CHECK(prices[1].backward == 12);
  CHECK(prices[1].gradient_sum == 2 + 1);
}

TEST_CASE("messages join ranks whose samples overlap") {
  const hd::plan::Profile profile = profile_of(2);
  const hd::Machine machine = hd::Machine::uniform(6, {"gpu"}, slow);
  const auto cut = [&](const hd::PlanStage& a, const hd::PlanStage& b) {
    return cut_time(profile, machine, {.stages = {a, b}});
  };
  CHECK(cut(stage(0, 1, {0}, {8}), stage(1, 2, {1}, {8})) == 8.5);
  // Each pair of ranks has a link of its own.
  CHECK(cut(stage(0, 1, {0, 1, 2}, {3, 3, 2}), stage(1, 2, {3}, {8})) == 3.5);
  CHECK(cut(stage(0, 1, {0}, {8}), stage(1, 2, {1, 2}, {4, 4})) == 4.5);
  // Equal ranges: the larger one.
  CHECK(cut(stage(0, 1, {0, 1}, {5, 3}), stage(1, 2, {2, 3}, {5, 3})) == 5.5);
  // 5:3 to 3:5 are messages of 3, 2 and 3 samples.
  CHECK(cut(stage(0, 1, {0, 1}, {5, 3}), stage(1, 2, {2, 3}, {3, 5})) == 3.5);
  // A group of 2 ranks to a group of 2, and to two groups of one.
  hd::PlanStage pair = stage(0, 1, {0, 1}, {8});
  pair.tensor = 2;
  hd::PlanStage next = stage(1, 2, {2, 3}, {8});
  next.tensor = 2;
  CHECK(cut(pair, next) == 4.5);
  CHECK(cut(pair, stage(1, 2, {2, 3}, {4, 4})) == 4.5);
  CHECK(cut(pair, stage(1, 2, {2, 3}, {6, 2})) == 4.5);
  // A sample in halves to thirds: messages of 34, 17, 17 and 34 bytes.
  pair.samples = {1};
  hd::PlanStage triple = stage(1, 2, {2, 3, 4}, {1});
  triple.sequence = 3;
  CHECK(cut(pair, triple) == 34 / 100.0 + 0.5);
  // If each rank has one port, it sends or receives one message after another.
  const hd::Machine ports = hd::Machine::hierarchical(
      std::vector<hd::Device>(4, {"gpu"}), {{.name = "rank", .ranks = 1, .ports = {100, 100}},
                                            {.name = "all", .ranks = 4, .link = slow}});
  const auto in_turn = [&](const hd::PlanStage& a, const hd::PlanStage& b) {
    return cut_time(profile, ports, {.stages = {a, b}});
  };
  CHECK(in_turn(stage(0, 1, {0, 1, 2}, {3, 3, 2}), stage(1, 2, {3}, {8})) == 8.5);
  CHECK(in_turn(stage(0, 1, {0}, {8}), stage(1, 2, {1, 2}, {4, 4})) == 8.5);
  CHECK(in_turn(stage(0, 1, {0, 1}, {5, 3}), stage(1, 2, {2, 3}, {3, 5})) == 5.5);
}

TEST_CASE("the messages of random stages take as long as simulate() says") {
  std::mt19937_64 random(12);
  const auto from = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  int shared = 0;  // cuts in which a rank has several messages
  for (std::uint64_t c = 0; c < hd::test::cases(200, 5'000); ++c) {
    std::vector<hd::Link> links;
    for (int l = 0; l < 64; ++l)
      links.push_back({from(0, 4) / 4.0, static_cast<double>(from(1, 99))});
    const hd::Machine machine = hd::Machine::from_links(std::vector<hd::Device>(8, {"gpu"}), links);
    hd::Plan plan{.stages = {stage(0, 1, {}, {}), stage(1, 2, {}, {})}};
    int next = 0;
    for (hd::PlanStage& each : plan.stages) {
      each.sequence = from(1, 2);
      const int groups = from(1, 4 / each.sequence);
      for (int r = 0; r < groups * each.sequence; ++r) each.ranks.emplace_back(next++);
      for (int left = 12, g = 0; g < groups; ++g) {
        each.samples.push_back(g + 1 == groups ? left : from(1, left / (groups - g)));
        left -= static_cast<int>(each.samples.back());
      }
    }
    shared += plan.stages[0].ranks.size() != plan.stages[1].ranks.size();
    const hd::plan::Profile profile = profile_of(2);
    const hp::PlanProblem problem(profile, machine, {.batch = plan.batch()});
    const hp::StagePrice price = hp::stage_prices(plan, problem)[0];
    CAPTURE(c, plan);
    REQUIRE(price.send_forward == simulated_cut(problem, plan, true));
    REQUIRE(price.send_backward == simulated_cut(problem, plan, false));
  }
  CHECK(shared > 100);
}

TEST_CASE("casts change the bytes of messages, ports and lines are shared") {
  const hd::plan::Profile profile = profile_of(2);
  hd::Plan plan{.stages = {stage(0, 1, {0}, {8}), stage(1, 2, {2}, {8})}};
  hd::Machine machine = hd::Machine::uniform(4, {"gpu"}, slow);
  // 800 bytes are 200 floats: 200 bytes and 4 scales, or 400 bytes.
  plan.casts = {hd::Codec{.type = hd::Scalar::i8, .block = 64}};
  CHECK(cut_time(profile, machine, plan) == 2.04 + 0.5);
  plan.casts = {hd::Codec{.type = hd::Scalar::f16}};
  CHECK(cut_time(profile, machine, plan) == 4.5);
  plan.casts.clear();
  // Two senders and two receivers over a line of 20 B/s for all: 800 bytes in 40 s.
  plan.stages = {stage(0, 1, {0, 1}, {4, 4}), stage(1, 2, {2, 3}, {4, 4})};
  CHECK(cut_time(profile, machine, plan) == 4.5);
  machine.share("line", 20, {{0, 2}, {1, 3}, {2, 0}, {3, 1}});
  CHECK(cut_time(profile, machine, plan) == 40.5);
  // Ports of nodes: out of 50 B/s, into 25 B/s.
  const hd::Machine nodes =
      hd::Machine::hierarchical(std::vector<hd::Device>(4, {"gpu"}),
                                {{.name = "node", .ranks = 2, .link = slow, .ports = {50, 25}},
                                 {.name = "all", .ranks = 4, .link = slow}});
  CHECK(cut_time(profile, nodes, plan) == 32.5);
}

TEST_CASE("the simulated step of equal stages has the closed form of its schedule") {
  for (int stages = 1; stages <= 5; ++stages)
    for (int microbatches = 1; microbatches <= 7; ++microbatches) {
      const hd::plan::Profile profile = profile_of(stages);
      const hd::Machine machine = hd::Machine::uniform(stages, {"gpu"}, free_link);
      const hp::PlanProblem problem(profile, machine, {.batch = microbatches});
      const double slots = microbatches - 1 + stages;
      // F 1, B 3, and the update behind the last backward.
      CHECK(hp::simulated_step(pipeline(stages, microbatches), problem) == slots * 4 + 0.25);
      CHECK(hp::simulated_step(pipeline(stages, microbatches, "gpipe"), problem) ==
            slots * 4 + 0.25);
      hd::Plan recompute = pipeline(stages, microbatches);
      for (hd::PlanStage& each : recompute.stages) each.recompute = true;
      CHECK(hp::simulated_step(recompute, problem) == slots * 5 + 0.25);
    }
}

TEST_CASE("the simulated step of unequal stages and slow messages equals a recurrence") {
  std::mt19937_64 random(7);
  const auto from = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (std::uint64_t c = 0; c < hd::test::cases(300, 10'000); ++c) {
    const int stages = from(1, 5), microbatches = from(1, 8);
    hd::plan::Profile profile = profile_of(stages);
    std::vector<hd::Device> devices;
    std::vector<hd::Link> links;
    hd::Plan plan{.microbatches = microbatches};
    for (int s = 0; s < stages; ++s) {
      hd::plan::ProfiledLayer& layer = profile.layers[static_cast<std::size_t>(s)];
      layer.output = static_cast<hd::Bytes>(from(0, 8));
      const double forward = from(1, 8), input = from(0, 8), weight = from(0, 8),
                   update = from(0, 3);
      layer.measured = {{"gpu", 1, 1, {forward, input, weight, update}}};
      // One or two ranks, of any speeds.
      std::vector<hd::Rank> ranks;
      for (int r = from(1, 2); r > 0; --r) {
        ranks.emplace_back(devices.size());
        devices.push_back({from(0, 1) == 0 ? "gpu" : "other", 1.0 / from(1, 4)});
      }
      const std::vector<std::int64_t> samples =
          ranks.size() == 1 ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{3, 1};
      plan.stages.push_back(
          {.layers = {s, s + 1}, .ranks = ranks, .samples = samples, .recompute = from(0, 3) == 0});
    }
    for (std::size_t l = 0; l < devices.size() * devices.size(); ++l)
      links.push_back({from(0, 4) / 4.0, static_cast<double>(from(1, 8))});
    const hd::Machine machine = hd::Machine::from_links(devices, links);
    const hp::PlanProblem problem(profile, machine, {.batch = plan.batch()});
    const double expected =
        OneForwardOneBackward(hp::stage_prices(plan, problem), microbatches).step();
    REQUIRE_THAT(hp::simulated_step(plan, problem), WithinRel(expected, 1e-12));
  }
}

TEST_CASE("a microbatch alone takes the sum of all stages and messages") {
  const hd::plan::Profile profile = profile_of(3);
  const hd::Machine machine = hd::Machine::uniform(4, {"gpu"}, slow);
  const hp::PlanProblem problem(profile, machine, {.batch = 4});
  // Stage 0 has 2 samples a rank, its sum takes 2 + 1; stage 1 has two layers of 4 samples.
  // Messages of 200 bytes take 2.5.
  const hd::Plan plan{.stages = {stage(0, 1, {0, 1}, {2, 2}), stage(1, 3, {2}, {4})}};
  CHECK(hp::simulated_step(plan, problem) == 2 + 2.5 + 8 + 24 + 2.5 + 6 + (2 + 1) + 0.25);
  // ZB-H1 splits: I of stage 0 needs I of stage 1 only, W comes last: F F I I W.
  const hd::Machine fast = hd::Machine::uniform(4, {"gpu"}, free_link);
  const hp::PlanProblem free(profile, fast, {.batch = 1});
  CHECK(hp::simulated_step(pipeline(3, 1, "zb-h1"), free) == 3 * 1 + 3 * 2 + 1 + 0.25);
}

TEST_CASE("schedules with other stages than the plan are rejected by name") {
  const hd::plan::Profile profile = profile_of(4);
  const hd::Machine machine = hd::Machine::uniform(4, {"gpu"}, free_link);
  const hp::PlanProblem problem(profile, machine, {.batch = 4});
  for (const char* schedule : {"zb-v", "dualpipe", "chimera", "flexpipe"})
    CHECK_THAT(message_of<hd::contract_error>(
                   [&] { (void)hp::simulated_step(pipeline(4, 8, schedule), problem); }),
               ContainsSubstring(schedule) && ContainsSubstring("use a schedule with one stage"));
  CHECK_THAT(message_of<hd::contract_error>(
                 [&] { (void)hp::simulated_step(pipeline(4, 4, "1f1f"), problem); }),
             ContainsSubstring("did you mean '1f1b'?"));
  CHECK_THROWS_AS(hp::stage_prices(pipeline(3, 4), problem), hd::contract_error);
}

TEST_CASE("a sharded update has the exchanges of its ZeRO stage") {
  const hd::plan::Profile profile = profile_of(1);
  const hd::Machine machine = hd::Machine::uniform(4, {"gpu"}, slow);
  const hp::PlanProblem problem(profile, machine, {.batch = 8});
  hd::Plan plan{.stages = {stage(0, 1, {0, 1, 2, 3}, {1, 1, 1, 1})}, .microbatches = 2};
  // Passes of 1 and 3 seconds. A reduce-scatter or all-gather of 200 bytes over 4 ranks sends 3
  // messages of 50 bytes.
  const double half = 3 * (50 / 100.0 + 0.5);
  const std::vector<std::pair<std::string, double>> steps = {
      {"", 2 * (1 + 3) + 2 * half + 0.25},
      {"zero1", 2 * (1 + 3) + 2 * half + 0.25 / 4},
      {"zero2", 2 * (1 + (3 + half)) + half + 0.25 / 4},
      {"zero3", 2 * ((half + 1) + (half + 3 + half)) + 0.25 / 4}};
  for (const auto& [sharding, step] : steps) {
    CAPTURE(sharding);
    plan.sharding = sharding;
    CHECK_THAT(hp::simulated_step(plan, problem), WithinRel(step, 1e-12));
    // The costs of the Schedule, rank by rank, have the same exchanges.
    CHECK_THAT(hd::simulate(hp::schedule(plan, profile, {.type = hd::Scalar::i8}),
                            hp::costs(plan, profile, machine))
                   .makespan(),
               WithinRel(step, 1e-12));
  }
  // Tensor degree 2 halves the weights of a rank, and two ranks share each half.
  plan.sharding = "zero3";
  plan.stages[0].samples = {2, 2};
  plan.stages[0].tensor = 2;
  const hp::StagePrice price = hp::stage_prices(plan, problem)[0];
  CHECK_THAT(price.forward, WithinRel(0.5 * 2 + 1.0, 1e-12));
  CHECK_THAT(price.backward, WithinRel(1.5 * 2 + 2 * 1.0, 1e-12));
  CHECK(price.gradient_sum == 0);
  CHECK(price.update == 0.125 / 2);
  // One rank has nobody to exchange with.
  plan.stages = {stage(0, 1, {0}, {4})};
  CHECK(hp::simulated_step(plan, problem) == 2 * 16 + 0.25);
}

TEST_CASE("shardings that know nodes are priced as the Schedules of their collectives take") {
  hd::plan::Profile profile = profile_of(1);
  profile.layers[0].parameters = 4096;
  const std::optional<hd::Codec> i8 = hd::Codec{.type = hd::Scalar::i8, .block = 64};
  hd::Plan plan{.stages = {stage(0, 1, {0, 1, 2, 3, 4, 5, 6, 7}, std::vector<std::int64_t>(8, 1))},
                .microbatches = 2,
                .shard_node = 4,
                .shard_pair = 2};
  // Ports that are as fast as the links of a node, slower, and much slower.
  for (const double port : {hd::Ports::unlimited, 1024.0, 128.0, 32.0}) {
    const hd::Machine machine = pairs_and_nodes({port, port});
    const hp::PlanProblem problem(profile, machine, {.batch = 16});
    const auto calls = [&] { return ShardCalls(machine); };
    const double whole = calls().gather(3, 0, i8).time(), near = calls().gather(1, 0, i8).time();
    const double copy = calls().gather(2, 0, {}).time();
    struct Case {
      const char* sharding;
      double forward, backward, scatter, step;
    };
    const Case cases[] = {
        // The second copy of the weights is in nodes; gradients are summed over all ranks.
        {"zeropp", whole, copy, calls().reduce(0, 3, i8).time(), 0},
        // Weights in pairs, gradients in nodes, the optimiser everywhere.
        {"three-level", near, near, calls().reduce(0, 2, i8).time(),
         calls().reduce(2, 3, i8).time() + calls().gather(3, 1, i8).time()}};
    for (const Case& each : cases) {
      CAPTURE(each.sharding, port);
      plan.sharding = each.sharding;
      const hp::StagePrice price = hp::stage_prices(plan, problem)[0];
      CHECK_THAT(price.forward, WithinRel(1 + each.forward, 1e-12));
      CHECK_THAT(price.backward, WithinRel(3 + each.backward + each.scatter, 1e-12));
      CHECK_THAT(price.gradient_sum, WithinRel(each.step, 1e-12));
      CHECK(price.update == 0.25 / 8);
      const double step = 2 * (price.forward + price.backward) + each.step + 0.25 / 8;
      CHECK_THAT(hp::simulated_step(plan, problem), WithinRel(step, 1e-12));
      CHECK_THAT(hd::simulate(hp::schedule(plan, profile, {.type = hd::Scalar::i8}),
                              hp::costs(plan, profile, machine))
                     .makespan(),
                 WithinRel(step, 1e-12));
    }
  }
  // By hand: three lines of one message of 512, 256 and 128 numbers, a byte each and one for 64.
  const hd::Machine machine = pairs_and_nodes();
  const hp::PlanProblem problem(profile, machine, {.batch = 16});
  plan.sharding = "zeropp";
  CHECK_THAT(
      hp::stage_prices(plan, problem)[0].forward,
      WithinRel(1 + (0.125 + 520 / 4096.0) + (0.25 + 260 / 1024.0) + (0.5 + 130 / 256.0), 1e-12));
  // One node: the codec alone is left. Two ranks that divide layers halve the weights of a rank.
  plan.shard_node = plan.shard_pair = 0;
  CHECK_THAT(hp::stage_prices(plan, problem)[0].forward,
             WithinRel(1 + 7 * (0.5 + 130 / 256.0), 1e-12));
  plan.stages[0].tensor = 2;
  plan.stages[0].samples = {2, 2, 2, 2};
  CHECK_THAT(hp::stage_prices(plan, problem)[0].forward,
             WithinRel(1 + 3 * (0.5 + 130 / 256.0), 1e-12));
  // What ParameterShards keeps for each of 4096 bytes: of the optimiser weights, mean and square,
  // gradients, and a second copy in the node; or weights in pairs and gradients in nodes. A room
  // has the whole weights and gradients.
  plan.stages[0] = stage(0, 1, {0, 1, 2, 3, 4, 5, 6, 7}, std::vector<std::int64_t>(8, 1));
  plan.shard_node = 4;
  plan.shard_pair = 2;
  const auto state = [&] { return hp::plan_memory(plan, problem)[0] - 40; };
  CHECK(state() == 4096 / 8 * 3 + 4096 / 8 + 4096 / 4 + 2 * 4096);
  plan.sharding = "three-level";
  CHECK(state() == 4096 / 8 * 3 + 4096 / 4 + 4096 / 2 + 2 * 4096);
  plan.shard_node = 3;
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)hp::stage_prices(plan, problem); }),
             ContainsSubstring("pairs of 2, nodes of 3, 8 ranks"));
  plan.sharding = "zero4";
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)hp::stage_prices(plan, problem); }),
             ContainsSubstring("no sharding 'zero4'"));
}

TEST_CASE("the attention of divided sequences is priced as the Schedule of its method takes") {
  constexpr int sequences = 2, tokens = 24, heads = 8, width = 3;
  using enum hd::SequenceMethod;
  const hd::Machine alike = hd::Machine::uniform(4, {"gpu"}, slow);
  const hd::Machine ports = hd::Machine::hierarchical(
      std::vector<hd::Device>(4, {"gpu"}), {{.name = "rank", .ranks = 1, .ports = {60, 60}},
                                            {.name = "all", .ranks = 4, .link = {0.5, 80}}});
  hd::Machine uneven = alike;
  uneven.set_link(0, 1, {1.5, 50});
  for (const int kv_heads : {8, 4})
    for (const int ranks : {2, 4})
      for (const hd::SequenceMethod method : {ulysses, ring, rsa}) {
        CAPTURE(kv_heads, ranks, method);
        const hd::schedule::AttentionForm form{.ranks = ranks,
                                               .mask = {.causal = false},
                                               .tokens = tokens,
                                               .heads = heads,
                                               .kv_heads = kv_heads,
                                               .head_width = width,
                                               .type = hd::Scalar::f32};
        hd::plan::Profile profile = profile_of(1);
        profile.layers[0].keys = hd::Bytes{2} * tokens * form.key_bytes();
        // With as many heads of keys as of queries, the default of the queries is right.
        if (kv_heads != heads) profile.layers[0].queries = hd::Bytes{tokens} * form.query_bytes();
        hd::Plan plan{.stages = {stage(0, 1, {0, 1, 2, 3}, {sequences})}, .attention = method};
        plan.stages[0].ranks.resize(static_cast<std::size_t>(ranks));
        plan.stages[0].sequence = ranks;
        const bool by_heads = method == ulysses;
        const hp::SequenceCandidate candidate{
            .method = method, .heads = by_heads ? ranks : 1, .ring = by_heads ? 1 : ranks};
        const auto pass = [&](const hd::Machine& machine, bool backward) {
          return hd::simulate(hp::sequence_schedule(candidate, form, backward, sequences), {},
                              machine)
              .makespan();
        };
        const auto price = [&](const hd::Machine& machine) {
          const hp::PlanProblem problem(profile, machine, {.batch = sequences});
          const hp::StagePrice found = hp::stage_prices(plan, problem)[0];
          CHECK_THAT(hp::costs(plan, profile, machine).times(1).forward,
                     WithinRel(found.forward, 1e-12));
          return found;
        };
        const double work = 1.0 * sequences / ranks;
        CHECK_THAT(price(alike).forward, WithinRel(work + pass(alike, false), 1e-12));
        // Where links are not alike, ranks with fast ones need not wait as long as is counted.
        CHECK(price(uneven).forward >= work + pass(uneven, false));
        CHECK_THAT(price(alike).backward, WithinRel(3 * work + pass(alike, true), 1e-12));
        CHECK(price(uneven).backward >= 3 * work + pass(uneven, true));
        CHECK_THAT(price(ports).forward, WithinRel(work + pass(ports, false), 1e-12));
        CHECK_THAT(price(ports).backward, WithinRel(3 * work + pass(ports, true), 1e-12));
      }
}

TEST_CASE("a ring of any ranks is priced as its Schedule, forward and backward") {
  using enum hd::SequenceMethod;
  constexpr int tokens = 60, width = 2, sequences = 2;
  for (const hd::SequenceMethod method : {ring, rsa})
    for (int ranks = 2; ranks <= 6; ++ranks)
      for (const hd::Seconds latency : {0.0, 0.5, 2.0, 8.0})
        // A message takes 2 s on its link, and 0 to 6 s in the ports of its ranks.
        for (const double port : {0.0, 0.5, 1.5, 2.0, 6.0}) {
          CAPTURE(method, ranks, latency, port);
          const hd::schedule::AttentionForm form{.ranks = ranks,
                                                 .mask = {.causal = false},
                                                 .tokens = tokens,
                                                 .head_width = width,
                                                 .type = hd::Scalar::f32};
          const double block = 2.0 * tokens * width * 4 / ranks / (method == rsa ? 2 : 1);
          hd::Level rank{.name = "rank", .ranks = 1};
          if (port > 0) rank.ports = {block / port, block / port};
          const hd::Machine machine = hd::Machine::hierarchical(
              std::vector<hd::Device>(static_cast<std::size_t>(ranks), {"gpu"}),
              {rank, {.name = "all", .ranks = ranks, .link = {latency, block / 2}}});
          hd::plan::Profile profile = profile_of(1);
          profile.layers[0].keys = hd::Bytes{2} * tokens * form.key_bytes();
          hd::Plan plan{.stages = {stage(0, 1, {}, {sequences})}, .attention = method};
          for (int r = 0; r < ranks; ++r) plan.stages[0].ranks.emplace_back(r);
          plan.stages[0].sequence = ranks;
          const auto pass = [&](bool backward) {
            const hp::SequenceCandidate candidate{.method = method, .heads = 1, .ring = ranks};
            return hd::simulate(hp::sequence_schedule(candidate, form, backward, sequences), {},
                                machine)
                .makespan();
          };
          const hp::PlanProblem problem(profile, machine, {.batch = sequences});
          const hp::StagePrice price = hp::stage_prices(plan, problem)[0];
          const double work = 1.0 * sequences / ranks;
          CHECK_THAT(price.forward, WithinRel(work + pass(false), 1e-12));
          CHECK_THAT(price.backward, WithinRel(3 * work + pass(true), 1e-12));
        }
}

TEST_CASE("ranks that divide sequences exchange keys in every pass") {
  hd::plan::Profile profile = profile_of(3);
  profile.layers[0].keys = profile.layers[2].keys = 1200;  // the layer between has no attention
  const hd::Machine machine = hd::Machine::uniform(6, {"gpu"}, slow);
  const hp::PlanProblem problem(profile, machine, {.batch = 4});
  hd::Plan plan{.stages = {stage(0, 3, {0, 1, 2}, {2})}, .microbatches = 2};
  plan.stages[0].sequence = 3;
  // 2 layers and 2 samples, 2 messages each, of a third of the keys. In a backward the gradients
  // travel one step behind the keys, which takes 3 messages.
  const double keys = 2 * 2 * 2 * (400 / 100.0 + 0.5), gradients = 1.5 * keys,
               forward = 3 * 1 * 2 / 3.0, backward = 3 * forward;
  const double sum = 2 * 2 * (200 / 100.0 + 0.5), update = 3 * 0.25;
  const double step = 2 * (forward + backward + keys + gradients) + sum + update;
  CHECK_THAT(hp::stage_prices(plan, problem)[0].forward, WithinRel(forward + keys, 1e-12));
  CHECK_THAT(hp::simulated_step(plan, problem), WithinRel(step, 1e-12));
  const hp::RankCosts costs = hp::costs(plan, profile, machine);
  CHECK_THAT(costs.times(2).forward, WithinRel(forward + keys, 1e-12));
  CHECK_THAT(costs.times(2).backward(), WithinRel(backward + gradients, 1e-12));
  CHECK_THAT(hd::simulate(hp::schedule(plan, profile, {.type = hd::Scalar::i8}), costs).makespan(),
             WithinRel(step, 1e-12));
  plan.stages[0].recompute = true;
  CHECK_THAT(hp::stage_prices(plan, problem)[0].backward,
             WithinRel(backward + gradients + forward + keys, 1e-12));
  plan.stages[0].recompute = false;
  // Two ranks that divide layers have half of the keys each, and rings of their own.
  plan.stages[0].ranks = {0, 1, 2, 3, 4, 5};
  plan.stages[0].tensor = 2;
  CHECK_THAT(hp::stage_prices(plan, problem)[0].forward,
             WithinRel(forward / 2 + 2 * 2 * 2 * (200 / 100.0 + 0.5), 1e-12));
  // Sequences that are whole are not exchanged.
  plan.stages[0] = stage(0, 3, {0, 1}, {1, 1});
  CHECK(hp::stage_prices(plan, problem)[0].forward == 3);
}

TEST_CASE("a rank needs its state and what its live microbatches save") {
  const hd::plan::Profile profile = profile_of(5);
  const hd::Machine machine = hd::Machine::uniform(5, {"gpu"}, free_link);
  const hp::PlanProblem problem(profile, machine, {.batch = 32, .state_per_parameter = 4});
  hd::Plan plan{.stages = {stage(0, 3, {0, 1}, {6, 2}), stage(3, 5, {2}, {8})}, .microbatches = 4};
  using List = std::vector<hd::Bytes>;
  // 1F1B: 2 live microbatches on stage 0, one on stage 1. State: 4 x 200 a layer. Messages of 100
  // bytes a sample: 2 outputs and 2 gradients on stage 0, 3 inputs and 2 gradients on stage 1. Two
  // ranks exchange halves of their gradients, 300 bytes.
  CHECK(hp::plan_memory(plan, problem) ==
        List{2700 + 6 * (2 * 120 + 400), 2700 + 2 * (2 * 120 + 400), 1600 + 8 * (80 + 500), 0, 0});
  plan.schedule = "gpipe";  // four live microbatches and inputs
  CHECK(hp::plan_memory(plan, problem)[2] == 1600 + 8 * (4 * 80 + 600));
  plan.schedule = "1f1b";
  plan.stages[0].recompute = true;  // inputs of 60 bytes a sample, and one microbatch whole
  CHECK(hp::plan_memory(plan, problem) == List{2700 + 6 * (2 * 60 + 120 + 400),
                                               2700 + 2 * (2 * 60 + 120 + 400),
                                               1600 + 8 * (80 + 500), 0, 0});
  plan.stages[0].recompute = false;
  // 600 bytes of weights, in halves the optimiser's own copy of them and its 2 x 600; then also the
  // gradients, and the weights. What is halved and used is whole in a room for the stage.
  plan.sharding = "zero1";
  CHECK(hp::plan_memory(plan, problem)[1] == 2 * 600 + 3 * 300 + 2 * (2 * 120 + 400));
  plan.sharding = "zero2";
  CHECK(hp::plan_memory(plan, problem)[1] == 600 + 4 * 300 + 600 + 2 * (2 * 120 + 400));
  plan.sharding = "zero3";
  CHECK(hp::plan_memory(plan, problem) == List{4 * 300 + 1200 + 6 * (2 * 120 + 400),
                                               4 * 300 + 1200 + 2 * (2 * 120 + 400),
                                               1600 + 8 * (80 + 500), 0, 0});
  plan.sharding = "";
  // Tensor degree 2: half of the state, of what is saved and of the messages.
  plan.stages[1] = stage(3, 5, {2, 4}, {8});
  plan.stages[1].tensor = 2;
  CHECK(hp::plan_memory(plan, problem)[4] == 800 + 8 * (40 + 250));
  // A split backward keeps the delta of at least one microbatch.
  const hd::Plan split = pipeline(5, 32, "zb-h1");
  CHECK(hp::plan_memory(split, problem)[4] >= 800 + 40 + 10);
}

TEST_CASE("the rank that lacks most memory is named") {
  const hd::plan::Profile profile = profile_of(3);
  const auto with = [](hd::Bytes bytes) {
    return hd::Device{.name = "gpu", .memories = {{.name = "HBM", .capacity = bytes}}};
  };
  const hd::Plan plan = pipeline(3, 8);
  // 1F1B: 800 + 40 x (3, 2, 1) + 100 x (4, 10, 5).
  const auto shortage = [&](hd::Bytes a, hd::Bytes b, hd::Bytes c) {
    const hd::Machine machine =
        hd::Machine::from_links({with(a), with(b), with(c)}, std::vector<hd::Link>(9, slow));
    return hp::memory_shortage(plan, hp::PlanProblem(profile, machine, {.batch = 8}));
  };
  CHECK_FALSE(shortage(1320, 1880, 1340));
  CHECK_FALSE(shortage(0, 0, 1340));
  const auto last = shortage(1319, 1880, 1338);
  REQUIRE(last);
  CHECK(last->rank == hd::Rank{2});
  CHECK(last->needed == 1340);
  CHECK(last->capacity == 1338);
  CHECK(shortage(1319, 1880, 1339)->rank == hd::Rank{0});
}

TEST_CASE("a problem fills in what is left open, and rejects what cannot be") {
  hd::plan::Profile profile = profile_of(3);
  const hd::Machine machine = hd::Machine::uniform(4, {"gpu"}, free_link);
  const hp::PlanProblem problem(profile, machine, {.batch = 12});
  CHECK(problem.options().microbatches == std::vector{1, 2, 3, 4, 6, 12});
  CHECK(problem.options().tensor_degrees == std::vector{1, 2});
  CHECK(problem.layers() == 3);
  CHECK(&problem.machine() == &machine);
  const auto error = [&](const hp::PlanOptions& options) {
    return message_of<hd::contract_error>([&] { hp::PlanProblem(profile, machine, options); });
  };
  CHECK_THAT(error({.batch = 0}), ContainsSubstring("batch = 0"));
  CHECK_THAT(error({.batch = 12, .microbatches = {3, 5}}),
             ContainsSubstring("microbatches = 5, batch = 12"));
  CHECK_THAT(error({.batch = 12, .tensor_degrees = {1, 4}}),
             ContainsSubstring("tensor degree 4 was not measured") && ContainsSubstring("1, 2"));
  CHECK_THAT(error({.batch = 12, .tensor_degrees = {0}}), ContainsSubstring("tensor degree 0"));
  CHECK_THAT(error({.batch = 12, .schedule = "gpip"}), ContainsSubstring("did you mean 'gpipe'?"));
  CHECK_THAT(error({.state_per_parameter = -1}), ContainsSubstring("state_per_parameter = -1"));
  CHECK_THAT(error({.codecs = {hd::Codec{.type = hd::Scalar::byte}}}),
             ContainsSubstring("have no numeric value to encode"));
  profile.reference = "";
  const hd::Machine other = hd::Machine::uniform(2, {"tpu"}, free_link);
  CHECK_THAT(message_of<hd::contract_error>([&] { hp::PlanProblem(profile, other, {}); }),
             ContainsSubstring("the device 'tpu' was not measured"));
  profile.layers[1].measured[0].times.forward = -1;
  CHECK_THAT(error({}), ContainsSubstring("layer 1") && ContainsSubstring("forward -1 s"));
}

}  // namespace test_plan_prices
