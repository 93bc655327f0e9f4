// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// survive() without a checkpoint: how ranks that are threads agree, whose error is thrown, and what
// the log says. The preset tsan runs this file. tests/pipeline/survive.cpp trains.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/survive.hpp>
#include <heddle/execute/thread_transport.hpp>

#include "support/complaint.hpp"

namespace test_execute_survive {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Ranks = std::span<const hd::Rank>;

namespace {

hd::ExecuteOptions without_watchdog() { return {.watchdog = 0}; }

/// Ends this rank.
[[noreturn]] void die(hd::ThreadTransport& transport) {
  transport.die();
  throw std::runtime_error("dead");
}

}  // namespace

TEST_CASE("an error of the work ends all ranks, and nobody goes on") {
  // Nobody has a watchdog: the others end because they are told.
  std::vector<std::string> told(3);
  hd::run_threads(3, [&](hd::ThreadTransport& transport) {
    int calls = 0;
    std::string error;
    try {
      hd::survive(
          transport,
          [&](hd::ThreadTransport& all, Ranks) {
            ++calls;
            if (all.rank() == 1) throw std::runtime_error("it broke");
            (void)hd::all_gather(all, {}, without_watchdog());
          },
          without_watchdog());
    } catch (const std::runtime_error& caught) {
      error = caught.what();
    }
    told[+transport.rank()] = calls == 1 ? error : "not called once";
  });
  CHECK(told[1] == "it broke");
  for (const std::size_t r : {0, 2})
    CHECK_THAT(told[r],
               ContainsSubstring("rank 1 failed at the work") && ContainsSubstring("it broke"));
}

TEST_CASE("an error after a death ends the ranks that are left") {
  const std::string error = hd::test::message_of<std::runtime_error>([] {
    hd::run_threads(4, [](hd::ThreadTransport& transport) {
      hd::survive(
          transport,
          [](hd::ThreadTransport& left, Ranks ranks) {
            if (left.size() == 4 && left.rank() == 1) die(left);
            if (left.size() == 3 && ranks[+left.rank()] == 3) throw std::runtime_error("it broke");
            (void)hd::all_gather(left, {}, without_watchdog());
          },
          without_watchdog());
    });
  });
  // Rank 0 throws, too: that rank 2 of the new transport has failed.
  CHECK(error == "it broke");
}

TEST_CASE("an error that comes with a death is told to the ranks that know of the death only") {
  std::vector<std::string> told(4);
  hd::run_threads(4, [&](hd::ThreadTransport& transport) {
    try {
      hd::survive(
          transport,
          [&](hd::ThreadTransport& all, Ranks) {
            if (all.rank() == 1) die(all);
            if (all.rank() == 2) {
              while (!all.aborted()) std::this_thread::yield();
              throw std::runtime_error("it broke");
            }
            (void)hd::all_gather(all, {}, without_watchdog());
          },
          without_watchdog());
    } catch (const std::runtime_error& caught) {
      told[+transport.rank()] = caught.what();
      if (transport.rank() == 1) throw;
    }
  });
  CHECK(told[2] == "it broke");
  for (const std::size_t r : {0, 3})
    CHECK_THAT(told[r], ContainsSubstring("heddle::survive: the work has failed on another rank") &&
                            ContainsSubstring("rank 1 has died"));
}

TEST_CASE("a death is told, also if only another rank knows who has died") {
  CHECK(hd::impl::failure_of({hd::Rank{2}, "", ""}) == "rank 2 has died");
  CHECK(hd::impl::failure_of({hd::impl::unknown_rank, "", ""}) == "a rank has died");
}

TEST_CASE("run_threads throws the error of the rank that failed first, also after a death") {
  for (const std::uint32_t first : {0U, 2U}) {
    const std::string error = hd::test::message_of<std::runtime_error>([&] {
      std::atomic<int> ended{0};
      hd::run_threads(3, [&](hd::ThreadTransport& transport) {
        if (transport.rank() == 1) {
          ++ended;
          die(transport);
        }
        if (transport.rank() != first) {
          while (ended < 2) std::this_thread::yield();
          throw std::runtime_error("later");
        }
        // The error is noted by abort(), so the other rank cannot come before it.
        transport.abort({transport.rank(), "its part", "it broke"});
        ++ended;
        throw std::runtime_error("it broke");
      });
    });
    INFO("rank " << first << " fails first");
    CHECK(error == "it broke");
  }
}

TEST_CASE("the error of the work is thrown although the ranks cannot agree, which the log gets") {
  std::vector<std::string> lines;
  std::string error;
  hd::run_threads(2, [&](hd::ThreadTransport& transport) {
    if (transport.rank() == 1) return;
    hd::ExecuteOptions options{.watchdog = 0.05};
    options.log = [&](std::string_view line) { lines.emplace_back(line); };
    try {
      hd::survive(
          transport, [](hd::ThreadTransport&, Ranks) { throw std::runtime_error("it broke"); },
          options);
    } catch (const std::runtime_error& caught) {
      error = caught.what();
    }
  });
  CHECK(error == "it broke");
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], ContainsSubstring("heddle::survive: after an error of the work: ") &&
                           ContainsSubstring("rank 1 does not answer"));
}

TEST_CASE("a log that throws does not end its rank") {
  std::vector<int> sizes(3);
  hd::run_threads(3, [&](hd::ThreadTransport& transport) {
    const std::size_t self = +transport.rank();
    hd::ExecuteOptions options;
    options.log = [&](std::string_view) { throw std::runtime_error("the disk is full"); };
    hd::survive(
        transport,
        [&](hd::ThreadTransport& left, Ranks) {
          if (left.size() == 3 && self == 1) die(left);
          (void)hd::all_gather(left, {});
          sizes[self] = left.size();
        },
        options);
  });
  CHECK(sizes == std::vector<int>{2, 0, 2});
}

TEST_CASE("the log says who has died, by the first numbers") {
  std::vector<std::string> lines;
  std::vector<std::vector<std::uint32_t>> who;
  hd::run_threads(4, [&](hd::ThreadTransport& transport) {
    const std::uint32_t self = transport.rank().value;
    hd::ExecuteOptions options;
    if (self == 3) options.log = [&](std::string_view line) { lines.emplace_back(line); };
    hd::survive(
        transport,
        [&](hd::ThreadTransport& left, Ranks ranks) {
          if (self == 3) {
            who.emplace_back();
            for (const hd::Rank rank : ranks) who.back().push_back(rank.value);
          }
          (void)hd::all_gather(left, {});
          if ((self == 1 && left.size() == 4) || (self == 2 && left.size() == 3)) die(left);
          (void)hd::all_gather(left, {});
        },
        options);
  });
  CHECK(who == std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}, {0, 2, 3}, {0, 3}});
  CHECK(lines == std::vector<std::string>{"heddle::survive: rank 1 has died; 3 ranks go on",
                                          "heddle::survive: rank 2 has died; 2 ranks go on"});
}

TEST_CASE("a rank that does not come to an agreement is named") {
  std::vector<std::string> told(2);
  hd::run_threads(2, [&](hd::ThreadTransport& transport) {
    if (transport.rank() == 1) return;
    try {
      (void)transport.agree(1, 0.05);
    } catch (const hd::communication_error& caught) {
      told[0] = caught.what();
    }
  });
  CHECK_THAT(told[0], ContainsSubstring("rank 1 does not answer"));
}

}  // namespace test_execute_survive
