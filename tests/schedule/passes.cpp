// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"
#include "support/meaning.hpp"
#include "support/rational.hpp"

namespace test_passes {

using namespace heddle;
using test::meaning;
using test::message_of;
using test::Rational;

namespace {

/// Every schedule of the catalogue in a few shapes, as far as it exists for them.
std::vector<Schedule> all_schedules() {
  std::vector<Schedule> all;
  for (const auto& entry : schedule::catalogue()) {
    for (const auto& [ranks, microbatches, stages_per_rank] :
         {std::tuple{1, 1, 1}, {2, 4, 2}, {3, 6, 1}, {4, 8, 2}, {4, 12, 3}}) {
      try {
        all.push_back(weave(entry.orders({ranks, microbatches, stages_per_rank})));
      } catch (const infeasible&) {  // not for this shape
      }
    }
  }
  return all;
}

constexpr auto everywhere = [](Rank, Rank) { return true; };

std::size_t count(const Schedule& schedule, Kind kind) {
  return static_cast<std::size_t>(
      std::ranges::count_if(schedule.actions(), [&](const Action& a) { return a.kind == kind; }));
}

/// The pass keeps what is computed, also on threads and with bounded storage.
void means_the_same(const Schedule& before, const Schedule& after) {
  INFO(before.name());
  CHECK(meaning(after) == meaning(before));
  const Schedule sized = test::with_memory(after, 8, Scalar::i64);
  CHECK(meaning(schedule::fold(sized)) == meaning(before));
  if (after.ranks() <= 4) CHECK(test::difference_from_oracle(schedule::fold(sized), 2) == "");
}

}  // namespace

TEST_CASE("meaning() tells schedules apart that compute something else") {
  const Schedule three = schedule::gpipe({.ranks = 2, .microbatches = 3});
  const Schedule four = schedule::gpipe({.ranks = 2, .microbatches = 4});
  CHECK(meaning(three).size() == meaning(four).size());
  CHECK(meaning(three) != meaning(four));
  // The same sums in the same order: gradients of 1F1B are those of GPipe.
  CHECK(meaning(three) == meaning(schedule::one_f_one_b({.ranks = 2, .microbatches = 3})));
}

TEST_CASE("recomputed, every schedule computes the same") {
  for (const Schedule& before : all_schedules()) {
    const Schedule after = schedule::recompute(before);
    means_the_same(before, after);
    const bool trains = count(before, Kind::update) > 0;
    CHECK(count(after, Kind::forward) == (trains ? 2 : 1) * count(before, Kind::forward));
    CHECK(after.size() - before.size() ==
          count(after, Kind::forward) - count(before, Kind::forward));
    const auto again = std::ranges::count_if(
        after.actions(), [](const Action& a) { return (a.flags & flag::again) != 0; });
    CHECK(static_cast<std::size_t>(again) == after.size() - before.size());
  }
}

TEST_CASE("recomputing costs a forward per microbatch and leaves one live activation") {
  for (const int p : {1, 2, 3, 5}) {
    for (const int m : {1, 2, 5, 8}) {
      const schedule::PipelineOptions options{.ranks = p, .microbatches = m};
      const BasicStageCosts<Rational> costs{.forward = 2, .backward = 3};
      const auto timeline = simulate(schedule::recompute(schedule::one_f_one_b(options)), costs);
      // The last rank works without a pause on M (2 F + B), after the first microbatch has come
      // down and before the last gradient goes up: its F was run again long since.
      CHECK(timeline.makespan() == Rational((2 * 2 + 3) * m + (2 + 3) * (p - 1)));
      for (int r = 0; r < p; ++r) CHECK(schedule::peak(timeline, Rank{r}, role::saved).parts == 1);
      // Where every F has to run before any B, that can be seen at its plainest.
      const auto gpipe = simulate(schedule::gpipe(options), costs);
      const auto leaner = simulate(schedule::recompute(schedule::gpipe(options)), costs);
      for (int r = 0; r < p; ++r) {
        CHECK(schedule::peak(gpipe, Rank{r}, role::saved).parts == static_cast<unsigned>(m));
        CHECK(schedule::peak(leaner, Rank{r}, role::saved).parts == 1);
      }
    }
  }
}

TEST_CASE("only the chosen stages recompute") {
  const Schedule before = schedule::one_f_one_b({.ranks = 3, .microbatches = 4});
  const Schedule after = schedule::recompute(before, [](Stage stage) { return +stage == 0; });
  CHECK(after.size() == before.size() + 4);
  const auto timeline = simulate(after, {.forward = 1, .backward = 2});
  CHECK(schedule::peak(timeline, Rank{0}, role::saved).parts == 1);
  CHECK(schedule::peak(timeline, Rank{1}, role::saved).parts == 2);
  CHECK(schedule::recompute(before, [](Stage) { return false; }).size() == before.size());
}

TEST_CASE("a forward whose input is gone cannot run again") {
  Builder builder("gone", 1);
  const BufferId input = builder.add_buffer({.label = builder.label(role::input)});
  const BufferId saved = builder.add_buffer({.label = builder.label(role::saved)});
  const QueueId queue = builder.local(Rank{0});
  using namespace schedule;
  builder.add({.kind = Kind::user, .queue = queue}, {write(input)});
  builder.add({.kind = Kind::forward, .queue = queue}, {read(input), write(saved)});
  builder.add({.kind = Kind::user, .queue = queue}, {write(input)});
  builder.add({.kind = Kind::backward, .queue = queue}, {read(saved)});
  const Schedule schedule = std::move(builder).build();
  const std::string why = message_of<infeasible>([&] { (void)schedule::recompute(schedule); });
  CHECK(why.find("0F0 cannot run again before 0B0") != std::string::npos);
  CHECK(why.find("its input has been overwritten") != std::string::npos);
}

TEST_CASE("with casts at every cut, every schedule computes the same up to rounding") {
  for (const Schedule& before : all_schedules()) {
    const Schedule after = schedule::cast_at_cut(before, {Scalar::f32}, everywhere);
    means_the_same(before, after);
    const std::size_t crossing =
        static_cast<std::size_t>(std::ranges::count_if(before.actions(), [&](const Action& action) {
          return action.kind == Kind::move && !before[action.queue].local();
        }));
    CHECK(count(after, Kind::cast) == 2 * crossing);
    CHECK(after.size() == before.size() + 2 * crossing);
  }
}

TEST_CASE("a cut halves the bytes of its own channels, and casts back before the first use") {
  const Schedule before = schedule::one_f_one_b(
      {.ranks = 3, .microbatches = 5, .sizes = {.activation = 80, .type = Scalar::f64}});
  const Schedule after = schedule::cast_at_cut(before, {Scalar::f32}, [](Rank from, Rank to) {
    return std::max(from, to) == Rank{1};  // between ranks 0 and 1, both ways
  });
  std::map<std::pair<Rank, Rank>, Bytes> bytes;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const ActionId id{i};
    const Action& action = after[id];
    const auto uses = after.uses(id);
    if (action.kind == Kind::move) {
      bytes[{after[action.queue].from, after[action.queue].to}] += after.bytes(uses[0]);
      CHECK(after.bytes(uses[0]) == after.bytes(uses[1]));
    }
    if (action.kind != Kind::cast) continue;
    const bool widens = after[uses[1].buffer].type == Scalar::f64;
    CHECK(after[uses[widens ? 0 : 1].buffer].type == Scalar::f32);
    CHECK(after[after[uses[widens ? 0 : 1].buffer].label] == role::narrow);
    if (!widens) continue;
    const auto next = after.uses(ActionId{i + 1});
    CHECK(std::ranges::any_of(next, [&](const Use& use) {
      return use.buffer == uses[1].buffer && use.first == uses[1].first && use.reads();
    }));
  }
  CHECK(bytes == std::map<std::pair<Rank, Rank>, Bytes>{{{Rank{0}, Rank{1}}, 200},
                                                        {{Rank{1}, Rank{0}}, 200},
                                                        {{Rank{1}, Rank{2}}, 400},
                                                        {{Rank{2}, Rank{1}}, 400}});
}

TEST_CASE("a narrow message takes two casts and half the channel") {
  const Schedule before = schedule::stream(
      {.ranks = 2, .microbatches = 1, .sizes = {.activation = 80, .type = Scalar::f64}});
  const BasicStageCosts<Rational> costs{
      .forward = 7, .cast = Rational(1, 10), .latency = 3, .per_byte = 1};
  CHECK(simulate(before, costs).makespan() == Rational(7 + 80 + 3 + 7));
  // 80 bytes read and cast, 40 sent, 40 read and cast back.
  CHECK(simulate(schedule::cast_at_cut(before, {Scalar::f32}, everywhere), costs).makespan() ==
        Rational(7 + 8 + 40 + 3 + 4 + 7));
}

TEST_CASE("a cast at a cut makes elements smaller or is refused") {
  const Schedule floats = schedule::stream(
      {.ranks = 2, .microbatches = 1, .sizes = {.activation = 80, .type = Scalar::f32}});
  for (const Scalar narrow : {Scalar::f32, Scalar::f64}) {
    const std::string why = message_of<contract_error>(
        [&] { (void)schedule::cast_at_cut(floats, {narrow}, everywhere); });
    CHECK(why.find("a cast at a cut must make elements smaller") != std::string::npos);
    CHECK(why.find("'output' of stage 0 has elements of f32") != std::string::npos);
  }
  // Where nothing is cut nothing is asked.
  const auto nowhere = [](Rank, Rank) { return false; };
  CHECK(hash(schedule::cast_at_cut(floats, {Scalar::f64}, nowhere)) == hash(floats));
}

TEST_CASE("sums eager or lazy, every schedule computes the same") {
  for (const Schedule& pipeline : all_schedules()) {
    const Schedule before =
        schedule::data_parallel(pipeline, {{"data", 2}, {"pipe", pipeline.ranks()}});
    for (const Schedule& after : {schedule::eager_sums(before), schedule::eager_updates(before),
                                  schedule::lazy_sums(before)}) {
      CHECK(after.size() == before.size());
      means_the_same(before, after);
    }
    CHECK(hash(schedule::lazy_sums(schedule::eager_sums(before))) ==
          hash(schedule::lazy_sums(before)));
    CHECK(hash(schedule::eager_sums(schedule::lazy_sums(before))) ==
          hash(schedule::eager_sums(before)));
  }
}

TEST_CASE("an eager sum stands behind the last backward of its stage, a lazy one at the update") {
  const Schedule before = schedule::data_parallel(
      schedule::interleaved({.ranks = 2, .stages_per_rank = 2, .microbatches = 4}),
      {{"pipe", 2}, {"data", 2}});
  const auto place = [](const Schedule& schedule, Kind kind, int stage) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < schedule.size(); ++i)
      if (schedule[ActionId{i}].kind == kind && schedule[ActionId{i}].stage == Stage{stage})
        found.push_back(i);
    return found;
  };
  const Schedule eager = schedule::eager_sums(before);
  const Schedule lazy = schedule::lazy_sums(before);
  for (int stage = 0; stage < 4; ++stage) {
    REQUIRE(place(eager, Kind::group, stage).size() == 1);
    CHECK(place(eager, Kind::group, stage)[0] == place(eager, Kind::backward, stage).back() + 1);
    CHECK(place(lazy, Kind::group, stage)[0] + 1 == place(lazy, Kind::update, stage)[0]);
  }
  // Both stages of rank 0 have a sum; the eager one of stage 2 is over before stage 0 is done.
  const BasicStageCosts<Rational> costs{.forward = 1, .backward = 2, .group = 1};
  const Rational work =
      simulate(before, BasicStageCosts<Rational>{.forward = 1, .backward = 2}).makespan();
  CHECK(simulate(eager, costs).makespan() == work + 1);
  CHECK(simulate(lazy, costs).makespan() == work + 2);
}

TEST_CASE("a stage becomes a chain of stages on its rank") {
  using schedule::divide_stages;
  const auto orders = [](int ranks, int microbatches) {
    return schedule::one_f_one_b(ranks, microbatches);
  };
  CHECK(to_string(divide_stages(orders(1, 2), {2})) == "0F0,1F0,1B0,0B0,0F1,1F1,1B1,0B1\n");
  CHECK(to_string(divide_stages(orders(2, 1), {1, 3})) == "0F0,0B0\n1F0,2F0,3F0,3B0,2B0,1B0\n");
  CHECK(divide_stages(orders(3, 4), {1, 1, 1}) == orders(3, 4));
  for (const int p : {1, 2, 3})
    for (const int k : {2, 3}) {
      const std::vector<int> counts(static_cast<std::size_t>(p), k);
      for (const char* name : {"1f1b", "zb-h1", "chimera"}) {
        if (name[0] == 'c' && p != 2) continue;
        const Orders before = schedule::find_schedule(name).orders({p, 4, 1});
        const Orders after = divide_stages(before, counts);
        const BasicStageCosts<Rational> costs{.forward = 1, .backward = 2};
        CHECK(simulate(weave(after), costs).makespan() ==
              k * simulate(weave(before), costs).makespan());
        CHECK(after.graph.stages == k * before.graph.stages);
      }
    }
  CHECK(message_of<contract_error>([&] {
          (void)divide_stages(orders(2, 2), {1, 0});
        }).find("stage 1: count 0") != std::string::npos);
  CHECK(message_of<contract_error>([&] {
          (void)divide_stages(orders(2, 2), {1});
        }).find("1 counts, none for 1F0") != std::string::npos);
  Orders fused = orders(1, 2);
  fused.ranks[0][1].fused = true;
  CHECK_NOTHROW(divide_stages(fused, {1}));
  CHECK(message_of<contract_error>([&] {
          (void)divide_stages(fused, {2});
        }).find("a fused entry belongs to one stage") != std::string::npos);
}

TEST_CASE("replicas divide updates: a reduce-scatter, a part of the update, an all-gather") {
  const auto of_rank = [](const Schedule& schedule, int rank) {
    std::string all;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      const Queue& queue = schedule[action.queue];
      if (queue.from != Rank{rank} || action.item != Item{0}) continue;
      const bool gradient = (action.flags & flag::gradient) != 0;
      all += action.kind == Kind::move ? (gradient ? "scatter" : "gather") : text(action.kind);
      all += text(action.stage, ' ');
    }
    return all;
  };
  // Two buckets on two replicas. Messages have block 0 or 1 as their item, so that rank 1 sends
  // block 0 of its gradients, and rank 0 its block 0 of the weights.
  const Orders orders = schedule::divide_stages(schedule::gpipe(1, 1), {2});
  const Schedule pipe = schedule::data_parallel(
      weave(orders, {.parameters = 24, .type = Scalar::f64}), {{"data", 2}, {"pipe", 1}});
  CHECK(of_rank(schedule::shard_updates(pipe), 0) ==
        "F0 F1 B1 B0 COMBINE0 UPDATE0 gather0 COMBINE1 UPDATE1 gather1 ");
  const Schedule early = schedule::shard_updates(schedule::eager_updates(pipe));
  CHECK(of_rank(early, 0) == "F0 F1 B1 B0 COMBINE1 UPDATE1 gather1 COMBINE0 UPDATE0 gather0 ");
  CHECK(of_rank(early, 1) == "F0 F1 B1 scatter1 B0 UPDATE1 scatter0 UPDATE0 ");

  for (const int replicas : {1, 2, 3, 4, 5})
    for (const Bytes elements : {3, 20, 60}) {
      const Bytes bytes = elements * 8, n = static_cast<Bytes>(replicas);
      const Schedule before = schedule::data_parallel(
          weave(schedule::divide_stages(schedule::one_f_one_b(2, 3), {2, 1}),
                {.activation = 8, .parameters = bytes, .type = Scalar::f64}),
          {{"pipe", 2}, {"data", replicas}});
      for (const Schedule& after : {schedule::shard_updates(before),
                                    schedule::shard_updates(schedule::eager_updates(before))}) {
        INFO(replicas << " replicas, " << elements << " elements");
        std::vector<Bytes> sent(2 * n), updated(2 * n);
        for (std::size_t i = 0; i < after.size(); ++i) {
          const ActionId id{i};
          const Rank from = after[after[id].queue].from, to = after[after[id].queue].to;
          if (after[id].kind == Kind::move && (+from / n == +to / n))
            sent[+from] += after.bytes(after.uses(id).front());
          if (after[id].kind == Kind::update) {
            CHECK(after.uses(id).size() == 2);
            updated[+from] += after.bytes(after.uses(id).back());
          }
        }
        for (Bytes stage = 0; stage < 2; ++stage) {  // of the pipe: two buckets, then one
          Bytes all_sent = 0, all_updated = 0;
          for (Bytes r = stage * n; r < (stage + 1) * n; ++r) {
            all_sent += sent[r];
            all_updated += updated[r];
            if (elements % n == 0) CHECK(sent[r] == (2 - stage) * 2 * (n - 1) * bytes / n);
          }
          CHECK(all_sent == (2 - stage) * 2 * (n - 1) * bytes);
          CHECK(all_updated == (2 - stage) * bytes);
        }
        CHECK(count(after, Kind::group) == 0);
        if (replicas <= 2) CHECK(test::difference_from_oracle(schedule::fold(after), 2) == "");
      }
    }
  const Schedule versions = weave(schedule::pipedream(2, 4));
  CHECK(hash(schedule::shard_updates(versions)) == hash(versions));  // it sums nothing
  CHECK(message_of<contract_error>([&] {
          (void)schedule::shard_updates(
              schedule::data_parallel(versions, {{"pipe", 2}, {"data", 2}}));
        }).find("use a schedule with one update for each stage") != std::string::npos);
}

TEST_CASE("passes compose") {
  const Schedule pipeline = schedule::one_f_one_b({.ranks = 2, .microbatches = 3});
  const MeshShape mesh{{"pipe", 2}, {"data", 2}};
  const Schedule before = schedule::data_parallel(pipeline, mesh);
  means_the_same(before, schedule::recompute(schedule::cast_at_cut(schedule::eager_sums(before),
                                                                   {Scalar::f32}, everywhere)));
  means_the_same(before, schedule::lazy_sums(schedule::cast_at_cut(schedule::recompute(before),
                                                                   {Scalar::f32}, everywhere)));
  CHECK(meaning(schedule::expand(schedule::eager_sums(schedule::recompute(before)),
                                 schedule::CollectiveForm{.chunks = 2})) ==
        meaning(schedule::expand(before, schedule::CollectiveForm{.chunks = 2})));
}

TEST_CASE("what is done together stays together") {
  // Rank 1 does F1 with B0, whose gradient comes from rank 0; their sums are of no stage there.
  Builder builder("pair", 2);
  const LabelId data = builder.label("data");
  const auto buffer = [&](int rank, LabelId label) {
    return builder.add_buffer(
        {.rank = Rank{rank}, .parts = 2, .label = label, .type = Scalar::f64, .bytes = 32});
  };
  const BufferId sent = buffer(0, data), got = buffer(1, data);
  const BufferId saved = buffer(1, builder.label(role::saved));
  const BufferId sums = buffer(1, builder.label(role::gradients));
  const QueueId queue = builder.local(Rank{1});
  using namespace schedule;
  builder.add({.kind = Kind::user, .queue = builder.local(Rank{0})}, {write(sent)});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {read(sent), write(got)});
  builder.add({.kind = Kind::forward, .queue = queue, .item = Item{0}}, {write(saved, 0)});
  builder.add({.kind = Kind::backward, .queue = queue, .item = Item{2}, .flags = flag::with_next},
              {write(sums, 0)});
  builder.add({.kind = Kind::forward, .queue = queue, .item = Item{1}}, {write(saved, 1)});
  builder.add({.kind = Kind::group, .queue = builder.local(Rank{1}, Lane{1})}, {update(sums, 0)});
  builder.add({.kind = Kind::forward, .queue = queue, .item = Item{3}, .flags = flag::with_next},
              {});
  builder.add({.kind = Kind::backward, .queue = queue, .item = Item{0}},
              {read(got), read(saved, 0), update(sums, 0)});
  const Schedule before = std::move(builder).build();
  const auto list = [](const Schedule& schedule) {
    std::string all;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      all += text(action.kind, action.item, action.flags & flag::with_next ? "+" : " ");
    }
    return all;
  };
  CHECK(list(before) == "USER0 MOVE0 F0 B2+F1 GROUP0 F3+B0 ");
  CHECK(list(schedule::recompute(before)) == "USER0 MOVE0 F0 B2+F1 GROUP0 F0 F3+B0 ");
  CHECK(list(schedule::cast_at_cut(before, {Scalar::f32}, everywhere)) ==
        "USER0 CAST0 MOVE0 F0 B2+F1 GROUP0 CAST0 F3+B0 ");
  CHECK(list(schedule::eager_sums(before)) == "USER0 MOVE0 F0 B2+F1 GROUP0 F3+B0 ");
  CHECK(list(schedule::lazy_sums(before)) == "USER0 MOVE0 F0 B2+F1 GROUP0 F3+B0 ");
}

TEST_CASE("nothing passes as nothing") {
  CHECK(schedule::recompute(Builder("none", 1).build()).empty());
  CHECK(schedule::cast_at_cut(Builder("none", 1).build(), {Scalar::f32}, everywhere).empty());
  CHECK(schedule::eager_sums(Builder("none", 1).build()).empty());
  CHECK(schedule::eager_updates(Builder("none", 1).build()).empty());
  CHECK(schedule::shard_updates(Builder("none", 1).build()).empty());
  CHECK(schedule::lazy_sums(Builder("none", 1).build()).empty());
}

}  // namespace test_passes
