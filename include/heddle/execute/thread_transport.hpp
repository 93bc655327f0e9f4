// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ThreadTransport: a transport whose ranks are threads of one process and share their memory. It
/// serves streaming pipelines in plain C++, and runs any Schedule without MPI.

#include <array>
#include <atomic>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/impl/ring_queue.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The messages of one (source, destination, lane): a ring with one writer and one reader. The
/// receiver copies directly from the sender's memory, once.
struct ThreadChannel {
  static constexpr std::size_t slots = 256;
  struct Message {
    const std::byte* data;
    Bytes bytes;
  };

  std::array<Message, slots> ring{};
  alignas(64) std::atomic<std::uint64_t> sent{0};      ///< written by the sender
  alignas(64) std::atomic<std::uint64_t> received{0};  ///< written by the receiver
  /// Dekker's protocol for the end of the sender's memory. The receiver announces that it copies
  /// and then checks whether the memory is closed. The sender closes it and then waits until a copy
  /// ends.
  alignas(64) std::atomic<bool> copying{false};
  std::atomic<bool> closed{false};
};

}  // namespace impl

/// The state that the ranks of one process share.
class ThreadHub {
 public:
  /// Constructs the hub of `ranks` ranks. @throws contract_error if there are none.
  explicit ThreadHub(int ranks);

  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return m_ranks; }

 private:
  friend class ThreadTransport;

  impl::ThreadChannel& channel(Rank from, Rank to, Lane lane);

  using Blocks = std::vector<std::shared_ptr<std::byte>>;  // of every rank

  /// Adds a rank's block to the blocks of the `number`-th share. The hub keeps them until all ranks
  /// have added theirs, so that a rank that fails takes no memory from another one.
  std::shared_ptr<Blocks> put(std::size_t number, Rank rank, std::shared_ptr<std::byte> block);

  /// Notes the place of a rank, unless it has told one. The mutex is held.
  void tell(Rank rank, const ListPlace& place);

  struct Key {
    Rank from, to;
    Lane lane;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  int m_ranks;
  std::mutex m_mutex;
  std::map<Key, std::unique_ptr<impl::ThreadChannel>> m_channels;
  std::map<std::size_t, std::pair<std::shared_ptr<Blocks>, int>> m_blocks;  ///< by share
  std::atomic<bool> m_aborted{false};
  Abort m_abort;
  std::vector<std::optional<ListPlace>> m_places;  ///< by rank, after an abort
};

/// One rank's end of the transport. One thread uses it. It models Transport.
class ThreadTransport {
  struct End {
    impl::ThreadChannel* channel;
    impl::RingQueue<impl::ThreadChannel::Message> waiting;  ///< sends that found the ring full
    impl::RingQueue<std::pair<std::byte*, Bytes>> posted;  ///< receives that no message has matched
    Rank peer;
    Lane lane;
    bool sends;
    std::uint64_t started = 0;
  };

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

  /// Constructs the end of `rank`. The hub must outlive it.
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
  Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    End& end = find(peer, lane, true);
    end.waiting.push_back({data, bytes});
    push(end);
    return request(end);
  }

  /// Starts the receive of a message of exactly `bytes` bytes from `peer`; see Transport.
  Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    End& end = find(peer, lane, false);
    end.posted.push_back({data, bytes});
    return request(end);
  }

  /// Returns true if the message is complete, and makes progress on all others.
  /// @throws communication_error if a message and its receive have different sizes.
  [[nodiscard]] bool test(Request& request) {
    progress();
    return request.m_end == nullptr ||
           request.m_end->channel->received.load(std::memory_order_acquire) >= request.m_number;
  }

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
  [[nodiscard]] std::optional<Abort> aborted() {
    if (!m_hub->m_aborted.load()) return std::nullopt;
    return told();
  }
  /// Tells the other ranks this rank's place in its list after a hang; see ReportsPlaces.
  void answer(const ListPlace& place);
  /// Returns the places that the ranks have told; see ReportsPlaces.
  [[nodiscard]] std::vector<std::optional<ListPlace>> places();

 private:
  static Request request(End& end) {
    Request request;
    request.m_end = &end;
    request.m_number = ++end.started;
    return request;
  }

  End& find(Rank peer, Lane lane, bool sends) {
    for (const auto& end : m_ends)
      if (end->peer == peer && end->lane == lane && end->sends == sends) return *end;
    return connect(peer, lane, sends);
  }

  /// Returns a new end of a channel.
  End& connect(Rank peer, Lane lane, bool sends);
  /// Returns the Abort that the hub has, unless it is that of this rank.
  [[nodiscard]] std::optional<Abort> told();

  void progress() {
    for (const auto& end : m_ends) {
      if (!end->waiting.empty()) push(*end);
      if (!end->posted.empty()) pull(*end);
    }
  }

  /// Moves sends that found the ring full into it.
  static void push(End& end);
  /// Copies the messages that have arrived and meet a receive.
  void pull(End& end);

  ThreadHub* m_hub;
  Rank m_rank;
  std::vector<std::unique_ptr<End>> m_ends;
  std::size_t m_shares = 0;  ///< the number of calls of share()
};
static_assert(SharesMemory<ThreadTransport>);

namespace impl {

/// Does the work of heddle::run_threads().
void run_threads(int ranks, const std::function<void(ThreadTransport&)>& body);

}  // namespace impl

/// Runs `body(ThreadTransport&)` on `ranks` threads, one per rank, and waits for all of them. If
/// one of them throws, the others are told (see Transport::abort). Then the error of the rank that
/// failed first is thrown again. @throws contract_error if `ranks` is below 1; std::system_error,
/// before any body is called, if the system does not start the threads.
template <std::invocable<ThreadTransport&> Body>
void run_threads(int ranks, Body&& body) {
  impl::run_threads(ranks, [&body](ThreadTransport& transport) { body(transport); });
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/thread_transport.ipp>
#endif
