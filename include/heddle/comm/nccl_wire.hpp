// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// NcclWire: sends bytes between devices by NCCL or RCCL. With WiredTransport it becomes a
/// transport for device memory. The header is empty without the target heddle::nccl, and no
/// umbrella header includes it.

#if defined(HEDDLE_HAS_NCCL)

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/nccl.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/wired_transport.hpp>

namespace heddle::inline v0 {

/// Sends bytes between the devices of the ranks of a communicator; a model of Wire. Each rank must
/// have a device of its own. NCCL has no lanes and matches messages by order. A message that nobody
/// receives blocks all later messages of its communicator. Therefore every ordered pair of ranks
/// has a communicator of two ranks and a stream. This costs device memory, so the class is meant
/// for the ranks of a few nodes.
///
/// Messages are in device memory and are queued in streams of the wire. Kernels that write the data
/// to send, or that still read the destination, must be complete before the call.
class NcclWire {
  /// The connection from one rank to another.
  struct Channel {
    ncclComm_t comm = nullptr;
    HEDDLE_GPU(Stream_t) stream = nullptr;
  };
  /// The event that marks the end of a message. It is in a slot that is reused.
  struct Mark {
    HEDDLE_GPU(Event_t) event = nullptr;
    const Channel* channel = nullptr;  ///< null if the message is not queued yet
  };
  /// One side of a message from this rank to itself.
  struct Half {
    std::byte* data;
    Mark* mark;
  };

 public:
  /// A message in flight, until `test` has returned true.
  class Ticket {
   public:
    /// Constructs a request without a message, which counts as complete.
    Ticket() = default;

   private:
    friend class NcclWire;
    explicit Ticket(Mark* mark) : m_mark(mark) {}
    Mark* m_mark = nullptr;
  };

  /// Constructs the wire. Collective over `comm`. The current device of the calling thread becomes
  /// the rank's device and must remain current. @throws communication_error if NCCL reports an
  /// error, for example because two ranks use the same device.
  explicit NcclWire(const Communicator& comm)
      : m_rank(comm.rank()),
        m_out(static_cast<std::size_t>(comm.size())),
        m_in(static_cast<std::size_t>(comm.size())) {
    comm.expect_not_empty(s_where);
    try {
      // All pairs in one order on all ranks: none can wait for another in a circle.
      for (int low = 0; low < comm.size(); ++low)
        for (int high = low + 1; high < comm.size(); ++high) connect(comm, Rank{low}, Rank{high});
      open(m_out[+m_rank]);
    } catch (...) {
      close(false);
      throw;
    }
  }
  NcclWire(const NcclWire&) = delete;
  NcclWire& operator=(const NcclWire&) = delete;
  /// Destroys the wire. This is collective, like the construction, unless the wire was aborted.
  ~NcclWire() { close(true); }

  /// Queues a send to `peer`.
  [[nodiscard]] Ticket send(Rank peer, const std::byte* data, Bytes bytes) {
    Mark& mark = take();
    if (peer == m_rank)
      queue_own(m_own_sends, {const_cast<std::byte*>(data), &mark}, bytes);
    else
      queue(mark, m_out[+peer], peer, [&](int other, const Channel& channel) {
        return ncclSend(data, bytes, ncclInt8, other, channel.comm, channel.stream);
      });
    return Ticket(&mark);
  }

  /// Queues a receive from `peer`.
  [[nodiscard]] Ticket receive(Rank peer, std::byte* data, Bytes bytes) {
    Mark& mark = take();
    if (peer == m_rank)
      queue_own(m_own_receives, {data, &mark}, bytes);
    else
      queue(mark, m_in[+peer], peer, [&](int other, const Channel& channel) {
        return ncclRecv(data, bytes, ncclInt8, other, channel.comm, channel.stream);
      });
    return Ticket(&mark);
  }

  /// Returns true if the message is complete. @throws communication_error if NCCL or the device
  /// reports an error.
  [[nodiscard]] bool test(Ticket& ticket) {
    constexpr const char* where = "heddle::NcclWire::test";
    Mark* const mark = ticket.m_mark;
    if (mark == nullptr) return true;
    if (mark->channel == nullptr) return false;
    const auto state = HEDDLE_GPU(EventQuery)(mark->event);
    if (state == HEDDLE_GPU(ErrorNotReady)) {
      static_cast<void>(HEDDLE_GPU(GetLastError)());  // or Kokkos reports it at the next launch
      ncclResult_t result = ncclSuccess;
      if (mark->channel->comm != nullptr)
        impl::check_nccl(ncclCommGetAsyncError(mark->channel->comm, &result), where);
      impl::check_nccl(result, where);
      return false;
    }
    impl::check_gpu(state, where);
    m_free.push_back(std::exchange(ticket.m_mark, nullptr));
    return true;
  }

  /// Ends all queued messages. The wire cannot be used afterwards.
  void abort() {
    for (std::vector<Channel>* channels : {&m_out, &m_in})
      for (Channel& channel : *channels)
        if (channel.comm != nullptr) ncclCommAbort(std::exchange(channel.comm, nullptr));
    m_own_sends.clear();
    m_own_receives.clear();
  }

 private:
  static constexpr const char* s_where = "heddle::NcclWire";

  static void open(Channel& channel) {
    impl::check_gpu(
        HEDDLE_GPU(StreamCreateWithFlags)(&channel.stream, HEDDLE_GPU(StreamNonBlocking)), s_where);
  }

  /// Creates the two channels between two ranks. The lower rank is rank 0 of both and creates their
  /// ids.
  void connect(const Communicator& comm, Rank low, Rank high) {
    if (m_rank != low && m_rank != high) return;
    const bool leads = m_rank == low;
    const Rank peer = leads ? high : low;
    const auto other = static_cast<int>(peer.value);
    Channel* const channels[] = {&(leads ? m_out : m_in)[+peer], &(leads ? m_in : m_out)[+peer]};
    for (Channel* const channel : channels) {
      ncclUniqueId id{};
      if (leads) {
        impl::check_nccl(ncclGetUniqueId(&id), s_where);
        check(MPI_Send(&id, sizeof id, MPI_BYTE, other, 0, comm.get()), s_where);
      } else {
        check(MPI_Recv(&id, sizeof id, MPI_BYTE, other, 0, comm.get(), MPI_STATUS_IGNORE), s_where);
      }
      impl::check_nccl(ncclCommInitRank(&channel->comm, 2, id, leads ? 0 : 1), s_where);
      open(*channel);
    }
  }

  Mark& take() {
    if (m_free.empty()) {
      Mark& made = m_marks.emplace_back();
      impl::check_gpu(HEDDLE_GPU(EventCreateWithFlags)(&made.event, HEDDLE_GPU(EventDisableTiming)),
                      s_where);
      m_free.push_back(&made);
    }
    Mark& mark = *m_free.back();
    m_free.pop_back();
    mark.channel = nullptr;
    return mark;
  }

  void record(Mark& mark, const Channel& channel) {
    impl::check_gpu(HEDDLE_GPU(EventRecord)(mark.event, channel.stream), s_where);
    mark.channel = &channel;
  }

  template <class Start>
  void queue(Mark& mark, const Channel& channel, Rank peer, Start&& start) {
    impl::check_nccl(start(m_rank < peer ? 1 : 0, channel), s_where);
    record(mark, channel);
  }

  /// Copies messages from this rank to itself when both sides have been queued.
  void queue_own(std::deque<Half>& side, Half half, Bytes bytes) {
    side.push_back(half);
    if (m_own_sends.empty() || m_own_receives.empty()) return;
    const Half from = m_own_sends.front();
    const Half to = m_own_receives.front();
    m_own_sends.pop_front();
    m_own_receives.pop_front();
    const Channel& own = m_out[+m_rank];
    impl::check_gpu(
        HEDDLE_GPU(MemcpyAsync)(to.data, from.data, bytes, HEDDLE_GPU(MemcpyDefault), own.stream),
        s_where);
    record(*from.mark, own);
    record(*to.mark, own);
  }

  /// Destroys the channels in the order of connect(), because destroying a communicator may wait
  /// for its peer.
  void close(bool whole) noexcept {
    const auto end = [&](Channel& channel) {
      if (channel.comm != nullptr)
        whole ? ncclCommDestroy(channel.comm) : ncclCommAbort(channel.comm);
      if (channel.stream != nullptr) static_cast<void>(HEDDLE_GPU(StreamDestroy)(channel.stream));
    };
    for (std::size_t peer = 0; peer < m_out.size(); ++peer) {
      const bool out_first = m_rank < Rank{peer};
      end(out_first ? m_out[peer] : m_in[peer]);
      end(out_first ? m_in[peer] : m_out[peer]);
    }
    for (Mark& mark : m_marks)
      if (mark.event != nullptr) static_cast<void>(HEDDLE_GPU(EventDestroy)(mark.event));
  }

  Rank m_rank;
  std::vector<Channel> m_out;  ///< by peer; the channel to this rank itself has only a stream
  std::vector<Channel> m_in;
  std::deque<Mark> m_marks;  ///< all slots; their addresses do not change
  std::vector<Mark*> m_free;
  std::deque<Half> m_own_sends, m_own_receives;  ///< sides without their counterpart
};
static_assert(Wire<NcclWire>);

/// Sends messages between device memories by NCCL, and announces them over MPI:
///
///     MpiTransport words(comm.get());
///     NcclWire wire(comm);
///     NcclTransport transport(words, wire);
using NcclTransport = WiredTransport<MpiTransport, NcclWire>;
static_assert(Transport<NcclTransport>);

}  // namespace heddle::inline v0

#endif
