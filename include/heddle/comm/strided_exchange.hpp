// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StridedExchange: strided boxes of memory to other ranks and from them, each by the path that a
/// table says is the fastest. For programs that send parts of Views themselves; halos and
/// redistributions of tensors are Schedules, and take a table, too.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/comm/impl/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/memory/message_memory.hpp>

namespace heddle::inline v0 {

/// A box that goes to a rank, or comes from it: bytes around an address that is said later.
struct StridedMove {
  Rank peer;           ///< the other rank, or this one
  StridedBlock block;  ///< the bytes and their order; an empty block is not sent
  friend bool operator==(const StridedMove&, const StridedMove&) = default;
};

/// Options of a StridedExchange.
struct StridedOptions {
  /// Chooses the path of each message, as measure_paths() measures it. None: in memory of the host
  /// as default_pack_gains() say; in a device's directly where MPI takes such pointers, else
  /// staged.
  std::optional<PathTable> paths = {};
  /// How to wait for other ranks, and for how long; nothing is recorded.
  ExecuteOptions execute = {};
};

namespace impl {

/// The table of the options, or what holds without one. @throws contract_error as expect_usable().
[[nodiscard]] inline PathTable paths_of(const StridedOptions& options, const BoxMemory& memory) {
  if (options.paths) {
    expect_usable(*options.paths, memory, "heddle::StridedExchange");
    return *options.paths;
  }
  if (memory.on_host) return PathTable(default_pack_gains());
  return PathTable(memory.mpi_takes_it ? StridedPath::direct : StridedPath::staged);
}

}  // namespace impl

/// The moves of one rank, to be made again and again: what is chosen, allocated and told to MPI is
/// so once. Between every two ranks the first box that one sends is the first that the other
/// receives, and so on; they have as many bytes, in any blocks.
///
///     StridedExchange<Exec> exchange(mesh.all(), sends, receives);
///     exchange.start(exec, kernel::bytes_of(u), kernel::bytes_of(u));  // from u, and into u
///     ...                                               // what touches neither
///     exchange.wait();
///
/// Boxes to this rank itself are copied without a message, in start(). The memory is that of
/// `Exec`; packing and unpacking are kernels there, but where a path leaves them to MPI. What is
/// received must not overlap what is sent, nor anything received. All ranks that have boxes for one
/// another start their exchanges on a communicator in the same order; they may wait in any.
///
/// Made collectively over `comm` the first time that one is, which outlives it. Neither copied nor
/// moved.
template <kernel::ExecutionSpace Exec>
class StridedExchange {
  using Memory = typename Exec::memory_space;

 public:
  /// @throws contract_error for a rank that is not there, boxes to this rank that are not those
  /// from it, or a table with a path that needs pointers which MPI, or kernels, do not take.
  StridedExchange(const Communicator& comm, std::vector<StridedMove> sends,
                  std::vector<StridedMove> receives, StridedOptions options = {})
      : m_transport(&comm.template attached<MpiTransport>()), m_options(std::move(options)) {
    const PathTable paths = impl::paths_of(m_options, impl::box_memory<Exec>());
    sort(std::move(sends), m_sends, m_own_sends, paths);
    sort(std::move(receives), m_receives, m_own_receives, paths);
    expects(
        std::ranges::equal(m_own_sends, m_own_receives, {}, &StridedBlock::bytes,
                           &StridedBlock::bytes),
        [&] {
          return ErrorInfo{
              where,
              "the boxes that this rank sends to itself differ in size from those that it receives",
              text("sends ", listed(m_own_sends), ", receives ", listed(m_own_receives))};
        });
    Bytes most = 0;
    for (const StridedBlock& block : m_own_sends) most = std::max(most, block.bytes());
    if (most > 0) m_own = memory::message_buffer<Memory>("heddle::comm::strided_own", most);
  }
  StridedExchange(const StridedExchange&) = delete;
  StridedExchange& operator=(const StridedExchange&) = delete;
  /// Waits, as wait() does, and does not report what that would throw, which the other ranks are
  /// told. Where an exception destroys it while messages are under way, it tells them instead.
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

  /// Begins all moves, after the work of `exec`: sends what lies around `from`, for places around
  /// `to`. Until wait() returns, or test() says true, what is sent must not be written, and where
  /// is received must not be touched. @throws contract_error where it is under way already.
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
        message.boxes.pack(exec, from);
        // Host cores are done when pack() returns: the first message goes while they pack the next.
        if constexpr (kernel::runs_on_host<Exec>) send(message, from);
      }
      if constexpr (!kernel::runs_on_host<Exec>) {
        exec.fence("heddle::comm::strided_exchange_packed");
        for (Message& message : m_sends) send(message, from);
      }
      for (std::size_t i = 0; i < m_own_sends.size(); ++i) {
        kernel::pack(exec, m_own_sends[i], from, m_own.data());
        kernel::unpack(exec, m_own_receives[i], m_own.data(), to);
      }
      return true;
    });
  }

  /// Whether all moves are over; furthers them. True where none is under way. However long that
  /// takes: who only tests does other things meanwhile, the watchdog is that of wait().
  /// @throws communication_error where another rank fails, or sends a box of another size.
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
        throw lost(text(where, ", rank ", m_transport->rank()), *abort);
      return false;
    });
    if (over) end();
    return over;
  }

  /// Returns when all moves are over; what was received is there for kernels of any instance.
  /// @throws communication_error where another rank fails, does not come within the watchdog's
  /// time from now on, or sends a box of another size; the communicator's exchanges are spent then.
  void wait() {
    if (!m_under_way) return;
    guarded([&] {
      const auto complete = [&](Message& message) {
        if (!message.open) return;
        finish(*m_transport, message.request, "StridedExchange", m_options.execute);
        arrive(message);
      };
      for (Message& message : m_receives) complete(message);
      for (Message& message : m_sends) complete(message);
      return true;
    });
    end();
  }

  /// start() and wait().
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

  /// To or from another rank.
  struct Message {
    Rank peer;
    impl::StridedMessage<Memory> boxes;
    bool receives = false;
    MpiTransport::Request request = {};
    bool open = false;
  };

  [[nodiscard]] static std::string listed(const std::vector<StridedBlock>& blocks) {
    std::string list;
    for (const StridedBlock& block : blocks)
      list += text(list.empty() ? "" : " + ", block.bytes(), " B");
    return list.empty() ? "nothing" : list;
  }

  /// Messages apart from what stays here.
  void sort(std::vector<StridedMove> moves, std::vector<Message>& messages,
            std::vector<StridedBlock>& own, const PathTable& paths) {
    for (StridedMove& move : moves) {
      expects(+move.peer < static_cast<std::size_t>(m_transport->size()), [&] {
        return ErrorInfo{where, "no such rank",
                         text("rank ", move.peer, " of ", m_transport->size())};
      });
      if (move.block.run() == 0) continue;
      if (move.peer == m_transport->rank()) {
        own.push_back(std::move(move.block));
        continue;
      }
      std::vector<StridedBlock> boxes{std::move(move.block)};
      const StridedPath path = impl::path_of(boxes, paths);
      messages.push_back({move.peer, {std::move(boxes), path}, &messages == &m_receives});
    }
  }

  void send(Message& message, const std::byte* from) {
    message.request = message.boxes.send(*m_transport, message.peer, lane, from);
    message.open = true;
  }
  /// It is complete: a received one goes to its place.
  void arrive(Message& message) {
    message.open = false;
    if (message.receives) message.boxes.unpack(*m_exec, m_to);
  }

  void end() {
    m_exec->fence("heddle::comm::strided_exchange_end");
    m_exec.reset();
    m_under_way = false;
  }

  /// An error is told to the other ranks, and is the end.
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
  Kokkos::View<std::byte*, Memory> m_own;  ///< data from this rank to itself, one box at a time
  std::optional<Exec> m_exec;
  std::byte* m_to = nullptr;
  bool m_under_way = false;
  int m_exceptions = std::uncaught_exceptions();
};

}  // namespace heddle::inline v0
