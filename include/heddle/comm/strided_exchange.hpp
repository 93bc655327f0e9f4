// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedExchange: exchanges strided boxes of memory with other ranks, each by the path that a
/// table gives as the fastest. It is for programs that send parts of Views themselves. The halos
/// and redistributions of tensors are Schedules, which also accept such a table.

#include <cstddef>
#include <exception>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/memory/internal/message_room.hpp>

namespace heddle::inline v0 {

/// A box to send to a rank or to receive from it. Its addresses are relative to an address that
/// start() gets.
struct StridedMove {
  Rank peer;           ///< the other rank, or this one
  StridedBlock block;  ///< the bytes and their order; an empty block is not sent
  friend bool operator==(const StridedMove&, const StridedMove&) = default;
};

/// The options of a StridedExchange.
struct StridedOptions {
  /// The table that chooses the path of each message; see measure_paths(). If it is not set, host
  /// memory uses default_pack_gains(). Device memory uses the direct path if MPI accepts device
  /// pointers, else the staged path.
  std::optional<PathTable> paths = {};
  /// How to wait for other ranks, and for how long. Nothing is recorded.
  ExecuteOptions wait = {};
};

namespace impl {

/// Returns the table of the options, or the default without one. Throws the errors of
/// expect_usable().
[[nodiscard]] PathTable paths_of(const StridedOptions& options, const BoxMemory& memory);

/// Throws if the boxes that a rank sends to itself differ in size from those that it receives.
/// Returns the bytes of the largest.
[[nodiscard]] Bytes expect_same_sizes(const std::vector<StridedBlock>& sends,
                                      const std::vector<StridedBlock>& receives);

/// Bytes that a View refers to.
template <class Byte, class Memory>
using BytesIn = Kokkos::View<Byte*, Memory, Kokkos::MemoryUnmanaged>;

/// Puts the boxes around `from` in one piece, unless MPI does. Queued in `exec`; on host cores it
/// is done when this returns.
template <kernel::ExecutionSpace Exec>
void pack_boxes(const Exec& exec, const StridedMessage& message, const std::byte* from) {
  using Memory = typename Exec::memory_space;
  if (message.packed() == nullptr) return;
  kernel::pack(exec, message.blocks(), from, message.packed());
  if (message.staged() != nullptr)
    Kokkos::deep_copy(
        exec, BytesIn<std::byte, HostMemoryBeside<Memory>>(message.staged(), message.bytes()),
        BytesIn<const std::byte, Memory>(message.packed(), message.bytes()));
}
/// Puts the piece, which has come, to the boxes around `to`, likewise.
template <kernel::ExecutionSpace Exec>
void unpack_boxes(const Exec& exec, const StridedMessage& message, std::byte* to) {
  using Memory = typename Exec::memory_space;
  if (message.packed() == nullptr) return;
  if (message.staged() != nullptr)
    Kokkos::deep_copy(
        exec, BytesIn<std::byte, Memory>(message.packed(), message.bytes()),
        BytesIn<const std::byte, HostMemoryBeside<Memory>>(message.staged(), message.bytes()));
  kernel::unpack(exec, message.blocks(), message.packed(), to);
}

}  // namespace impl

/// The exchanges of boxes of one rank, which can be performed repeatedly. Paths are chosen, memory
/// is allocated and MPI datatypes are created once, in the constructor. Between two ranks, the
/// first box that one sends is the first that the other receives, and so on. Both boxes must have
/// the same number of bytes, but may have different shapes.
///
///     StridedExchange<Exec> exchange(mesh.all(), sends, receives);
///     exchange.start(exec, kernel::bytes_of(u), kernel::bytes_of(u));  // from u, and into u
///     ...                                               // work that does not access u
///     exchange.wait();
///
/// Boxes from this rank to itself are copied in start(), without a message. The memory must be that
/// of `Exec`. Kernels of `Exec` pack and unpack, unless a path leaves this to MPI. Received boxes
/// must not overlap each other or any sent box. All ranks that exchange boxes must start their
/// exchanges on a communicator in the same order; they may wait in any order.
///
/// The first construction over `comm` is collective. `comm` must outlive the object. The object can
/// neither be copied nor moved.
template <kernel::ExecutionSpace Exec>
class StridedExchange {
  using Memory = typename Exec::memory_space;

 public:
  /// Constructs the exchange. @throws contract_error if there is no such rank, if the boxes from
  /// this rank to itself do not match, if a path of the table needs pointers that MPI or kernels do
  /// not accept, or if `options.wait` is invalid.
  StridedExchange(const Communicator& comm, std::vector<StridedMove> sends,
                  std::vector<StridedMove> receives, StridedOptions options = {})
      : m_transport(&comm.template attached<MpiTransport>()), m_options(std::move(options)) {
    impl::expect_valid(m_options.wait, where);
    const PathTable paths = impl::paths_of(m_options, impl::box_memory<Exec>());
    sort("sends", std::move(sends), m_sends, m_own_sends, paths);
    sort("receives", std::move(receives), m_receives, m_own_receives, paths);
    const Bytes most = impl::expect_same_sizes(m_own_sends, m_own_receives);
    if (most > 0) m_own = memory::impl::message_room<Memory>("heddle::comm::strided_own", most);
  }
  StridedExchange(const StridedExchange&) = delete;
  StridedExchange& operator=(const StridedExchange&) = delete;
  /// Waits like wait(). Errors are told to the other ranks but not thrown. If an exception destroys
  /// the object while messages are in flight, it does not wait, but tells the other ranks.
  ~StridedExchange() {
    if (!m_under_way) return;
    try {
      if (std::uncaught_exceptions() > m_exceptions)
        give_up("an exception left its scope");
      else
        wait();
    } catch (...) {  // wait() tells, a destructor cannot
    }
  }

  /// Starts all exchanges after the work of `exec`. Boxes to send are relative to `from`, and boxes
  /// to receive are relative to `to`. Until wait() has returned or test() has returned true, do not
  /// write sent boxes and do not access received boxes. @throws contract_error if the exchange is
  /// already in flight.
  void start(const Exec& exec, const std::byte* from, std::byte* to) {
    expects(!m_under_way, [] {
      return ErrorInfo{where, "the exchange is already in flight", "start() was called twice",
                       "call wait() before the next start()"};
    });
    exec.fence("heddle::comm::strided_exchange_begin");
    m_exec.emplace(exec);
    m_to = to;
    m_under_way = true;
    guarded([&] {
      for (Message& message : m_receives) {
        message.request = message.boxes.receive(*m_transport, message.peer, lane, to);
        message.open = true;
      }
      for (Message& message : m_sends) {
        impl::pack_boxes(exec, message.boxes, from);
        // Host cores are done when this returns: the first message goes while they pack the next.
        if constexpr (kernel::runs_on_host<Exec>) send(message, from);
      }
      if constexpr (!kernel::runs_on_host<Exec>) {
        exec.fence("heddle::comm::strided_exchange_packed");
        for (Message& message : m_sends) send(message, from);
      }
      for (std::size_t i = 0; i < m_own_sends.size(); ++i) {
        kernel::pack(exec, m_own_sends[i], from, m_own.data);
        kernel::unpack(exec, m_own_receives[i], m_own.data, to);
      }
      return true;
    });
  }

  /// Returns true if all exchanges are complete, or if none was started. Makes progress. The
  /// watchdog does not limit repeated tests, because the caller works between them; it limits
  /// wait().
  /// @throws communication_error if another rank fails, or sends a box of another size.
  [[nodiscard]] bool test() {
    if (!m_under_way) return true;
    const bool over = guarded([&] {
      bool all = true;
      const auto further = [&](Message& message) {
        if (message.open && m_transport->test(message.request)) arrive(message);
        all = all && !message.open;
      };
      for (Message& message : m_receives) further(message);
      for (Message& message : m_sends) further(message);
      if (all) return true;
      if (const std::optional<Abort> abort = m_transport->aborted())
        throw impl::lost(text(where, ", rank ", m_transport->rank()), *abort);
      return false;
    });
    if (over) end();
    return over;
  }

  /// Returns when all exchanges are complete. The received data are available to kernels of any
  /// instance.
  /// @throws communication_error if another rank fails, does not take part within the watchdog's
  ///         time from now on, or sends a box of another size. Afterwards no exchange can use the
  ///         communicator.
  void wait() {
    if (!m_under_way) return;
    guarded([&] {
      const auto complete = [&](Message& message) {
        if (!message.open) return;
        impl::finish(*m_transport, message.request, "StridedExchange", m_options.wait,
                     message.peer);
        arrive(message);
      };
      for (Message& message : m_receives) complete(message);
      for (Message& message : m_sends) complete(message);
      return true;
    });
    end();
  }

  /// Calls start() and wait().
  void operator()(const Exec& exec, const std::byte* from, std::byte* to) {
    start(exec, from, to);
    wait();
  }

  /// Prints a line for every message, for example "to rank 1: 8 B of 256 x 2048, direct".
  friend std::ostream& operator<<(std::ostream& out, const StridedExchange& exchange) {
    const auto print = [&](const char* way, const std::vector<Message>& messages) {
      for (const Message& message : messages)
        out << way << " rank " << message.peer << ": " << message.boxes << '\n';
    };
    print("to", exchange.m_sends);
    print("from", exchange.m_receives);
    return out;
  }

 private:
  static constexpr const char* where = "heddle::StridedExchange";

  /// A message to or from another rank.
  struct Message {
    Rank peer;
    impl::StridedMessage boxes;
    bool receives = false;
    MpiTransport::Request request = {};
    bool open = false;
  };

  /// Separates the boxes to other ranks from those to this rank.
  void sort(const char* name, std::vector<StridedMove> moves, std::vector<Message>& messages,
            std::vector<StridedBlock>& own, const PathTable& paths) {
    for (StridedMove& move : moves) {
      expects(+move.peer < static_cast<std::size_t>(m_transport->size()), [&] {
        return ErrorInfo{where, "no such rank",
                         text(name, "[", &move - moves.data(), "].peer is rank ", move.peer, " of ",
                              m_transport->size())};
      });
      if (move.block.run() == 0) continue;
      if (move.peer == m_transport->rank()) {
        own.push_back(std::move(move.block));
        continue;
      }
      std::vector<StridedBlock> boxes{std::move(move.block)};
      const StridedPath path = impl::path_of(boxes, paths);
      messages.push_back({move.peer, impl::strided_message<Memory>(std::move(boxes), path),
                          &messages == &m_receives});
    }
  }

  void send(Message& message, const std::byte* from) {
    message.request = message.boxes.send(*m_transport, message.peer, lane, from);
    message.open = true;
  }
  /// Finishes a complete message. A received one is unpacked to its destination.
  void arrive(Message& message) {
    message.open = false;
    if (message.receives) impl::unpack_boxes(*m_exec, message.boxes, m_to);
  }

  void end() {
    m_exec->fence("heddle::comm::strided_exchange_end");
    m_exec.reset();
    m_under_way = false;
  }

  /// Runs `work`. If it throws, tells the other ranks and ends the exchange.
  template <class Call>
  bool guarded(Call&& call) {
    try {
      return call();
    } catch (const std::exception& error) {
      give_up(error.what());
      throw;
    }
  }
  void give_up(const char* reason) {
    m_under_way = false;
    if (!m_transport->aborted())
      m_transport->abort({m_transport->rank(), "StridedExchange", reason});
    for (std::vector<Message>* const messages : {&m_receives, &m_sends})
      for (Message& message : *messages)
        if (std::exchange(message.open, false)) m_transport->cancel(message.request);
  }

  static constexpr Lane lane{0};

  MpiTransport* m_transport;
  StridedOptions m_options;
  std::vector<Message> m_sends, m_receives;
  std::vector<StridedBlock> m_own_sends, m_own_receives;
  memory::impl::Room m_own;  ///< data from this rank to itself, one box at a time
  std::optional<Exec> m_exec;
  std::byte* m_to = nullptr;
  bool m_under_way = false;
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/strided_exchange.ipp>
#endif
