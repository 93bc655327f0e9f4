// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_performer.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/shared_executor.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/schedule/pass/share_memory.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

// The Schedule of `key` among ranks that share memory as `domains` say, over data that they share
// or that lies anywhere: as chosen, or as is usual.
inline Schedule shared_schedule_of(const PerformerKey& key, int ranks,
                                   const std::vector<std::uint32_t>& domains) {
  const schedule::CollectiveOptions options = options_of(key, ranks);
  if (key.in_place)
    return schedule::share_memory(key.choice.shared
                                      ? in_domains(key.collective, key.choice, options, domains)
                                      : schedule_of(key, ranks),
                                  domains, CopiedBy::sender);
  if (key.choice.shared)
    return plan::to_schedule(key.choice, key.collective, options, key.costs->machine(), domains);
  if (!key.usual) return share_copies(schedule_of(key, ranks), domains);
  constexpr Bytes sent_at_once = Bytes{48} << 10;  // by most MPIs
  return plan::to_shared_schedule({.algorithm = key.choice.algorithm,
                                   .piece = all_share(domains) ? shared_piece : sent_at_once,
                                   .shared = true},
                                  key.collective, options, domains);
}

// Returns the bytes of transient buffers on the rank that shares the most.
inline Bytes window_bytes(const Schedule& schedule) {
  std::vector<Bytes> of(static_cast<std::size_t>(schedule.ranks()), 0);
  for (const Buffer& buffer : schedule.buffers())
    if (buffer.transient) of[+buffer.rank] += buffer.bytes;
  return std::ranges::max(of);
}

// One over a SharedTransport. Making it is collective.
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
  // A buffer of the call's memory, this rank's or another one's.
  struct Bound {
    BufferId id;
    Rank rank;
    std::size_t which;  // the number of its address
    std::byte* begin;
  };

  // Performs an action once the other ranks whose data it touches are seen to mean the same place
  // of a SharedView. They have come to the call when it is its turn.
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

HEDDLE_FULL_INLINE SharedLine::SharedLine(MPI_Comm comm, const SharedOptions& options)
    : m_watchdog(options.watchdog),
      m_transport(comm, options),
      m_shares(any_share(m_transport.domains())),
      m_all_share(all_share(m_transport.domains())),
      m_views(m_transport.rank()) {}

template <class Share>
std::invoke_result_t<Share&> SharedLine::together(Seconds watchdog, Share&& share) {
  m_transport.watchdog(watchdog);
  try {
    return share();
  } catch (const communication_error& error) {
    if (!m_transport.aborted())
      m_transport.abort({m_transport.rank(), "what ranks share", error.what()});
    throw;
  }
}

HEDDLE_FULL_INLINE SharedBlocks SharedLine::share(Bytes bytes) {
  return together(m_watchdog, [&] {
    if (m_all_share && !m_views.can_tell()) m_views.tell_in(m_transport.share(sizeof(PlaceInView)));
    SharedBlocks blocks = m_transport.share(bytes);
    if (m_all_share) m_views.add(blocks, bytes);
    return blocks;
  });
}

HEDDLE_FULL_INLINE Bytes SharedLine::bytes() const {
  Bytes sum = 0;
  for (const Kept& kept : m_kept) sum += kept.bytes;
  return sum;
}

HEDDLE_FULL_INLINE Schedule SharedLine::schedule_of(const PerformerKey& key) const {
  return shared_schedule_of(key, m_transport.size(), m_transport.domains());
}

HEDDLE_FULL_INLINE Performer* SharedLine::find(const PerformerKey& key, const CallMemory& memory,
                                               Seconds watchdog, Bytes bound,
                                               FunctionRef<void()> meet) {
  if (!latest(key, bound)) {
    meet();
    make(key, memory, watchdog, bound);
  }
  return m_kept.back().performer.get();
}

// The key of a call in memory that ranks share, which no path of messages tells apart.
inline PerformerKey key_in_memory(PerformerKey key) {
  key.path = {};
  key.apart = false;
  return key;
}

HEDDLE_FULL_INLINE bool SharedLine::latest(const PerformerKey& key, Bytes bound) {
  const auto found = std::ranges::find(m_kept, key_in_memory(key), &Kept::key);
  if (found == m_kept.end()) return false;
  if (found->performer == nullptr && found->bound != bound) {
    m_kept.erase(found);
    return false;
  }
  std::rotate(found, found + 1, m_kept.end());  // the last is the latest
  return true;
}

HEDDLE_FULL_INLINE void SharedLine::make(const PerformerKey& key, const CallMemory& memory,
                                         Seconds watchdog, Bytes bound) {
  Kept made{key_in_memory(key), bound};
  Schedule schedule = schedule_of(made.key);
  const Bytes wanted = window_bytes(schedule);
  const auto too_many = [&] { return m_kept.size() == most || bytes() + wanted > bound; };
  while (!m_kept.empty() && wanted <= bound && too_many()) m_kept.erase(m_kept.begin());
  if (m_kept.size() == most) m_kept.erase(m_kept.begin());
  if (wanted <= bound) {
    try {
      made.performer = together(watchdog, [&] {
        return std::make_unique<SharedPerformer>(made.key, std::move(schedule), m_transport,
                                                 m_views, memory);
      });
      made.bytes = wanted;
    } catch (const out_of_memory&) {  // on all ranks
    }
  }
  m_kept.push_back(std::move(made));
}

HEDDLE_FULL_INLINE SharedPlace::SharedPlace(MPI_Comm comm) : m_comm(comm) {}

HEDDLE_FULL_INLINE SharedPlace::~SharedPlace() = default;

HEDDLE_FULL_INLINE SharedLine& SharedPlace::line(FunctionRef<void()> meet,
                                                 const SharedOptions& options) {
  if (m_line == nullptr) {
    meet();
    m_line = std::make_unique<SharedLine>(m_comm, options);
  }
  return *m_line;
}

}  // namespace heddle::inline v0::impl
