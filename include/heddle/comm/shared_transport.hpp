// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedTransport: messages by MPI between all ranks, and memory shared by the ranks of a host in
/// MPI shared windows. Collectives and pipelines use it to read the memory of another rank
/// directly.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/schedule/list_place.hpp>

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
 public:
  /// A message in flight; see MpiTransport.
  using Request = MpiTransport::Request;

  /// Constructs the transport. Collective over `comm`. @throws contract_error if
  /// SharedOptions::domain is negative, and the errors of MpiTransport.
  explicit SharedTransport(MPI_Comm comm, SharedOptions options = {});
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  /// Destroys the transport. This is collective, like the destructor of MpiTransport. Blocks that a
  /// rank still uses remain until the process ends.
  ~SharedTransport();

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
  void abort(const Abort& abort);
  /// Returns the abort that another rank has sent, if there is one.
  [[nodiscard]] std::optional<Abort> aborted();
  /// Tells the other ranks this rank's place in its list after a hang; see ReportsPlaces.
  void answer(const ListPlace& place) { m_messages.answer(place); }
  /// Returns the places that the ranks have told; see ReportsPlaces.
  [[nodiscard]] std::vector<std::optional<ListPlace>> places() { return m_messages.places(); }
  /// Notes that a rank is silent; see MpiTransport.
  void note_silence() noexcept {
    if (!m_ends) m_messages.note_silence();
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
  [[nodiscard]] SharedBlocks share(Bytes bytes);

 private:
  static constexpr const char* where = "heddle::SharedTransport";
  static constexpr Bytes alignment = 64;

  struct Window {
    MPI_Win handle = MPI_WIN_NULL;
  };

  /// Returns the ranks of this rank's host.
  static Communicator host_of(const Communicator& all, const SharedOptions& options);

  /// Returns the ranks of `host` that share memory with this one.
  static Communicator domain_of(const Communicator& host, const SharedOptions& options);

  /// Returns the most memory of the host that a window needs for `bytes` of one rank: whole pages,
  /// which may have 64 KiB, and one page more for MPI's own data about the rank.
  static Bytes with_pages(Bytes bytes);

  /// Returns the bytes of shared memory that the host has left, or the maximum if that is unknown.
  static Bytes room();

  /// Creates a window of zeros. Returns false if MPI cannot create it.
  bool allocate(Bytes whole, Window& window) const;

  [[noreturn]] void refuse(Bytes bytes) const;

  /// Returns true if the condition holds on all ranks of the group.
  bool all_have(bool mine);

  /// Reduces the values of all ranks of `comm`, and waits for them.
  std::vector<Bytes> together(const Communicator& comm, MPI_Op reduction, std::vector<Bytes> given);

  void free_unused();

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
  bool m_ends = false;  ///< true in the destructor, which others may reach much later
  int m_exceptions = std::uncaught_exceptions();
};
static_assert(SharesMemory<SharedTransport>);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/shared_transport.ipp>
#endif
