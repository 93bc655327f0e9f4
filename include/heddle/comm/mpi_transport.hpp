// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MpiTransport: sends the messages of an executor with non-blocking MPI calls. All MPI calls come
/// from the calling thread, so MPI_THREAD_FUNNELED is enough.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/abort_channel.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// Limits of an MpiTransport.
struct MpiOptions {
  /// The bytes of the pieces of longer messages, 1 to 2^31 - 1; the same on all ranks.
  Bytes max_message = Bytes{1} << 30;
  /// The seconds that a rank waits after an abort for others to stop using its memory.
  Seconds patience = 10;
};

/// One rank's end of a group of MPI processes; a model of Transport. The MPI tag is the lane.
///
/// A message of n bytes is sent as n / max_message full pieces and a shorter last piece, which may
/// be empty. Each piece therefore shows if another one follows. If the two sides disagree about the
/// size, the receiver notices at once and throws communication_error with both sizes. A message
/// shorter than max_message is one MPI message, and needs no allocation.
///
/// After an abort, `cancel` and the destructor end all operations of this rank and make their
/// memory available again:
/// - Receives are cancelled. If a part has arrived, the sender helps to complete the receive. Then
///   every other rank is told that this rank no longer reads memory of others.
/// - A send ends when it is complete, or when its receiver has sent this notice.
///
/// This cannot deadlock, because the first part needs no answer. If a rank does not answer within
/// `patience`, because it computes for long or hangs, this rank stops waiting. Late reads of this
/// rank's memory are then harmless, because their results are not used. If its memory is still
/// being written, the only safe end is MPI_Abort. The reason is printed to the standard error
/// output. The communicators of an aborted transport are not freed, because that is collective.
class MpiTransport {
  /// One message in flight. It is in a slot of the transport that is reused.
  struct Operation {
    MPI_Request request = MPI_REQUEST_NULL;  ///< the piece in flight, if there is only one
    std::vector<MPI_Request> pieces;         ///< all pieces, if there are several
    std::size_t at = 0;                      ///< number of complete pieces
    Bytes bytes = 0;
    Rank peer;
    Lane lane;
    bool sends = false;
    bool open = false;
  };

 public:
  /// A message in flight, until `test` has returned true or `cancel` was called. It can be moved,
  /// but not copied.
  class Request {
   public:
    Request() = default;
    /// Moves the operation. `other` is left without one.
    Request(Request&& other) noexcept : m_operation(std::exchange(other.m_operation, nullptr)) {}
    /// Moves the operation. An operation that this request had before stays in flight.
    Request& operator=(Request&& other) noexcept {
      m_operation = std::exchange(other.m_operation, nullptr);
      return *this;
    }

   private:
    friend class MpiTransport;
    explicit Request(Operation* operation) : m_operation(operation) {}
    Operation* m_operation = nullptr;
  };

  /// Constructs the transport. Collective over `comm`, which it duplicates twice.
  /// @throws contract_error on every rank if the options are invalid or differ between ranks.
  explicit MpiTransport(MPI_Comm comm, MpiOptions options = {})
      : m_comm(comm), m_control(comm), m_options(options) {
    constexpr const char* where = "heddle::MpiTransport";
    constexpr Bytes limit = std::numeric_limits<int>::max();
    // Clamped, so that the numbers and their negatives can travel as int64.
    const auto mine = static_cast<std::int64_t>(std::min(options.max_message, limit + 1));
    std::array<std::int64_t, 2> range{-mine, mine};
    check(MPI_Allreduce(MPI_IN_PLACE, range.data(), 2, MPI_INT64_T, MPI_MAX, m_comm.get()), where);
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
    // MPI caches the bound on its communicators, where not, 32767 is what every MPI grants.
    void* bound = nullptr;
    int found = 0;
    check(MPI_Comm_get_attr(m_comm.get(), MPI_TAG_UB, &bound, &found), where);
    m_lanes = found != 0 ? *static_cast<int*>(bound) : 32767;
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  /// Destroys the transport; collective, unless it was aborted. If messages are in flight or an
  /// exception leaves its scope, this rank has failed, and tells the other ranks.
  ~MpiTransport() {
    if (!impl::mpi_is_up()) return;
    try {
      const bool under_way = std::any_of(m_operations.begin(), m_operations.end(),
                                         [](const Operation& operation) { return operation.open; });
      const bool unwinds = std::uncaught_exceptions() > m_exceptions;
      if (!m_control.heard() && !m_control.over() && (under_way || unwinds))
        m_control.tell({rank(), "the end of its transport",
                        unwinds ? "an exception left its scope" : "messages were still under way"});
      if (m_control.over()) unwind();
    } catch (...) {  // MPI itself fails: there is nobody left to tell
    }
    if (m_control.over()) static_cast<void>(m_comm.release());
  }

  /// Returns this process's rank in the group.
  [[nodiscard]] Rank rank() const noexcept { return m_comm.rank(); }
  /// Returns the number of ranks in the group.
  [[nodiscard]] int size() const noexcept { return m_comm.size(); }

  /// Starts a send to `peer`; see Transport. @throws contract_error if there is no such rank.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    return start<true>(peer, lane, const_cast<std::byte*>(data), bytes);
  }
  /// Starts a send of one item of `type` at `data`, of `bytes` bytes (fewer than
  /// MpiOptions::max_message). The peer must receive as many bytes.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes,
                             MPI_Datatype type) {
    return start<true>(peer, lane, const_cast<std::byte*>(data), bytes, type);
  }

  /// Starts a receive of exactly `bytes` bytes from `peer`; see Transport.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    return start<false>(peer, lane, data, bytes);
  }
  /// Starts a receive into one item of `type`, of fewer bytes than MpiOptions::max_message.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes,
                                MPI_Datatype type) {
    return start<false>(peer, lane, data, bytes, type);
  }

  /// Makes progress in all messages by one MPI_Test. Returns true if the message is complete, or
  /// if the request is default-constructed.
  /// @throws communication_error if the sizes of the two sides differ, or if MPI reports an error.
  ///         The program cannot continue after a wrong size: if a message of some kilobytes is too
  ///         long, Open MPI 4.1 writes past the end of the receive's memory before it reports
  ///         the error, and MPICH 4.0 ends the job.
  [[nodiscard]] bool test(Request& request) {
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

  /// Ends all operations of this rank and makes their memory available again; see the class.
  /// @throws contract_error if there was no abort.
  void cancel(Request& request) {
    if (std::exchange(request.m_operation, nullptr) == nullptr) return;
    expects(m_control.over(), [] {
      return ErrorInfo{"heddle::MpiTransport::cancel",
                       "a message can only be cancelled after an abort",
                       {},
                       "call abort first, or test until the message is complete"};
    });
    unwind();
  }

  /// Tells every other rank of a failure, once and without waiting; see Transport.
  void abort(const Abort& abort) {
    m_control.tell(abort);
    if (!receiving()) m_control.release();
  }

  /// Returns the abort that another rank has sent, if there is one; see Transport.
  [[nodiscard]] std::optional<Abort> aborted() {
    if (!m_control.heard()) return std::nullopt;
    if (!receiving()) m_control.release();
    return m_control.heard();
  }

 private:
  [[nodiscard]] MPI_Request& piece(Operation& operation, std::size_t number) {
    return operation.pieces.empty() ? operation.request : operation.pieces[number];
  }

  /// Returns the bytes of piece `number` of a message of `bytes` bytes.
  [[nodiscard]] int piece_bytes(Bytes bytes, std::size_t number) const {
    return static_cast<int>(
        std::min(bytes - number * m_options.max_message, m_options.max_message));
  }

  template <bool sends>
  Request start(Rank peer, Lane lane, std::byte* data, Bytes bytes, MPI_Datatype type = MPI_BYTE) {
    constexpr const char* where =
        sends ? "heddle::MpiTransport::send" : "heddle::MpiTransport::receive";
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
    const std::size_t pieces =
        bytes < m_options.max_message ? 1 : bytes / m_options.max_message + 1;
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
      if constexpr (sends)
        check(MPI_Isend(begin, length, type, to, tag, m_comm.get(), &request), where);
      else
        check(MPI_Irecv(begin, length, type, to, tag, m_comm.get(), &request), where);
    }
    return Request(&operation);
  }

  /// Returns true if the first incomplete piece is complete now.
  bool test_piece(Operation& operation) {
    MPI_Status status;
    int done = 0;
    const int code = MPI_Test(&piece(operation, operation.at), &done, &status);
    if (code == MPI_SUCCESS && done == 0) return false;
    if (operation.sends) {
      check(code, "heddle::MpiTransport::test");
    } else {
      int kind = MPI_SUCCESS;
      if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
      if (kind != MPI_ERR_TRUNCATE) check(code, "heddle::MpiTransport::test");
      int came = 0;
      MPI_Get_count(&status, MPI_BYTE, &came);
      if (kind == MPI_ERR_TRUNCATE || came != piece_bytes(operation.bytes, operation.at))
          [[unlikely]]
        throw mismatch(operation, came);
    }
    ++operation.at;
    return true;
  }

  /// Returns the error for differing sizes. Some MPIs report in `came` only the bytes that fitted.
  [[nodiscard]] communication_error mismatch(const Operation& operation, int came) const {
    const Bytes before = operation.at * m_options.max_message;
    const auto expected = piece_bytes(operation.bytes, operation.at);
    const bool cut = came == expected;
    const bool more = cut || static_cast<Bytes>(came) == m_options.max_message;
    return communication_error(
        {text("heddle::MpiTransport, rank ", rank()),
         "the sizes of a message and its receive differ",
         text("from rank ", operation.peer, ", lane ", operation.lane, ": sent ",
              more ? "at least " : "", before + static_cast<Bytes>(came) + (cut ? 1 : 0),
              " bytes, expected ", operation.bytes)});
  }

  /// Returns the error of an operation after an abort.
  [[nodiscard]] communication_error spent(const char* where) {
    static_cast<void>(m_control.heard());
    return communication_error({text(where, ", rank ", rank()),
                                "the transport carries no more messages after an abort",
                                m_control.story()});
  }

  [[nodiscard]] bool receiving() const {
    return std::any_of(m_operations.begin(), m_operations.end(), [](const Operation& operation) {
      return operation.open && !operation.sends;
    });
  }

  /// Returns true if no piece is in flight. The error of a failed piece is ignored.
  bool settled(Operation& operation) {
    bool all = true;
    for (std::size_t i = 0; i == 0 || i < operation.pieces.size(); ++i) {
      int done = 0;
      const int code = MPI_Test(&piece(operation, i), &done, MPI_STATUS_IGNORE);
      all = all && (done != 0 || code != MPI_SUCCESS);
    }
    return all;
  }

  /// Waits until `over(operation)` is true for every open send or receive, and closes these.
  /// Returns false if `patience` ends first.
  template <class Over>
  bool close(bool sends, Over&& over) {
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

  /// Ends all ranks, and prints the reason, because no exception can report it.
  [[noreturn]] void end_job() {
    std::cerr << text(
                     "heddle::MpiTransport, rank ", rank(),
                     ": memory of this rank may still be written by one that has not answered for ",
                     m_options.patience, " s after an abort (", m_control.story(),
                     "); the job ends\n")
              << std::flush;
    MPI_Abort(m_comm.get(), 1);
    std::abort();  // not reached
  }

  /// Ends all operations of this rank. The class description says what this guarantees.
  void unwind() {
    if (std::exchange(m_unwound, true)) return;
    for (Operation& operation : m_operations) {
      if (!operation.open || operation.sends) continue;
      for (std::size_t i = 0; i == 0 || i < operation.pieces.size(); ++i)
        if (piece(operation, i) != MPI_REQUEST_NULL) MPI_Cancel(&piece(operation, i));
    }
    if (!close(false, [&](Operation& operation) { return settled(operation); })) end_job();
    m_control.release();
    close(true, [&](Operation& operation) {
      return settled(operation) || m_control.released(operation.peer);
    });
    for (Operation& operation : m_operations) {
      if (!operation.sends) continue;
      for (std::size_t i = 0; i == 0 || i < operation.pieces.size(); ++i)
        if (piece(operation, i) != MPI_REQUEST_NULL) MPI_Request_free(&piece(operation, i));
      operation.open = false;
    }
  }

  Communicator m_comm;
  impl::AbortChannel m_control;
  MpiOptions m_options;
  int m_lanes = 0;
  std::deque<Operation> m_operations;  ///< all slots; their addresses do not change
  std::vector<Operation*> m_free;      ///< slots without a message
  bool m_unwound = false;
  int m_exceptions = std::uncaught_exceptions();
};
static_assert(Transport<MpiTransport>);

}  // namespace heddle::inline v0
