// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gang_island.hpp.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/systems/pathways/gang_order.hpp>
#include <heddle/systems/pathways/impl/gang_desk.hpp>
#include <heddle/systems/pathways/impl/gang_draft.hpp>
#include <heddle/systems/pathways/impl/gang_island.hpp>
#include <heddle/systems/pathways/impl/gang_plan.hpp>
#include <heddle/systems/pathways/impl/gang_record.hpp>
#include <heddle/systems/pathways/impl/gang_roster.hpp>
#include <heddle/systems/pathways/impl/gang_service.hpp>
#include <heddle/systems/pathways/impl/gang_walker.hpp>
#include <heddle/systems/pathways/island_options.hpp>

namespace heddle::inline v0::systems::impl {

class GangIsland::State {
 public:
  State(const Communicator& comm, IslandOptions options)
      : m_comm(&agreed(comm, options)),
        m_options(std::move(options)),
        m_transport(comm.get()),
        m_plans(comm.size()),
        m_record(comm.size()) {
    int level = MPI_THREAD_SINGLE;
    heddle::check(MPI_Query_thread(&level), "heddle::systems::Island");
    expects(level >= MPI_THREAD_FUNNELED, [] {
      return ErrorInfo{"heddle::systems::Island",
                       "clients are threads, which this MPI does not allow", "MPI_THREAD_SINGLE",
                       "initialize MPI by heddle::Environment, or with MPI_THREAD_FUNNELED"};
    });
  }

  [[nodiscard]] const Communicator& comm() const noexcept { return *m_comm; }
  [[nodiscard]] const GangEntry& entry(std::uint32_t number) const { return m_entries[number]; }
  [[nodiscard]] const IslandCounts& counts() const noexcept { return m_counts; }
  [[nodiscard]] Schedule record() const {
    expects(m_options.record, [] {
      return ErrorInfo{"heddle::systems::Island::record", "the island does not record", "",
                       "set IslandOptions::record"};
    });
    return m_record.build();
  }

  /// Adds a function, and returns its number.
  std::uint32_t add(GangEntry entry) {
    entry.find_ranks();
    m_entries.push_back(std::move(entry));
    return static_cast<std::uint32_t>(m_entries.size() - 1);
  }

  void serve(std::vector<GangClientBody> bodies) {
    expects(!m_failed, [] {
      return ErrorInfo{"heddle::systems::Island::serve", "the island has failed before", "",
                       "construct another island"};
    });
    const std::vector<GangClientInfo> clients =
        agree_on_clients(m_transport, m_entries, bodies, m_options.wait);
    m_record.clear();
    m_counts = {};
    m_desk = std::make_shared<GangDesk>();
    std::vector<std::exception_ptr> errors(bodies.size());
    std::size_t first = 0;  // this rank's first client
    while (first < clients.size() && clients[first].rank != m_comm->rank()) ++first;
    std::vector<std::shared_ptr<GangDraft>> drafts;
    for (std::size_t b = 0; b < bodies.size(); ++b)
      drafts.push_back(std::make_shared<GangDraft>(m_desk, static_cast<std::uint32_t>(first + b)));
    const auto run = [&](int i) {
      const auto b = static_cast<std::size_t>(i - 1);
      try {
        bodies[b].run(drafts[b]);
      } catch (...) {
        errors[b] = std::current_exception();
      }
      drafts[b]->close();
    };
    {
      std::optional<heddle::impl::Threads> threads;
      try {
        threads.emplace(static_cast<int>(bodies.size()), run);
        threads->begin_all("heddle::systems::Island::serve");
        loop(clients);
        m_desk->fail("the island has ended");
      } catch (const std::exception& error) {
        heddle::impl::tell_failure(m_transport, "serving clients", error.what());
        m_desk->fail(error.what());
        m_failed = true;
        throw;
      }
    }
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
  }

 private:
  /// Checks the options of all ranks before any member needs communication.
  [[nodiscard]] static const Communicator& agreed(const Communicator& comm,
                                                  const IslandOptions& options) {
    constexpr const char* where = "heddle::systems::Island";
    const auto check = [&] {
      heddle::impl::expect_enumerator(where, "policy", options.policy, GangPolicy::share);
      expects(options.ahead >= 1, [&] {
        return ErrorInfo{where, "no program may run", "IslandOptions::ahead = 0",
                         "set it to 1 or more"};
      });
      heddle::impl::expect_valid(options.wait, where);
    };
    const auto describe = [&] { return heddle::impl::CollectiveCall{where, {}}; };
    heddle::impl::check_together(comm, where, check, describe, ContractLevel::communication,
                                 options.wait.watchdog);
    return comm;
  }

  void loop(const std::vector<GangClientInfo>& clients) {
    GangLinks links(m_transport);
    GangWalker walker(*m_comm, m_transport, m_entries, m_plans, *m_desk, clients,
                      m_options.record ? &m_record : nullptr, m_options.pick);
    std::optional<GangScheduler> scheduler;
    if (m_comm->rank() == GangLinks::scheduler)
      scheduler.emplace(links, m_comm->size(), m_options.policy, clients, m_options.ahead);
    bool ended = false;
    const auto control = [&] {
      bool any = links.poll([&](Rank, const GangFrame& frame) {
        if (frame.kind == GangFrame::Kind::run)
          walker.prepare(frame);
        else if (frame.kind == GangFrame::Kind::end)
          ended = true;
        else
          scheduler->take(frame);
      });
      while (const auto frame = m_desk->take()) {
        links.send(GangLinks::scheduler, *frame);
        any = true;
      }
      if (scheduler) scheduler->dispatch();
      return any;
    };
    walker.between_calls([&] { control(); });
    try {
      bool said_bye = false;
      Waiting waiting(m_options.wait.idle);
      Seconds since = 0;
      while (!(said_bye && links.closed() && (!scheduler || scheduler->over()))) {
        bool any = control();
        const bool moved = advance(walker);
        for (const std::uint64_t number : walker.take_done())
          links.send(GangLinks::scheduler, {.kind = GangFrame::Kind::done, .number = number});
        if (ended && walker.idle() && !std::exchange(said_bye, true))
          links.send(GangLinks::scheduler, {.kind = GangFrame::Kind::bye});
        any = any || moved;
        // Control messages reset how this rank waits, but not for how long the call has waited.
        if (moved || !walker.waits()) since = 0;
        if (any)
          waiting = Waiting(m_options.wait.idle);
        else
          waiting();
        if (waiting.polls() % 64 != 0 && m_options.wait.idle != Idle::nap) continue;
        if (since == 0) since = steady_seconds();
        heddle::impl::look_up(
            m_transport, since, walker.waits() ? m_options.wait.watchdog : 0,
            [&] { return place(walker); },
            [&] {
              return ErrorInfo{
                  place(walker), heddle::impl::does_not(walker.silent(), "answer"),
                  text("watchdog after ", m_options.wait.watchdog, " s", walker.behind()),
                  "see what that rank is doing, or raise IslandOptions::wait.watchdog"};
            });
      }
    } catch (const std::exception& error) {
      const std::string doing = walker.place();
      heddle::impl::tell_failure(m_transport, doing.c_str(), error.what());
      walker.abort(error.what());
      links.abort();
      throw;
    }
    m_counts.order = walker.order();
    m_counts.posted_early = walker.posted_early();
    m_counts.prepared_late = walker.prepared_late();
    if (scheduler) {
      m_counts.programs = scheduler->programs();
      m_counts.dispatches = links.dispatches();
    }
  }

  /// Does what can be done without a wait. Errors of messages name the call.
  [[nodiscard]] bool advance(GangWalker& walker) const {
    try {
      return walker.progress();
    } catch (const communication_error& error) {
      throw communication_error({place(walker), error.what()});
    }
  }

  [[nodiscard]] std::string place(const GangWalker& walker) const {
    return text("heddle::systems::Island, rank ", m_comm->rank(), ", ", walker.place());
  }

  const Communicator* m_comm;
  IslandOptions m_options;
  MpiTransport m_transport;
  GangPlans m_plans;
  GangRecord m_record;
  std::vector<GangEntry> m_entries;
  std::shared_ptr<GangDesk> m_desk;
  IslandCounts m_counts;
  bool m_failed = false;
};

HEDDLE_FULL_INLINE GangIsland::GangIsland(const Communicator& comm, IslandOptions options)
    : m_state(std::make_unique<State>(comm, std::move(options))) {}

HEDDLE_FULL_INLINE GangIsland::~GangIsland() = default;

HEDDLE_FULL_INLINE const Communicator& GangIsland::comm() const noexcept { return m_state->comm(); }

HEDDLE_FULL_INLINE const GangEntry& GangIsland::entry(std::uint32_t number) const {
  return m_state->entry(number);
}

HEDDLE_FULL_INLINE const IslandCounts& GangIsland::counts() const noexcept {
  return m_state->counts();
}

HEDDLE_FULL_INLINE Schedule GangIsland::record() const { return m_state->record(); }

HEDDLE_FULL_INLINE std::uint32_t GangIsland::add(GangEntry entry) {
  return m_state->add(std::move(entry));
}

HEDDLE_FULL_INLINE void GangIsland::serve(std::vector<GangClientBody> bodies) {
  m_state->serve(std::move(bodies));
}

}  // namespace heddle::inline v0::systems::impl
