// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// ShapedTransport through the battery of its concept, and when messages arrive by a clock of the
// test's own. Over MPI: tests/comm/shaped_transport.cpp.

#include <atomic>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/transport_battery.hpp"

namespace test_shaped_transport {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Shaped = ShapedTransport<ThreadTransport>;

static_assert(Transport<Shaped>);
static_assert(Transport<ShapedTransport<Shaped>>);

namespace {

/// True where a receive is not complete just before `arrival` of the clock `now`, and is from then
/// on.
bool completes_at(Shaped& transport, Shaped::Request& request, Seconds& now, Seconds arrival) {
  now = std::nextafter(arrival, 0.0);
  if (transport.test(request)) return false;
  now = arrival;
  return transport.test(request);
}

/// Two ranks in one thread and a clock that stands still: nothing is left to chance. All times are
/// sums of powers of two, so that they are exact.
struct TwoRanks {
  explicit TwoRanks(Link link) : between(link) {}

  Shape shape() {
    return {.link = [this](Rank, Rank, Seconds) { return between; }, .now = [this] { return now; }};
  }

  bool arrives_at(Shaped::Request& request, Seconds arrival) {
    return completes_at(second, request, now, arrival);
  }

  Seconds now = 1;
  Link between;
  ThreadHub hub{2};
  ThreadTransport inner_first{hub, Rank{0}}, inner_second{hub, Rank{1}};
  Shaped first{inner_first, shape()}, second{inner_second, shape()};
};

/// Ranks with equal ports in one thread, and such a clock.
struct PortRanks {
  PortRanks(int count, Link link, Ports each) : between(link), ports(each), hub(count) {
    for (int rank = 0; rank < count; ++rank) {
      inner.emplace_back(hub, Rank{rank});
      at.emplace_back(
          inner.back(),
          Shape{.link = [this](Rank, Rank, Seconds) { return between; },
                .ports = [this](Rank, Seconds time) { return time < then ? ports : later; },
                .now = [this] { return now; }});
    }
  }

  /// A message that is sent now; its receive is the answer.
  Shaped::Request pass(int from, int to, Bytes bytes, Lane on = Lane{0}) {
    send(from, to, bytes, on);
    return receive(from, to, bytes, on);
  }
  void send(int from, int to, Bytes bytes, Lane on = Lane{0}) {
    sends.push_back(at[static_cast<std::size_t>(from)].send(Rank{to}, on, memory.data(), bytes));
  }
  Shaped::Request receive(int from, int to, Bytes bytes, Lane on = Lane{0}) {
    return at[static_cast<std::size_t>(to)].receive(Rank{from}, on, memory.data() + 64, bytes);
  }

  bool arrives_at(int rank, Shaped::Request& request, Seconds arrival) {
    return completes_at(at[static_cast<std::size_t>(rank)], request, now, arrival);
  }

  Seconds now = 1;
  Link between;
  Ports ports;
  Ports later;  ///< from `then` on
  Seconds then = std::numeric_limits<double>::infinity();
  ThreadHub hub;
  std::deque<ThreadTransport> inner;
  std::deque<Shaped> at;
  std::vector<Shaped::Request> sends;
  std::vector<std::byte> memory = std::vector<std::byte>(128);
};

constexpr Lane lane{0};

}  // namespace

TEST_CASE("shaped threads pass the battery of transports") {
  for (const Link link : {Link{}, Link{.latency = 5e-5}, Link{.bandwidth = 1e9}, Link{5e-5, 1e9}}) {
    for (int ranks = 1; ranks <= 4; ++ranks)
      REQUIRE_NOTHROW(run_threads(ranks, [&](ThreadTransport& inner) {
        for (const bool buffers : {true, false}) {
          Shaped transport(inner,
                           {.link = [&](Rank, Rank, Seconds) { return link; }, .buffers = buffers});
          test::transport_battery(transport, 1'000'003);
        }
      }));
  }
}

TEST_CASE("shaped threads with ports pass the batteries of transports and aborts") {
  for (const Ports ports :
       {Ports{}, Ports{.out = 1e9}, Ports{.in = 1e9}, Ports{1e9, 1e9}, Ports{1e9, 1e9, 3}})
    for (int ranks = 1; ranks <= 4; ++ranks)
      REQUIRE_NOTHROW(run_threads(ranks, [&](ThreadTransport& inner) {
        for (const bool buffers : {true, false}) {
          Shaped transport(inner, {.link =
                                       [](Rank, Rank, Seconds) {
                                         return Link{5e-5, 1e9};
                                       },
                                   .ports = [&](Rank, Seconds) { return ports; },
                                   .buffers = buffers});
          test::transport_battery(transport, 1'000'003);
        }
      }));
  for (int failing = 0; failing < 3; ++failing)
    REQUIRE_NOTHROW(run_threads(3, [&](ThreadTransport& inner) {
      Shaped transport(inner, {.link = [](Rank, Rank, Seconds) { return Link{}; },
                               .ports =
                                   [](Rank, Seconds) {
                                     return Ports{1e-3, 1e-3};
                                   }});
      test::transport_abort_battery(transport, Rank{failing});
    }));
}

TEST_CASE("shaped threads pass the battery of aborts, which no link holds up") {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (int failing = 0; failing < ranks; ++failing)
      REQUIRE_NOTHROW(run_threads(ranks, [&](ThreadTransport& inner) {
        // Nothing would arrive for a day.
        Shaped transport(inner, {.link = [](Rank, Rank, Seconds) { return Link{86400, 1}; }});
        test::transport_abort_battery(transport, Rank{failing});
      }));
}

TEST_CASE("a message arrives when its link has carried it") {
  TwoRanks ranks({.latency = 0.5, .bandwidth = 8});
  std::vector<std::byte> sent(4, std::byte{7}), received(4);
  auto send = ranks.first.send(Rank{1}, lane, sent.data(), 4);
  auto receive = ranks.second.receive(Rank{0}, lane, received.data(), 4);
  CHECK_FALSE(ranks.second.test(receive));
  CHECK(ranks.first.test(send));  // the memory is the sender's again, at once
  CHECK(ranks.arrives_at(receive, 1 + 0.5 + 0.5));
  CHECK(received == sent);
  CHECK(ranks.second.test(receive));  // and stays complete
}

TEST_CASE("a link without buffers frees the sender's memory when it has carried the message") {
  TwoRanks ranks({.latency = 0.5, .bandwidth = 8});
  Shape shape = ranks.shape();
  shape.buffers = false;
  Shaped first(ranks.inner_first, shape);
  std::vector<std::byte> sent(4, std::byte{7}), received(8);
  // The second waits until the link is free, at 1.5.
  auto send = first.send(Rank{1}, lane, sent.data(), 4);
  auto later = first.send(Rank{1}, lane, sent.data(), 4);
  auto receive = ranks.second.receive(Rank{0}, lane, received.data(), 4);
  auto last = ranks.second.receive(Rank{0}, lane, received.data() + 4, 4);
  CHECK_FALSE(ranks.second.test(receive));  // but it has the bytes: the inner transport is done
  CHECK_FALSE(ranks.second.test(last));
  for (const auto& [request, free] : {std::pair{&send, 1.5}, {&later, 2.0}}) {
    ranks.now = std::nextafter(free, 0.0);
    CHECK_FALSE(first.test(*request));
    ranks.now = free;
    CHECK(first.test(*request));
    CHECK(first.test(*request));
  }
  // On its way for the latency still, as ever.
  ranks.now = 1;
  CHECK(ranks.arrives_at(receive, 2.0));
  CHECK(ranks.arrives_at(last, 2.5));
}

TEST_CASE("a link carries one message after another, whatever their lanes") {
  TwoRanks ranks({.latency = 0.25, .bandwidth = 8});
  std::vector<std::byte> memory(64);
  std::vector<Shaped::Request> requests;
  for (const std::size_t l : {0u, 1u, 0u}) {
    requests.push_back(ranks.first.send(Rank{1}, Lane{l}, memory.data(), 8));
    requests.push_back(ranks.second.receive(Rank{0}, Lane{l}, memory.data() + 8, 8));
  }
  CHECK(ranks.arrives_at(requests[1], 2.25));
  CHECK(ranks.arrives_at(requests[3], 3.25));
  CHECK(ranks.arrives_at(requests[5], 4.25));
  // The other way is a link of its own, and an empty message occupies none.
  ranks.now = 5;
  auto back = ranks.second.send(Rank{0}, lane, memory.data(), 0);
  auto received = ranks.first.receive(Rank{1}, lane, nullptr, 0);
  ranks.now = 5.125;
  CHECK_FALSE(ranks.first.test(received));
  ranks.now = 5.25;
  CHECK(ranks.first.test(received));
  CHECK(ranks.second.test(back));
}

TEST_CASE("a message meets the link as it was when it was sent, and overtakes none") {
  TwoRanks ranks({.latency = 4, .bandwidth = 8});
  std::vector<std::byte> memory(64);
  std::vector<Shaped::Request> requests;
  const auto pass = [&](Bytes bytes) {
    requests.push_back(ranks.first.send(Rank{1}, lane, memory.data(), bytes));
    requests.push_back(ranks.second.receive(Rank{0}, lane, memory.data() + 32, bytes));
  };
  pass(8);  // on the link from 1 to 2, there at 6
  ranks.now = 1.5;
  ranks.between = {.latency = 0.5};
  pass(16);  // on the link at 2 for no time, there at 2.5: but the first is not
  ranks.now = 7;
  pass(1);
  ranks.now = 1.5;
  CHECK_FALSE(ranks.second.test(requests[3]));
  CHECK(ranks.arrives_at(requests[1], 6));
  CHECK(ranks.arrives_at(requests[3], 6));
  CHECK(ranks.arrives_at(requests[5], 7.5));
}

TEST_CASE("messages to several peers share the sender's port, in the order sent") {
  const auto [link, longer] = GENERATE(std::pair{Link{.latency = 0.5}, 0.0},
                                       std::pair{Link{0.5, 16}, 0.0},  // not what holds them up
                                       std::pair{Link{0.5, 8}, 0.0},   // the bytes follow
                                       std::pair{Link{0.5, 4}, 1.0});  // to each peer on its own
  PortRanks ranks(5, link, {.out = 8});
  std::vector<Shaped::Request> receives;
  for (const int peer : {2, 1, 3}) receives.push_back(ranks.pass(0, peer, 8));
  auto empty = ranks.pass(0, 4, 0);
  auto own = ranks.pass(0, 0, 8);
  auto other = ranks.pass(4, 1, 8);
  CHECK(ranks.arrives_at(0, own, 1 + 0.5 + link.occupancy(8)));  // leaves the rank by no port
  ranks.now = 1;
  CHECK(ranks.arrives_at(1, other, 1 + 1 + longer + 0.5));  // the port of another rank
  ranks.now = 1;
  CHECK(ranks.arrives_at(2, receives[0], 1 + 1 + longer + 0.5));
  CHECK(ranks.arrives_at(1, receives[1], 1 + 2 + longer + 0.5));
  CHECK(ranks.arrives_at(3, receives[2], 1 + 3 + longer + 0.5));
  ranks.now = 1;
  CHECK(ranks.arrives_at(4, empty, 1 + 3 + 0.5));  // occupies nothing, but comes last
}

TEST_CASE("messages from several peers share the receiver's port") {
  const auto [link, longer] = GENERATE(std::pair{Link{.latency = 0.5}, 0.0},
                                       std::pair{Link{0.5, 8}, 0.0},  // the bytes follow
                                       std::pair{Link{0.5, 4}, 1.0});
  PortRanks ranks(5, link, {.in = 8});
  std::vector<Shaped::Request> receives;
  for (const int peer : {2, 1, 3}) receives.push_back(ranks.pass(peer, 0, 8));
  auto empty = ranks.pass(4, 0, 0);
  auto own = ranks.pass(0, 0, 8);
  auto other = ranks.pass(0, 4, 8);
  CHECK(ranks.arrives_at(0, own, 1 + 0.5 + link.occupancy(8)));
  ranks.now = 1;
  CHECK(ranks.arrives_at(4, other, 1 + 0.5 + 1 + longer));
  ranks.now = 1;
  // All came at once. The last byte of a slow link comes when the port has served two.
  CHECK(ranks.arrives_at(0, receives[0], 1 + 0.5 + 1 + longer));
  if (longer != 0) ranks.now = 1;
  CHECK(ranks.arrives_at(0, receives[1], 1 + 0.5 + 2));
  CHECK(ranks.arrives_at(0, receives[2], 1 + 0.5 + 3));
  ranks.now = 1;
  CHECK(ranks.arrives_at(0, empty, 1 + 0.5 + 3));
}

TEST_CASE("who comes first to a port is served first, whoever is waited for") {
  PortRanks ranks(4, {.latency = 0.5}, {.in = 8});
  ranks.now = 1.5;
  ranks.send(1, 0, 8);
  ranks.now = 1;
  ranks.send(2, 0, 16);
  ranks.now = 1.25;
  ranks.send(3, 0, 8);
  auto first = ranks.receive(1, 0, 8);
  auto second = ranks.receive(2, 0, 16);
  auto third = ranks.receive(3, 0, 8);
  CHECK(ranks.arrives_at(0, first, 5.5));  // after 2 from 1.5 on, and 3 from 3.5 on
  CHECK(ranks.at[0].test(second));
  CHECK(ranks.at[0].test(third));
  // The port was free when a message came, but the rank learned of it after the one behind it.
  ranks.now = 6;
  ranks.send(1, 0, 8);
  ranks.now = 7;
  auto behind = ranks.pass(2, 0, 8);
  CHECK(ranks.arrives_at(0, behind, 8.5));
  first = ranks.receive(1, 0, 8);
  CHECK_FALSE(ranks.at[0].test(first));
  CHECK(ranks.arrives_at(0, first, 9.5));
  // Nobody learned of anything behind it: it was served while nobody looked.
  ranks.now = 10;
  ranks.send(1, 0, 8);
  ranks.now = 20;
  first = ranks.receive(1, 0, 8);
  CHECK(ranks.at[0].test(first));
}

TEST_CASE("a message passes both ports and the link between, its bytes one after another") {
  PortRanks ranks(3, {.latency = 0.5, .bandwidth = 8}, {.out = 8, .in = 8});
  auto whole = ranks.pass(0, 1, 8);
  CHECK(ranks.arrives_at(1, whole, 1 + 1 + 0.5));
  // The way in is the slowest, then the way out.
  ranks.now = 4;
  ranks.ports = {.out = 8, .in = 2};
  whole = ranks.pass(0, 1, 8);
  CHECK(ranks.arrives_at(1, whole, 4 + 0.5 + 4));
  ranks.now = 16;
  ranks.ports = {.out = 2, .in = 8};
  whole = ranks.pass(0, 1, 8);
  CHECK(ranks.arrives_at(1, whole, 16 + 4 + 0.5));
  // One that waits for its link waits past the port, and holds up nobody there.
  ranks.now = 32;
  ranks.ports = {.out = 16};
  auto one = ranks.pass(0, 1, 8);
  auto two = ranks.pass(0, 1, 8);
  auto other = ranks.pass(0, 2, 8);
  CHECK(ranks.arrives_at(1, one, 32 + 1 + 0.5));
  CHECK(ranks.arrives_at(1, two, 32 + 2 + 0.5));
  ranks.now = 32;
  CHECK(ranks.arrives_at(2, other, 32 + 1 + 1 + 0.5));
}

TEST_CASE("of several ports lane l takes number l % count") {
  for (const bool out : {true, false}) {
    PortRanks ranks(5, {.latency = 0.5},
                    out ? Ports{.out = 8, .count = 2} : Ports{.in = 8, .count = 2});
    const auto pass = [&](int peer, Bytes bytes, std::size_t l) {
      return out ? ranks.pass(0, peer, bytes, Lane{l}) : ranks.pass(peer, 0, bytes, Lane{l});
    };
    const auto arrives = [&](int peer, Shaped::Request& request, Seconds when) {
      return ranks.arrives_at(out ? peer : 0, request, when);
    };
    auto first = pass(1, 32, 0);
    auto second = pass(2, 8, 1);
    auto third = pass(3, 8, 2);
    auto fourth = pass(4, 8, 3);
    CHECK(arrives(2, second, 1.5 + 1));
    CHECK(arrives(4, fourth, 1.5 + 2));
    CHECK(arrives(1, first, 1.5 + 4));
    CHECK(arrives(3, third, 1.5 + 5));
  }
}

TEST_CASE("messages of a pair overtake none, though a pair of ports lets them") {
  PortRanks ranks(2, {.latency = 0.5}, {.in = 8, .count = 2});
  auto first = ranks.pass(0, 1, 16);
  auto second = ranks.pass(0, 1, 8, Lane{1});
  CHECK(ranks.arrives_at(1, second, 3.5));
  CHECK(ranks.at[1].test(first));
  // Nor where it is sent when the latency has become less.
  ranks.ports = {.in = 8};
  ranks.now = 8;
  ranks.between = {.latency = 4};
  first = ranks.pass(0, 1, 16);
  ranks.between = {.latency = 0.5};
  second = ranks.pass(0, 1, 8, Lane{1});
  CHECK(ranks.arrives_at(1, first, 14));
  CHECK(ranks.arrives_at(1, second, 15));
}

TEST_CASE("a message meets the ports as they are when it comes to them") {
  PortRanks ranks(3, {.latency = 0.5}, {.out = 8, .in = 4});
  ranks.later = {.out = 16, .in = 2, .count = 2};
  ranks.then = 2.125;
  auto first = ranks.pass(0, 1, 8);  // way out from 1 to 2, way in from 1.5 to 3.5
  ranks.now = 1.25;
  auto second = ranks.pass(0, 2, 8);  // from 2 to 3, from 2.5 on at 2 B/s
  ranks.now = 2.125;
  // On the new way out to 2.625, on the new way in from 2.625.
  auto third = ranks.pass(0, 1, 8, Lane{1});
  CHECK(ranks.arrives_at(1, first, 3.5));
  CHECK(ranks.arrives_at(2, second, 6.5));
  CHECK(ranks.arrives_at(1, third, 6.625));
  // One of the two goes; what it carries still arrives.
  ranks.now = 8;
  first = ranks.pass(0, 1, 8, Lane{1});
  ranks.later.count = 1;
  second = ranks.pass(0, 2, 8, Lane{1});  // on the way out that is left, free since 3
  CHECK(ranks.arrives_at(1, first, 8.5 + 4));
  CHECK(ranks.arrives_at(2, second, 8.5 + 4));
}

TEST_CASE("where nothing buffers, the sender's memory is free when its port is done with it") {
  PortRanks ranks(3, {.latency = 0.5}, {.out = 8});
  Shape shape{.link = [](Rank, Rank, Seconds) { return Link{.latency = 0.5}; },
              .ports = [](Rank, Seconds) { return Ports{.out = 8}; },
              .now = [&] { return ranks.now; },
              .buffers = false};
  Shaped sender(ranks.inner[0], shape);
  std::vector<Shaped::Request> sends;
  for (const int peer : {1, 2})
    sends.push_back(sender.send(Rank{peer}, lane, ranks.memory.data(), 8));
  for (const int peer : {1, 2}) {
    auto receive = ranks.receive(0, peer, 8);
    CHECK_FALSE(ranks.at[static_cast<std::size_t>(peer)].test(receive));  // but the bytes are there
  }
  ranks.now = std::nextafter(2.0, 0.0);
  CHECK_FALSE(sender.test(sends[0]));
  ranks.now = 2;
  CHECK(sender.test(sends[0]));
  CHECK_FALSE(sender.test(sends[1]));
  ranks.now = 3;
  CHECK(sender.test(sends[1]));
}

TEST_CASE("an executor runs over shaped links, and takes their time") {
  // Nobody computes: the first item takes two links of 5 ms, the others follow at once.
  const Schedule schedule =
      schedule::stream({.ranks = 3, .microbatches = 7, .sizes = {.activation = 8}});
  std::atomic<int> ran = 0;
  std::atomic<int> early = 0;
  run_threads(3, [&](ThreadTransport& inner) {
    Shaped transport(inner, {.link = [](Rank, Rank, Seconds) { return Link{.latency = 5e-3}; }});
    Runner run([&](const Task&) { ++ran; }, schedule, transport);
    const Seconds start = steady_seconds();
    run.step();
    if (transport.rank() == Rank{2}) early += steady_seconds() - start < 5e-3;
  });
  CHECK(ran == 21);
  CHECK(early == 0);
}

TEST_CASE("the shape of a Machine has its links and the ports of its ranks") {
  Machine machine = network({{{}, {1, 2}}, {{3, 4}, {}}}, {});
  machine.set_ports(0, 1, {.out = 5, .in = 6, .count = 7});
  const Shape shape = Shape::of(machine);
  CHECK(shape.link(Rank{0}, Rank{1}, 0) == Link{1, 2});
  CHECK(shape.link(Rank{1}, Rank{0}, 9) == Link{3, 4});
  CHECK(shape.ports(Rank{0}, 0) == Ports{.out = 2, .in = 4});
  CHECK(shape.ports(Rank{1}, 9) == Ports{.out = 5, .in = 6, .count = 7});
  // Where ranks have none, nor has the shape.
  CHECK_FALSE(Shape::of(Machine::uniform(3, {}, {1, 2})).ports);
  CHECK_FALSE(Shape::of(Machine::uniform(1, {}, {1, 2})).ports);
  CHECK(Shape::of(Machine::uniform(3, {}, {1, 2})).link(Rank{0}, Rank{2}, 0) == Link{1, 2});
}

TEST_CASE("a Machine that shares more than ports of ranks has no shape") {
  const std::vector<Device> four(4);
  const auto message = [](const Machine& machine) {
    return test::message_of<contract_error>([&] { (void)Shape::of(machine); });
  };
  CHECK_THAT(message(Machine::hierarchical(four, {{.name = "node", .ranks = 2, .ports = {.out = 8}},
                                                  {.name = "all", .ranks = 4}})),
             ContainsSubstring(
                 "heddle::Shape::of: only links and ports of single ranks can be emulated") &&
                 ContainsSubstring("'node 0 out'"));
  CHECK_THAT(message(Machine::hierarchical(four, {{.name = "rank", .ports = {8, 8}},
                                                  {.name = "node", .ranks = 2, .ports = {.in = 8}},
                                                  {.name = "all", .ranks = 4}})),
             ContainsSubstring("'node 1 in'"));
  Machine line = Machine::uniform(2, {}, {});
  line.share("cable", 8, {{Rank{1}, Rank{0}}});
  CHECK_THAT(message(line), ContainsSubstring("'cable'"));
  // Ports that no message passes are no obstacle.
  CHECK_NOTHROW(Shape::of(Machine::hierarchical(
      four, {{.name = "rank", .ports = {8, 8}}, {.name = "all", .ranks = 4, .ports = {8, 8}}})));
}

TEST_CASE("ports that are none are refused, naming the rank") {
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  const std::string says =
      "heddle::ShapedTransport: a rank needs at least one port, with bandwidths above 0";
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Ports bad :
       {Ports{.out = 0}, Ports{.out = -1}, Ports{.out = nan}, Ports{.in = 0}, Ports{.in = -1},
        Ports{.in = nan}, Ports{.count = 0}, Ports{.count = -1}}) {
    PortRanks ranks(3, {}, bad);
    CHECK_THAT(message([&] { ranks.send(1, 0, 8); }),
               ContainsSubstring(says) && ContainsSubstring("at rank 1"));
    // Those of a receiver are looked at when a message comes.
    ranks.ports = {};
    auto receive = ranks.pass(1, 2, 8);
    ranks.ports = bad;
    CHECK_THAT(message([&] { (void)ranks.at[2].test(receive); }),
               ContainsSubstring(says) && ContainsSubstring("at rank 2"));
  }
}

TEST_CASE("a shape that is none is refused") {
  ThreadHub hub(2);
  ThreadTransport inner(hub, Rank{0});
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([&] { Shaped transport(inner, {}); }),
             ContainsSubstring("a shape needs the functions link and now"));
  CHECK_THAT(message([&] {
               Shaped transport(
                   inner, {.link = [](Rank, Rank, Seconds) { return Link{}; }, .now = nullptr});
             }),
             ContainsSubstring("a shape needs the functions link and now"));
  std::byte memory{};
  for (const Link link : {Link{.latency = -1}, Link{.bandwidth = 0}, Link{.bandwidth = -5},
                          Link{.latency = std::numeric_limits<double>::infinity()},
                          Link{.bandwidth = std::numeric_limits<double>::quiet_NaN()}}) {
    Shaped transport(inner, {.link = [&](Rank, Rank, Seconds) { return link; }});
    CHECK_THAT(message([&] { (void)transport.send(Rank{1}, lane, &memory, 1); }),
               ContainsSubstring("a link needs a latency of at least 0 and a bandwidth above 0") &&
                   ContainsSubstring("from rank 0 to 1"));
  }
  Shaped transport(inner, {.link = [](Rank, Rank, Seconds) { return Link{}; }});
  CHECK_THAT(message([&] { (void)transport.send(Rank{2}, lane, &memory, 1); }),
             ContainsSubstring("heddle::ShapedTransport: no such peer") &&
                 ContainsSubstring("rank 2 of 2"));
  CHECK_THAT(message([&] { (void)transport.receive(Rank{2}, lane, &memory, 1); }),
             ContainsSubstring("rank 2 of 2"));
}

}  // namespace test_shaped_transport
