// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Request: a collective that is under way.

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The pending operation of a Request. It keeps the Views.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;
  /// Furthers it; true once it is done, and from then on.
  virtual bool test() = 0;
  /// Returns when it is done.
  virtual void wait() = 0;
  /// How long the call may wait; 0: for ever.
  [[nodiscard]] virtual Seconds watchdog() const noexcept = 0;
  /// Ends it without waiting, where that can be, and tells the other ranks.
  virtual void abandon() noexcept = 0;
};

}  // namespace impl

/// Stands for a collective that start_...() began, and keeps its Views alive. What it uses must not
/// be touched, nor what it reads be written, until test() has said true or wait() has returned; the
/// results are there then, for kernels queued afterwards in any instance. Move-only.
///
/// It makes progress in test() and in every wait() on the same communicator: call test() between
/// kernels. With CallOptions::progress_thread a thread furthers it. All ranks start collectives on
/// a communicator in the same order; they may wait for them in any, and the watchdog then counts
/// twice. Where one fails that a wait() furthers, that wait() throws its error. The communicator
/// outlives it.
class [[nodiscard]] Request {
 public:
  /// None: done.
  Request() = default;
  /// Constructed by the library.
  explicit Request(std::unique_ptr<impl::Work> work) : m_work(std::move(work)) {}
  /// Leaves `other` with none.
  Request(Request&&) noexcept = default;
  /// Waits for the one that it stood for.
  Request& operator=(Request&& other) {
    wait();
    m_work = std::move(other.m_work);
    m_in_vain_since = other.m_in_vain_since;
    return *this;
  }
  /// Waits, as wait() does; what that would throw has been told to the other ranks, and is not
  /// reported. Where an exception destroys it, it tells them instead; but it waits where MPI's own
  /// call is under way, which cannot be given up, and for a thread.
  ~Request() {
    if (m_work != nullptr && std::uncaught_exceptions() > m_exceptions) m_work->abandon();
    try {
      wait();
    } catch (...) {  // wait() tells, a destructor cannot
    }
  }

  /// Whether it is done; furthers it. After a watchdog's time of tests in vain it waits, as wait()
  /// does, which ends by the watchdog. @throws what wait() throws.
  [[nodiscard]] bool test() {
    if (m_work == nullptr || guarded([&] { return m_work->test(); })) {
      m_work.reset();
      return true;
    }
    const Seconds now = steady_seconds(), watchdog = m_work->watchdog();
    if (!m_in_vain_since) m_in_vain_since = now;
    if (watchdog <= 0 || now - *m_in_vain_since <= watchdog) return false;
    wait();  // which says what is waited for
    return true;
  }

  /// Returns when it is done.
  /// @throws communication_error where another rank failed, or does not come within the watchdog's
  ///         time; the communicator is spent then. What the reduction throws on this rank.
  void wait() {
    if (m_work != nullptr) guarded([&] { return m_work->wait(), true; });
    m_work.reset();
  }

 private:
  /// An error is the end of it: nobody waits a second time.
  template <class Call>
  bool guarded(Call&& call) {
    try {
      return call();
    } catch (...) {
      m_work.reset();
      throw;
    }
  }

  std::unique_ptr<impl::Work> m_work;
  std::optional<Seconds> m_in_vain_since;  ///< when test() first said no
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0
