// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedTransport: messages by MPI between all ranks, and memory shared by the ranks of a host in
/// MPI shared windows. Collectives and pipelines use it to read the memory of another rank
/// directly.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/shared_blocks.hpp>

namespace heddle::inline v0 {

/// Options of a SharedTransport.
struct SharedOptions {
  MpiOptions messages = {};  ///< options of the messages
  /// The maximum number of ranks of a host that share memory; 0: all ranks of the host. Use a
  /// smaller number if parts of the host are far from each other, or to emulate several hosts.
  int domain = 0;
  Seconds watchdog = 120;  ///< maximum wait for other ranks in share(), in seconds; 0: no limit
};

/// One rank's end of a group of MPI processes; a model of SharesMemory. All messages and aborts use
/// MpiTransport, also those between ranks of one host.
///
/// The memory domains are the hosts, as MPI_Comm_split_type finds them. A window is freed in the
/// first share() or destructor after all ranks have released their blocks. After an abort windows
/// are not freed, because that is collective.
class SharedTransport {
  static_assert(ProgressCounter::is_always_lock_free,
                "heddle::SharedTransport: processes see each other's progress without locks");

 public:
  /// A message in flight; see MpiTransport.
  using Request = MpiTransport::Request;

  /// Constructs the transport. Collective over `comm`. @throws contract_error if
  /// SharedOptions::domain is negative, and the errors of MpiTransport.
  explicit SharedTransport(MPI_Comm comm, SharedOptions options = {})
      : m_messages(comm, options.messages),
        m_all(comm),
        m_host(host_of(m_all)),
        m_domain(domain_of(m_host, options)),
        m_watchdog(options.watchdog),
        m_patience(options.messages.patience) {
    const auto mine = static_cast<std::int32_t>(rank().value);
    m_members.resize(static_cast<std::size_t>(m_domain.size()));
    check(MPI_Allgather(&mine, 1, MPI_INT32_T, m_members.data(), 1, MPI_INT32_T, m_domain.get()),
          where);
    m_domains.resize(static_cast<std::size_t>(size()));
    const auto first = static_cast<std::uint32_t>(m_members[0]);
    check(MPI_Allgather(&first, 1, MPI_UINT32_T, m_domains.data(), 1, MPI_UINT32_T, m_all.get()),
          where);
  }
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  /// Destroys the transport. This is collective, like the destructor of MpiTransport. Blocks that a
  /// rank still uses remain until the process ends.
  ~SharedTransport() {
    if (!impl::mpi_is_up()) return;
    try {
      m_watchdog = m_patience;
      if (!m_over && std::uncaught_exceptions() == m_exceptions && !aborted()) free_unused();
    } catch (...) {  // somebody does not come: nothing that all must do together can be done
      m_over = true;
    }
    if (!m_over && std::uncaught_exceptions() == m_exceptions) return;
    static_cast<void>(m_domain.release());
    static_cast<void>(m_host.release());
    static_cast<void>(m_all.release());
  }

  /// Returns this process's rank in the group.
  [[nodiscard]] Rank rank() const noexcept { return m_messages.rank(); }
  /// Returns the number of ranks in the group.
  [[nodiscard]] int size() const noexcept { return m_messages.size(); }

  /// Starts a send; see MpiTransport for this function and the next five.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    return m_messages.send(peer, lane, data, bytes);
  }
  /// Starts a receive.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    return m_messages.receive(peer, lane, data, bytes);
  }
  /// Returns true if a message is complete.
  [[nodiscard]] bool test(Request& request) { return m_messages.test(request); }
  /// Ends all operations of this rank after an abort, and makes their memory available again.
  void cancel(Request& request) { m_messages.cancel(request); }
  /// Tells every other rank of a failure, once.
  void abort(const Abort& abort) {
    m_over = true;
    m_messages.abort(abort);
  }
  /// Returns the abort that another rank has sent, if there is one.
  [[nodiscard]] std::optional<Abort> aborted() {
    std::optional<Abort> told = m_messages.aborted();
    m_over = m_over || told.has_value();
    return told;
  }

  /// Returns for every rank the lowest rank of its host; see SharesMemory.
  [[nodiscard]] std::vector<std::uint32_t> domains() const { return m_domains; }

  /// Sets the maximum wait for other ranks in share(), in seconds; see SharedOptions.
  void watchdog(Seconds longest) noexcept { m_watchdog = longest; }

  /// Allocates a block of shared memory on every rank; see SharesMemory. Reuse the blocks, because
  /// each call takes as long as an allocation of new pages. No watchdog covers MPI's part of the
  /// call.
  /// @throws out_of_memory on all ranks if the host does not have the memory that its ranks
  ///         request, plus a sixteenth. The ranks can continue after this error.
  /// @throws communication_error if another rank fails or does not take part. If another program
  ///         allocates the memory between the check and the creation of the window, MPI may report
  ///         the error to one rank only and leave the others waiting; Open MPI 4.1 does so.
  [[nodiscard]] SharedBlocks share(Bytes bytes) {
    free_unused();
    // Aligned here: MPI promises no more than that the memory is there.
    const Bytes whole = bytes + alignment;
    // Asked before MPI is: where Open MPI finds no room, one rank hears of it and the others hang.
    // It wants a twentieth more than it takes, here a sixteenth; domains of a host share its room.
    const Bytes wanted = together(m_host, MPI_SUM, {with_pages(whole)})[0];
    if (!all_have(wanted + wanted / 16 <= room())) refuse(bytes);
    auto window = std::make_shared<Window>();
    const bool here =
        together(m_domain, MPI_MIN, {allocate(whole, *window) ? Bytes{1} : 0})[0] != 0;
    if (!all_have(here)) {
      // One that a rank of the domain has not stays: to free it takes all of them.
      if (here) check(MPI_Win_free(&window->handle), where);
      refuse(bytes);
    }
    SharedBlocks blocks{std::vector<std::byte*>(m_domains.size(), nullptr), window};
    for (std::size_t r = 0; r < m_members.size(); ++r) {
      MPI_Aint length = 0;
      int unit = 0;
      void* begin = nullptr;
      check(MPI_Win_shared_query(window->handle, static_cast<int>(r), &length, &unit, &begin),
            where);
      // Pages begin at the same addresses, modulo their size, in all processes.
      auto* const first = static_cast<std::byte*>(begin);
      const auto off = reinterpret_cast<std::uintptr_t>(first) % alignment;
      blocks.of[static_cast<std::size_t>(m_members[r])] = first + (off == 0 ? 0 : alignment - off);
    }
    m_windows.push_back(std::move(window));
    return blocks;
  }

 private:
  static constexpr const char* where = "heddle::SharedTransport";
  static constexpr Bytes alignment = 64;

  struct Window {
    MPI_Win handle = MPI_WIN_NULL;
  };

  /// Returns the ranks of this rank's host.
  static Communicator host_of(const Communicator& all) {
    const auto self = static_cast<int>(all.rank().value);
    MPI_Comm host = MPI_COMM_NULL;
    check(MPI_Comm_split_type(all.get(), MPI_COMM_TYPE_SHARED, self, MPI_INFO_NULL, &host), where);
    int first = self;
    check(MPI_Bcast(&first, 1, MPI_INT, 0, host), where);
    check(MPI_Comm_free(&host), where);
    return all.split(first, self);
  }

  /// Returns the ranks of `host` that share memory with this one.
  static Communicator domain_of(const Communicator& host, const SharedOptions& options) {
    expects(options.domain >= 0, [&] {
      return ErrorInfo{where, "a memory domain needs at least one rank",
                       text("domain = ", options.domain), "use 0 for all ranks of a host"};
    });
    const auto place = static_cast<int>(host.rank().value);
    return host.split(options.domain == 0 ? 0 : place / options.domain, place);
  }

  /// Returns the most memory of the host that a window needs for `bytes` of one rank: whole pages,
  /// which may have 64 KiB, and one page more for MPI's own data about the rank.
  static Bytes with_pages(Bytes bytes) {
    constexpr Bytes page = Bytes{64} << 10;
    return (bytes / page + 2) * page;
  }

  /// Returns the bytes of shared memory that the host has left, or the maximum if that is unknown.
  static Bytes room() {
    std::error_code unknown;
    const std::filesystem::space_info space = std::filesystem::space("/dev/shm", unknown);
    return unknown ? std::numeric_limits<Bytes>::max() : space.available;
  }

  /// Creates a window of zeros. Returns false if MPI cannot create it.
  bool allocate(Bytes whole, Window& window) const {
    void* begin = nullptr;
    MPI_Info apart = MPI_INFO_NULL;  // each rank's pages are its own, and near to it
    check(MPI_Info_create(&apart), where);
    MPI_Info_set(apart, "alloc_shared_noncontig", "true");
    const int code = MPI_Win_allocate_shared(static_cast<MPI_Aint>(whole), 1, apart, m_domain.get(),
                                             &begin, &window.handle);
    MPI_Info_free(&apart);
    if (code == MPI_SUCCESS) std::memset(begin, 0, whole);
    return code == MPI_SUCCESS;
  }

  [[noreturn]] void refuse(Bytes bytes) const {
    throw out_of_memory({text(where, "::share, rank ", rank()),
                         "the host cannot provide so much shared memory",
                         text(bytes, " bytes of this rank, ", room(), " left"),
                         "share fewer bytes, or make /dev/shm larger"});
  }

  /// Returns true if the condition holds on all ranks of the group.
  bool all_have(bool mine) { return together(m_all, MPI_MIN, {mine ? Bytes{1} : 0})[0] != 0; }

  /// Reduces the values of all ranks of `comm`, and waits for them.
  std::vector<Bytes> together(const Communicator& comm, MPI_Op reduction,
                              std::vector<Bytes> given) {
    auto memory = std::make_unique<std::vector<Bytes>>(std::move(given));
    static_assert(sizeof(Bytes) == sizeof(std::uint64_t));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallreduce(MPI_IN_PLACE, memory->data(), static_cast<int>(memory->size()),
                         MPI_UINT64_T, reduction, comm.get(), &request),
          where);
    try {
      const auto come = [&] {
        int done = 0;
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), where);
        return done != 0;
      };
      const auto place = [&] { return text("heddle::SharedTransport::share, rank ", rank()); };
      await(*this, come, Idle::yield, m_watchdog, place, [&] {
        return ErrorInfo{place(), "another rank does not take part",
                         text("watchdog after ", m_watchdog, " s"),
                         "all ranks share memory in the same order"};
      });
    } catch (...) {
      static_cast<void>(memory.release());  // it is MPI's: a collective cannot be cancelled
      m_over = true;
      throw;
    }
    return std::move(*memory);
  }

  void free_unused() {
    std::vector<Bytes> unused{1};  // of a window each, behind one that is always there
    for (const auto& window : m_windows) unused.push_back(window.use_count() == 1 ? 1 : 0);
    unused = together(m_domain, MPI_MIN, std::move(unused));
    // To free one is to wait for all ranks, without a watchdog: not before all have come here.
    // Those that gave up to wait for this one have put in what they had above.
    if (std::ranges::count(unused, Bytes{1}) > 1)
      static_cast<void>(together(m_domain, MPI_MIN, {Bytes{1}}));
    std::vector<std::shared_ptr<Window>> kept;
    for (std::size_t w = 0; w < m_windows.size(); ++w) {
      if (unused[w + 1] != 0)
        check(MPI_Win_free(&m_windows[w]->handle), where);
      else
        kept.push_back(std::move(m_windows[w]));
    }
    m_windows = std::move(kept);
  }

  MpiTransport m_messages;
  Communicator m_all;
  Communicator m_host;    ///< the ranks of this rank's host
  Communicator m_domain;  ///< the ranks that share memory with this one
  Seconds m_watchdog;
  Seconds m_patience;
  std::vector<std::int32_t> m_members;  ///< the ranks of the domain, in its order
  std::vector<std::uint32_t> m_domains;
  std::vector<std::shared_ptr<Window>> m_windows;
  bool m_over = false;  ///< true after an abort, or if a rank did not take part
  int m_exceptions = std::uncaught_exceptions();
};
static_assert(SharesMemory<SharedTransport>);

}  // namespace heddle::inline v0
