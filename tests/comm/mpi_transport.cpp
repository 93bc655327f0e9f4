// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// MpiTransport: the battery of its concept, pieces, sizes that disagree, and the way out of an
/// abort.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/survive.hpp>

#include "support/transport_battery.hpp"

namespace test_mpi_transport {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::Bytes;
using heddle::Lane;
using heddle::MpiTransport;
using heddle::Rank;
using Message = heddle::test::BatteryMessage<MpiTransport>;

TEST_CASE("the battery of transports") {
  // In one piece; in pieces of some eager and some rendezvous sizes; in very many.
  const auto [max_message, large] = GENERATE(table<Bytes, Bytes>(
      {{Bytes{1} << 30, 4'194'317}, {65'537, 4'194'317}, {1009, 300'007}, {64, 30'011}}));
  CAPTURE(max_message, large);
  MpiTransport transport(MPI_COMM_WORLD, {.max_message = max_message});
  REQUIRE_NOTHROW(heddle::test::transport_battery(transport, large));
}

TEST_CASE("every size around the multiples of a piece") {
  for (const Bytes max_message : {1, 2, 7, 64}) {
    MpiTransport transport(MPI_COMM_WORLD, {.max_message = max_message});
    const Rank next{(+transport.rank() + 1) % static_cast<std::size_t>(transport.size())};
    const Rank previous{(+transport.rank() + static_cast<std::size_t>(transport.size()) - 1) %
                        static_cast<std::size_t>(transport.size())};
    std::vector<Message> messages;
    for (Bytes bytes = 0; bytes < 3 * max_message + 2; ++bytes) {
      messages.push_back(Message::sent(transport, next, Lane{1}, bytes, bytes));
      messages.push_back(Message::awaited(transport, previous, Lane{1}, bytes, bytes));
    }
    for (Message& message : messages) REQUIRE_NOTHROW(message.finish(transport));
  }
}

TEST_CASE("options that differ or make no sense are refused on every rank alike") {
  CHECK_THROWS_MATCHES(MpiTransport(MPI_COMM_WORLD, {.max_message = 0}), heddle::contract_error,
                       MessageMatches(ContainsSubstring("max_message must lie in 1 ..") &&
                                      ContainsSubstring("0 bytes")));
  CHECK_THROWS_MATCHES(MpiTransport(MPI_COMM_WORLD, {.max_message = Bytes{1} << 31}),
                       heddle::contract_error, MessageMatches(ContainsSubstring("2147483648")));
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  CHECK_THROWS_MATCHES(
      MpiTransport(MPI_COMM_WORLD, {.max_message = 100 + static_cast<Bytes>(rank)}),
      heddle::contract_error,
      MessageMatches(ContainsSubstring("max_message differs between the ranks") &&
                     ContainsSubstring(heddle::text("from 100 to ", 99 + size))));
}

TEST_CASE("peers and lanes that do not exist are refused") {
  MpiTransport transport(MPI_COMM_WORLD);
  std::byte byte{};
  CHECK_THROWS_MATCHES(transport.send(Rank{transport.size()}, Lane{0}, &byte, 1),
                       heddle::contract_error,
                       MessageMatches(ContainsSubstring("no such peer") &&
                                      ContainsSubstring(heddle::text("rank ", transport.size()))));
  CHECK_THROWS_MATCHES(
      transport.receive(Rank{0}, Lane{4'000'000'000u}, &byte, 1), heddle::contract_error,
      MessageMatches(ContainsSubstring("no such lane") && ContainsSubstring("4000000000")));
}

TEST_CASE("a message is not cancelled before an abort") {
  MpiTransport transport(MPI_COMM_WORLD);
  const Rank me = transport.rank();
  auto receive = Message::awaited(transport, me, Lane{0}, 0, 5);
  auto same = std::move(receive);
  CHECK_NOTHROW(transport.cancel(receive.request()));  // moved from: stands for nothing
  auto lost = Message::awaited(transport, me, Lane{7}, 0, 0);
  CHECK_THROWS_AS(transport.cancel(lost.request()), heddle::contract_error);
  auto send = Message::sent(transport, me, Lane{0}, 0, 5);
  REQUIRE_NOTHROW(same.finish(transport));
  REQUIRE_NOTHROW(send.finish(transport));
  // `lost` is under way still: the destructor aborts, and takes it back.
}

/// Rank 0 receives `expected` bytes where rank 1 has sent `sent`. The receiver's memory has room
/// for both, because Open MPI 4.1 overruns it (see MpiTransport::test) and the test shall go on.
void disagree(Bytes sent, Bytes expected, Bytes max_message, const std::string& sentence) {
#if defined(MPICH)
  if (sent > expected) return;  // MPICH 4.0 ends the job, whatever the error handler says
#endif
  INFO("sent " << sent << ", expected " << expected << ", pieces of " << max_message);
  MpiTransport transport(MPI_COMM_WORLD, {.max_message = max_message});
  if (transport.size() == 1) return;
  std::vector<std::byte> memory(std::max(sent, expected) + 1);
  MpiTransport::Request request;
  if (transport.rank() == Rank{1}) request = transport.send(Rank{0}, Lane{3}, memory.data(), sent);
  if (transport.rank() == Rank{0}) {
    request = transport.receive(Rank{1}, Lane{3}, memory.data(), expected);
    const auto wait = [&] {
      while (!transport.test(request)) continue;
    };
    CHECK_THROWS_MATCHES(
        wait(), heddle::communication_error,
        MessageMatches(ContainsSubstring("rank 1, lane 3") && ContainsSubstring(sentence)));
    transport.abort({Rank{0}, "RECV", "sizes differ"});
  } else {
    while (!transport.aborted()) continue;
    CHECK(transport.aborted()->reason == "sizes differ");
  }
  transport.cancel(request);
}

TEST_CASE("both sides of a message must agree about its size") {
  constexpr Bytes whole = Bytes{1} << 30;
  disagree(3, 5, whole, "sent 3 bytes, expected 5");
  disagree(0, 1, whole, "sent 0 bytes, expected 1");
  disagree(1, 0, whole, "bytes, expected 0");
  disagree(1'000'003, 5, whole, "bytes, expected 5");
  disagree(5000, 4999, whole, "bytes, expected 4999");
  disagree(5, 1'000'003, whole, "sent 5 bytes, expected 1000003");
  // In pieces of 64, around the places where a piece ends.
  disagree(64, 63, 64, "sent at least 64 bytes, expected 63");
  disagree(63, 64, 64, "sent 63 bytes, expected 64");
  disagree(64, 65, 64, "sent 64 bytes, expected 65");
  disagree(65, 64, 64, "bytes, expected 64");
  disagree(128, 64, 64, "expected 64");
  disagree(64, 128, 64, "sent 64 bytes, expected 128");
  disagree(1000, 100, 64, "sent at least 128 bytes, expected 100");
}

TEST_CASE("an abort reaches every rank, and all come out of it") {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int failing = 0; failing < size; ++failing) {
    for (const Bytes max_message : {Bytes{1} << 30, Bytes{50'021}}) {
      MpiTransport transport(MPI_COMM_WORLD, {.max_message = max_message});
      CAPTURE(failing, max_message);
      REQUIRE_NOTHROW(heddle::test::transport_abort_battery(transport, Rank{failing}));
      std::byte byte{};
      CHECK_THROWS_MATCHES(
          transport.send(Rank{0}, Lane{0}, &byte, 1), heddle::communication_error,
          MessageMatches(ContainsSubstring("no more messages after an abort") &&
                         ContainsSubstring(heddle::text("rank ", failing, " failed at 2F5"))));
    }
  }
}

TEST_CASE("an abort in the midst of large messages gives all memory back") {
  // Some receives have met their send when the abort comes, some have not: all must come out, and
  // what they leave may be freed at once. Rank 0 fails before it has looked at any of its messages.
  for (int round = 0; round < 5; ++round) {
    MpiTransport transport(MPI_COMM_WORLD, {.patience = 60});
    constexpr Bytes bytes = 1'000'003;
    std::vector<Message> messages;
    for (int peer = 0; peer < transport.size(); ++peer) {
      if (Rank{peer} == transport.rank()) continue;
      for (std::uint64_t k = 0; k < 3; ++k) {
        messages.push_back(Message::sent(transport, Rank{peer}, Lane{0}, k, bytes));
        messages.push_back(Message::awaited(transport, Rank{peer}, Lane{0}, k, bytes));
      }
    }
    if (transport.rank() == Rank{0}) {
      transport.abort({Rank{0}, "0B1", "stop"});
    } else {
      std::size_t at = 0;
      while (!transport.aborted() && at < messages.size())
        if (transport.test(messages[at].request())) ++at;
      while (!transport.aborted()) continue;
    }
    const heddle::Seconds since = heddle::steady_seconds();
    for (Message& message : messages) transport.cancel(message.request());
    // Nobody waits for its patience to end: all of them answer.
    CHECK(heddle::steady_seconds() - since < 30);
  }
}

TEST_CASE("a rank that leaves with messages under way aborts the others") {
  auto transport = std::make_unique<MpiTransport>(MPI_COMM_WORLD);
  if (transport->size() == 1) return;
  const Rank last{transport->size() - 1};
  if (transport->rank() == last) {
    std::array<std::byte, 3> memory{};
    static_cast<void>(transport->receive(Rank{0}, Lane{0}, memory.data(), memory.size()));
    transport.reset();
  } else {
    std::optional<heddle::Abort> abort;
    while (!(abort = transport->aborted())) continue;
    CHECK(abort->rank == last);
    CHECK(abort->action == "the end of its transport");
  }
}

TEST_CASE("an exception that leaves a transport's scope is told to the others") {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  const auto body = [&] {
    MpiTransport transport(MPI_COMM_WORLD);
    if (rank == 0) throw std::runtime_error("between two messages");
    std::optional<heddle::Abort> abort;
    while (!(abort = transport.aborted())) continue;
    CHECK(abort->rank == Rank{0});
    CHECK(abort->reason == "an exception left its scope");
  };
  if (rank == 0)
    CHECK_THROWS_AS(body(), std::runtime_error);
  else
    CHECK_NOTHROW(body());
}

TEST_CASE("long texts of an abort are cut, and say so") {
  MpiTransport transport(MPI_COMM_WORLD);
  if (transport.size() == 1) return;
  if (transport.rank() == Rank{0}) {
    transport.abort({Rank{0}, std::string(251, 'a'), std::string(5000, 'r')});
  } else {
    std::optional<heddle::Abort> abort;
    while (!(abort = transport.aborted())) continue;
    CHECK(abort->action == std::string(251, 'a'));
    CHECK(abort->reason == std::string(764, 'r') + "...");
  }
}

TEST_CASE("a test after an abort says who failed") {
  MpiTransport transport(MPI_COMM_WORLD);
  const Rank me = transport.rank();
  auto first = Message::awaited(transport, me, Lane{0}, 0, 5);
  auto second = Message::awaited(transport, me, Lane{0}, 1, 5);
  transport.abort({me, "F", "all at once"});
  transport.cancel(first.request());
  CHECK_THROWS_MATCHES(transport.test(second.request()), heddle::communication_error,
                       MessageMatches(ContainsSubstring("after an abort")));
}

TEST_CASE("ranks that abort at the same time all come out") {
  for (int round = 0; round < 20; ++round) {
    MpiTransport transport(MPI_COMM_WORLD);
    std::vector<Message> messages;
    for (int peer = 0; peer < transport.size(); ++peer) {
      messages.push_back(Message::awaited(transport, Rank{peer}, Lane{2}, 0, 100'003));
      messages.push_back(Message::sent(transport, Rank{peer}, Lane{1}, 0, 100'003));
    }
    transport.abort({transport.rank(), "F", "all at once"});
    for (Message& message : messages) transport.cancel(message.request());
  }
}

TEST_CASE("ranks agree, and work is done once if no rank dies") {
  MpiTransport transport(MPI_COMM_WORLD);
  const auto size = static_cast<std::size_t>(transport.size());
  const std::uint32_t mine = ~(std::uint32_t{1} << transport.rank().value);
  CHECK(transport.agree(mine, 30) == ~((std::uint32_t{1} << size) - 1));
  int calls = 0;
  std::vector<Rank> first;
  heddle::survive(transport, [&](MpiTransport& all, std::span<const Rank> ranks) {
    ++calls;
    CHECK(&all == &transport);
    first.assign(ranks.begin(), ranks.end());
  });
  CHECK(calls == 1);
  REQUIRE(first.size() == size);
  CHECK(first.back() == size - 1);
}

TEST_CASE("an MPI library that cannot go on without a rank says so") {
  MpiTransport transport(MPI_COMM_WORLD);
  try {
    const auto left = transport.survivors(30);
    CHECK(left.ranks.size() == static_cast<std::size_t>(transport.size()));
    CHECK(left.transport->rank() == transport.rank());
  } catch (const heddle::communication_error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("this MPI library cannot find out who is left") &&
                                 ContainsSubstring("--with-ft ulfm") &&
                                 ContainsSubstring("elastic"));
  }
}

}  // namespace

}  // namespace test_mpi_transport
