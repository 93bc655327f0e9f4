// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Performers of collectives among ranks of which some share a host: they read each other's memory
/// in place. For calls that block.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_executor.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/schedule/pass/share_memory.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The Schedule of `key` among ranks that share memory as `domains` say, over data that they share
/// or that lies anywhere: as chosen, or as is usual.
[[nodiscard]] inline Schedule shared_schedule_of(const PerformerKey& key, int ranks,
                                                 const std::vector<std::uint32_t>& domains) {
  const schedule::CollectiveOptions options = options_of(key, ranks);
  if (key.in_place)
    return share_memory(key.choice.shared ? in_domains(key.collective, key.choice, options, domains)
                                          : schedule_of(key, ranks),
                        domains, CopiedBy::sender);
  if (key.choice.shared)
    return to_schedule(key.choice, key.collective, options, key.costs->machine(), domains);
  if (!key.usual) return share_copies(schedule_of(key, ranks), domains);
  constexpr Bytes sent_at_once = Bytes{48} << 10;  // by most MPIs
  return to_shared_schedule({.algorithm = key.choice.algorithm,
                             .piece = all_share(domains) ? shared_piece : sent_at_once,
                             .shared = true},
                            key.collective, options, domains);
}

/// Returns the bytes of transient buffers on the rank that shares the most.
[[nodiscard]] inline Bytes window_bytes(const Schedule& schedule) {
  std::vector<Bytes> of(static_cast<std::size_t>(schedule.ranks()), 0);
  for (const Buffer& buffer : schedule.buffers())
    if (buffer.transient) of[+buffer.rank] += buffer.bytes;
  return std::ranges::max(of);
}

/// One over a SharedTransport. Making it is collective.
class SharedPerformer final : public Performer {
 public:
  SharedPerformer(PerformerKey key, Schedule schedule, SharedTransport& transport,
                  const SharedViews& views, const CallMemory& memory)
      : Performer(std::move(key)),
        m_views(&views),
        m_self(transport.rank()),
        m_schedule(std::move(schedule)),
        m_shared(transport, m_schedule, [&](BufferId id, const Buffer& buffer) {
          const std::size_t which = m_schedule[buffer.label] == "output" ? 1 : 0;
          m_bound.push_back({id, buffer.rank, which, views.at(buffer.rank, memory[which])});
          return m_bound.back().begin;
        }) {}

  void begin(const CallMemory& memory, std::size_t, const ExecuteOptions& options) override {
    for (Bound& bound : m_bound) {
      std::byte* const begin = m_views->at(bound.rank, memory[bound.which]);
      if (bound.begin != begin) m_shared.executor().rebind(bound.id, bound.begin, begin);
      bound.begin = begin;
    }
    if (key().in_place) m_views->tell(memory[0]);
    m_shared.executor().options(options);
    m_shared.executor().begin();
  }
  bool advance(Handler handler) override {
    return m_shared.executor().advance(InOnePlace{this, handler});
  }
  void finish(Handler handler) override { m_shared.executor().finish(InOnePlace{this, handler}); }
  void abort(const std::string& doing, const char* reason) noexcept override {
    m_shared.executor().abort(doing, reason);
  }
  [[nodiscard]] const Schedule& schedule() const noexcept override { return m_schedule; }
  [[nodiscard]] Bytes scratch() const noexcept override { return window_bytes(m_schedule); }

 private:
  /// A buffer of the call's memory, this rank's or another one's.
  struct Bound {
    BufferId id;
    Rank rank;
    std::size_t which;  ///< the number of its address
    std::byte* begin;
  };

  /// Performs an action once the other ranks whose data it touches are seen to mean the same place
  /// of a SharedView. They have come to the call when it is its turn.
  struct InOnePlace {
    const SharedPerformer* by;
    Handler perform;

    void operator()(const Task& task) const {
      for (const BoundUse& use : task.uses()) {
        const Buffer& buffer = by->m_schedule[use.buffer];
        if (!buffer.transient && buffer.rank != by->m_self)
          by->m_views->expect_same_place(buffer.rank);
      }
      perform(task);
    }
  };

  const SharedViews* m_views;
  Rank m_self;
  Schedule m_schedule;
  std::vector<Bound> m_bound;
  SharedExecutor<SharedTransport> m_shared;
};

/// The performers of a communicator's calls that block. Such calls follow one another on all ranks
/// alike, so all ranks find, make and forget the same ones.
class SharedLine {
 public:
  SharedLine(MPI_Comm comm, const SharedOptions& options)
      : m_watchdog(options.watchdog),
        m_transport(comm, options),
        m_shares(any_share(m_transport.domains())),
        m_all_share(all_share(m_transport.domains())),
        m_views(m_transport.rank()) {}

  /// Returns true if any ranks share memory.
  [[nodiscard]] bool shares() const noexcept { return m_shares; }

  /// Memory of every rank's for a SharedView. All ranks call it, and wait for each other as long as
  /// the line's options say.
  [[nodiscard]] SharedBlocks share(Bytes bytes) {
    return together(m_watchdog, [&] {
      if (m_all_share && !m_views.can_tell())
        m_views.tell_in(m_transport.share(sizeof(PlaceInView)));
      SharedBlocks blocks = m_transport.share(bytes);
      if (m_all_share) m_views.add(blocks, bytes);
      return blocks;
    });
  }
  /// Returns the SharedViews that all ranks see.
  [[nodiscard]] const SharedViews& views() const noexcept { return m_views; }

  /// Returns the bytes that stored performers share, on the rank that shares the most for each.
  [[nodiscard]] Bytes bytes() const {
    Bytes sum = 0;
    for (const Kept& kept : m_kept) sum += kept.bytes;
    return sum;
  }

  /// Returns the Schedule of a performer for `key`.
  [[nodiscard]] Schedule schedule_of(const PerformerKey& key) const {
    return shared_schedule_of(key, m_transport.size(), m_transport.domains());
  }

  /// A performer for `key`; null where it would take more than `bound`, with all that is kept, or
  /// than the host has. Where one is made, `meet()` comes first, which returns when all ranks have
  /// called it, and they wait for each other as long as `watchdog` says.
  template <class Meet>
  Performer* find(PerformerKey key, const CallMemory& memory, Seconds watchdog, Bytes bound,
                  Meet&& meet) {
    key.path = {};
    const auto found = std::ranges::find(m_kept, key, &Kept::key);
    if (found != m_kept.end() && (found->performer != nullptr || found->bound == bound)) {
      std::rotate(found, found + 1, m_kept.end());  // the last is the latest
    } else {
      if (found != m_kept.end()) m_kept.erase(found);
      meet();
      m_kept.push_back(make(std::move(key), memory, watchdog, bound));
    }
    return m_kept.back().performer.get();
  }

 private:
  struct Kept {
    PerformerKey key;
    Bytes bound;
    Bytes bytes = 0;                                  ///< the size of its window
    std::unique_ptr<SharedPerformer> performer = {};  ///< none: it would take more than the bound
  };

  /// Returns the result of `share`, which waits for the other ranks for at most `watchdog`. If it
  /// fails permanently, the other ranks are told.
  template <class Share>
  std::invoke_result_t<Share&> together(Seconds watchdog, Share&& share) {
    m_transport.watchdog(watchdog);
    try {
      return share();
    } catch (const communication_error& error) {
      if (!m_transport.aborted())
        m_transport.abort({m_transport.rank(), "what ranks share", error.what()});
      throw;
    }
  }

  /// Room for it make those that have not been used for longest.
  Kept make(PerformerKey key, const CallMemory& memory, Seconds watchdog, Bytes bound) {
    Kept made{key, bound};
    Schedule schedule = schedule_of(key);
    const Bytes wanted = window_bytes(schedule);
    const auto too_many = [&] { return m_kept.size() == most || bytes() + wanted > bound; };
    while (!m_kept.empty() && wanted <= bound && too_many()) m_kept.erase(m_kept.begin());
    if (m_kept.size() == most) m_kept.erase(m_kept.begin());
    if (wanted > bound) return made;
    try {
      made.performer = together(watchdog, [&] {
        return std::make_unique<SharedPerformer>(std::move(key), std::move(schedule), m_transport,
                                                 m_views, memory);
      });
      made.bytes = wanted;
    } catch (const out_of_memory&) {  // on all ranks
    }
    return made;
  }

  /// Performers that are kept, each with a window of its own.
  static constexpr std::size_t most = 32;

  Seconds m_watchdog;  ///< for sharing outside of calls
  SharedTransport m_transport;
  bool m_shares;
  bool m_all_share;
  SharedViews m_views;
  std::vector<Kept> m_kept;  ///< refer to the transport and the views
};

/// The holder of a communicator's SharedLine, which may not exist yet.
class SharedPlace {
 public:
  explicit SharedPlace(MPI_Comm comm) : m_comm(comm) {}

  /// Made after `meet()`, which returns when all ranks have called it, and with `options` for good.
  template <class Meet>
  SharedLine& line(Meet&& meet, const SharedOptions& options = {}) {
    if (m_line == nullptr) {
      meet();
      m_line = std::make_unique<SharedLine>(m_comm, options);
    }
    return *m_line;
  }

  /// The memory that all ranks see; null where none was ever shared.
  [[nodiscard]] const SharedViews* views() const noexcept {
    return m_line == nullptr ? nullptr : &m_line->views();
  }

 private:
  MPI_Comm m_comm;
  std::unique_ptr<SharedLine> m_line;
};

}  // namespace impl
}  // namespace heddle::inline v0
