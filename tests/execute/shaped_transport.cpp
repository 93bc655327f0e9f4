// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// ShapedTransport through the battery of its concept, and when messages arrive by a clock of the
// test's own. Over MPI: tests/comm/shaped_transport.cpp.

#include <atomic>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
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

/// Two ranks in one thread and a clock that stands still: nothing is left to chance. All times are
/// sums of powers of two, so that they are exact.
struct TwoRanks {
  explicit TwoRanks(Link link) : between(link) {}

  Shape shape() {
    return {.link = [this](Rank, Rank, Seconds) { return between; }, .now = [this] { return now; }};
  }

  /// True where the receive is not complete just before `arrival`, and is from then on.
  bool arrives_at(Shaped::Request& request, Seconds arrival) {
    now = std::nextafter(arrival, 0.0);
    if (second.test(request)) return false;
    now = arrival;
    return second.test(request);
  }

  Seconds now = 1;
  Link between;
  ThreadHub hub{2};
  ThreadTransport inner_first{hub, Rank{0}}, inner_second{hub, Rank{1}};
  Shaped first{inner_first, shape()}, second{inner_second, shape()};
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

TEST_CASE("an executor runs over shaped links, and takes their time") {
  // Nobody computes: the first item takes two links of 5 ms, the others follow at once.
  const Schedule schedule =
      schedule::stream({.stages = 3, .microbatches = 7, .sizes = {.activation = 8}});
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

TEST_CASE("a shape that is none is refused") {
  ThreadHub hub(2);
  ThreadTransport inner(hub, Rank{0});
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([&] { Shaped transport(inner, {}); }),
             ContainsSubstring("a shape has a link and a clock"));
  CHECK_THAT(message([&] {
               Shaped transport(
                   inner, {.link = [](Rank, Rank, Seconds) { return Link{}; }, .now = nullptr});
             }),
             ContainsSubstring("a shape has a link and a clock"));
  std::byte memory{};
  for (const Link link : {Link{.latency = -1}, Link{.bandwidth = 0}, Link{.bandwidth = -5},
                          Link{.latency = std::numeric_limits<double>::infinity()},
                          Link{.bandwidth = std::numeric_limits<double>::quiet_NaN()}}) {
    Shaped transport(inner, {.link = [&](Rank, Rank, Seconds) { return link; }});
    CHECK_THAT(message([&] { (void)transport.send(Rank{1}, lane, &memory, 1); }),
               ContainsSubstring("a link has a latency of at least 0 and a bandwidth above 0") &&
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
