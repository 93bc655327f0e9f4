// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// data_parallel() and expand().

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_lines_and_sums {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

Schedule pipeline_of(int stages) {
  return schedule::one_f_one_b(
      {.ranks = stages,
       .microbatches = 3,
       .sizes = {.activation = 8, .parameters = 8 * 30, .type = Scalar::f64}});
}

std::size_t count(const Schedule& schedule, Kind kind) {
  std::size_t found = 0;
  for (const Action& action : schedule.actions()) found += action.kind == kind;
  return found;
}

}  // namespace

TEST_CASE("every line of the mesh runs the pipeline, whichever axis comes first") {
  const Schedule pipeline = pipeline_of(2);
  for (const MeshShape& mesh :
       {MeshShape{{"pipe", 2}, {"data", 3}}, MeshShape{{"data", 3}, {"pipe", 2}}}) {
    const Schedule lines = schedule::data_parallel(pipeline, mesh);
    REQUIRE(lines.ranks() == 6);
    CHECK_THAT(lines.name(), ContainsSubstring(text(mesh)));
    for (const Kind kind : {Kind::forward, Kind::backward, Kind::move, Kind::update})
      CHECK(count(lines, kind) == 3 * count(pipeline, kind));
    CHECK(count(lines, Kind::group) == 2);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const ActionId id{i};
      const Queue& queue = lines[lines[id].queue];
      const int place = mesh.coordinate(queue.from, mesh.axis("pipe"));
      if (lines[id].kind == Kind::move) {
        // Moves stay in their line.
        CHECK(mesh.coordinate(queue.from, mesh.axis("data")) ==
              mesh.coordinate(queue.to, mesh.axis("data")));
        CHECK(queue.from != queue.to);
      } else if (lines[id].kind == Kind::group) {
        // The members are the stage's gradients, one on each line.
        std::set<int> members;
        for (const Use& use : lines.uses(id)) {
          const Buffer& buffer = lines[use.buffer];
          CHECK(lines[buffer.label] == role::gradients);
          CHECK(buffer.stage == lines[id].stage);
          CHECK(mesh.coordinate(buffer.rank, mesh.axis("pipe")) == static_cast<int>(+buffer.stage));
          CHECK(use.access() == Access::update);
          members.insert(mesh.coordinate(buffer.rank, mesh.axis("data")));
        }
        CHECK(members == std::set<int>{0, 1, 2});
      } else {
        CHECK(place == static_cast<int>(+lines[id].stage));
      }
    }
  }
}

TEST_CASE("a mesh without the pipeline's axis takes a schedule of one rank") {
  const Schedule lines = schedule::data_parallel(pipeline_of(1), {{"data", 4}});
  CHECK(lines.ranks() == 4);
  CHECK(count(lines, Kind::move) == 0);
  CHECK(count(lines, Kind::group) == 1);
  CHECK(lines.uses(ActionId{4 * 6}).size() == 4);
}

TEST_CASE("one line is the schedule itself; another axis may be named") {
  const Schedule pipeline = pipeline_of(3);
  CHECK(hash(schedule::data_parallel(pipeline, {{"pipe", 3}})) == hash(pipeline));
  CHECK(hash(schedule::data_parallel(pipeline, {{"data", 1}, {"pipe", 3}})) == hash(pipeline));
  CHECK(schedule::data_parallel(pipeline, {{"depth", 3}, {"pipe", 2}}, "depth").ranks() == 6);
}

TEST_CASE("gradients are not summed along an axis whose ranks hold parts of a stage") {
  const Schedule pipeline = pipeline_of(2);
  const MeshShape mesh{{"pipe", 2}, {"data", 3}, {"tensor", 2}};
  const Schedule lines = schedule::data_parallel(pipeline, mesh, "pipe", {"tensor"});
  CHECK(count(lines, Kind::update) == 6 * count(pipeline, Kind::update));
  CHECK(count(lines, Kind::group) == 2 * 2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ActionId id{i};
    if (lines[id].kind != Kind::group) continue;
    const auto uses = lines.uses(id);
    REQUIRE(uses.size() == 3);
    std::set<int> parts, replicas;
    for (const Use& use : uses) {
      parts.insert(mesh.coordinate(lines[use.buffer].rank, mesh.axis("tensor")));
      replicas.insert(mesh.coordinate(lines[use.buffer].rank, mesh.axis("data")));
    }
    CHECK(parts.size() == 1);
    CHECK(replicas == std::set<int>{0, 1, 2});
  }
  // Parts alone have nothing to sum.
  const MeshShape parts{{"pipe", 2}, {"tensor", 3}};
  CHECK(count(schedule::data_parallel(pipeline, parts, "pipe", {"tensor"}), Kind::group) == 0);
}

TEST_CASE("a name that is no axis for parts of a stage is refused with the names that are") {
  const auto told = [](const MeshShape& mesh, const std::vector<std::string>& shards) {
    return test::message_of<contract_error>(
        [&] { (void)schedule::data_parallel(pipeline_of(2), mesh, "pipe", shards); });
  };
  const MeshShape mesh{{"pipe", 2}, {"data", 3}, {"tensor", 2}};
  for (const std::string wrong : {"tensr", "pipe", "model"})
    for (const std::string& told_of :
         {told(mesh, {wrong}), told(mesh, {"tensor", wrong}), told(mesh, {wrong, "data"})}) {
      INFO(told_of);
      CHECK(told_of.find("no axis '" + wrong + "'") != std::string::npos);
      CHECK(told_of.find("the mesh has data, tensor") != std::string::npos);
    }
  CHECK(told({{"pipe", 2}}, {"tensor"}).find("has no axis but 'pipe'") != std::string::npos);
}

TEST_CASE("a mesh that does not fit is refused with its numbers") {
  const auto refusal = [](const MeshShape& mesh, int stages) {
    return test::message_of<contract_error>(
        [&] { (void)schedule::data_parallel(pipeline_of(stages), mesh); });
  };
  CHECK_THAT(refusal({{"pipe", 3}, {"data", 2}}, 2),
             ContainsSubstring("the mesh does not fit the schedule") &&
                 ContainsSubstring("'1F1B P=2 M=3' has 2 ranks") &&
                 ContainsSubstring("axis 'pipe' of the mesh pipe=3 x data=2 has 3"));
  CHECK_THAT(refusal({{"data", 2}}, 2),
             ContainsSubstring("has 2 ranks, axis 'pipe'") && ContainsSubstring("has 1"));
}

TEST_CASE("expanded, a group is the actions of its ring, and its time that of the formula") {
  const MeshShape mesh{{"pipe", 2}, {"data", 3}};
  const Schedule lines = schedule::data_parallel(pipeline_of(2), mesh);
  const Schedule expanded = schedule::expand(lines, schedule::CollectiveForm{.chunks = 2});
  CHECK(count(expanded, Kind::group) == 0);
  CHECK(count(expanded, Kind::combine) == 2 * 3 * 2 * 2);  // stages, members, hops, chunks
  CHECK(count(expanded, Kind::move) == count(lines, Kind::move) + 2 * 3 * 2 * 2 * 2);
  // Gradients are cut in members x chunks parts; who used them whole still does.
  for (std::size_t i = 0; i < expanded.size(); ++i)
    for (const Use& use : expanded.uses(ActionId{i})) {
      const Buffer& buffer = expanded[use.buffer];
      if (expanded[buffer.label] != role::gradients) continue;
      CHECK(buffer.parts == 6);
      if (expanded[ActionId{i}].kind == Kind::backward ||
          expanded[ActionId{i}].kind == Kind::update)
        CHECK((use.first == 0 && use.count == 6));
    }
  // One stage, no work: a = 7, x = 240 / (3 * 2) per byte: 2 * 2 (a + x) + x.
  const Schedule alone = schedule::expand(schedule::data_parallel(pipeline_of(1), {{"data", 3}}),
                                          schedule::CollectiveForm{.chunks = 2});
  CHECK(simulate(alone, {.latency = 7, .per_byte = 1}).makespan() ==
        std::max(4 * (7 + 40) + 40, 4 * 80 + 7));
}

TEST_CASE("a schedule without groups is expanded to itself") {
  const Schedule pipeline = pipeline_of(3);
  CHECK(hash(schedule::expand(pipeline, schedule::CollectiveForm{.chunks = 4})) == hash(pipeline));
}

TEST_CASE("groups of different size cannot share a buffer") {
  Builder builder("shared", 3);
  std::vector<BufferId> data;
  for (int r = 0; r < 3; ++r)
    data.push_back(builder.add_buffer(
        {.rank = Rank{r}, .label = builder.label("data"), .transient = false, .bytes = 24}));
  const QueueId queue = builder.local(Rank{0});
  builder.add({.kind = Kind::group, .queue = queue},
              {schedule::update(data[0]), schedule::update(data[1])});
  builder.add({.kind = Kind::group, .queue = queue},
              {schedule::update(data[0]), schedule::update(data[1]), schedule::update(data[2])});
  const Schedule shared = std::move(builder).build();
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)schedule::expand(shared, schedule::CollectiveForm{.chunks = 1}); }),
             ContainsSubstring("groups of different size share a buffer") &&
                 ContainsSubstring("buffer 0 is cut in 2 and in 3"));
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)schedule::expand(shared, schedule::CollectiveForm{.chunks = 0}); }),
             ContainsSubstring("chunks = 0"));
}

TEST_CASE("a ring wants members cut as it says") {
  Builder builder("halves", 2);
  std::vector<Use> members;
  for (int r = 0; r < 2; ++r)
    members.push_back(schedule::update(
        builder.add_buffer({.rank = Rank{r}, .parts = 4, .transient = false}), 0, 3));
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { schedule::CollectiveForm{.chunks = 1}(builder, members, Stage{0}); }),
             ContainsSubstring("member 0 of 2 has 3 parts, expected 2"));
}

TEST_CASE("expand refuses what a finer cut would shift") {
  // Ten elements in three parts: part 1 of three is not parts 2 and 3 of six.
  Builder builder("uneven", 2);
  std::vector<Use> members;
  for (const int rank : {0, 1})
    members.push_back(schedule::update(
        builder.add_buffer(
            {.rank = Rank{rank}, .parts = 3, .type = Scalar::f64, .transient = false, .bytes = 80}),
        0, 3));
  builder.add({Kind::group, builder.local(Rank{0}, Lane{1})}, members);
  const Schedule uneven = std::move(builder).build();
  CHECK_THROWS_AS(schedule::expand(uneven, schedule::CollectiveForm{}), contract_error);
  // A group stands in the line of every member.
  CHECK(to_text(uneven) == "0GROUP0\n0GROUP0\n");
}

}  // namespace test_lines_and_sums
