// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// PlannedMesh: its communicators against lists of ranks, and what it rejects.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/planned_mesh.hpp>
#include <heddle/core/text.hpp>

#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_planned_mesh {

namespace {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;
using test::world_rank;
using test::world_size;
using Ranks = std::vector<int>;

/// Returns the world's ranks of a communicator, in its order.
Ranks members(const Communicator& line) {
  Ranks all(static_cast<std::size_t>(line.size()));
  const int me = world_rank();
  MPI_Allgather(&me, 1, MPI_INT, all.data(), 1, MPI_INT, line.get());
  return all;
}

/// What a rank's place should be.
struct Expected {
  std::optional<std::size_t> stage;
  std::size_t group;
  SampleRange samples;
  Ranks stage_ranks, data, tensor, sequence;
};

void check_places(const Plan& plan, const std::vector<Expected>& by_rank) {
  const PlannedMesh places(MPI_COMM_WORLD, plan, {.ranks = world_size()});
  const Expected& mine = by_rank[static_cast<std::size_t>(world_rank())];
  INFO("rank " << world_rank() << " of\n" << plan);
  CHECK(places.plan() == plan);
  CHECK(places.rank() == Rank{world_rank()});
  CHECK(places.size() == world_size());
  CHECK(places.stage() == mine.stage);
  CHECK(places.group() == mine.group);
  CHECK(places.samples() == mine.samples);
  CHECK(members(places.stage_ranks()) == mine.stage_ranks);
  CHECK(members(places.data()) == mine.data);
  CHECK(members(places.tensor()) == mine.tensor);
  CHECK(members(places.sequence()) == mine.sequence);
}

}  // namespace

TEST_CASE("lines of a plan hold the ranks of its stages, groups and degrees") {
  const auto plan_of = [](std::vector<PlanStage> stages) { return Plan{.stages = stages}; };
  if (world_size() == 1)
    check_places(plan_of({{.layers = {0, 2}, .ranks = {Rank{0}}, .samples = {4}}}),
                 {{0, 0, {0, 4}, {0}, {0}, {0}, {0}}});
  if (world_size() == 2) {
    check_places(
        plan_of({{.layers = {0, 2}, .ranks = {Rank{1}, Rank{0}}, .samples = {3, 1}}}),
        {{0, 1, {3, 4}, {1, 0}, {1, 0}, {0}, {0}}, {0, 0, {0, 3}, {1, 0}, {1, 0}, {1}, {1}}});
    // A rank that the plan leaves out is alone.
    check_places(plan_of({{.layers = {0, 2}, .ranks = {Rank{0}}, .samples = {4}}}),
                 {{0, 0, {0, 4}, {0}, {0}, {0}, {0}}, {{}, 0, {}, {1}, {1}, {1}, {1}}});
  }
  if (world_size() == 3)
    check_places(
        plan_of({{.layers = {0, 1}, .ranks = {Rank{2}}, .samples = {4}},
                 {.layers = {1, 3}, .ranks = {Rank{1}, Rank{0}}, .samples = {4}, .tensor = 2}}),
        {{1, 0, {0, 4}, {1, 0}, {0}, {1, 0}, {0}},
         {1, 0, {0, 4}, {1, 0}, {1}, {1, 0}, {1}},
         {0, 0, {0, 4}, {2}, {2}, {2}, {2}}});
  if (world_size() == 4) {
    check_places(plan_of({{.layers = {0, 1},
                           .ranks = {Rank{3}, Rank{1}, Rank{0}, Rank{2}},
                           .samples = {6, 2},
                           .tensor = 2}}),
                 {{0, 1, {6, 8}, {3, 1, 0, 2}, {3, 0}, {0, 2}, {0}},
                  {0, 0, {0, 6}, {3, 1, 0, 2}, {1, 2}, {3, 1}, {1}},
                  {0, 1, {6, 8}, {3, 1, 0, 2}, {1, 2}, {0, 2}, {2}},
                  {0, 0, {0, 6}, {3, 1, 0, 2}, {3, 0}, {3, 1}, {3}}});
    check_places(plan_of({{.layers = {0, 1},
                           .ranks = {Rank{0}, Rank{1}, Rank{2}, Rank{3}},
                           .samples = {8},
                           .tensor = 2,
                           .sequence = 2}}),
                 {{0, 0, {0, 8}, {0, 1, 2, 3}, {0, 2}, {0, 1}, {0, 2}},
                  {0, 0, {0, 8}, {0, 1, 2, 3}, {1, 3}, {0, 1}, {1, 3}},
                  {0, 0, {0, 8}, {0, 1, 2, 3}, {0, 2}, {2, 3}, {0, 2}},
                  {0, 0, {0, 8}, {0, 1, 2, 3}, {1, 3}, {2, 3}, {1, 3}}});
    const Plan stages =
        plan_of({{.layers = {0, 1}, .ranks = {Rank{0}, Rank{2}}, .samples = {3, 1}},
                 {.layers = {1, 2}, .ranks = {Rank{3}, Rank{1}}, .samples = {4}, .tensor = 2}});
    check_places(stages, {{0, 0, {0, 3}, {0, 2}, {0, 2}, {0}, {0}},
                          {1, 0, {0, 4}, {3, 1}, {1}, {3, 1}, {1}},
                          {0, 1, {3, 4}, {0, 2}, {0, 2}, {2}, {2}},
                          {1, 0, {0, 4}, {3, 1}, {3}, {3, 1}, {3}}});
  }
}

TEST_CASE("a PlannedMesh takes other plans, and a stage that stays keeps its lines") {
  const int ranks = world_size();
  PlannedMesh places(MPI_COMM_WORLD);
  CHECK(places.plan().stages.empty());
  CHECK_FALSE(places.stage());
  CHECK(places.stage_ranks().size() == 1);
  const MpiTransport* const transport = &places.transport();

  // All ranks but the last have stage 0. It stays while the last rank joins it.
  Plan all{.stages = {{.layers = {0, 2}}}}, most = all;
  for (int r = ranks; r-- > 0;) {
    all.stages[0].ranks.emplace_back(r);
    if (r != ranks - 1 || ranks == 1) most.stages[0].ranks.emplace_back(r);
  }
  all.stages[0].samples.assign(all.stages[0].ranks.size(), 1);
  most.stages[0].samples.assign(most.stages[0].ranks.size(), 1);
  Ranks descending;
  for (int r = ranks; r-- > 0;) descending.push_back(r);
  places.begin_plan(all);
  CHECK(places.plan() == all);
  CHECK(members(places.data()) == descending);
  CHECK(places.samples() == SampleRange{ranks - 1 - world_rank(), ranks - world_rank()});
  const std::shared_ptr<const PlannedLines> first = places.lines();
  places.begin_plan(all);
  CHECK(places.lines() == first);

  places.begin_plan(most);
  const bool stays = ranks == 1 || world_rank() != ranks - 1;
  CHECK(places.stage().has_value() == stays);
  CHECK((places.lines() == first) == (ranks == 1));
  CHECK(members(first->data) == descending);  // the old lines last as long as somebody has them
  Plan longer = most;  // another stage follows; stage 0 is alike if there is a rank for the other
  if (ranks > 1) {
    longer.stages.push_back({.layers = {2, 3}, .ranks = {Rank{ranks - 1}}});
    longer.stages.back().samples = {ranks - 1};
    const std::shared_ptr<const PlannedLines> present = places.lines();
    places.begin_plan(longer);
    CHECK((places.lines() == present) == stays);
    CHECK(places.stage() == (stays ? 0u : 1u));
    longer.sharding = "zero1";  // the stage divides its state otherwise
    places.begin_plan(longer);
    CHECK(places.lines() != present);
  }
  CHECK(&places.transport() == transport);

  const Plan kept = places.plan();
  const Plan foreign{.stages = {{.layers = {0, 2}, .ranks = {Rank{ranks}}, .samples = {4}}}};
  CHECK_THAT(message_of<contract_error>([&] { places.begin_plan(foreign); }),
             ContainsSubstring("rank"));
  Plan different = kept;
  different.microbatches += world_rank();
  if (ranks > 1)
    CHECK_THAT(message_of<contract_error>([&] { places.begin_plan(different); }),
               ContainsSubstring("the ranks do not have the same plan"));
  CHECK(places.plan() == kept);
}

TEST_CASE("a PlannedMesh rejects plans that do not fit, on every rank") {
  const auto message = [](const Plan& plan, PlannedMeshOptions options = {}) {
    return message_of<contract_error>([&] { PlannedMesh(MPI_COMM_WORLD, plan, options); });
  };
  Plan plan{.stages = {{.layers = {0, 2}, .ranks = {Rank{world_size()}}, .samples = {4}}}};
  CHECK_THAT(message(plan), ContainsSubstring("the plan is for another number of ranks") &&
                                ContainsSubstring(text("mpiexec -n ", world_size() + 1)));
  CHECK_THAT(message(plan, {.ranks = world_size()}), ContainsSubstring("no such rank"));
  plan.stages[0].ranks = {Rank{0}};
  CHECK_THAT(message(plan, {.ranks = world_size() + 1}),
             ContainsSubstring("PlannedMeshOptions::ranks = "));
  if (world_size() == 1) return;
  CHECK_THAT(message(plan), ContainsSubstring("the plan needs 1, the communicator has"));
  plan.stages[0].ranks = {Rank{world_size() - 1}};
  plan.microbatches = world_rank() == 1 ? 2 : 1;
  CHECK_THAT(message(plan), ContainsSubstring("rank 1 differs from rank 0"));
}

}  // namespace test_planned_mesh
