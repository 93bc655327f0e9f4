// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LibraryWork: a collective call of the MPI library, under way.

#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/meet.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/roll_call.hpp>
#include <heddle/device/done_at_once.hpp>

namespace heddle::inline v0 {
namespace impl {

/// A call of MPI's, under way.
template <class Call>
class LibraryWork final : public Work {
 public:
  explicit LibraryWork(Call call) : m_call(std::move(call)) {
    fetch_views(m_call);
    wait_for_work(m_call.exec, Call::where);
    heddle::check(m_call.library(&m_request), Call::where);
  }
  /// A pending call keeps its memory and its communicator, because MPI may still use them.
  ~LibraryWork() override {
    if (m_request == MPI_REQUEST_NULL) return;
    const Communicator& comm = *m_call.comm;
    comm.leave_to_mpi(std::move(m_call));
  }

  bool test() override {
    int done = 0;
    heddle::check(MPI_Test(&m_request, &done, MPI_STATUS_IGNORE), Call::where);
    // A rank that has given the call up has to hear that this one is in it.
    if (done == 0 && ++m_in_vain % 64 == 0 && RollCall::begun(*m_call.comm)) {
      complete(m_call, m_request);
      done = 1;
    }
    if (done != 0) end();
    return done != 0;
  }
  void wait() override {
    complete(m_call, m_request);
    end();
  }
  [[nodiscard]] Seconds watchdog() const noexcept override {
    return m_call.options.execute.watchdog;
  }
  void abandon() noexcept override {}  // MPI has no way to

 private:
  void end() {
    if (!std::exchange(m_over, true)) give_views(m_call);
  }

  Call m_call;
  MPI_Request m_request = MPI_REQUEST_NULL;
  bool m_over = false;
  unsigned m_in_vain = 0;  ///< tests that found the call incomplete
};

}  // namespace impl
}  // namespace heddle::inline v0
