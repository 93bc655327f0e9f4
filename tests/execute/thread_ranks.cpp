// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// ThreadTransport through the battery of its concept, and what runs over any transport.

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>

#include "support/complaint.hpp"
#include "support/transport_battery.hpp"

namespace test_thread_ranks {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

static_assert(Transport<ThreadTransport>);
static_assert(!std::is_copy_constructible_v<ThreadTransport>);

TEST_CASE("threads pass the battery of transports") {
  for (int ranks = 1; ranks <= 4; ++ranks)
    REQUIRE_NOTHROW(
        run_threads(ranks, [](ThreadTransport& transport) { test::transport_battery(transport); }));
}

TEST_CASE("threads pass the battery of aborts, whichever fails") {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (int failing = 0; failing < ranks; ++failing)
      REQUIRE_NOTHROW(run_threads(ranks, [failing](ThreadTransport& transport) {
        test::transport_abort_battery(transport, Rank{failing});
      }));
}

TEST_CASE("ranks that do not exist are refused with their numbers") {
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([] { ThreadHub(0); }), ContainsSubstring("ranks = 0"));
  ThreadHub hub(2);
  CHECK(hub.size() == 2);
  CHECK_THAT(message([&] { ThreadTransport(hub, Rank{2}); }), ContainsSubstring("rank 2 of 2"));
  ThreadTransport transport(hub, Rank{1});
  std::byte memory{};
  CHECK_THAT(message([&] { (void)transport.send(Rank{5}, Lane{0}, &memory, 1); }),
             ContainsSubstring("no such peer") && ContainsSubstring("rank 5 of 2"));
  CHECK_THAT(message([&] { (void)transport.receive(Rank{2}, Lane{0}, &memory, 1); }),
             ContainsSubstring("rank 2 of 2"));
  CHECK_THROWS_AS(run_threads(0, [](ThreadTransport&) {}), contract_error);
}

TEST_CASE("run_threads runs the body on every rank and rethrows the first failure") {
  std::array<std::atomic<int>, 4> calls{};
  run_threads(4, [&](ThreadTransport& transport) { ++calls[+transport.rank()]; });
  for (const auto& count : calls) CHECK(count == 1);
  // The others hear of it and fail in turn; theirs is not the error to report.
  for (const int failing : {0, 1, 2})
    CHECK(test::message_of<std::domain_error>([&] {
            run_threads(3, [&](ThreadTransport& transport) {
              if (transport.rank() == Rank{failing}) throw std::domain_error("the first");
              while (!transport.aborted()) std::this_thread::yield();
              throw std::runtime_error("because of " + transport.aborted()->reason);
            });
          }) == "the first");
  try {
    run_threads(2, [](ThreadTransport& transport) {
      if (transport.rank() == Rank{1}) throw 'x';
    });
    FAIL("nothing was thrown");
  } catch (char letter) {
    CHECK(letter == 'x');
  }
}

TEST_CASE("every rank gets the bytes of all, also where they differ in number") {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    std::atomic<int> wrong = 0;
    run_threads(ranks, [&](ThreadTransport& transport) {
      const std::uint32_t me = transport.rank().value;
      // Rank r has 3 r numbers; rank 0 none.
      std::vector<std::uint32_t> mine;
      for (std::uint32_t i = 0; i < 3 * me; ++i) mine.push_back(100 * me + i);
      for (int again = 0; again < 3; ++again) {
        const auto all = all_gather<std::uint32_t>(transport, mine);
        wrong += all.size() != static_cast<std::size_t>(ranks);
        for (std::uint32_t r = 0; r < all.size(); ++r) {
          wrong += all[r].size() != 3 * r;
          for (std::uint32_t i = 0; i < all[r].size(); ++i) wrong += all[r][i] != 100 * r + i;
        }
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("an exchange that a rank does not join ends by the watchdog, or by its abort") {
  CHECK_THAT(test::message_of<communication_error>([] {
               run_threads(2, [](ThreadTransport& transport) {
                 if (transport.rank() == Rank{1}) return;
                 (void)all_gather(transport, {}, {.watchdog = 0.1});
               });
             }),
             ContainsSubstring("heddle::all_gather, rank 0: rank 1 does not answer") &&
                 ContainsSubstring("watchdog after 0.1 s"));
  std::string other;
  CHECK(test::message_of<std::logic_error>([&] {
          run_threads(2, [&](ThreadTransport& transport) {
            if (transport.rank() == Rank{1}) throw std::logic_error("no time");
            try {
              (void)all_gather(transport, {}, {.watchdog = 60});
            } catch (const communication_error& error) {
              other = error.what();
              throw;
            }
          });
        }) == "no time");
  CHECK_THAT(other, ContainsSubstring("rank 1 failed at its body (no time)"));
}

TEST_CASE("the clocks of threads do not differ by more than their messages take") {
  std::atomic<int> wrong = 0;
  run_threads(3, [&](ThreadTransport& transport) {
    // One host, one clock: what is measured is below half a round trip, so it counts as none.
    wrong += heddle::impl::clock_offset(transport) != 0;
  });
  CHECK(wrong == 0);
}

}  // namespace test_thread_ranks
