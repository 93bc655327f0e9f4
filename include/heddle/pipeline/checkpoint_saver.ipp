// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of checkpoint_saver.hpp.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/checkpoint_saver.hpp>

namespace heddle::inline v0 {

/// A file that a thread writes.
class CheckpointSaver::Write {
 public:
  /// Starts to write `state` to `path`. If the system starts no thread, the caller writes it.
  Write(std::string path, Checkpoint state)
      : m_path(std::move(path)), m_state(std::move(state)), m_thread(1, [this](int) { work(); }) {
    if (m_thread.size() == 0) work();
    m_thread.begin();
  }

  /// Waits for at most so many seconds, or without end for 0. Returns whether the write has ended.
  [[nodiscard]] bool wait(double seconds) {
    std::unique_lock lock(m_guard);
    const auto ended = [&] { return m_ended; };
    if (!(seconds > 0)) {
      m_end.wait(lock, ended);
      return true;
    }
    return m_end.wait_for(lock, std::chrono::duration<double>(seconds), ended);
  }
  /// Throws what kept the thread from writing the file. The write must have ended.
  void rethrow() const {
    if (m_error) std::rethrow_exception(m_error);
  }

 private:
  void work() noexcept {
    try {
      const Checkpoint state = std::move(m_state);  // freed as soon as it is written
      state.save(m_path);
    } catch (...) {
      m_error = std::current_exception();
    }
    const std::scoped_lock lock(m_guard);
    m_ended = true;
    m_end.notify_all();
  }

  std::string m_path;
  Checkpoint m_state;
  std::exception_ptr m_error;
  std::mutex m_guard;
  std::condition_variable m_end;
  bool m_ended = false;
  impl::Threads m_thread;  // last, so that it ends before what it uses
};

HEDDLE_FULL_INLINE CheckpointSaver::CheckpointSaver(std::string newest_path)
    : m_newest(std::move(newest_path)) {}

HEDDLE_FULL_INLINE CheckpointSaver::~CheckpointSaver() = default;

namespace impl {

/// Returns why `error` keeps a checkpoint from being written.
[[nodiscard]] inline std::string why_not_saved(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace impl

HEDDLE_FULL_INLINE void CheckpointSaver::save_arrays(const std::string& path,
                                                     const std::vector<impl::HeldArray>& held,
                                                     Checkpoint own, const TransportRef& transport,
                                                     const ExecuteOptions& options) {
  (void)wait_together(transport, options);
  std::exception_ptr error;
  Checkpoint whole = impl::gather_arrays(held, std::move(own), transport, options, error);
  std::exception_ptr refused;
  m_not_started.clear();
  try {
    if (error) std::rethrow_exception(error);
  } catch (const contract_error&) {
    refused = error;
  } catch (...) {  // no memory
    m_not_started = impl::why_not_saved(error);
  }
  impl::throw_together(transport, options, refused, "heddle::CheckpointSaver::save",
                       "copy the state for the checkpoint", path);
  m_pending = true;
  m_path = path;
  if (transport.rank() != Rank{0} || !m_not_started.empty()) return;
  try {
    m_write = std::make_unique<Write>(path, std::move(whole));
  } catch (...) {
    m_not_started = impl::why_not_saved(std::current_exception());
  }
}

HEDDLE_FULL_INLINE bool CheckpointSaver::wait_together(const TransportRef& transport,
                                                       const ExecuteOptions& options) {
  if (!m_pending) return m_failure.empty();
  // The other ranks wait for an answer of rank 0, which therefore answers before a watchdog barks.
  const auto told = [&](const std::string& mine) {
    const auto all = all_gather<char>(transport, std::span<const char>(mine), options);
    return std::string(all[0].begin(), all[0].end());
  };
  const bool writes = transport.rank() == Rank{0};
  while (told(writes && m_write && !m_write->wait(options.watchdog / 4) ? "writing" : "ended") !=
         "ended") {
  }
  std::string answer;  // rank 0 decides for all: '+' and the file, or '-' and the failure
  if (writes) {
    std::string why = m_not_started;
    try {
      if (m_write) m_write->rethrow();
    } catch (...) {
      why = impl::why_not_saved(std::current_exception());
    }
    m_write.reset();
    answer =
        why.empty()
            ? text('+', m_path)
            : text("-heddle::CheckpointSaver: cannot save the checkpoint '", m_path, "': ", why,
                   m_newest.empty() ? std::string(". No checkpoint is kept")
                                    : text(". The checkpoint '", m_newest, "' is kept"));
  }
  answer = told(answer);
  m_pending = false;
  if (answer[0] == '+') m_newest = answer.substr(1);
  m_failure = answer[0] == '+' ? std::string() : answer.substr(1);
  return m_failure.empty();
}

}  // namespace heddle::inline v0
