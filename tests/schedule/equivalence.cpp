// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Every schedule of the catalogue is proved equal to the serial step, before and after each pass.
// What is wrong in a list is named.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/cases.hpp"
#include "support/coverage.hpp"
#include "support/random_shares.hpp"

namespace test_equivalence {

using namespace heddle;
using schedule::SerialStep;
using schedule::why_not_equivalent;

namespace {

/// The step that a schedule of the catalogue must perform. It is made from the shape alone, except
/// for the graph and the stages, which the orders name.
SerialStep step_of(const schedule::NamedSchedule& entry, const schedule::PipelineShape& shape,
                   const Orders& orders) {
  SerialStep step{.graph = orders.graph, .microbatches = shape.microbatches};
  if (step.graph.stages == 0) {
    std::size_t stages = 0;
    for (const auto& list : orders.ranks)
      for (const Order& order : list) stages = std::max(stages, +order.stage + 1);
    step.graph = StageGraph::chain(static_cast<int>(stages));
  }
  step.trains = entry.name != "stream";
  if (!entry.name.starts_with("pipedream")) return step;
  const bool vertical = entry.name == "pipedream-vertical";
  const schedule::PipeDreamOptions options{.ranks = shape.ranks, .vertical_sync = vertical};
  for (int stage = 0; stage < shape.ranks; ++stage) {
    auto& versions = step.versions.emplace_back();
    for (int item = 0; item < shape.microbatches; ++item)
      versions.push_back(static_cast<std::uint32_t>(options.version(stage, item)));
  }
  return step;
}

/// The schedule with elements of 8 bytes: 12 for each stage's parameters and 3 for all else.
Schedule sized(const Schedule& schedule) {
  return schedule.with_sizes([&](Buffer& buffer) {
    const std::string& label = schedule[buffer.label];
    buffer.type = Scalar::i64;
    buffer.bytes =
        Bytes{8} * buffer.parts * (label == role::weights || label == role::gradients ? 12 : 3);
  });
}
Schedule as_doubles(const Schedule& schedule) {
  return schedule.with_sizes([](Buffer& buffer) { buffer.type = Scalar::f64; });
}

}  // namespace

TEST_CASE("every schedule of the catalogue equals the serial step") {
  const int most_ranks = static_cast<int>(std::min<std::uint64_t>(16, test::cases(9, 160)));
  const bool all = most_ranks == 16;
  const std::vector<int> few = {1, 2, 3, 5, 8, 12, 16, 31};
  test::Coverage coverage("schedules of the catalogue");
  for (const auto& entry : schedule::catalogue())
    for (int ranks = 1; ranks <= most_ranks; ++ranks)
      for (int microbatches = 1; microbatches <= 64; ++microbatches) {
        if (!all && std::ranges::find(few, microbatches) == few.end()) continue;
        const schedule::PipelineShape shape{.ranks = ranks, .microbatches = microbatches};
        Orders orders;
        try {
          orders = entry.orders(shape);
        } catch (const error&) {
          continue;  // the shape has no such schedule
        }
        const SerialStep step = step_of(entry, shape, orders);
        const Schedule woven = weave(orders);
        INFO(woven.name());
        REQUIRE(why_not_equivalent(woven, step) == "");
        coverage.count(entry.name, true);
      }
  INFO(coverage);
  CHECK(coverage.rarer_than(8) == "");
}

TEST_CASE("passes over a schedule keep it equal to the serial step") {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "chimera", "dualpipe",
                           "kfkb", "pipedream", "pipedream-vertical", "2bp-1f1b"})
    for (const auto& [ranks, microbatches] : {std::pair(1, 3), {2, 4}, {4, 8}, {6, 12}}) {
      const auto& entry = schedule::find_schedule(name);
      const schedule::PipelineShape shape{.ranks = ranks, .microbatches = microbatches};
      Orders orders;
      try {
        orders = entry.orders(shape);
      } catch (const error&) {
        continue;
      }
      SerialStep step = step_of(entry, shape, orders);
      const Schedule woven = sized(weave(orders));
      INFO(woven.name());
      const auto proves = [&](const Schedule& schedule) {
        CHECK(why_not_equivalent(schedule, step) == "");
      };
      proves(schedule::fold(woven, 0));
      proves(schedule::fold(woven, 1));
      proves(schedule::recompute(woven));
      proves(schedule::fold(schedule::recompute(woven)));
      proves(schedule::drop_unread(woven));
      proves(schedule::eager_sums(woven));
      proves(schedule::eager_updates(woven));
      proves(schedule::lazy_sums(schedule::eager_sums(woven)));
      proves(schedule::in_time_order(simulate(woven, StageCosts{.forward = 1, .backward = 2})));
      std::vector<Parking> parking;
      for (int r = 0; r < ranks; ++r) parking.push_back({Rank{r}, Rank{r}, Tier{1}, 2});
      proves(schedule::park(woven, parking));
      if (entry.name == "1f1b") proves(schedule::park(woven, Parking::bpipe(ranks)));
      proves(schedule::split_moves(woven, 3, [](ActionId) {
        return std::vector<schedule::MovePiece>{{Lane{0}, 0, 1}, {Lane{1}, 1, 2}};
      }));
      std::vector<std::uint32_t> pairs, one(static_cast<std::size_t>(ranks), 0);
      for (int r = 0; r < ranks; ++r) pairs.push_back(static_cast<std::uint32_t>(r / 2));
      for (const auto& domains : {pairs, one}) {
        proves(schedule::share_memory(woven, domains));
        proves(schedule::share_memory(woven, domains, CopiedBy::sender));
        proves(schedule::share_memory(schedule::copy_out(woven, domains), domains));
      }
      const Codec codec{.type = Scalar::f32};
      const Schedule cast =
          schedule::cast_at_cut(as_doubles(woven), codec, [](Rank, Rank) { return true; });
      if (ranks > 1)
        CHECK(why_not_equivalent(cast, step).find("the rounded form of") != std::string::npos);
      step.rounds = true;
      proves(cast);
    }
}

TEST_CASE("passes over orders keep the schedule equal to the serial step") {
  const auto proves = [](const Orders& orders, SerialStep step, int stages) {
    const Schedule woven = weave(orders);
    INFO(woven.name());
    if (stages != step.graph.stages) step.graph = StageGraph::chain(stages);
    CHECK(why_not_equivalent(woven, step) == "");
  };
  for (const int ranks : {1, 2, 3, 5})
    for (const int microbatches : {1, 4, 7}) {
      const SerialStep step{.graph = StageGraph::chain(ranks), .microbatches = microbatches};
      for (const Orders& orders :
           {schedule::gpipe(ranks, microbatches), schedule::one_f_one_b(ranks, microbatches)}) {
        const Orders split = schedule::split_backward(orders);
        proves(split, step, ranks);
        proves(schedule::merge_backward(split), step, ranks);
        proves(schedule::two_bp(orders), step, ranks);
        proves(schedule::fill_idle_with_weights(split), step, ranks);
        proves(schedule::fuse(orders), step, ranks);
        proves(schedule::divide_stages(orders, std::vector(static_cast<std::size_t>(ranks), 3)),
               step, 3 * ranks);
        SerialStep grouped = step;
        grouped.microbatches *= 2;
        proves(schedule::group(orders, 2), grouped, ranks);
      }
      if (ranks == 1) continue;
      // The losses of all shares of the vocabulary are exchanged before their backward passes.
      const Orders shares = schedule::vocabulary_parallel(ranks, microbatches);
      const SerialStep vocabulary{.graph = shares.graph, .microbatches = microbatches};
      proves(shares, vocabulary, shares.graph.stages);
      // Forwards whose weights another rank holds.
      Orders stream = schedule::stream(ranks, microbatches);
      stream.ranks.emplace_back();
      const SerialStep forwards{
          .graph = StageGraph::chain(ranks), .microbatches = microbatches, .trains = false};
      const Schedule lent = schedule::peer_memory(
          weave(stream), 0, {.rank = Rank{1}, .peer = Rank{ranks}, .slots = 1});
      CHECK(why_not_equivalent(lent, forwards) == "");
      SerialStep more = forwards;
      more.microbatches += 1;
      CHECK(why_not_equivalent(lent, more) ==
            text("the output of stage 0 lacks microbatch ", microbatches));
    }
}

TEST_CASE("replicas and shards of updates keep a schedule equal to the serial step") {
  for (const char* name : {"1f1b", "zb-h1", "interleaved", "chimera", "pipedream"})
    for (const MeshShape& mesh :
         {MeshShape{{"data", 2}, {"pipe", 2}}, MeshShape{{"pipe", 4}, {"data", 3}},
          MeshShape{{"data", 2}, {"tensor", 2}, {"pipe", 2}}}) {
      const auto& entry = schedule::find_schedule(name);
      const schedule::PipelineShape shape{.ranks = mesh.size("pipe"), .microbatches = 8};
      const Orders orders = entry.orders(shape);
      std::vector<std::string> shards;
      if (mesh.has("tensor")) shards.push_back("tensor");
      const SerialStep step =
          schedule::on_mesh(step_of(entry, shape, orders), mesh, "pipe", shards);
      const Schedule lines = schedule::data_parallel(sized(weave(orders)), mesh, "pipe", shards);
      INFO(lines.name());
      const auto proves = [&](const Schedule& schedule) {
        CHECK(why_not_equivalent(schedule, step) == "");
      };
      proves(lines);
      proves(schedule::eager_sums(lines));
      using schedule::Algorithm;
      for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::star,
                                        Algorithm::double_tree, Algorithm::bruck})
        proves(
            schedule::expand(lines, schedule::CollectiveForm{.algorithm = algorithm, .chunks = 2}));
      if (!entry.synchronous) continue;
      proves(schedule::shard_updates(lines));
      proves(schedule::shard_updates(schedule::eager_updates(lines)));
      const std::vector<TiedRanges> ties = {{Stage{0}, 16, Stage{mesh.size("pipe") - 1}, 64, 24}};
      SerialStep tied = step;
      tied.ties = ties;
      for (const Schedule& schedule : {lines, schedule::shard_updates(lines),
                                       schedule::expand(lines, schedule::CollectiveForm{})}) {
        CHECK(why_not_equivalent(schedule::tie_parameters(schedule, ties), tied) == "");
        CHECK(why_not_equivalent(schedule, tied).find("lacks that of stage") != std::string::npos);
        CHECK(why_not_equivalent(schedule::tie_parameters(schedule, ties), step) != "");
      }
    }
}

TEST_CASE("shares of samples keep a schedule equal to the serial step") {
  for (std::uint64_t seed = 0; seed < test::cases(60, 4'000); ++seed) {
    test::RandomShares shares(seed);
    if (seed % 2 == 1) {
      std::vector<std::int64_t>& sizes = shares.shares().microbatches;
      const std::int64_t most = shares.shares().samples;
      for (std::size_t m = 0; m < shares.microbatches(); ++m)
        sizes.push_back(m == 0 ? most : most - static_cast<std::int64_t>(m % 2));
    }
    Orders orders;
    try {
      orders = shares.orders();
    } catch (const error&) {
      continue;  // a rank would compute no sample
    }
    INFO(shares.text());
    const SerialStep step = schedule::serial_step(orders);
    const Schedule woven = weave(orders);
    REQUIRE(why_not_equivalent(woven, step) == "");
    REQUIRE(why_not_equivalent(schedule::fold(woven), step) == "");
    REQUIRE(why_not_equivalent(schedule::recompute(woven), step) == "");
  }
}

}  // namespace test_equivalence
