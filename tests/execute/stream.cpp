// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// stream(): plain functions over threads. The tokens and their order are those of a plain loop, for
// any number of tokens, size of batch and number of threads.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/execute.hpp>

#include "support/complaint.hpp"

namespace test_stream {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A source of the numbers 0 .. end-1, which may not be called again after its end.
auto numbers(int end) {
  return [next = 0, end]() mutable -> std::optional<int> {
    if (next > end) throw std::logic_error("the source was called after its end");
    return next < end ? std::optional(next++) : (++next, std::nullopt);
  };
}

struct Wide {
  double value;
  int from;
};

/// Four stages, with tokens of three types.
std::vector<double> pass(const StreamOptions& options, int end, std::uint64_t& tokens) {
  std::vector<double> found;
  tokens = stream(
      options, numbers(end),
      [](int x) {
        return Wide{x * 0.5, x};
      },
      [](const Wide& wide) { return wide.value + wide.from; },
      [&](double x) { found.push_back(x); });
  return found;
}

std::vector<double> reference(int end) {
  std::vector<double> found;
  for (int x = 0; x < end; ++x) found.push_back(x * 1.5);
  return found;
}

/// The numbers 0 .. end-1.
std::vector<int> first(int end) {
  std::vector<int> found(static_cast<std::size_t>(end));
  std::iota(found.begin(), found.end(), 0);
  return found;
}

}  // namespace

TEST_CASE("a stream gives what a loop gives, in its order") {
  for (const int threads : {1, 2, 3, 4, 9})
    for (const std::uint32_t batch : {1u, 3u, 64u})
      for (const std::uint32_t waiting : {1u, 5u})
        for (const int end : {0, 1, 2, 63, 64, 65, 1000}) {
          INFO(threads << " threads, batch " << batch << ", " << waiting << " waiting, " << end);
          std::uint64_t tokens = 0;
          REQUIRE(pass({.threads = threads, .batch = batch, .waiting = waiting}, end, tokens) ==
                  reference(end));
          REQUIRE(tokens == static_cast<std::uint64_t>(end));
        }
}

TEST_CASE("a stream gives what a loop gives where its threads hold each other up") {
  // Sleeps, so that several threads are faster however busy the machine is, and of lengths that let
  // every stage be the one that others wait for.
  using namespace std::chrono_literals;
  const auto nap = [](int x, int stage) {
    if ((x / 16 + stage) % 3 == 0) std::this_thread::sleep_for(50us * ((x + 7 * stage) % 5));
    return x;
  };
  for (const int threads : {2, 3, 5})
    for (const std::uint32_t waiting : {1u, 2u, 8u})
      for (const Idle idle : {Idle::yield, Idle::nap}) {
        INFO(threads << " threads, " << waiting << " waiting");
        std::vector<int> found;
        const std::uint64_t tokens = stream(
            {.threads = threads, .batch = 3, .waiting = waiting, .idle = idle}, numbers(500),
            [&](int x) { return nap(x, 1); }, parallel([&](int x) { return nap(x, 2); }),
            parallel([&](int x) { return nap(x, 3); }), [&](int x) { return nap(x, 4); },
            [&](int x) { found.push_back(nap(x, 5)); });
        CHECK(tokens == 500);
        CHECK(found == first(500));
      }
}

TEST_CASE("a source is not called after its end, whichever thread finds it") {
  // So few tokens that threads come and go with them; a batch is one of them, and all could be
  // under way.
  for (int run = 0; run < 400; ++run) {
    const int end = 40 + run % 7;
    std::vector<int> found;
    stream({.threads = 6, .batch = 1, .waiting = 32}, numbers(end), parallel([&](int x) {
             if (run % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
             return x;
           }),
           [&](int x) { found.push_back(x); });
    REQUIRE(found == first(end));
  }
}

TEST_CASE("a stage of a stream is called for one token after the other, a parallel one is not") {
  using namespace std::chrono_literals;
  std::atomic<int> inside = 0, most = 0, inside_parallel = 0, most_parallel = 0;
  const auto enter = [](std::atomic<int>& count, std::atomic<int>& peak) {
    const int now = ++count;
    for (int seen = peak; seen < now && !peak.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(200us);
    --count;
  };
  std::vector<int> found;
  stream(
      {.batch = 1}, numbers(100),
      [&](int x) {
        enter(inside, most);
        return x;
      },
      parallel([&](int x) {
        enter(inside_parallel, most_parallel);
        enter(inside_parallel, most_parallel);
        return x;
      }),
      [&](int x) { found.push_back(x); });
  CHECK(most == 1);
  CHECK(most_parallel == 2);
  CHECK(found == first(100));
}

TEST_CASE("a stream has several threads where they are faster, and one where they are not") {
  std::mutex guard;
  std::set<std::thread::id> threads;
  const auto here = [&] {
    const std::scoped_lock lock(guard);
    threads.insert(std::this_thread::get_id());
  };
  // Three stages of 1 ms, by sleeping. One thread sleeps in one of them at a time.
  std::atomic<int> asleep = 0, together = 0;
  const auto work = [&](int x) {
    here();
    together += asleep++ > 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --asleep;
    return x;
  };
  std::vector<int> found;
  const std::uint64_t tokens = stream({.threads = 3, .batch = 1}, numbers(200), work, work,
                                      [&](int x) { found.push_back(work(x)); });
  CHECK(tokens == 200);
  CHECK(threads.size() == 3);
  CHECK(together > 200 * 3 / 4);
  CHECK(found == first(200));

  // Stages that take less than a word from another thread, where a compiler optimises. A
  // measurement that the machine interrupts may be wrong, five of them are not.
  constexpr int end = 1'000'000;
  int least = end;
  for (int run = 0; run < 5; ++run) {
    const std::thread::id caller = std::this_thread::get_id();
    int by_others = 0;
    stream(
        {.threads = 2}, numbers(end), [](int x) { return x; },
        [&](int) { by_others += std::this_thread::get_id() != caller; });
    least = std::min(least, by_others);
  }
  CHECK(least < end / 4);
}

TEST_CASE("what a stage throws is thrown by the stream, and every thread stops") {
  // Early, where one thread works, and late, where three of them do; tokens of light stages and
  // such that sleep.
  for (const bool sleeps : {false, true})
    for (const int token : {0, 1, 700})
      for (int bad = 0; bad < 4; ++bad) {
        INFO(sleeps << " token " << token << " stage " << bad);
        const auto work = [&](int stage, int x) {
          if (sleeps && x % 4 == stage) std::this_thread::sleep_for(std::chrono::microseconds(50));
          if (stage == bad && x == token) throw std::runtime_error("a token");
          return x;
        };
        CHECK_THAT(test::message_of<std::runtime_error>([&] {
                     stream(
                         {.threads = 3, .batch = 4},
                         [&, source = numbers(100'000)]() mutable -> std::optional<int> {
                           return work(0, *source());
                         },
                         [&](int x) { return work(1, x); },
                         parallel([&](int x) { return work(2, x); }), [&](int x) { work(3, x); });
                   }),
                   ContainsSubstring("a token"));
      }
}

TEST_CASE("a stream bounds what is under way") {
  // The source runs ahead of a slow sink by no more than the batches that may wait.
  constexpr std::uint32_t batch = 4, waiting = 2;
  std::atomic<int> made = 0;
  std::atomic<int> taken = 0;
  std::atomic<int> ahead = 0;
  stream(
      {.batch = batch, .waiting = waiting},
      [&, source = numbers(400)]() mutable {
        ++made;
        ahead = std::max(ahead.load(), made - taken);
        return source();
      },
      [&](int) {
        ++taken;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      });
  CHECK(ahead <= static_cast<int>(batch * (waiting + 2)));
  CHECK(ahead >= static_cast<int>(batch));
}

TEST_CASE("a stream that makes no pipeline is refused") {
  const auto refusal = [](const StreamOptions& options) {
    return test::message_of<contract_error>([&] { stream(options, numbers(1), [](int) {}); });
  };
  CHECK_THAT(refusal({.threads = 0}),
             ContainsSubstring("threads, batch and waiting must be at least") &&
                 ContainsSubstring("threads = 0"));
  CHECK_THAT(refusal({.batch = 0}), ContainsSubstring("batch = 0"));
  CHECK_THAT(refusal({.waiting = 0}), ContainsSubstring("waiting = 0"));
  CHECK_THAT(refusal({.waiting = 1u << 31}), ContainsSubstring("waiting at most 65536"));
}

}  // namespace test_stream
