// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ThreadTransport: a transport whose ranks are threads of one process and share their memory. It
/// serves streaming pipelines in plain C++, and runs any Schedule without MPI.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/survivors.hpp>
#include <heddle/execute/thread_hub.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

/// One rank's end of the transport. One thread uses it. It models Transport,
/// SharesMemory, ReportsPlaces and LosesRanks.
class ThreadTransport {
  struct End;

 public:
  /// Refers to a message until `test` has returned true. Copies refer to the same message.
  class Request {
   public:
    Request() = default;

   private:
    friend class ThreadTransport;
    End* m_end = nullptr;
    /// The request is complete when so many messages of the channel have been received.
    std::uint64_t m_number = 0;
  };

  /// Constructs the end of `rank`. The hub must outlive this object and all transports that
  /// survivors() returns.
  /// @throws contract_error if the hub has no such rank.
  ThreadTransport(ThreadHub& hub, Rank rank);
  ThreadTransport(const ThreadTransport&) = delete;
  ThreadTransport& operator=(const ThreadTransport&) = delete;
  /// After an abort, tells the other ranks that this rank has no place in a list any more.
  ~ThreadTransport();

  /// Returns this thread's rank.
  [[nodiscard]] Rank rank() const noexcept { return m_rank; }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return m_hub->size(); }

  /// Starts a message to `peer`; see Transport.
  Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes);

  /// Starts the receive of a message of exactly `bytes` bytes from `peer`; see Transport.
  Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes);

  /// Returns true if the message is complete, and makes progress on all others.
  /// @throws communication_error if a message and its receive have different sizes.
  [[nodiscard]] bool test(Request& request);

  /// Cancels an unfinished operation, whose memory is free afterwards; see Transport.
  void cancel(Request& request);

  /// Returns the domain of every rank: all are in one; see SharesMemory.
  [[nodiscard]] std::vector<std::uint32_t> domains() const {
    return std::vector<std::uint32_t>(static_cast<std::size_t>(size()), 0);
  }
  /// Allocates a block of memory for every rank; see SharesMemory.
  [[nodiscard]] SharedBlocks share(Bytes bytes);

  /// Tells every other rank of a failure, once; see Transport.
  void abort(const Abort& abort);
  /// Returns the failure of another rank, if there is one; see Transport.
  [[nodiscard]] std::optional<Abort> aborted();
  /// Tells the other ranks this rank's place in its list after a hang; see ReportsPlaces.
  void answer(const ListPlace& place);
  /// Returns the places that the ranks have told; see ReportsPlaces.
  [[nodiscard]] std::vector<std::optional<ListPlace>> places();

  /// Ends this rank as the end of its process would: the other ranks hear that it has died. Call it
  /// on the newest transport of this rank, because the ranks of newer ones do not hear of it. The
  /// thread must leave its work by an exception then, which run_threads() does not throw again.
  /// Tests of survive() use it.
  void die();
  /// Returns the bitwise and of the flags of all ranks that are alive; see LosesRanks.
  [[nodiscard]] std::uint32_t agree(std::uint32_t flags, Seconds watchdog);
  /// Returns the ranks that are left, and a transport between them; see LosesRanks.
  [[nodiscard]] Survivors<ThreadTransport> survivors(Seconds watchdog);
  /// Returns true if this rank has died.
  [[nodiscard]] bool is_dead() const;

 private:
  /// Constructs the end of a rank in a hub that the ranks which are left own together. `before` is
  /// its end in the hub before.
  ThreadTransport(std::shared_ptr<ThreadHub> hub, Rank rank, const ThreadTransport& before);
  /// Waits until all ranks that are alive have come to this rank's next meeting.
  [[nodiscard]] std::shared_ptr<ThreadHub::Meeting> meet(const char* where, std::uint32_t flags,
                                                         Seconds watchdog);

  static Request request(End& end);
  End& find(Rank peer, Lane lane, bool sends);
  /// Returns a new end of a channel.
  End& connect(Rank peer, Lane lane, bool sends);
  void progress();
  /// Moves sends that found the ring full into it.
  static void push(End& end);
  /// Copies the messages that have arrived and meet a receive.
  void pull(End& end);

  std::shared_ptr<ThreadHub> m_owned;  ///< the hub of ranks that are left
  ThreadHub* m_hub;
  Rank m_rank;
  ThreadHub* m_first_hub;  ///< the hub with which the thread began
  Rank m_first_rank;
  std::vector<std::unique_ptr<End>> m_ends;
  std::size_t m_shares = 0;    ///< the number of calls of share()
  std::size_t m_meetings = 0;  ///< the number of calls of meet()
};
static_assert(SharesMemory<ThreadTransport> && ReportsPlaces<ThreadTransport> &&
              LosesRanks<ThreadTransport>);

/// Runs `body(ThreadTransport&)` on `ranks` threads, one per rank, and waits for all of them. If
/// one of them throws, the others are told (see Transport::abort). Then one error is thrown again:
/// that of the rank that was the first to call abort(), which every rank does that throws. If this
/// rank has thrown nothing, it is the error of the lowest rank that has. A rank that has died does
/// not count. @throws contract_error if `ranks` is below 1; std::system_error, before any body is
/// called, if the system does not start the threads.
template <std::invocable<ThreadTransport&> Body>
void run_threads(int ranks, Body&& body) {
  const auto run = [&body](ThreadTransport& transport) { body(transport); };
  impl::run_threads(ranks, run);
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/thread_transport.ipp>
#endif
