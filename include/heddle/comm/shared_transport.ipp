// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_transport.hpp.

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

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/roll_call.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/shared_blocks.hpp>

namespace heddle::inline v0 {

static_assert(impl::ProgressCounter::is_always_lock_free,
              "heddle::SharedTransport: processes see each other's progress without locks");

HEDDLE_FULL_INLINE SharedTransport::SharedTransport(MPI_Comm comm, SharedOptions options)
    : m_messages(comm, options.messages),
      m_all(comm),
      m_host(host_of(m_all, options)),
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

HEDDLE_FULL_INLINE SharedTransport::~SharedTransport() {
  if (!impl::mpi_is_up()) return;
  m_ends = true;
  m_over = m_over || impl::found_silent_rank;
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

HEDDLE_FULL_INLINE void SharedTransport::abort(const Abort& abort) {
  m_over = true;
  m_messages.abort(abort);
}

HEDDLE_FULL_INLINE std::optional<Abort> SharedTransport::aborted() {
  std::optional<Abort> told = m_messages.aborted();
  m_over = m_over || told.has_value();
  return told;
}

HEDDLE_FULL_INLINE SharedBlocks SharedTransport::share(Bytes bytes) {
  free_unused();
  // Aligned here: MPI promises no more than that the memory is there.
  const Bytes whole = bytes + alignment;
  // Asked before MPI is: where Open MPI finds no room, one rank hears of it and the others hang.
  // It wants a twentieth more than it takes, here a sixteenth; domains of a host share its room.
  const Bytes wanted = together(m_host, MPI_SUM, {with_pages(whole)})[0];
  if (!all_have(wanted + wanted / 16 <= room())) refuse(bytes);
  auto window = std::make_shared<Window>();
  const bool here = together(m_domain, MPI_MIN, {allocate(whole, *window) ? Bytes{1} : 0})[0] != 0;
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
    check(MPI_Win_shared_query(window->handle, static_cast<int>(r), &length, &unit, &begin), where);
    // Pages begin at the same addresses, modulo their size, in all processes.
    auto* const first = static_cast<std::byte*>(begin);
    const auto off = reinterpret_cast<std::uintptr_t>(first) % alignment;
    blocks.of[static_cast<std::size_t>(m_members[r])] = first + (off == 0 ? 0 : alignment - off);
  }
  m_windows.push_back(std::move(window));
  return blocks;
}

HEDDLE_FULL_INLINE Communicator SharedTransport::host_of(const Communicator& all,
                                                         const SharedOptions& options) {
  impl::check_together(
      all, where,
      [&] {
        expects(options.domain >= 0, [&] {
          return ErrorInfo{where, "a memory domain needs at least one rank",
                           text("domain = ", options.domain), "use 0 for all ranks of a host"};
        });
        impl::expect_valid(ExecuteOptions{.watchdog = options.watchdog}, where);
      },
      [] {
        return impl::CollectiveCall{where, {}};
      },
      ContractLevel::communication, options.watchdog);
  const auto self = static_cast<int>(all.rank().value);
  MPI_Comm host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(all.get(), MPI_COMM_TYPE_SHARED, self, MPI_INFO_NULL, &host), where);
  int first = self;
  check(MPI_Bcast(&first, 1, MPI_INT, 0, host), where);
  check(MPI_Comm_free(&host), where);
  return all.split(first, self);
}

HEDDLE_FULL_INLINE Communicator SharedTransport::domain_of(const Communicator& host,
                                                           const SharedOptions& options) {
  const auto place = static_cast<int>(host.rank().value);
  return host.split(options.domain == 0 ? 0 : place / options.domain, place);
}

HEDDLE_FULL_INLINE Bytes SharedTransport::with_pages(Bytes bytes) {
  constexpr Bytes page = Bytes{64} << 10;
  return (bytes / page + 2) * page;
}

HEDDLE_FULL_INLINE Bytes SharedTransport::room() {
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space("/dev/shm", unknown);
  return unknown ? std::numeric_limits<Bytes>::max() : space.available;
}

HEDDLE_FULL_INLINE bool SharedTransport::allocate(Bytes whole, Window& window) const {
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

HEDDLE_FULL_INLINE void SharedTransport::refuse(Bytes bytes) const {
  throw out_of_memory({text(where, "::share, rank ", rank()),
                       "the host cannot provide so much shared memory",
                       text(bytes, " bytes of this rank, ", room(), " left"),
                       "share fewer bytes, or make /dev/shm larger"});
}

HEDDLE_FULL_INLINE bool SharedTransport::all_have(bool mine) {
  return together(m_all, MPI_MIN, {mine ? Bytes{1} : 0})[0] != 0;
}

HEDDLE_FULL_INLINE std::vector<Bytes> SharedTransport::together(const Communicator& comm,
                                                                MPI_Op reduction,
                                                                std::vector<Bytes> given) {
  auto memory = std::make_unique<std::vector<Bytes>>(std::move(given));
  static_assert(sizeof(Bytes) == sizeof(std::uint64_t));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(MPI_IN_PLACE, memory->data(), static_cast<int>(memory->size()), MPI_UINT64_T,
                       reduction, comm.get(), &request),
        where);
  try {
    const auto come = [&] {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), where);
      return done != 0;
    };
    const auto place = [&] { return text("heddle::SharedTransport::share, rank ", rank()); };
    Waiting waiting(Idle::yield);
    const Seconds since = steady_seconds();
    while (!come()) {
      waiting();
      if (waiting.polls() % 64 != 0) continue;
      if (const std::optional<Abort> abort = aborted()) throw impl::lost(place(), *abort);
      const bool late = m_watchdog > 0 && steady_seconds() - since > m_watchdog;
      // The destructor tells nobody that it gives up, because others may reach it much later.
      if (m_ends ? late : late || impl::RollCall::begun(m_all))
        throw m_ends ? communication_error({place(), "another rank does not take part"})
                     : impl::RollCall(m_all).stuck(place(), {.watchdog = m_watchdog}, late,
                                                   "share memory on all ranks, in the same order, "
                                                   "or raise SharedOptions::watchdog");
    }
  } catch (...) {
    comm.leave_to_mpi(std::move(memory));
    m_over = true;
    throw;
  }
  return std::move(*memory);
}

HEDDLE_FULL_INLINE void SharedTransport::free_unused() {
  std::vector<Bytes> unused{1};  // of a window each, behind one that is always there
  for (const auto& window : m_windows) unused.push_back(window.use_count() == 1 ? 1 : 0);
  unused = together(m_domain, MPI_MIN, std::move(unused));
  // To free one is to wait for all ranks, without a watchdog: not before all have come here.
  // Other ranks that no longer wait for this one have added their part above.
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

}  // namespace heddle::inline v0
