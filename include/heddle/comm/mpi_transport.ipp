// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of mpi_transport.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/impl/ulfm.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/survivors.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

// Here and not in the header, where every program would pay for it.
static_assert(ReportsPlaces<MpiTransport> && NotesSilence<MpiTransport> &&
              LosesRanks<MpiTransport>);

HEDDLE_FULL_INLINE MpiTransport::MpiTransport(MPI_Comm comm, MpiOptions options)
    : m_comm(comm), m_control(comm), m_options(options) {
  constexpr const char* where = "heddle::MpiTransport";
  constexpr Bytes limit = std::numeric_limits<int>::max();
  // Clamped, so that the numbers and their negatives can travel as int64.
  const auto mine = static_cast<std::int64_t>(std::min(options.max_message, limit + 1));
  // The last one is the number of a rank whose patience is none.
  std::array<std::int64_t, 3> range{
      -mine, mine, options.patience >= 0 ? -1 : static_cast<std::int64_t>(+rank())};
  check(MPI_Allreduce(MPI_IN_PLACE, range.data(), 3, MPI_INT64_T, MPI_MAX, m_comm.get()), where);
  expects(-range[0] == range[1], [&] {
    return ErrorInfo{
        where, "max_message differs between the ranks",
        text("from ", -range[0], " to ", range[1], " bytes, ", mine, " on rank ", rank()),
        "give every rank the same MpiOptions"};
  });
  expects(options.max_message >= 1 && options.max_message <= limit, [&] {
    return ErrorInfo{where, text("max_message must lie in 1 .. ", limit),
                     text(options.max_message, " bytes")};
  });
  expects(range[2] < 0, [&] {
    return ErrorInfo{where, text("the patience of rank ", range[2], " must be at least 0"),
                     text("patience = ", options.patience, " s on rank ", rank())};
  });
  // MPI caches the bound on its communicators, where not, 32767 is what every MPI grants.
  void* bound = nullptr;
  int found = 0;
  check(MPI_Comm_get_attr(m_comm.get(), MPI_TAG_UB, &bound, &found), where);
  m_lanes = found != 0 ? *static_cast<int*>(bound) : 32767;
}

HEDDLE_FULL_INLINE MpiTransport::MpiTransport(MPI_Comm comm, MpiOptions options, int lanes)
    : m_comm(comm), m_control(comm), m_options(options), m_lanes(lanes) {}

HEDDLE_FULL_INLINE MpiTransport::~MpiTransport() {
  if (!impl::mpi_is_up()) return;
  try {
    const bool under_way = std::any_of(m_operations.begin(), m_operations.end(),
                                       [](const Operation& operation) { return operation.open; });
    const bool unwinds = std::uncaught_exceptions() > m_exceptions;
    if (!m_control.heard() && !m_control.over() && (under_way || unwinds))
      m_control.tell({rank(), "the end of its transport",
                      unwinds ? "an exception left its scope" : "messages were still under way"});
    if (m_control.over()) {
      if (m_control.heard() && m_control.heard()->place)
        m_control.answer({.list = ListPlace::outside});
      unwind();
    }
  } catch (...) {  // MPI itself fails: there is nobody left to tell
  }
  if (m_control.over()) static_cast<void>(m_comm.release());
}

HEDDLE_FULL_INLINE bool MpiTransport::test(Request& request) {
  Operation* const operation = request.m_operation;
  if (operation == nullptr) return true;
  if (!operation->open) [[unlikely]]
    throw spent("heddle::MpiTransport::test");
  const std::size_t pieces = std::max<std::size_t>(operation->pieces.size(), 1);
  while (operation->at < pieces)
    if (!test_piece(*operation)) return false;
  operation->open = false;
  m_free.push_back(operation);
  request.m_operation = nullptr;
  return true;
}

HEDDLE_FULL_INLINE void MpiTransport::cancel(Request& request) {
  if (std::exchange(request.m_operation, nullptr) == nullptr) return;
  expects(m_control.over(), [] {
    return ErrorInfo{"heddle::MpiTransport::cancel",
                     "a message can only be cancelled after an abort",
                     {},
                     "call abort first, or test until the message is complete"};
  });
  unwind();
}

HEDDLE_FULL_INLINE void MpiTransport::abort(const Abort& abort) {
  m_control.tell(abort);
  revoke_if_lost();
  if (!receiving()) m_control.release();
}

HEDDLE_FULL_INLINE std::vector<std::optional<ListPlace>> MpiTransport::places() {
  return m_control.places();
}

HEDDLE_FULL_INLINE std::optional<Abort> MpiTransport::aborted() {
  if (!m_control.heard()) return std::nullopt;
  revoke_if_lost();
  if (!receiving()) m_control.release();
  return m_control.heard();
}

HEDDLE_FULL_INLINE void MpiTransport::revoke_if_lost() {
  if (m_control.lost() && !std::exchange(m_revoked, true)) impl::revoke(m_comm.get());
}

HEDDLE_FULL_INLINE void MpiTransport::check_operation(int code, const char* where) {
  if (impl::is_death(code)) {
    m_control.lose();
    revoke_if_lost();
    throw impl::lost(text(where, ", rank ", rank()), *m_control.heard());
  }
  check(code, where);
}

HEDDLE_FULL_INLINE std::uint32_t MpiTransport::agree(std::uint32_t flags, Seconds watchdog) {
  return static_cast<std::uint32_t>(
      impl::agreed_flags(static_cast<int>(flags), m_comm.get(),
                         text("heddle::MpiTransport::agree, rank ", rank()), watchdog));
}

HEDDLE_FULL_INLINE Survivors<MpiTransport> MpiTransport::survivors(Seconds watchdog) {
  constexpr const char* where = "heddle::MpiTransport::survivors";
  constexpr int has_failed = 0, try_again = 1, is_made = 3;
  for (;;) {  // until nobody dies while the transport is made
    MPI_Comm left = impl::shrunk(m_comm.get(), where, m_control.story());
    Survivors<MpiTransport> survivors;
    std::exception_ptr error;
    int flags = is_made;
    try {
      survivors.ranks = impl::ranks_before(m_comm.get(), left);
      survivors.transport.reset(new MpiTransport(left, m_options, m_lanes));
    } catch (const communication_error&) {
      flags = try_again;
    } catch (...) {
      error = std::current_exception();
      flags = has_failed;
    }
    if (flags != is_made) impl::revoke(left);
    // If this throws, MPI keeps `left`, because the agreement may still be under way.
    flags = impl::agreed_flags(flags, left, text(where, ", rank ", rank()), watchdog);
    if (flags != is_made) survivors.transport.reset();
    MPI_Comm_free(&left);
    if (flags == is_made) return survivors;
    if (error) std::rethrow_exception(error);
    if (flags == has_failed)
      throw communication_error({where, "another rank could not make the new transport"});
  }
}

HEDDLE_FULL_INLINE MPI_Request& MpiTransport::piece(Operation& operation, std::size_t number) {
  return operation.pieces.empty() ? operation.request : operation.pieces[number];
}

HEDDLE_FULL_INLINE int MpiTransport::piece_bytes(Bytes bytes, std::size_t number) const {
  return static_cast<int>(std::min(bytes - number * m_options.max_message, m_options.max_message));
}

HEDDLE_FULL_INLINE MpiTransport::Request MpiTransport::start(bool sends, Rank peer, Lane lane,
                                                             std::byte* data, Bytes bytes,
                                                             MPI_Datatype type) {
  const char* const where = sends ? "heddle::MpiTransport::send" : "heddle::MpiTransport::receive";
  expects(+peer < static_cast<std::size_t>(size()), [&] {
    return ErrorInfo{where, "no such peer", text("rank ", peer, " of ", size())};
  });
  expects(+lane <= static_cast<std::size_t>(m_lanes), [&] {
    return ErrorInfo{where, "no such lane",
                     text("lane ", lane, ", this MPI's tags end at ", m_lanes)};
  });
  expects(type == MPI_BYTE || bytes < m_options.max_message, [&] {
    return ErrorInfo{
        where, "a message of an MPI datatype must be shorter than MpiOptions::max_message",
        text(bytes, " bytes, max_message ", m_options.max_message), "pack the message"};
  });
  if (m_control.over()) [[unlikely]]
    throw spent(where);
  if (m_free.empty()) m_free.push_back(&m_operations.emplace_back());
  Operation& operation = *m_free.back();
  operation.at = 0;
  operation.bytes = bytes;
  operation.peer = peer;
  operation.lane = lane;
  operation.sends = sends;
  operation.pieces.clear();
  // The common case without a division, which costs as much as the rest of this function.
  const std::size_t pieces = bytes < m_options.max_message ? 1 : bytes / m_options.max_message + 1;
  if (pieces > 1) operation.pieces.resize(pieces, MPI_REQUEST_NULL);
  // From here on the slot is taken: where a later piece fails, the earlier ones are under way.
  m_free.pop_back();
  operation.open = true;
  for (std::size_t i = 0; i < pieces; ++i) {
    std::byte* const begin = bytes == 0 ? data : data + i * m_options.max_message;
    const int length = type == MPI_BYTE ? piece_bytes(bytes, i) : 1;
    const auto to = static_cast<int>(peer.value);
    const auto tag = static_cast<int>(lane.value);
    MPI_Request& request = piece(operation, i);
    check_operation(sends ? MPI_Isend(begin, length, type, to, tag, m_comm.get(), &request)
                          : MPI_Irecv(begin, length, type, to, tag, m_comm.get(), &request),
                    where);
  }
  return Request(&operation);
}

HEDDLE_FULL_INLINE bool MpiTransport::test_piece(Operation& operation) {
  MPI_Status status;
  int done = 0;
  const int code = MPI_Test(&piece(operation, operation.at), &done, &status);
  if (code == MPI_SUCCESS && done == 0) return false;
  if (operation.sends) {
    check_operation(code, "heddle::MpiTransport::test");
  } else {
    int kind = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
    if (kind != MPI_ERR_TRUNCATE) check_operation(code, "heddle::MpiTransport::test");
    int came = 0;
    MPI_Get_count(&status, MPI_BYTE, &came);
    if (kind == MPI_ERR_TRUNCATE || came != piece_bytes(operation.bytes, operation.at)) [[unlikely]]
      throw mismatch(operation, came);
  }
  ++operation.at;
  return true;
}

HEDDLE_FULL_INLINE communication_error MpiTransport::mismatch(const Operation& operation,
                                                              int came) const {
  const Bytes before = operation.at * m_options.max_message;
  const auto expected = piece_bytes(operation.bytes, operation.at);
  const bool cut = came == expected;
  const bool more = cut || static_cast<Bytes>(came) == m_options.max_message;
  return communication_error(
      {text("heddle::MpiTransport, rank ", rank()), "the sizes of a message and its receive differ",
       text("from rank ", operation.peer, ", lane ", operation.lane, ": sent ",
            more ? "at least " : "", before + static_cast<Bytes>(came) + (cut ? 1 : 0),
            " bytes, expected ", operation.bytes)});
}

HEDDLE_FULL_INLINE communication_error MpiTransport::spent(const char* where) {
  static_cast<void>(m_control.heard());
  return communication_error({text(where, ", rank ", rank()),
                              "the transport carries no more messages after an abort",
                              m_control.story()});
}

HEDDLE_FULL_INLINE bool MpiTransport::receiving() const {
  return std::any_of(m_operations.begin(), m_operations.end(),
                     [](const Operation& operation) { return operation.open && !operation.sends; });
}

HEDDLE_FULL_INLINE bool MpiTransport::settled(Operation& operation) {
  bool all = true;
  for (std::size_t i = 0; i == 0 || i < operation.pieces.size(); ++i) {
    int done = 0;
    const int code = MPI_Test(&piece(operation, i), &done, MPI_STATUS_IGNORE);
    all = all && (done != 0 || code != MPI_SUCCESS);
  }
  return all;
}

template <class Over>
bool MpiTransport::close(bool sends, Over&& over) {
  Waiting waiting(Idle::nap);
  const Seconds since = steady_seconds();
  for (;;) {
    bool all = true;
    for (Operation& operation : m_operations) {
      if (!operation.open || operation.sends != sends) continue;
      if (over(operation))
        operation.open = false;
      else
        all = false;
    }
    if (all) return true;
    if (steady_seconds() - since > m_options.patience) return false;
    waiting();
  }
}

HEDDLE_FULL_INLINE void MpiTransport::end_job() {
  std::cerr << text("heddle::MpiTransport, rank ", rank(),
                    ": memory of this rank may still be written by one that has not answered for ",
                    m_options.patience, " s after an abort (", m_control.story(),
                    "); the job ends\n")
            << std::flush;
  MPI_Abort(m_comm.get(), 1);
  std::abort();  // not reached
}

HEDDLE_FULL_INLINE void MpiTransport::unwind() {
  if (std::exchange(m_unwound, true)) return;
  for (Operation& operation : m_operations) {
    if (!operation.open || operation.sends) continue;
    for (std::size_t i = 0; i == 0 || i < operation.pieces.size(); ++i)
      if (piece(operation, i) != MPI_REQUEST_NULL) MPI_Cancel(&piece(operation, i));
  }
  if (!close(false, [&](Operation& operation) { return settled(operation); })) end_job();
  m_control.release();
  close(true, [&](Operation& operation) {
    return settled(operation) || (!m_control.lost() && m_control.released(operation.peer));
  });
  for (Operation& operation : m_operations) {
    if (!operation.sends) continue;
    for (std::size_t i = 0; i == 0 || i < operation.pieces.size(); ++i)
      if (piece(operation, i) != MPI_REQUEST_NULL) MPI_Request_free(&piece(operation, i));
    operation.open = false;
  }
}

}  // namespace heddle::inline v0
