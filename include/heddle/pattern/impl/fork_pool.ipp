// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fork_pool.hpp.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#if !defined(__GLIBC__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/impl/fork_pool.hpp>

namespace heddle::inline v0::impl {

/// The stack of a thread, which grows downwards.
struct ForkStack {
  /// Finds the stack of the calling thread; it has no bytes if the system does not tell.
  ForkStack() {
#if defined(__linux__)
    ::pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    if (::pthread_attr_getstack(&attributes, &begin, &bytes) == 0)
      lowest = reinterpret_cast<std::uintptr_t>(begin);
    ::pthread_attr_destroy(&attributes);
#if !defined(__GLIBC__)
    // musl tells only the part of the first thread's stack that is in use. It grows to its limit.
    ::rlimit limit{};
    if (::getpid() != ::syscall(SYS_gettid) || ::getrlimit(RLIMIT_STACK, &limit) != 0) return;
    const std::uintptr_t top = lowest + bytes;
    if (limit.rlim_cur >= top) {  // no limit
      bytes = 0;
      lowest = 0;
    } else if (limit.rlim_cur > bytes) {
      bytes = limit.rlim_cur;
      lowest = top - bytes;
    }
#endif
#endif
  }

  /// Throws if less than a quarter of the stack, or less than 1 MiB if a quarter is more, is free
  /// for the paths of a fork of `level`. A caller on another stack, such as that of a fibre, is not
  /// checked.
  void check(std::size_t level) const {
    const std::size_t expected = std::min<std::size_t>(bytes / 4, 1 << 20);
    const std::uintptr_t left =
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - lowest;
    expects(left >= expected, [&] {
      return ErrorInfo{
          "heddle::pattern::Fork::map", "forks are nested too deeply for the stack of the thread",
          text("level ", level, " of forks; expected ", expected / 1024, " KiB of the ",
               bytes / 1024, " KiB to be free, got ", left / 1024),
          "fork in fewer levels, for example more paths at once, or raise the limit of the stack "
          "(ulimit -s)"};
    });
  }

  std::uintptr_t lowest = 0;
  std::size_t bytes = 0;
};

/// The members without a comment are guarded by the pool's mutex.
struct OpenFork : ForkGroup {
  std::size_t number = 0;                ///< among the forks of the program, in order; constant
  const ForkPool::Path* path = nullptr;  ///< constant
  std::size_t paths = 0;                 ///< constant
  std::size_t begun = 0;
  std::size_t ended = 0;
  std::size_t thrown = 0;  // the path of `error`
  std::exception_ptr error;
};

class ForkPool::State {
 public:
  State(int threads, Trail* trail)
      : m_trail(trail),
        m_lanes(trail != nullptr ? static_cast<std::size_t>(threads) : 0),
        m_threads(threads - 1, [this](int t) { serve(static_cast<std::size_t>(t)); }) {
    m_threads.begin_all("heddle::pattern::fork_join");
    if (m_trail == nullptr) return;
    const std::lock_guard lock(m_mutex);
    m_trail->expect_workers(threads);
    m_lanes.front().thread = std::this_thread::get_id();
    begin(0);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    {
      const std::lock_guard lock(m_mutex);
      m_ended = true;
      try {
        end();
      } catch (...) {  // there is no memory for the last event
      }
    }
    m_changed.notify_all();
  }

  void run(std::size_t paths, const ForkGroup* outer, const Path& path) {
    OpenFork group;
    group.outer = outer;
    group.level = outer != nullptr ? outer->level + 1 : 1;
    group.path = &path;
    group.paths = paths;
    thread_local const ForkStack stack;
    stack.check(group.level);
    std::unique_lock lock(m_mutex);
    const std::int64_t item = end();
    group.number = ++m_forks;
    m_open.push_back(&group);
    m_changed.notify_all();
    while (group.begun < paths) step(group, lock);
    while (group.ended < paths)
      if (OpenFork* const below = find_below(group))
        step(*below, lock);
      else
        wait(lock);
    begin(item);
    if (group.error) std::rethrow_exception(group.error);
  }

 private:
  /// The present piece of work of a thread, for the trail.
  struct Lane {
    std::thread::id thread;
    std::int64_t item = 0;
    Seconds start = 0;
    bool waited = false;  ///< the thread had nothing to do before
  };

  /// Returns the earliest open fork that is in a path of `group`, or null. The earliest fork has
  /// most work below it, so threads seldom have to look for work.
  [[nodiscard]] OpenFork* find_below(const OpenFork& group) const {
    const auto later = std::ranges::upper_bound(m_open, group.number, {}, &OpenFork::number);
    for (auto each = later; each != m_open.end(); ++each) {
      const ForkGroup* above = *each;
      while (above->level > group.level) above = above->outer;
      if (above == &group) return *each;
    }
    return nullptr;
  }

  /// Returns the lane of this thread.
  [[nodiscard]] std::size_t lane() const {
    std::size_t at = 0;
    while (m_lanes[at].thread != std::this_thread::get_id()) ++at;
    return at;
  }

  /// Begins a piece of work on this thread.
  void begin(std::int64_t item) {
    if (m_trail == nullptr) return;
    Lane& mine = m_lanes[lane()];
    mine.item = item;
    mine.start = steady_seconds();
  }

  /// Ends this thread's piece of work, and returns its item.
  std::int64_t end() {
    if (m_trail == nullptr) return 0;
    const std::size_t at = lane();
    Lane& mine = m_lanes[at];
    m_trail->add({Worker{at}, mine.item, mine.start, steady_seconds(), mine.waited});
    mine.waited = false;
    return mine.item;
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    if (m_trail != nullptr) m_lanes[lane()].waited = true;
    m_changed.wait(lock);
  }

  /// Begins and ends one path of an open fork; after a failure, paths end without having begun.
  void step(OpenFork& group, std::unique_lock<std::mutex>& lock) {
    const std::size_t i = group.begun++;
    if (group.begun == group.paths) std::erase(m_open, &group);
    if (!group.failed) {
      begin(++m_paths);
      lock.unlock();
      std::exception_ptr error;
      try {
        (*group.path)(group, i);
      } catch (...) {
        error = std::current_exception();
        group.failed = true;
      }
      lock.lock();
      end();
      if (error && (!group.error || i < group.thrown)) {
        group.error = error;
        group.thrown = i;
      }
    }
    if (++group.ended == group.paths) m_changed.notify_all();
  }

  void serve(std::size_t thread) {
    std::unique_lock lock(m_mutex);
    if (m_trail != nullptr) m_lanes[thread].thread = std::this_thread::get_id();
    while (!m_ended)
      if (m_open.empty())
        wait(lock);
      else
        step(*m_open.front(), lock);
  }

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<OpenFork*> m_open;  ///< forks with paths that have not begun, by number
  bool m_ended = false;
  Trail* m_trail;
  std::vector<Lane> m_lanes;  ///< by thread, if there is a trail
  std::int64_t m_paths = 0;   ///< paths that have begun
  std::size_t m_forks = 0;    ///< forks that have begun
  Threads m_threads;          ///< the last member: the threads end before the others
};

HEDDLE_INLINE ForkPool::ForkPool(int threads, Trail* trail) {
  expects(threads >= 1 && threads <= most_threads, [&] {
    return ErrorInfo{"heddle::pattern::fork_join", "a program needs at least one thread",
                     text("threads = ", threads), text("use 1 to ", most_threads)};
  });
  m_state = std::make_unique<State>(threads, trail);
}

HEDDLE_INLINE ForkPool::~ForkPool() = default;

HEDDLE_INLINE void ForkPool::run(std::size_t paths, const ForkGroup* outer, Path path) {
  if (paths > 0) m_state->run(paths, outer, path);
}

}  // namespace heddle::inline v0::impl
