// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of prepared.hpp.

#include <memory>

#include <heddle/collective/impl/perform.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scheduled_work.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE Prepared::Prepared(impl::Call&& call) {
  call.keep();
  m_call = call.moved();
  m_key =
      std::make_shared<const impl::PerformerKey>(impl::checked(*m_call, {.keeps_errors = true}));
  if (!m_key->codec || !m_key->codec->feedback) return;
  const Schedule made = schedule();
  Bytes bytes = 0;
  for (const Buffer& buffer : made.buffers())
    if (buffer.rank == m_call->comm().rank()) bytes += impl::kept_bytes(made, buffer);
  m_call->residual = m_call->by().zeros("heddle::collective::residual", bytes);
}

HEDDLE_FULL_INLINE void Prepared::operator()() { impl::perform(*m_call, *m_key); }

HEDDLE_FULL_INLINE Request Prepared::start() { return impl::begin(m_call, *m_key); }

HEDDLE_FULL_INLINE bool Prepared::by_library() const { return m_key->choice.library; }

HEDDLE_FULL_INLINE Schedule Prepared::schedule() const {
  expects(!by_library(), [] {
    return ErrorInfo{"heddle::Prepared::schedule",
                     "the MPI library performs this call, so it has no Schedule"};
  });
  if (const impl::Performer* shared = impl::in_shared_memory(*m_call, *m_key))
    return shared->schedule();
  const int ranks = m_call->comm().size();
  return impl::schedule_of(impl::by_messages(*m_key, ranks), ranks);
}

}  // namespace heddle::inline v0
