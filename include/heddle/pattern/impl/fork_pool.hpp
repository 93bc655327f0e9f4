// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The threads of fork_join(). A thread that waits for the paths of its fork works on paths below
/// this fork meanwhile, so forks may nest deeper than there are threads.

#include <atomic>
#include <cstddef>
#include <memory>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

class Trail;

namespace impl {

/// A fork, as the paths in it see it.
struct ForkGroup {
  const ForkGroup* outer = nullptr;  ///< the fork that this one is in; constant
  std::size_t level = 1;             ///< the number of forks that it is in, and itself; constant
  std::atomic<bool> failed{false};   ///< a path has thrown
};

/// The threads and the open forks of a program.
///
/// Each path on a thread's stack is in a fork of the path beneath it. So a path is called on top of
/// paths that a serial run would also have on its stack, and of no others: they may hold locks.
class ForkPool {
 public:
  /// Calls a path of the fork, by its number.
  using Path = FunctionRef<void(const ForkGroup&, std::size_t)>;

  /// Starts the threads. @throws contract_error if `threads` is below 1; std::system_error if the
  /// system does not start all of them.
  ForkPool(int threads, Trail* trail);
  ForkPool(const ForkPool&) = delete;
  ForkPool& operator=(const ForkPool&) = delete;
  /// Ends the threads.
  ~ForkPool();

  /// Runs the paths of a fork and returns when all have ended.
  /// Throws the exception of a path; contract_error if little of the stack is free.
  void run(std::size_t paths, const ForkGroup* outer, Path path);

 private:
  class State;
  std::unique_ptr<State> m_state;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/fork_pool.ipp>
#endif
