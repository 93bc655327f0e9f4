// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The threads of fork_join(). A thread that waits for the paths of its fork works on other paths
/// meanwhile, so forks may nest deeper than there are threads.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace heddle::inline v0::impl {

/// The paths of one fork. The members without a comment are guarded by the pool's mutex.
struct ForkGroup {
  const ForkGroup* outer = nullptr;  ///< the fork that this one is in; constant
  std::atomic<bool> failed{false};   ///< a path has thrown
  std::function<void(const ForkGroup&, std::size_t)> path;  ///< constant
  std::size_t paths = 0;                                    ///< constant
  std::size_t begun = 0;
  std::size_t ended = 0;
  std::size_t thrown = 0;  // the path of `error`
  std::exception_ptr error;
};

/// The threads and the open forks of a program.
class ForkPool {
 public:
  explicit ForkPool(int threads) {
    for (int t = 1; t < threads; ++t) m_threads.emplace_back([this] { serve(); });
  }
  ForkPool(const ForkPool&) = delete;
  ForkPool& operator=(const ForkPool&) = delete;
  ~ForkPool() {
    {
      const std::lock_guard lock(m_mutex);
      m_ended = true;
    }
    m_changed.notify_all();
  }

  /// Runs the paths of a fork and returns when all have ended.
  template <class Path>
  void run(std::size_t paths, const ForkGroup* outer, Path&& path) {
    if (paths == 0) return;
    ForkGroup group;
    group.outer = outer;
    group.path = std::ref(path);
    group.paths = paths;
    std::unique_lock lock(m_mutex);
    m_open.push_back(&group);
    m_changed.notify_all();
    while (group.begun < paths) step(group, lock);
    while (group.ended < paths)
      if (m_open.empty())
        m_changed.wait(lock);
      else
        step(*m_open.back(), lock);  // the latest fork is the likeliest to be one that we wait for
    if (group.error) std::rethrow_exception(group.error);
  }

 private:
  /// Begins and ends one path of an open fork; after a failure, paths end without having begun.
  void step(ForkGroup& group, std::unique_lock<std::mutex>& lock) {
    const std::size_t i = group.begun++;
    if (group.begun == group.paths) std::erase(m_open, &group);
    if (!group.failed) {
      lock.unlock();
      std::exception_ptr error;
      try {
        group.path(group, i);
      } catch (...) {
        error = std::current_exception();
        group.failed = true;
      }
      lock.lock();
      if (error && (!group.error || i < group.thrown)) {
        group.error = error;
        group.thrown = i;
      }
    }
    if (++group.ended == group.paths) m_changed.notify_all();
  }

  void serve() {
    std::unique_lock lock(m_mutex);
    while (!m_ended)
      if (m_open.empty())
        m_changed.wait(lock);
      else
        step(*m_open.back(), lock);
  }

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<ForkGroup*> m_open;  ///< forks with paths that have not begun
  bool m_ended = false;
  std::vector<std::jthread> m_threads;  ///< the last member: the threads end before the others
};

}  // namespace heddle::inline v0::impl
