// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Nested forks on threads: the bits of a serial run, joins in order, exceptions, and time.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pattern.hpp>

#include "support/complaint.hpp"
#include "support/fork_tree.hpp"

namespace test_fork_join {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

/// What a program writes: a token depends on all that it sees, in order, and the paths of a fork
/// see the same prefix. The prefix is shared, never copied.
struct Text {
  std::shared_ptr<const Text> before;
  std::vector<std::uint64_t> own;
};

std::uint64_t hash_of(const Text* text) {
  std::uint64_t hash = text->before ? hash_of(text->before.get()) : 17;
  for (const std::uint64_t token : text->own) hash = hash * 0x100000001b3u ^ token;
  return hash;
}

/// The prefixes that a path still held when its fork had joined. Paths run on several threads,
/// where Catch2 must not be called.
std::atomic<int> prefixes_held{0};

/// Continues `text` as the tree says; returns the tokens of the tree in order.
std::vector<std::uint64_t> write(Fork& fork, const test::ForkTree& tree, Text text) {
  std::vector<std::uint64_t> written;
  for (const test::ForkTree::Part& part : tree.parts) {
    for (std::int64_t t = 0; t < part.tokens; ++t) {
      text.own.push_back(hash_of(&text));
      written.push_back(text.own.back());
    }
    if (part.paths.empty()) continue;
    const auto prefix = std::make_shared<const Text>(std::move(text));
    text = {prefix, {}};
    const std::vector<std::uint64_t> joined = fork.map(
        part.paths,
        [&](Fork& inner, const test::ForkTree& path) {
          return write(inner, path, {prefix, {}});
        },
        [](std::vector<std::vector<std::uint64_t>> paths) {
          std::vector<std::uint64_t> all;
          for (const auto& path : paths) all.insert(all.end(), path.begin(), path.end());
          return all;
        });
    if (prefix.use_count() != 2) ++prefixes_held;  // this one and `text`
    text.own = joined;
    written.insert(written.end(), joined.begin(), joined.end());
  }
  return written;
}

TEST_CASE("nested forks on threads write what a serial run writes") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const test::ForkTree tree = test::ForkTrees(seed).draw(4);
    const auto serial =
        fork_join({.threads = 1}, [&](Fork& fork) { return write(fork, tree, {}); });
    CHECK(serial.size() == static_cast<std::size_t>(test::text_of(tree).tokens()));
    for (const int threads : {2, 3, 8}) {
      const auto parallel =
          fork_join({.threads = threads}, [&](Fork& fork) { return write(fork, tree, {}); });
      REQUIRE(parallel == serial);
      CHECK(prefixes_held == 0);
    }
  }
}

std::uint64_t fibonacci(Fork& fork, int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  return fork.map(
      std::vector<int>{n - 1, n - 2}, [](Fork& inner, int k) { return fibonacci(inner, k); },
      [](const std::vector<std::uint64_t>& two) { return two[0] + two[1]; });
}

TEST_CASE("forks nest deeper than there are threads") {
  for (const int threads : {1, 2, 4})
    CHECK(fork_join({.threads = threads}, [](Fork& fork) { return fibonacci(fork, 16); }) == 987);
}

TEST_CASE("results are joined in the order of the items, whichever ends first") {
  std::vector<int> items(50);
  std::iota(items.begin(), items.end(), 0);
  const auto squares = fork_join({.threads = 4}, [&](Fork& fork) {
    return fork.map(items, [](Fork&, int item) {
      if (item % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      return std::make_unique<int>(item * item);  // results need not be copyable
    });
  });
  REQUIRE(squares.size() == 50);
  for (std::size_t i = 0; i < squares.size(); ++i) CHECK(*squares[i] == static_cast<int>(i * i));
  const auto none = fork_join(
      {}, [](Fork& fork) { return fork.map(std::vector<int>{}, [](Fork&, int i) { return i; }); });
  CHECK(none.empty());
}

TEST_CASE("a path that throws stops those beside it and inside them") {
  for (const int threads : {1, 2, 4}) {
    std::atomic<int> stopped{0};
    std::atomic<int> begun{0};
    std::atomic<int> waiting{0};
    const auto program = [&](Fork& fork) {
      std::vector<int> items(200);
      std::iota(items.begin(), items.end(), 0);
      return fork.map(items, [&](Fork& inner, int item) {
        ++begun;
        if (item == 1) {
          while (threads == 4 && waiting < 2) std::this_thread::yield();
          throw std::runtime_error("path 1 broke");
        }
        if (item != 0) return 0;
        // Path 0 forks again, and its paths wait for the end of the failing one.
        const auto results = inner.map(std::vector<int>{0, 1}, [&](Fork& deep, int) {
          if (threads < 4) return 0;  // a thread must be left for path 1
          ++waiting;
          while (!deep.stop_requested()) std::this_thread::yield();
          ++stopped;
          return 1;
        });
        return results[0];
      });
    };
    CHECK_THAT(test::message_of<std::runtime_error>(
                   [&] { (void)fork_join({.threads = threads}, program); }),
               ContainsSubstring("path 1 broke"));
    if (threads < 4) CHECK(begun < 200);
    if (threads == 4) CHECK(stopped == 2);
  }
}

TEST_CASE("four branches of waits take the longest one's time") {
  constexpr double unit = 0.01;
  const std::vector<int> units{1, 4, 2, 3};
  const double begin = steady_seconds();
  fork_join({.threads = 4}, [&](Fork& fork) {
    return fork.map(units, [](Fork&, int n) {
      std::this_thread::sleep_for(std::chrono::duration<double>(n * unit));
      return n;
    });
  });
  const double taken = steady_seconds() - begin;
  CHECK(taken >= 4 * unit);
  CHECK(taken < 10 * unit);  // one after another they take 10
}

TEST_CASE("a program without threads is refused") {
  CHECK_THAT(
      test::message_of<contract_error>([] { fork_join({.threads = 0}, [](Fork&) { return 1; }); }),
      ContainsSubstring("threads = 0"));
}

}  // namespace test_fork_join
