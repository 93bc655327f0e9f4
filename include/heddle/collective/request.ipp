// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of request.hpp.

#include <exception>
#include <utility>

#include <heddle/collective/request.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE impl::Work::~Work() = default;

template <class Call>
bool Request::guarded(Call&& call) {
  try {
    return call();
  } catch (...) {
    m_work.reset();
    throw;
  }
}

HEDDLE_FULL_INLINE Request& Request::operator=(Request&& other) {
  wait();
  m_work = std::move(other.m_work);
  m_in_vain_since = other.m_in_vain_since;
  return *this;
}

HEDDLE_FULL_INLINE Request::~Request() {
  if (m_work != nullptr && std::uncaught_exceptions() > m_exceptions) m_work->abandon();
  try {
    wait();
  } catch (...) {  // wait() tells, a destructor cannot
  }
}

HEDDLE_FULL_INLINE bool Request::test() {
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

HEDDLE_FULL_INLINE void Request::wait() {
  if (m_work != nullptr) guarded([&] { return m_work->wait(), true; });
  m_work.reset();
}

}  // namespace heddle::inline v0
