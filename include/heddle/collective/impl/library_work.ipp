// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of library_work.hpp.

#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/library_work.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/roll_call.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void fetch_views(Call& call) {
  const bool computes = call.by().by_mpi().operation != MPI_OP_NULL;
  for (CallView& view : call.views()) view.fetch(call.by(), computes);
}

HEDDLE_FULL_INLINE void give_views(Call& call) {
  for (const CallView& view : call.views()) view.give(call.by());
  call.ended();
}

HEDDLE_FULL_INLINE LibraryWork::LibraryWork(Call& call, std::shared_ptr<Call> owner)
    : m_call(call), m_owner(std::move(owner)) {
  fetch_views(m_call);
  m_call.by().wait(m_call.where());
  heddle::check(m_call.library(&m_request), m_call.where());
}

HEDDLE_FULL_INLINE LibraryWork::~LibraryWork() {
  if (m_request == MPI_REQUEST_NULL) return;
  if (m_owner == nullptr) m_owner = m_call.moved();
  m_owner->comm().leave_to_mpi(m_owner);
}

HEDDLE_FULL_INLINE bool LibraryWork::test() {
  int done = 0;
  heddle::check(MPI_Test(&m_request, &done, MPI_STATUS_IGNORE), m_call.where());
  // A rank that has given the call up has to hear that this one is in it.
  if (done == 0 && ++m_in_vain % 64 == 0 && RollCall::begun(m_call.comm())) {
    complete();
    done = 1;
  }
  if (done != 0) end();
  return done != 0;
}

HEDDLE_FULL_INLINE void LibraryWork::wait() {
  complete();
  end();
}

HEDDLE_FULL_INLINE Seconds LibraryWork::watchdog() const noexcept {
  return m_call.options().wait.watchdog;
}

HEDDLE_FULL_INLINE void LibraryWork::complete() {
  impl::complete(m_call.comm(), m_call.where(), m_call.options().wait, m_request);
}

HEDDLE_FULL_INLINE void LibraryWork::end() {
  if (!std::exchange(m_over, true)) give_views(m_call);
}

}  // namespace heddle::inline v0::impl
