// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// WiredTransport through the batteries of its concept, over a wire that knows neither lanes nor
// sizes. Over MPI: tests/comm/wired_transport.cpp.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/transport_battery.hpp"
#include "support/transport_wire.hpp"

namespace test_wired_transport {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using ThreadWire = test::TransportWire<ThreadTransport>;
using Wired = WiredTransport<ThreadTransport, ThreadWire>;

static_assert(Wire<ThreadWire>);
static_assert(Transport<Wired>);

namespace {

/// `body(WiredTransport&)` on so many threads.
template <class Body>
void on_threads(int ranks, Body&& body) {
  ThreadHub bytes(ranks);
  run_threads(ranks, [&](ThreadTransport& inner) {
    ThreadTransport second(bytes, inner.rank());
    ThreadWire wire(second);
    Wired transport(inner, wire);
    body(transport);
  });
}

/// Two ranks in one thread.
struct TwoRanks {
  ThreadHub words{2}, bytes{2};
  ThreadTransport inner_first{words, Rank{0}}, inner_second{words, Rank{1}};
  ThreadTransport second_first{bytes, Rank{0}}, second_second{bytes, Rank{1}};
  ThreadWire wire_first{second_first}, wire_second{second_second};
  Wired first{inner_first, wire_first}, second{inner_second, wire_second};
};

}  // namespace

TEST_CASE("the battery of transports, wired") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  REQUIRE_NOTHROW(
      on_threads(ranks, [](Wired& transport) { test::transport_battery(transport, 1'000'003); }));
}

TEST_CASE("the battery of aborts, wired, whichever fails") {
  for (const int ranks : {2, 3, 4})
    for (int failing = 0; failing < ranks; ++failing)
      REQUIRE_NOTHROW(on_threads(ranks, [&](Wired& transport) {
        test::transport_abort_battery(transport, Rank{failing});
      }));
}

TEST_CASE("a message that nobody receives keeps off the wire, and its sender's others go on") {
  TwoRanks ranks;
  std::vector<std::byte> from(3, std::byte{5});
  std::vector<std::byte> to(3);
  auto lost = ranks.first.send(Rank{1}, Lane{0}, from.data(), 3);
  auto sent = ranks.first.send(Rank{1}, Lane{1}, from.data(), 3);
  auto awaited = ranks.second.receive(Rank{0}, Lane{1}, to.data(), 3);
  for (int poll = 0; poll < 10; ++poll) {
    static_cast<void>(ranks.first.test(lost));
    static_cast<void>(ranks.second.test(awaited));
  }
  CHECK(ranks.second.test(awaited));
  CHECK(ranks.first.test(sent));
  CHECK_FALSE(ranks.first.test(lost));
  CHECK(to == from);
}

TEST_CASE("sizes that differ are found before a byte is written") {
  TwoRanks ranks;
  std::vector<std::byte> from(5, std::byte{5});
  std::vector<std::byte> to(3);
  auto sent = ranks.first.send(Rank{1}, Lane{2}, from.data(), 5);
  auto awaited = ranks.second.receive(Rank{0}, Lane{2}, to.data(), 3);
  const auto wait = [&] {
    for (int poll = 0; poll < 10; ++poll) {
      static_cast<void>(ranks.first.test(sent));
      static_cast<void>(ranks.second.test(awaited));
    }
  };
  CHECK_THAT(test::message_of<communication_error>(wait),
             ContainsSubstring("heddle::WiredTransport, rank 1: the sizes of a message and its "
                               "receive differ (from rank 0, lane 2: sent 5 bytes, expected 3)"));
  CHECK(to == std::vector<std::byte>(3));
}

TEST_CASE("an all-reduce over wires has the sums of one over threads") {
  constexpr int ranks = 3;
  const Schedule schedule =
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = ranks, .bytes = 999 * sizeof(double), .chunks = 2});
  std::vector<std::vector<double>> data(ranks);
  REQUIRE_NOTHROW(on_threads(ranks, [&](Wired& transport) {
    std::vector<double>& mine = data[+transport.rank()];
    for (int i = 0; i < 999; ++i) mine.push_back(i * static_cast<double>(+transport.rank() + 1));
    std::vector<std::vector<std::byte>> scratch;
    execute(slice(schedule, transport.rank(),
                  [&](BufferId, const Buffer& buffer) {
                    return buffer.transient ? scratch.emplace_back(buffer.bytes).data()
                                            : reinterpret_cast<std::byte*>(mine.data());
                  }),
            &combine_on_host, transport);
  }));
  for (const std::vector<double>& sums : data)
    for (int i = 0; i < 999; ++i) REQUIRE(sums[static_cast<std::size_t>(i)] == 6.0 * i);
}

}  // namespace test_wired_transport
