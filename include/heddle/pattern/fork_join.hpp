// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fork_join(): nested parts that run side by side, decided while they run. Forks nest on a fixed
/// number of threads, as deeply as the stack permits.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/pattern/impl/fork_pool.hpp>

namespace heddle::inline v0 {

class Trail;

namespace pattern {

/// The options of fork_join().
struct ForkJoinOptions {
  int threads = 1;  ///< number of threads, at least 1; the calling thread is one of them
  /// If set, gets an event for each piece of a path, and of the program, between its forks. The
  /// item is the number of the path in the order in which paths begin, and 0 for the program.
  Trail* trail = nullptr;
};

/// One part of a fork-join program, as its function sees it. It can fork again.
class Fork {
 public:
  /// Constructs a part. fork_join() and map() do this.
  Fork(heddle::impl::ForkPool& pool, const heddle::impl::ForkGroup* group) noexcept
      : m_pool(&pool), m_group(group) {}

  /// Calls `path(fork, item)` for each item, side by side, and then `join(results)` with the
  /// results in the order of the items, whose value it returns. What all paths share is not copied:
  /// refer to it from `path`. A path may call map() again. While map() waits, its thread works on
  /// paths below this fork only, so a path may hold a mutex around map() that no path below locks.
  /// Throws the exception of a path, after all paths have ended; if several threw, that of the
  ///         first item. `join` is not called then, and paths that have not begun do not begin.
  ///         Also contract_error if forks are nested so deeply that less than 1 MiB of the thread's
  ///         stack is free for the paths, or less than a quarter if the stack is below 4 MiB.
  template <std::ranges::forward_range Items, class Path, class Join>
  auto map(Items&& items, Path&& path, Join&& join) {
    using Result = std::invoke_result_t<Path&, Fork&, decltype(*std::ranges::begin(items))>;
    static_assert(!std::is_void_v<Result>,
                  "a path of heddle::pattern::Fork::map() returns a result");
    std::vector<std::ranges::iterator_t<Items>> at;
    for (auto i = std::ranges::begin(items); i != std::ranges::end(items); ++i) at.push_back(i);
    std::vector<std::optional<Result>> results(at.size());
    const auto one = [&](const heddle::impl::ForkGroup& group, std::size_t i) {
      Fork inner(*m_pool, &group);
      results[i].emplace(path(inner, *at[i]));
    };
    m_pool->run(at.size(), m_group, one);
    std::vector<Result> values;
    values.reserve(results.size());
    for (std::optional<Result>& result : results) values.push_back(std::move(*result));
    return join(std::move(values));
  }

  /// Returns the results themselves, in the order of the items.
  template <std::ranges::forward_range Items, class Path>
  auto map(Items&& items, Path&& path) {
    return map(items, path, [](auto values) { return values; });
  }

  /// Returns true if a path beside this one, or beside one that it is in, has thrown: the result
  /// will not be used, and the path should end.
  [[nodiscard]] bool stop_requested() const noexcept {
    for (const heddle::impl::ForkGroup* group = m_group; group != nullptr; group = group->outer)
      if (group->failed.load(std::memory_order_relaxed)) return true;
    return false;
  }

 private:
  heddle::impl::ForkPool* m_pool;
  const heddle::impl::ForkGroup* m_group;
};

/// Calls `program(fork)` with the forks that it needs, on options.threads threads, and returns its
/// value. The result is that of a serial run if the paths do not touch each other's data.
/// @throws contract_error if `threads` is not from 1 to 2^22; std::system_error, before the program
/// begins, if
///         the system does not start the threads; the exception of the program.
template <std::invocable<Fork&> Program>
std::invoke_result_t<Program&, Fork&> fork_join(const ForkJoinOptions& options, Program&& program) {
  heddle::impl::ForkPool pool(options.threads, options.trail);
  Fork fork(pool, nullptr);
  return program(fork);
}

}  // namespace pattern

}  // namespace heddle::inline v0
