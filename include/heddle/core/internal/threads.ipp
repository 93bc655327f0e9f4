// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of threads.hpp.

#include <atomic>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::impl {

struct Threads::State {
  enum Gate : int { closed, open, given_up };

  State(int wanted, std::function<void(int)> each) : count(wanted), work(std::move(each)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    int never_begun = closed;
    gate.compare_exchange_strong(never_begun, given_up);
    gate.notify_all();
    for (std::thread& thread : all) thread.join();
  }

  int count;
  std::function<void(int)> work;
  std::atomic<int> gate{closed};
  std::error_code error;  ///< the reason why no more threads have started
  std::vector<std::thread> all;
};

HEDDLE_INLINE Threads::Threads(int count, std::function<void(int)> work)
    : m_state(std::make_unique<State>(count, std::move(work))) {
  State& state = *m_state;
  try {
    for (int i = 1; i <= count; ++i)
      state.all.emplace_back([&state, i] {
        state.gate.wait(State::closed);
        if (state.gate.load() == State::open) state.work(i);
      });
  } catch (const std::system_error& error) {
    state.error = error.code();
  }
}

HEDDLE_INLINE Threads::~Threads() = default;

HEDDLE_INLINE int Threads::size() const noexcept { return static_cast<int>(m_state->all.size()); }

HEDDLE_INLINE void Threads::begin() noexcept {
  m_state->gate.store(State::open);
  m_state->gate.notify_all();
}

HEDDLE_INLINE void Threads::begin_all(const char* where) {
  if (size() < m_state->count)
    throw std::system_error(
        m_state->error,
        to_string({where, "the system does not start enough threads",
                   text("expected ", m_state->count, " beside the calling one, got ", size()),
                   "use fewer threads, or raise the limits of processes (ulimit -u, pids.max)"}));
  begin();
}

}  // namespace heddle::inline v0::impl
