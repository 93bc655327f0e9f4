// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// stream(): plain functions over threads. The tokens and their order are those of a plain loop, for
// any number of tokens, size of batch and division among threads.

#include <algorithm>
#include <atomic>
#include <chrono>
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

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A source of the numbers 0 .. end-1.
auto numbers(int end) {
  return [next = 0, end]() mutable -> std::optional<int> {
    return next < end ? std::optional(next++) : std::nullopt;
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

TEST_CASE("a stream gives the same by every plan") {
  for (const std::vector<int>& stages :
       {std::vector{4}, {1, 3}, {2, 2}, {3, 1}, {1, 2, 1}, {1, 1, 1, 1}})
    for (const int lanes : {1, 2, 3})
      for (const std::uint32_t batch : {1u, 7u})
        for (const std::uint32_t waiting : {1u, 4u})
          for (const int end : {0, 1, 2, 3, 7, 14, 41, 1000}) {
            INFO(stages.size() << " divisions, " << lanes << " lanes, batch " << batch << ", "
                               << waiting << " waiting, " << end);
            std::uint64_t tokens = 0;
            REQUIRE(pass({.batch = batch,
                          .waiting = waiting,
                          .plan = {.stages = stages, .lanes = lanes}},
                         end, tokens) == reference(end));
            REQUIRE(tokens == static_cast<std::uint64_t>(end));
          }
}

TEST_CASE("a stage of a stream is called for one token after the other, a parallel one is not") {
  using namespace std::chrono_literals;
  // Two lanes: while one thread sleeps in a stage, the other may be in another one.
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
      {.batch = 1, .plan = {.stages = {4}, .lanes = 2}}, numbers(60),
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
  std::vector<int> expected(60);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(found == expected);
}

TEST_CASE("a stream takes as many threads as its stages are worth") {
  using impl::choose_stream_plan;
  using schedule::StreamPlan;
  const auto chosen = [](std::vector<Seconds> stage, Seconds handover, int threads,
                         std::vector<bool> parallel = {}) {
    return choose_stream_plan({std::move(stage), handover}, parallel, threads);
  };
  // Nothing to do: no word between threads is worth it.
  CHECK(chosen({0, 0, 0, 0}, 1e-7, 4) == StreamPlan{{4}, 1});
  // Equal halves.
  CHECK(chosen({1e-5, 1e-5, 1e-5, 1e-5}, 1e-7, 2) == StreamPlan{{2, 2}, 1});
  // Halves that cannot be equal: two lanes have no such trouble.
  CHECK(chosen({1e-5, 3e-5, 1e-5}, 1e-7, 2) == StreamPlan{{3}, 2});
  // One stage is all there is to do, and it takes one batch at a time ...
  CHECK(chosen({0, 1e-5, 0}, 1e-7, 4) == StreamPlan{{3}, 1});
  // ... or several.
  CHECK(chosen({0, 1e-5, 0}, 1e-7, 4, {false, true, false}) == StreamPlan{{3}, 4});
  // A third thread would be idle.
  CHECK(chosen({1e-5, 1e-5}, 1e-7, 3).ranks() == 2);
  CHECK(impl::balanced({1, 1, 1, 5, 1, 1}, 3) == std::vector{3, 1, 2});
  CHECK(impl::balanced({1, 1}, 2) == std::vector{1, 1});
  CHECK(impl::handover_time() > 0);
}

TEST_CASE("the stages of a stream are divided as the caller says") {
  std::vector<std::thread::id> threads(4);
  const auto here = [&](std::size_t stage) { threads[stage] = std::this_thread::get_id(); };
  stream(
      {.plan = {.stages = {1, 3}}},
      [&, source = numbers(10)]() mutable {
        here(0);
        return source();
      },
      [&](int x) {
        here(1);
        return x;
      },
      [&](int x) {
        here(2);
        return x;
      },
      [&](int) { here(3); });
  CHECK(threads[0] != threads[1]);
  CHECK(threads[1] == threads[2]);
  CHECK(threads[2] == threads[3]);
}

TEST_CASE("a stream that is long enough is divided as its first batches say") {
  // Two stages of 3 ms: a second thread halves the time, however busy the machine is.
  const auto work = [](int x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return x;
  };
  std::mutex guard;
  std::set<std::thread::id> threads;
  std::vector<int> found;
  const auto here = [&] {
    const std::scoped_lock lock(guard);
    threads.insert(std::this_thread::get_id());
  };
  const std::uint64_t tokens = stream(
      {.threads = 2, .batch = 1}, numbers(40),
      [&](int x) {
        here();
        return work(x);
      },
      [&](int x) { found.push_back(work(x)); });
  CHECK(tokens == 40);
  CHECK(threads.size() >= 2);
  std::vector<int> expected(40);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(found == expected);
}

TEST_CASE("what a stage throws is thrown by the stream, and every thread stops") {
  for (int run = 0; run < 12; ++run) {
    const int bad = run % 4;
    const schedule::StreamPlan plans[] = {{{1, 1, 1, 1}, 1}, {{2, 2}, 2}, {{4}, 3}};
    const auto work = [bad](int stage, int x) {
      if (stage == bad && x == 700) throw std::runtime_error("token 700");
      return x;
    };
    CHECK_THAT(test::message_of<std::runtime_error>([&] {
                 stream(
                     {.batch = 16, .plan = plans[run / 4]},
                     [&, source = numbers(100'000)]() mutable -> std::optional<int> {
                       return work(0, *source());
                     },
                     [&](int x) { return work(1, x); }, [&](int x) { return work(2, x); },
                     [&](int x) { work(3, x); });
               }),
               ContainsSubstring("token 700"));
  }
}

TEST_CASE("a stream bounds what is under way") {
  // The source runs ahead of a slow sink by no more than the batches that may wait.
  constexpr std::uint32_t batch = 4, waiting = 2;
  std::atomic<int> made = 0;
  std::atomic<int> taken = 0;
  int ahead = 0;
  stream(
      {.batch = batch, .waiting = waiting, .plan = {.stages = {1, 1}}},
      [&, source = numbers(400)]() mutable {
        ++made;
        ahead = std::max(ahead, made - taken);
        return source();
      },
      [&](int) {
        if (++taken % 40 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
  // In storage, and the batch under work at either end.
  CHECK(ahead <= static_cast<int>(batch * (1 + waiting + 2)));
  CHECK(ahead >= static_cast<int>(batch));
}

TEST_CASE("a stream that makes no pipeline is refused") {
  const auto refusal = [](const StreamOptions& options) {
    return test::message_of<contract_error>([&] { stream(options, numbers(1), [](int) {}); });
  };
  CHECK_THAT(refusal({.threads = 0}),
             ContainsSubstring("threads, batch and waiting are at least") &&
                 ContainsSubstring("threads = 0"));
  CHECK_THAT(refusal({.batch = 0}), ContainsSubstring("batch = 0"));
  CHECK_THAT(refusal({.waiting = 0}), ContainsSubstring("waiting = 0"));
  CHECK_THAT(refusal({.waiting = 1u << 31}), ContainsSubstring("waiting at most 65536"));
  CHECK_THAT(refusal({.plan = {.stages = {1, 2}}}),
             ContainsSubstring("the plan does not share out all stages") &&
                 ContainsSubstring("it names 3 of 2"));
  CHECK_THAT(refusal({.plan = {.stages = {2, 0}}}), ContainsSubstring("at least one stage"));
  CHECK_THAT(refusal({.plan = {.stages = {2}, .lanes = 0}}), ContainsSubstring("0 lanes"));
}
