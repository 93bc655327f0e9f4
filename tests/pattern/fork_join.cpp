// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Nested forks on threads: the bits of a serial run, joins in order, exceptions, and time.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <pthread.h>
#include <random>
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

#include "support/cases.hpp"
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
std::vector<std::uint64_t> write(pattern::Fork& fork, const test::ForkTree& tree, Text text) {
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
        [&](pattern::Fork& inner, const test::ForkTree& path) {
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
    const auto serial = pattern::fork_join(
        {.threads = 1}, [&](pattern::Fork& fork) { return write(fork, tree, {}); });
    CHECK(serial.size() == static_cast<std::size_t>(test::text_of(tree).tokens()));
    for (const int threads : {2, 3, 8}) {
      const auto parallel = pattern::fork_join(
          {.threads = threads}, [&](pattern::Fork& fork) { return write(fork, tree, {}); });
      REQUIRE(parallel == serial);
      CHECK(prefixes_held == 0);
    }
  }
}

std::uint64_t fibonacci(pattern::Fork& fork, int n) {
  if (n < 2) return static_cast<std::uint64_t>(n);
  return fork.map(
      std::vector<int>{n - 1, n - 2},
      [](pattern::Fork& inner, int k) { return fibonacci(inner, k); },
      [](const std::vector<std::uint64_t>& two) { return two[0] + two[1]; });
}

TEST_CASE("forks nest deeper than there are threads") {
  for (const int threads : {1, 2, 4})
    CHECK(pattern::fork_join({.threads = threads},
                             [](pattern::Fork& fork) { return fibonacci(fork, 16); }) == 987);
}

TEST_CASE("results are joined in the order of the items, whichever ends first") {
  std::vector<int> items(50);
  std::iota(items.begin(), items.end(), 0);
  const auto squares = pattern::fork_join({.threads = 4}, [&](pattern::Fork& fork) {
    return fork.map(items, [](pattern::Fork&, int item) {
      if (item % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      return std::make_unique<int>(item * item);  // results need not be copyable
    });
  });
  REQUIRE(squares.size() == 50);
  for (std::size_t i = 0; i < squares.size(); ++i) CHECK(*squares[i] == static_cast<int>(i * i));
  const auto none = pattern::fork_join({}, [](pattern::Fork& fork) {
    return fork.map(std::vector<int>{}, [](pattern::Fork&, int i) { return i; });
  });
  CHECK(none.empty());
}

TEST_CASE("a path that throws stops those beside it and inside them") {
  for (const int threads : {1, 2, 4}) {
    std::atomic<int> stopped{0};
    std::atomic<int> begun{0};
    std::atomic<int> waiting{0};
    const auto program = [&](pattern::Fork& fork) {
      std::vector<int> items(200);
      std::iota(items.begin(), items.end(), 0);
      return fork.map(items, [&](pattern::Fork& inner, int item) {
        ++begun;
        if (item == 1) {
          while (threads == 4 && waiting < 2) std::this_thread::yield();
          throw std::runtime_error("path 1 broke");
        }
        if (item != 0) return 0;
        // Path 0 forks again, and its paths wait for the end of the failing one.
        const auto results = inner.map(std::vector<int>{0, 1}, [&](pattern::Fork& deep, int) {
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
                   [&] { (void)pattern::fork_join({.threads = threads}, program); }),
               ContainsSubstring("path 1 broke"));
    if (threads < 4) CHECK(begun < 200);
    if (threads == 4) CHECK(stopped == 2);
  }
}

// A path on a thread's stack, and the one that it is in.
struct Nested {
  const Nested* outer = nullptr;
};

/// The paths on this thread's stack.
thread_local std::vector<const Nested*> on_stack;

/// What the paths of a test have seen.
struct Seen {
  std::atomic<int> strangers{0};  ///< paths on top of a path that they are not in
  std::atomic<std::size_t> levels{0};
};

/// Holds a path on this thread's stack, and looks at the path beneath it.
class OnStack {
 public:
  OnStack(const Nested& path, Seen& seen) {
    if (!on_stack.empty()) {
      const Nested* outer = path.outer;
      while (outer != nullptr && outer != on_stack.back()) outer = outer->outer;
      if (outer == nullptr) ++seen.strangers;
    }
    on_stack.push_back(&path);
    std::size_t most = seen.levels;
    while (most < on_stack.size() && !seen.levels.compare_exchange_weak(most, on_stack.size())) {
    }
  }
  OnStack(const OnStack&) = delete;
  OnStack& operator=(const OnStack&) = delete;
  ~OnStack() { on_stack.pop_back(); }
};

TEST_CASE("a path that waits for its fork is not interrupted by another outer path") {
  Seen seen;
  std::atomic<bool> stolen{false};
  const auto outer_path = [&](pattern::Fork& inner, int item) {
    const Nested self;
    const OnStack here(self, seen);
    if (item != 0) return 1;
    // The other thread takes the second path, and this one waits for it.
    const auto sum = inner.map(std::vector<int>{0, 1}, [&](pattern::Fork&, int half) {
      const Nested below{&self};
      const OnStack here_too(below, seen);
      if (half == 0) {
        while (!stolen) std::this_thread::yield();
        return 1;
      }
      stolen = true;
      const double begin = steady_seconds();  // until an outer path has begun on that thread
      while (seen.strangers == 0 && steady_seconds() - begin < 0.05) std::this_thread::yield();
      return 1;
    });
    return sum[0] + sum[1];
  };
  const auto results = pattern::fork_join({.threads = 2}, [&](pattern::Fork& fork) {
    return fork.map(std::vector<int>{0, 1, 2, 3, 4}, outer_path);
  });
  CHECK(results == std::vector<int>{2, 1, 1, 1, 1});
  CHECK(seen.strangers == 0);
}

/// A random tree of paths; returns its leaves.
int grow(pattern::Fork& fork, int depth, std::uint64_t seed, const Nested* outer, Seen& seen) {
  const Nested self{outer};
  const OnStack here(self, seen);
  std::mt19937_64 random(seed);
  if (depth == 1 || random() % 8 == 0) {
    if (random() % 4 == 0) std::this_thread::yield();
    return 1;
  }
  std::vector<std::uint64_t> seeds(1 + random() % 4);
  for (std::uint64_t& each : seeds) each = random();
  return fork.map(
      seeds,
      [&](pattern::Fork& inner, std::uint64_t each) {
        return grow(inner, depth - 1, each, &self, seen);
      },
      [](const std::vector<int>& leaves) {
        return std::accumulate(leaves.begin(), leaves.end(), 0);
      });
}

TEST_CASE("a path runs on top of the paths that it is in, and of no others") {
  const std::uint64_t trees = test::cases(40, 20'000);
  int on_one_thread = 0, on_all = 0;
  for (std::uint64_t seed = 0; seed < trees; ++seed) {
    constexpr int depth = 7;
    for (const int threads : {1, 2, 4, 7}) {
      Seen seen;
      const int leaves = pattern::fork_join({.threads = threads}, [&](pattern::Fork& fork) {
        return grow(fork, depth, seed, nullptr, seen);
      });
      (threads == 1 ? on_one_thread : on_all) += leaves;
      REQUIRE(seen.strangers == 0);
      REQUIRE(seen.levels <= depth);  // a thread holds no more levels than the tree has
    }
  }
  CHECK(on_all == 3 * on_one_thread);
  CHECK(on_one_thread > static_cast<int>(10 * trees));
}

/// Forks once a level, with `bytes` on the stack beside the fork's own; returns the levels.
template <std::size_t bytes>
int descend(pattern::Fork& fork, int levels, std::atomic<int>& deepest) {
  volatile char mine[bytes];
  mine[0] = 1;
  ++deepest;
  if (levels == 1) return mine[0];
  return mine[0] + fork.map(std::vector<int>{levels - 1}, [&](pattern::Fork& inner, int rest) {
    return descend<bytes>(inner, rest, deepest);
  })[0];
}

/// Calls `run` on a thread with a stack of `bytes`.
void on_a_stack_of(std::size_t bytes, std::function<void()> run) {
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  const auto call = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, call, &run) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

template <std::size_t bytes>
void check_depth(std::size_t stack, int threads) {
  std::atomic<int> deepest{0};
  const auto run = [&](int levels) {
    deepest = 0;
    return pattern::fork_join({.threads = threads}, [&](pattern::Fork& fork) {
      return descend<bytes>(fork, levels, deepest);
    });
  };
  std::string said;
  int fitting = 0, limit = 0;
  on_a_stack_of(stack, [&] {
    try {
      run(1'000'000);
    } catch (const contract_error& error) {
      said = error.what();
    }
    limit = deepest;
    fitting = run(20);
  });
  INFO(stack << " B of stack, " << bytes << " B a level, " << threads << " threads: " << limit);
  CHECK_THAT(said, ContainsSubstring("heddle::pattern::Fork::map: forks are nested too deeply") &&
                       ContainsSubstring("of forks; expected ") && ContainsSubstring("ulimit -s"));
  CHECK(fitting == 20);
  CHECK(limit > 40);
}

TEST_CASE("forks that are nested too deeply for the stack throw") {
  for (const int threads : {1, 2}) {
    check_depth<16>(std::size_t{2} << 20, threads);
    check_depth<20'000>(std::size_t{4} << 20, threads);
  }
}

TEST_CASE("four branches of waits take the longest one's time") {
  constexpr double unit = 0.01;
  const std::vector<int> units{1, 4, 2, 3};
  const double begin = steady_seconds();
  pattern::fork_join({.threads = 4}, [&](pattern::Fork& fork) {
    return fork.map(units, [](pattern::Fork&, int n) {
      std::this_thread::sleep_for(std::chrono::duration<double>(n * unit));
      return n;
    });
  });
  const double taken = steady_seconds() - begin;
  CHECK(taken >= 4 * unit);
  CHECK(taken < 10 * unit);  // one after another they take 10
}

TEST_CASE("a program without threads is refused") {
  CHECK_THAT(test::message_of<contract_error>(
                 [] { pattern::fork_join({.threads = 0}, [](pattern::Fork&) { return 1; }); }),
             ContainsSubstring("threads = 0"));
}

}  // namespace test_fork_join
