// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MpiTransport: sends the messages of an executor with non-blocking MPI calls. All MPI calls come
/// from the calling thread, so MPI_THREAD_FUNNELED is enough.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/abort_channel.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/survivors.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

/// Limits of an MpiTransport.
struct MpiOptions {
  /// The bytes of the pieces of longer messages, 1 to 2^31 - 1; the same on all ranks.
  Bytes max_message = Bytes{1} << 30;
  /// The seconds that a rank waits after an abort for others to stop using its memory, at least 0.
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
///
/// If a rank dies, the launcher of most MPI libraries ends the job. Open MPI 5 does not, if the job
/// is started with `mpiexec --with-ft ulfm`. The waits of the other ranks then end with a
/// communication_error, and survivors() returns a transport between them; see survive().
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
  explicit MpiTransport(MPI_Comm comm, MpiOptions options = {});
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  /// Destroys the transport; collective, unless it was aborted. If messages are in flight or an
  /// exception leaves its scope, this rank has failed, and tells the other ranks.
  ~MpiTransport();

  /// Returns this process's rank in the group.
  [[nodiscard]] Rank rank() const noexcept { return m_comm.rank(); }
  /// Returns the number of ranks in the group.
  [[nodiscard]] int size() const noexcept { return m_comm.size(); }

  /// Starts a send to `peer`; see Transport. @throws contract_error if there is no such rank.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    return start(true, peer, lane, const_cast<std::byte*>(data), bytes);
  }
  /// Starts a send of one item of `type` at `data`, of `bytes` bytes (fewer than
  /// MpiOptions::max_message). The peer must receive as many bytes.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes,
                             MPI_Datatype type) {
    return start(true, peer, lane, const_cast<std::byte*>(data), bytes, type);
  }

  /// Starts a receive of exactly `bytes` bytes from `peer`; see Transport.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    return start(false, peer, lane, data, bytes);
  }
  /// Starts a receive into one item of `type`, of fewer bytes than MpiOptions::max_message.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes,
                                MPI_Datatype type) {
    return start(false, peer, lane, data, bytes, type);
  }

  /// Makes progress in all messages by one MPI_Test. Returns true if the message is complete, or
  /// if the request is default-constructed.
  /// @throws communication_error if the sizes of the two sides differ, or if MPI reports an error.
  ///         The program cannot continue after a wrong size: if a message of some kilobytes is too
  ///         long, Open MPI 4.1 writes past the end of the receive's memory before it reports
  ///         the error, and MPICH 4.0 ends the job.
  [[nodiscard]] bool test(Request& request);

  /// Ends all operations of this rank and makes their memory available again; see the class.
  /// @throws contract_error if there was no abort.
  void cancel(Request& request);

  /// Tells every other rank of a failure, once and without waiting; see Transport.
  void abort(const Abort& abort);

  /// Returns the abort that another rank has sent, if there is one; see Transport.
  [[nodiscard]] std::optional<Abort> aborted();

  /// Tells the other ranks this rank's place in its list after a hang; see ReportsPlaces.
  void answer(const ListPlace& place) { m_control.answer(place); }
  /// Returns the places that the ranks have told; see ReportsPlaces.
  [[nodiscard]] std::vector<std::optional<ListPlace>> places();
  /// Returns the bitwise and of the flags of all ranks that are alive; see LosesRanks.
  [[nodiscard]] std::uint32_t agree(std::uint32_t flags, Seconds watchdog);
  /// Returns the ranks that are left, and a transport between them; see LosesRanks. No watchdog
  /// covers MPI's part of the call. @throws communication_error that says so if the MPI library
  /// cannot go on after a rank has died.
  [[nodiscard]] Survivors<MpiTransport> survivors(Seconds watchdog);

  /// Notes that a rank is silent; see NotesSilence. After this, cancel() and the destructor wait
  /// for other ranks for at most a second.
  void note_silence() noexcept {
    impl::found_silent_rank = true;
    m_options.patience = std::min(m_options.patience, Seconds{1});
  }

 private:
  /// Constructs the transport of the ranks of `comm`, which are left of one with these options.
  MpiTransport(MPI_Comm comm, MpiOptions options, int lanes);

  /// Throws if an operation ended with `code`. If a rank has died, the other ranks find this out.
  void check_operation(int code, const char* where);
  /// Ends the messages of all ranks, if a rank has died.
  void revoke_if_lost();

  [[nodiscard]] MPI_Request& piece(Operation& operation, std::size_t number);

  /// Returns the bytes of piece `number` of a message of `bytes` bytes.
  [[nodiscard]] int piece_bytes(Bytes bytes, std::size_t number) const;

  Request start(bool sends, Rank peer, Lane lane, std::byte* data, Bytes bytes,
                MPI_Datatype type = MPI_BYTE);

  /// Returns true if the first incomplete piece is complete now.
  bool test_piece(Operation& operation);

  /// Returns the error for differing sizes. Some MPIs report in `came` only the bytes that fitted.
  [[nodiscard]] communication_error mismatch(const Operation& operation, int came) const;

  /// Returns the error of an operation after an abort.
  [[nodiscard]] communication_error spent(const char* where);

  [[nodiscard]] bool receiving() const;

  /// Returns true if no piece is in flight. The error of a failed piece is ignored.
  bool settled(Operation& operation);

  /// Waits until `over(operation)` is true for every open send or receive, and closes these.
  /// Returns false if `patience` ends first.
  template <class Over>
  bool close(bool sends, Over&& over);

  /// Ends all ranks, and prints the reason, because no exception can report it.
  [[noreturn]] void end_job();

  /// Ends all operations of this rank. The class description says what this guarantees.
  void unwind();

  Communicator m_comm;
  impl::AbortChannel m_control;
  MpiOptions m_options;
  int m_lanes = 0;
  std::deque<Operation> m_operations;  ///< all slots; their addresses do not change
  std::vector<Operation*> m_free;      ///< slots without a message
  bool m_unwound = false;
  bool m_revoked = false;
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/mpi_transport.ipp>
#endif
