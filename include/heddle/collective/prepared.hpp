// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Prepared: a collective call that is performed repeatedly.

#include <utility>

#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scheduled_work.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// A collective call bound to its Views, which it keeps alive. prepare_...() makes it, and
/// operator() or start() performs it, any number of times. All ranks of the communicator must
/// perform it in the same order. The communicator must outlive it. With error feedback, the
/// rounding error of one performance is added in the next one.
template <class Call>
class Prepared {
 public:
  /// Constructed by the library.
  explicit Prepared(Call call) : m_call(std::move(call)), m_key(impl::checked(m_call, true, true)) {
    if (m_key.codec && m_key.codec->feedback) m_call.keep(schedule());
  }

  /// Performs the call and waits for it.
  void operator()() { impl::perform(m_call, m_key); }
  /// Starts the call and returns a Request. Only one performance may be in flight at a time.
  [[nodiscard]] Request start() { return impl::begin(m_call, m_key); }
  /// Returns true if the MPI library performs the call, instead of schedule().
  [[nodiscard]] bool by_library() const { return m_key.choice.library; }
  /// Returns the Schedule that a call performs; start() sends messages. It is a collective call.
  /// @throws contract_error if the MPI library performs the call.
  [[nodiscard]] Schedule schedule() const {
    expects(!by_library(), [] {
      return ErrorInfo{"heddle::Prepared::schedule",
                       "the MPI library performs this call, so it has no Schedule"};
    });
    if (const impl::Performer* shared = impl::in_shared_memory(m_call, m_key))
      return shared->schedule();
    const int ranks = m_call.comm->size();
    return impl::schedule_of(impl::by_messages(m_key, ranks), ranks);
  }

 private:
  Call m_call;
  impl::PerformerKey m_key;
};

}  // namespace heddle::inline v0
