// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The order of the programs of several clients: first come first served, and shares that hold at
// every moment.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/pathways/gang_order.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_gang_order {

namespace hd = heddle;

TEST_CASE("fifo is the order of submission") {
  hd::systems::GangOrder order(hd::systems::GangPolicy::fifo, {1, 5, 2});
  const std::vector<std::size_t> submitted{2, 0, 0, 1, 2, 2, 1, 0};
  for (const std::size_t client : submitted) order.submit(client);
  CHECK(order.waiting() == submitted.size());
  for (const std::size_t client : submitted) CHECK(order.next() == client);
  CHECK_FALSE(order.next());
}

TEST_CASE("weights 1:2:4:8 give these shares of 1000 programs, and of every shorter run") {
  const std::vector<std::uint32_t> weights{1, 2, 4, 8};
  hd::systems::GangOrder order(hd::systems::GangPolicy::share, weights);
  for (std::size_t client = 0; client < 4; ++client)
    for (int k = 0; k < 1000; ++k) order.submit(client);
  std::vector<double> counts(4, 0.0);
  for (int total = 1; total <= 1000; ++total) {
    counts[*order.next()] += 1;
    for (std::size_t client = 0; client < 4; ++client)
      CHECK(std::abs(counts[client] - total * weights[client] / 15.0) < 4);
  }
  for (std::size_t client = 0; client < 4; ++client) {
    const double share = 1000 * weights[client] / 15.0;
    CHECK(std::abs(counts[client] - share) <= 0.05 * share);
  }
}

TEST_CASE("random weights: a backlogged client is never off its share by the number of clients") {
  for (std::uint64_t seed = 0; seed < hd::test::cases(50, 2000); ++seed) {
    const hd::Random random(seed, "gang order");
    const std::size_t clients = 1 + random.bits(0) % 6;
    std::vector<std::uint32_t> weights;
    for (std::size_t c = 0; c < clients; ++c)
      weights.push_back(static_cast<std::uint32_t>(1 + random.bits(1 + c) % 12));
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    hd::systems::GangOrder order(hd::systems::GangPolicy::share, weights);
    for (std::size_t c = 0; c < clients; ++c)
      for (int k = 0; k < 300; ++k) order.submit(c);
    std::vector<double> counts(clients, 0.0);
    for (int total = 1; total <= 300; ++total) {
      counts[order.next().value()] += 1;
      for (std::size_t c = 0; c < clients; ++c)
        REQUIRE(std::abs(counts[c] - total * weights[c] / all) < static_cast<double>(clients));
    }
  }
}

TEST_CASE("a client that was idle does not catch up") {
  hd::systems::GangOrder order(hd::systems::GangPolicy::share, {1, 1});
  for (int k = 0; k < 100; ++k) order.submit(0);
  for (int k = 0; k < 50; ++k) CHECK(order.next() == std::size_t{0});
  for (int k = 0; k < 100; ++k) order.submit(1);
  int first = 0;
  for (int k = 0; k < 20; ++k) first += order.next() == std::size_t{0};
  CHECK(first >= 9);
  CHECK(first <= 11);
}

TEST_CASE("the share policy keeps the programs of a client and serves all of them") {
  hd::systems::GangOrder order(hd::systems::GangPolicy::share, {3, 1});
  order.submit(1);
  order.submit(1);
  CHECK(order.next() == std::size_t{1});
  CHECK(order.next() == std::size_t{1});
  CHECK_FALSE(order.next());
}

TEST_CASE("weights and clients are checked") {
  using heddle::test::message_of;
  CHECK(message_of<hd::contract_error>([] {
          hd::systems::GangOrder(hd::systems::GangPolicy::share, {1, 0});
        }).find("client 1") != std::string::npos);
  CHECK(message_of<hd::contract_error>([] {
          hd::systems::GangOrder(hd::systems::GangPolicy::fifo, {1}).submit(1);
        }).find("client 1 of 1") != std::string::npos);
  CHECK(hd::text(hd::systems::GangPolicy::share, ' ', hd::systems::GangPolicy::fifo) ==
        "share fifo");
}

}  // namespace test_gang_order
