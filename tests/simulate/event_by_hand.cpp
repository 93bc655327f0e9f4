// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Ports, lines and units that queues share, by hand and by closed forms.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/shared_costs.hpp"

namespace test_event_by_hand {

using namespace heddle;
using test::Rational;

namespace {

bool is(const Span& span, double start, double end, double arrival) {
  return span.start == start && span.end == end && span.arrival == arrival;
}

struct Message {
  int from, to;
  Bytes bytes = 1;
  int makes = 0;  ///< so many actions at the sender come before
  int lane = 0;
};

/// Messages in this order; `moves[i]` is the i-th. Actions before a message are F.
struct Messages {
  Schedule schedule;
  std::vector<ActionId> moves;

  Messages(int ranks, std::initializer_list<Message> messages) {
    Builder builder("messages", ranks);
    const LabelId label = builder.label("data");
    for (const Message& message : messages) {
      const Rank from{message.from};
      const BufferId source =
          builder.add_buffer({.rank = from, .label = label, .bytes = message.bytes});
      const BufferId target =
          builder.add_buffer({.rank = Rank{message.to}, .label = label, .bytes = message.bytes});
      for (int m = 0; m <= message.makes; ++m)
        builder.add({.kind = m == 0 ? Kind::user : Kind::forward, .queue = builder.local(from)},
                    {schedule::write(source)});
      moves.push_back(builder.add(
          {.kind = Kind::move, .queue = builder.queue(from, Rank{message.to}, Lane{message.lane})},
          {schedule::read(source), schedule::write(target)}));
    }
    schedule = std::move(builder).build();
  }
};

/// Ranks in nodes of two. In seconds per byte: a rank's ports, a node's ports.
Machine nodes(int ranks, double rank_port, double node_port, double latency = 0) {
  const auto ports = [](double per_byte) {
    return per_byte == 0 ? Ports{} : Ports{.out = 1 / per_byte, .in = 1 / per_byte};
  };
  return Machine::hierarchical(
      std::vector<Device>(static_cast<std::size_t>(ranks)),
      {{.name = "rank", .ports = ports(rank_port)},
       {.name = "node", .ranks = 2, .link = {.latency = latency}, .ports = ports(node_port)},
       {.name = "machine", .ranks = 2 * ranks, .link = {.latency = latency}}});
}

/// All send `bytes` to rank 0, which combines them and sends the result back.
Schedule star(int ranks, Bytes bytes) {
  Builder builder("star", ranks);
  const LabelId label = builder.label("data");
  std::vector<BufferId> data;
  for (int r = 0; r < ranks; ++r)
    data.push_back(
        builder.add_buffer({.rank = Rank{r}, .label = label, .transient = false, .bytes = bytes}));
  for (std::size_t r = 1; r < data.size(); ++r) {
    const BufferId scratch = builder.add_buffer({.label = label, .bytes = bytes});
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{r}, Rank{0})},
                {schedule::read(data[r]), schedule::write(scratch)});
    builder.add({.kind = Kind::combine, .queue = builder.local(Rank{0})},
                {schedule::read(scratch), schedule::update(data[0])});
  }
  for (std::size_t r = 1; r < data.size(); ++r)
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{r})},
                {schedule::read(data[0]), schedule::write(data[r])});
  return std::move(builder).build();
}

}  // namespace

TEST_CASE("over one line the first in time comes first, not the first in the list: 7 for 9") {
  // The first message is there at 4 and takes 3, the second at 0 and takes 2.
  const Messages two(
      3, {{.from = 0, .to = 2, .bytes = 3, .makes = 4}, {.from = 1, .to = 2, .bytes = 2}});
  Machine machine = Machine::uniform(3, {}, {});
  machine.share("line", 1, {{Rank{0}, Rank{2}}, {Rank{1}, Rank{2}}});
  const Timeline t = simulate(two.schedule, {.forward = 1}, machine);
  CHECK(is(t[two.moves[0]], 4, 7, 7));
  CHECK(is(t[two.moves[1]], 0, 2, 2));
  CHECK(t.makespan() == 7);  // 2 after 7 would be 9
}

TEST_CASE("at equal times the first in the list is the first") {
  const Messages three(4, {{.from = 2, .to = 3}, {.from = 0, .to = 3}, {.from = 1, .to = 3}});
  Machine machine = Machine::uniform(4, {}, {});
  machine.set_ports(0, 3, {.in = 1});
  const Timeline t = simulate(three.schedule, {}, machine);
  for (std::uint32_t m = 0; m < 3; ++m) CHECK(is(t[three.moves[m]], 0, 0, m + 1));
}

TEST_CASE("a message keeps the sender's port, the uplink and the receiver's port, each in turn") {
  // From both ranks of node 0 to both of node 1: ports of ranks take 1, those of nodes 2.
  const Messages two(4, {{.from = 0, .to = 2}, {.from = 1, .to = 3}});
  const Timeline t = simulate(two.schedule, {}, nodes(4, 1, 2, 10));
  CHECK(is(t[two.moves[0]], 0, 2, 12));
  CHECK(is(t[two.moves[1]], 0, 4, 14));  // its rank's port at 0, the node's at 2
}

TEST_CASE("within a node a message does not pass the node's ports") {
  const Messages two(4, {{.from = 0, .to = 1}, {.from = 2, .to = 3}, {.from = 0, .to = 3}});
  const Timeline t = simulate(two.schedule, {}, nodes(4, 1, 100));
  CHECK(is(t[two.moves[0]], 0, 1, 1));
  CHECK(is(t[two.moves[1]], 0, 1, 1));
  CHECK(is(t[two.moves[2]], 1, 101, 101));
}

TEST_CASE("an uplink carries as many slow senders as fit; a message is served whole") {
  const Messages two(4, {{.from = 0, .to = 2}, {.from = 1, .to = 3}});
  Machine machine = nodes(4, 0, 1);
  for (std::size_t r = 0; r < 4; ++r) machine.set_ports(0, r, {.out = 0.25});
  const Timeline t = simulate(two.schedule, {}, machine);
  for (const ActionId move : two.moves) CHECK(is(t[move], 0, 4, 4));
  // The second enters its receiver's port when the uplink has served the first: 1 later than it
  // would by packets that mix.
  const Timeline u = simulate(two.schedule, {}, nodes(4, 4, 1));
  CHECK(is(u[two.moves[0]], 0, 4, 4));
  CHECK(is(u[two.moves[1]], 0, 4, 5));
}

TEST_CASE("a busy receiver holds nobody back: the sender's port serves the next message") {
  // Rank 2's port is slow: what waits there is under way.
  Machine machine = Machine::uniform(4, {}, {});
  for (std::size_t r = 0; r < 4; ++r) machine.set_ports(0, r, {.out = 1});
  machine.set_ports(0, 2, {.out = 1, .in = 0.1});
  const Messages three(4, {{.from = 1, .to = 2}, {.from = 0, .to = 2}, {.from = 0, .to = 3}});
  const Timeline t = simulate(three.schedule, {}, machine);
  CHECK(is(t[three.moves[0]], 0, 1, 10));
  CHECK(is(t[three.moves[1]], 0, 1, 20));
  CHECK(is(t[three.moves[2]], 1, 2, 2));
}

TEST_CASE("a link that is slower than the ports takes its own time") {
  const Messages two(3, {{.from = 0, .to = 1, .bytes = 4}, {.from = 0, .to = 2, .bytes = 4}});
  Machine machine = Machine::uniform(3, {}, {.latency = 5, .bandwidth = 1});
  machine.set_ports(0, 0, {.out = 2});
  const Timeline t = simulate(two.schedule, {}, machine);
  CHECK(is(t[two.moves[0]], 0, 4, 9));
  CHECK(is(t[two.moves[1]], 2, 6, 11));  // the port is free at 2
}

TEST_CASE("lanes take turns over several uplinks, and lanes of one link are not shared") {
  const Messages lanes(4, {{.from = 0, .to = 2, .lane = 0},
                           {.from = 0, .to = 2, .lane = 1},
                           {.from = 0, .to = 2, .lane = 2}});
  const auto machine = [](int count) {
    return Machine::hierarchical(
        std::vector<Device>(4),
        {{.name = "leaf", .ranks = 2, .ports = {.out = 1, .in = 1, .count = count}},
         {.name = "all", .ranks = 4}});
  };
  for (const auto& [count, expected] : {std::pair{1, 3}, {2, 2}, {3, 1}, {7, 1}})
    CHECK(simulate(lanes.schedule, {}, machine(count)).makespan() == expected);
}

TEST_CASE("with rendezvous a port is taken only when the destination is free") {
  Builder builder("slot", 2);
  const BufferId from = builder.add_buffer({.transient = false, .bytes = 1});
  const BufferId to = builder.add_buffer({.rank = Rank{1}, .bytes = 1});
  std::vector<ActionId> moves;
  for (int m = 0; m < 2; ++m) {
    moves.push_back(builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
                                {schedule::read(from), schedule::write(to)}));
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{1})}, {schedule::read(to)});
  }
  const Schedule schedule = std::move(builder).build();
  Machine machine = Machine::uniform(2, {}, {.latency = 3});
  machine.set_ports(0, 0, {.out = 1});
  const Timeline eager = simulate(schedule, {.forward = 10}, machine);
  CHECK(is(eager[moves[1]], 1, 2, 14));
  const Timeline rendezvous = simulate(schedule, {.forward = 10}, machine, Sending::rendezvous);
  CHECK(is(rendezvous[moves[1]], 14, 15, 18));
}

TEST_CASE("a star with one port at the master takes 2 (a + (P-1) m b), exactly") {
  for (int p = 2; p <= 9; ++p) {
    for (const Bytes m : {1, 7, 1000}) {
      for (const Rational a : {Rational(0), Rational(1), Rational(7, 3), Rational(5000)}) {
        constexpr int per_unit = 3;  // bytes: b = 1/3
        const Rational b(1, per_unit);
        Machine machine = Machine::uniform(p, {}, {});
        test::SharedCosts<Rational> costs{{.latency = a}, machine};
        const auto rational = [](auto n) { return Rational(static_cast<std::int64_t>(n)); };
        const Schedule schedule = star(p, m);
        // Every rank has a port, or only the master: workers have one message each way.
        costs.on.set_ports(0, 0, {.out = per_unit, .in = per_unit});
        const Rational one_port = Rational(2) * (a + rational(p - 1) * rational(m) * b);
        CHECK(simulate(schedule, costs).makespan() == one_port);
        for (std::size_t r = 1; r < static_cast<std::size_t>(p); ++r)
          costs.on.set_ports(0, r, {.out = per_unit, .in = per_unit});
        CHECK(simulate(schedule, costs).makespan() == one_port);
        // Free ports: every link for itself.
        costs = {{.latency = a, .per_byte = b}, machine};
        CHECK(simulate(schedule, costs).makespan() == Rational(2) * (a + rational(m) * b));
      }
    }
  }
}

TEST_CASE("a ring takes as long with a port for each rank as with links for itself") {
  for (int p = 2; p <= 6; ++p)
    for (int c = 1; c <= 3; ++c) {
      const Schedule ring =
          schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                               {.ranks = p, .bytes = static_cast<Bytes>(24 * p * c), .chunks = c});
      const Machine alone = Machine::uniform(p, {}, {});
      test::SharedCosts<Rational> ports{{.latency = {5, 7}}, alone};
      for (std::size_t r = 0; r < static_cast<std::size_t>(p); ++r)
        ports.on.set_ports(0, r, {.out = 3, .in = 3});
      const test::SharedCosts<Rational> links{{.latency = {5, 7}, .per_byte = {1, 3}}, alone};
      CHECK(simulate(ring, ports).makespan() == simulate(ring, links).makespan());
    }
}

TEST_CASE("actions share the units of their device, first come, first served") {
  Builder builder("units", 1);
  std::vector<ActionId> work;
  const auto add = [&](int lane, int units) {
    work.push_back(builder.add({.kind = Kind::forward,
                                .queue = builder.local(Rank{0}, Lane{lane}),
                                .units = static_cast<std::uint16_t>(units)},
                               {}));
  };
  add(0, 6);
  add(1, 4);
  add(2, 6);  // waits for the first
  add(3, 4);  // and this for the second: at 1, when all is free
  add(4, 0);  // needs none
  add(1, 1);
  const Schedule schedule = std::move(builder).build();
  const auto run = [&](int units) {
    return simulate(schedule, {.forward = 1}, Machine::uniform(1, {.units = units}, {}));
  };
  const Timeline t = run(10);
  const double starts[] = {0, 0, 1, 1, 0, 2};
  for (std::size_t i = 0; i < work.size(); ++i) CHECK(t[work[i]].start == starts[i]);
  CHECK(run(0).makespan() == 2);   // nothing is shared but lane 1
  CHECK(run(21).makespan() == 2);  // enough for all
  CHECK(run(6).makespan() == 4);
  CHECK_THAT(test::message_of<contract_error>([&] { (void)run(5); }),
             Catch::Matchers::ContainsSubstring(
                 "heddle::simulate: an action needs more units than its device has (action 0 of "
                 "'units' needs 6 of 5)"));
}

TEST_CASE("work takes as long as its device is slow, a move between levels of memory its link") {
  Builder builder("tiers", 2);
  const BufferId here = builder.add_buffer({.rank = Rank{1}, .transient = false, .bytes = 100});
  const BufferId there = builder.add_buffer({.rank = Rank{1}, .tier = Tier{1}, .bytes = 100});
  const BufferId copy = builder.add_buffer({.rank = Rank{1}, .bytes = 100});
  const ActionId work = builder.add({.kind = Kind::forward, .queue = builder.local(Rank{1})}, {});
  const auto move = [&](BufferId from, BufferId to) {
    return builder.add({.kind = Kind::move, .queue = builder.local(Rank{1}, Lane{1})},
                       {schedule::read(from), schedule::write(to)});
  };
  const ActionId evict = move(here, there);
  const ActionId copies = move(here, copy);
  const Schedule schedule = std::move(builder).build();
  const std::vector<Memory> memories{{.name = "hbm"}, {.name = "host", .link = {0, 10}}};
  const Machine machine = Machine::hierarchical(
      {{.name = "fast"}, {.name = "slow", .speed = 0.25, .memories = memories}},
      {{.name = "rank", .link = {0, 100}}, {.name = "machine", .ranks = 2}});
  const Timeline t = simulate(schedule, {.forward = 1}, machine);
  CHECK(t[work].end == 4);
  CHECK(is(t[evict], 0, 10, 10));
  CHECK(is(t[copies], 10, 11, 11));
}

TEST_CASE("a machine with too few ranks is refused") {
  const Messages one(3, {{.from = 0, .to = 2}});
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)simulate(one.schedule, {}, Machine::uniform(2, {}, {})); }),
             Catch::Matchers::ContainsSubstring("heddle::simulate: the machine has too few ranks "
                                                "('messages' has 3 ranks, the machine 2)"));
}

}  // namespace test_event_by_hand
