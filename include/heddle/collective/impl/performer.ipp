// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of performer.hpp.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/message_sizes.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE schedule::CollectiveOptions options_of(const PerformerKey& key, int ranks) {
  return {.ranks = ranks,
          .bytes = key.bytes,
          .blocks = key.blocks,
          .type = key.type,
          .element = key.element,
          .chunks = key.chunks,
          .root = key.root,
          .levels = key.choice.levels,
          .apart = key.apart};
}

HEDDLE_FULL_INLINE Schedule schedule_of(const PerformerKey& key, int ranks) {
  const schedule::CollectiveOptions options = options_of(key, ranks);
  const Schedule made =
      key.costs != nullptr
          ? plan::to_schedule(key.choice, key.collective, options, key.costs->machine())
          : schedule::collective(key.collective, key.choice.algorithm, options);
  if (!key.codec) return made;
  const auto& domains = key.codec_domains;
  return schedule::cast_at_cut(made, *key.codec, [&](Rank from, Rank to) {
    return domains.empty() || domains[+from] != domains[+to];
  });
}

HEDDLE_FULL_INLINE Bytes kept_bytes(const Schedule& schedule, const Buffer& buffer) {
  constexpr Bytes line = 64;
  return schedule[buffer.label] == role::residual ? (buffer.bytes + line - 1) / line * line : 0;
}

HEDDLE_FULL_INLINE Performer::Performer(PerformerKey key) : m_key(std::move(key)) {}

HEDDLE_FULL_INLINE Performer::~Performer() = default;

HEDDLE_FULL_INLINE CallLine::CallLine(MPI_Comm comm, std::size_t slots, Seconds watchdog)
    : m_transport(comm, options(watchdog)), m_works(slots) {}

HEDDLE_FULL_INLINE void CallLine::begin(Performer& performer, const CallMemory& memory,
                                        const ExecuteOptions& options, Work* work) {
  const std::size_t slot = m_started++ % m_works.size();
  if (m_works[slot] != nullptr) m_works[slot]->wait();
  performer.slot(slot);
  m_works[slot] = work;
  ++m_under_way;
  try {
    performer.begin(memory, slot * lanes, options);
  } catch (...) {  // the work does not exist: its constructor throws
    end(performer);
    throw;
  }
}

HEDDLE_FULL_INLINE Performer& CallLine::begin(const PerformerKey& key, const Instance& by,
                                              const CallMemory& memory,
                                              const ExecuteOptions& options, Work* work) {
  if (!latest(key)) m_performers.push_back(by.performer(key, m_transport, memory));
  begin(*m_performers.back(), memory, options, work);
  return *m_performers.back();
}

HEDDLE_FULL_INLINE void CallLine::end(Performer& performer) noexcept {
  m_works[performer.slot()] = nullptr;
  performer.slot(Performer::none);
  --m_under_way;
}

HEDDLE_FULL_INLINE void CallLine::further(const Work* one) {
  for (Work* const work : m_works)
    if (work != nullptr && work != one) static_cast<void>(work->test());
}

HEDDLE_FULL_INLINE MpiOptions CallLine::options(Seconds watchdog) {
  MpiOptions options;
  if (watchdog > 0) options.patience = std::min(options.patience, watchdog);
  return options;
}

HEDDLE_FULL_INLINE bool CallLine::latest(const PerformerKey& key) {
  // The last is the latest, which is often wanted again.
  const auto found = std::find_if(
      m_performers.rbegin(), m_performers.rend(),
      [&](const auto& performer) { return !performer->busy() && performer->key() == key; });
  if (found == m_performers.rend()) {
    forget();
    return false;
  }
  std::rotate(m_performers.rbegin(), found, found + 1);
  return true;
}

HEDDLE_FULL_INLINE void CallLine::forget() {
  Bytes scratch = 0;
  for (const auto& performer : m_performers) scratch += performer->scratch();
  for (auto it = m_performers.begin(); it != m_performers.end();) {
    if (m_performers.size() < most && scratch <= most_scratch) return;
    if ((*it)->busy()) {
      ++it;
      continue;
    }
    scratch -= (*it)->scratch();
    it = m_performers.erase(it);
  }
}

HEDDLE_FULL_INLINE CallLines::CallLines(MPI_Comm comm) : m_comm(comm) {}

HEDDLE_FULL_INLINE CallLines::~CallLines() = default;

HEDDLE_FULL_INLINE const plan::CollectiveChoice& CallLines::choose(
    const std::shared_ptr<const plan::CostTable>& costs, const CallSize& size, bool library,
    bool shared) {
  const auto [collective, bytes] = size;
  Chosen& chosen =
      m_chosen[(bytes / 8 + 7 * static_cast<std::size_t>(collective)) % m_chosen.size()];
  if (chosen.costs != costs || chosen.collective != collective || chosen.bytes != bytes ||
      chosen.library != library || chosen.shared != shared)
    chosen = {costs,   collective, bytes,
              library, shared,     costs->choose(collective, bytes, library, shared)};
  return chosen.choice;
}

HEDDLE_FULL_INLINE void CallLines::further() {
  if (under_way()) m_caller->further(nullptr);
}

HEDDLE_FULL_INLINE CallLine& CallLines::line(bool of_a_thread, Seconds watchdog,
                                             FunctionRef<void()> meet) {
  auto& line = of_a_thread ? m_threads[m_started++ % m_threads.size()] : m_caller;
  if (line == nullptr) {
    meet();
    line = std::make_unique<CallLine>(m_comm, of_a_thread ? 1 : concurrent, watchdog);
  }
  return *line;
}

}  // namespace heddle::inline v0::impl
