// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

namespace test_transfers_by_hand {

using namespace heddle;

namespace {

bool is(const Span& span, double start, double end, double arrival) {
  return span.start == start && span.end == end && span.arrival == arrival;
}

/// `count` messages of 2 bytes from rank 0, whose values come from one action each, to rank 1,
/// which reads each once. The receiver has `slots` slots.
struct Flow {
  Schedule schedule;
  std::vector<ActionId> makes, moves, reads;
};

Flow flow(std::uint32_t count, std::uint32_t slots) {
  Flow flow;
  Builder builder("flow", 2);
  const LabelId label = builder.label("data");
  const BufferId from = builder.add_buffer({.parts = count, .label = label, .bytes = 2 * count});
  const BufferId to =
      builder.add_buffer({.rank = Rank{1}, .parts = slots, .label = label, .bytes = 2 * slots});
  for (std::uint32_t m = 0; m < count; ++m) {
    flow.makes.push_back(builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})},
                                     {schedule::write(from, m)}));
    flow.moves.push_back(builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
                                     {schedule::read(from, m), schedule::write(to, m % slots)}));
    flow.reads.push_back(builder.add({.kind = Kind::backward, .queue = builder.local(Rank{1})},
                                     {schedule::read(to, m % slots)}));
  }
  flow.schedule = std::move(builder).build();
  return flow;
}

}  // namespace

TEST_CASE("an eager message leaves when its value exists and ends when its slot is free") {
  // F 1, transfer 4 + latency 3, B 10. Slots: 1.
  const Flow f = flow(3, 1);
  const Timeline t =
      simulate(f.schedule, {.forward = 1, .backward = 10, .latency = 3, .per_byte = 2});
  CHECK(is(t[f.makes[2]], 2, 3, 3));
  CHECK(is(t[f.moves[0]], 1, 5, 8));
  CHECK(is(t[f.reads[0]], 8, 18, 18));
  // The second leaves at once, and waits at the receiver for the slot.
  CHECK(is(t[f.moves[1]], 5, 9, 18));
  CHECK(is(t[f.reads[1]], 18, 28, 28));
  CHECK(is(t[f.moves[2]], 9, 13, 28));
  CHECK(t.makespan() == 38);
}

TEST_CASE("a rendezvous message leaves only when its slot is free") {
  const Flow f = flow(3, 1);
  const Timeline t = simulate(
      f.schedule, {.forward = 1, .backward = 10, .latency = 3, .per_byte = 2}, Sending::rendezvous);
  CHECK(is(t[f.moves[0]], 1, 5, 8));
  CHECK(is(t[f.moves[1]], 18, 22, 25));
  CHECK(is(t[f.moves[2]], 35, 39, 42));
  CHECK(t.makespan() == 52);
}

TEST_CASE("with slots enough, rendezvous and eager are the same, and latencies overlap") {
  const Flow f = flow(5, 5);
  // A message a unit of time, each 100 under way: the last arrives at 1 + 5 + 100.
  const StageCosts costs{.forward = 1, .latency = 100, .per_byte = 0.5};
  for (const Sending sending : {Sending::eager, Sending::rendezvous}) {
    const Timeline t = simulate(f.schedule, costs, sending);
    for (std::uint32_t m = 0; m < 5; ++m) CHECK(is(t[f.moves[m]], 1 + m, 2 + m, 102 + m));
    CHECK(t.makespan() == 106);
  }
  // Two slots: the third message waits for the first to be read, which takes no time.
  const Flow two = flow(4, 2);
  const Timeline t = simulate(two.schedule, costs, Sending::rendezvous);
  CHECK(is(t[two.moves[1]], 2, 3, 103));
  CHECK(is(t[two.moves[2]], 102, 103, 203));
  CHECK(is(t[two.moves[3]], 103, 104, 204));
}

TEST_CASE("messages of one channel are in order, those of others do not wait for them") {
  Builder builder("channels", 3);
  const LabelId label = builder.label("data");
  const auto buffer = [&](int rank, Bytes bytes, bool transient) {
    return builder.add_buffer(
        {.rank = Rank{rank}, .label = label, .transient = transient, .bytes = bytes});
  };
  const auto send = [&](int to, Bytes bytes, int lane) {
    return builder.add(
        {.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{to}, Lane{lane})},
        {schedule::read(buffer(0, bytes, false)), schedule::write(buffer(to, bytes, true))});
  };
  const ActionId large = send(1, 10, 0);
  const ActionId small = send(1, 1, 0);
  const ActionId beside = send(1, 1, 1);
  const ActionId other = send(2, 1, 0);
  const Timeline t = simulate(std::move(builder).build(), {.latency = 2, .per_byte = 1});
  CHECK(is(t[large], 0, 10, 12));
  CHECK(is(t[small], 10, 11, 13));
  CHECK(is(t[beside], 0, 1, 3));
  CHECK(is(t[other], 0, 1, 3));
}

TEST_CASE("a delivery waits for the delivery before it in its channel") {
  // The first message waits for a slot that is busy until 50; the second has a slot of its own, but
  // is delivered behind it.
  Builder builder("deliveries", 2);
  const LabelId label = builder.label("data");
  const BufferId from =
      builder.add_buffer({.parts = 2, .label = label, .transient = false, .bytes = 2});
  const BufferId to = builder.add_buffer({.rank = Rank{1}, .parts = 2, .label = label, .bytes = 2});
  builder.add({.kind = Kind::user, .queue = builder.local(Rank{1})}, {schedule::write(to, 0)});
  const QueueId channel = builder.queue(Rank{0}, Rank{1});
  for (const std::uint32_t part : {0u, 1u})
    builder.add({.kind = Kind::move, .queue = channel},
                {schedule::read(from, part), schedule::write(to, part)});
  const Schedule list = std::move(builder).build();
  const StageCosts costs{.user = 50, .latency = 5, .per_byte = 1};
  const Timeline eager = simulate(list, costs);
  CHECK(is(eager[ActionId{1}], 0, 1, 50));
  CHECK(is(eager[ActionId{2}], 1, 2, 50));
  const Timeline rendezvous = simulate(list, costs, Sending::rendezvous);
  CHECK(is(rendezvous[ActionId{1}], 50, 51, 56));
  CHECK(is(rendezvous[ActionId{2}], 51, 52, 57));
}

TEST_CASE("a sender may write its value again when the message has left, not when it arrives") {
  Builder builder("reuse", 2);
  const LabelId label = builder.label("data");
  const BufferId from = builder.add_buffer({.label = label, .bytes = 4});
  const BufferId to = builder.add_buffer({.rank = Rank{1}, .parts = 2, .label = label, .bytes = 8});
  for (const std::uint32_t m : {0u, 1u}) {
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, {schedule::write(from)});
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
                {schedule::read(from), schedule::write(to, m)});
  }
  const Timeline t =
      simulate(std::move(builder).build(), {.forward = 1, .latency = 100, .per_byte = 1});
  CHECK(is(t[ActionId{1}], 1, 5, 105));
  CHECK(is(t[ActionId{2}], 5, 6, 6));
  CHECK(is(t[ActionId{3}], 6, 10, 110));
}

TEST_CASE("a timeline used again holds the same as a new one, and nothing of before") {
  Timeline reused;
  for (const int m : {40, 3, 17, 1}) {
    const Schedule pipeline = schedule::one_f_one_b({.ranks = 3, .microbatches = m});
    const StageCosts costs{.forward = 1, .backward = 2, .update = 5, .latency = 0.25};
    simulate(pipeline, costs, reused);
    const Timeline fresh = simulate(pipeline, costs);
    CHECK(std::ranges::equal(reused.spans(), fresh.spans(), [](const Span& a, const Span& b) {
      return is(a, b.start, b.end, b.arrival);
    }));
    CHECK(hash(reused.schedule()) == hash(pipeline));
    CHECK(reused.makespan() == fresh.makespan());
  }
  simulate(Schedule{}, StageCosts{}, reused);
  CHECK(reused.spans().empty());
  CHECK(reused.makespan() == 0);
}

TEST_CASE("an empty timeline has no length, no bubble and nobody busy") {
  const Timeline empty = simulate(Schedule{}, StageCosts{.forward = 1});
  CHECK(empty.makespan() == 0);
  CHECK(empty.bubble_ratio() == 0);
  CHECK(empty.busy().empty());
  const Timeline instant = simulate(schedule::gpipe({.ranks = 2, .microbatches = 2}), {});
  CHECK(instant.makespan() == 0);
  CHECK(instant.bubble_ratio() == 0);
  CHECK(instant.busy() == std::vector<double>{0, 0});
}

TEST_CASE("the makespan is from the first start to the last arrival") {
  Builder builder("arrives last", 2);
  const LabelId label = builder.label("data");
  const BufferId from = builder.add_buffer({.label = label, .transient = false, .bytes = 1});
  const BufferId to = builder.add_buffer({.rank = Rank{1}, .label = label, .bytes = 1});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {schedule::read(from), schedule::write(to)});
  Timeline t = simulate(std::move(builder).build(), {.latency = 9, .per_byte = 1});
  CHECK(t.makespan() == 10);
  t.spans()[0] = {5, 6, 15};
  CHECK((t.begin() == 5 && t.end() == 15 && t.makespan() == 10));
  // A move is no work.
  CHECK(t.busy() == std::vector<double>{0, 0});
  CHECK(t.bubble_ratio() == 1);
}

}  // namespace test_transfers_by_hand
