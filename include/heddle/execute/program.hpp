// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Program: one rank's part of a Schedule with memory bound. slice() makes it; an Executor runs it.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// One end of a channel at this rank. Messages of a port start and are waited for in order.
struct Port {
  Rank peer;                   ///< at the other end
  Lane lane;                   ///< of the channel
  bool sends = false;          ///< from here to the peer
  std::uint32_t messages = 0;  ///< per step
};

/// What a Program does at one place of the list.
struct Step {
  /// A move is a send on one rank and a receive on the other; all else runs.
  enum class Does : std::uint8_t { run, send, receive };

  ActionId action;               ///< the place in the list
  Does does = Does::run;         ///< this rank's part of it
  std::uint32_t port = 0;        ///< of a send or receive
  std::uint32_t first_wait = 0;  ///< its waits: [first_wait, first_wait of the next step)
  std::uint32_t first_use = 0;   ///< its uses, likewise
};

/// Before a step: the first `messages` messages of `port` must be complete, counted from the begin
/// of this step of the schedule, or of the previous one where `carried`.
struct Wait {
  std::uint32_t port = 0;      ///< number among the program's ports
  std::uint32_t messages = 0;  ///< how many of them are complete
  bool carried = false;        ///< counted in the step before
};

/// One rank's part of a Schedule. Nobody writes it by hand.
///
/// A move is posted at its place in the list and waited for as late as possible: just before the
/// first later action that conflicts with it. This cannot deadlock: take the walker that is blocked
/// at the smallest place j of the list, waiting for a move i < j. Its peer has either passed and
/// posted i, or is blocked at or before i < j, a contradiction.
struct Program {
  Schedule schedule;           ///< the whole list
  Rank rank;                   ///< whose part this is
  std::vector<Step> steps;     ///< closed by one entry that only ends the ranges of the last
  std::vector<BoundUse> uses;  ///< of all steps, one after another
  std::vector<Wait> waits;     ///< likewise
  std::vector<Port> ports;     ///< this rank's ends of channels

  /// Number of steps.
  [[nodiscard]] std::size_t size() const noexcept { return steps.size() - 1; }
  /// The memory that a step touches, as far as it lies on this rank.
  [[nodiscard]] std::span<const BoundUse> uses_of(std::size_t step) const {
    return std::span(uses).subspan(steps[step].first_use,
                                   steps[step + 1].first_use - steps[step].first_use);
  }
  /// What must be complete before a step.
  [[nodiscard]] std::span<const Wait> waits_of(std::size_t step) const {
    return std::span(waits).subspan(steps[step].first_wait,
                                    steps[step + 1].first_wait - steps[step].first_wait);
  }
};

namespace impl {

/// The state of one slice() call.
class Slicer {
 public:
  Slicer(const Schedule& schedule, Rank rank, std::vector<std::byte*> memory)
      : m_memory(std::move(memory)) {
    m_program.schedule = schedule;
    m_program.rank = rank;
  }

  Program run() {
    const Schedule& schedule = m_program.schedule;
    m_port_of.assign(2 * schedule.queues().size(), none);
    m_ordinal.assign(schedule.size(), {0, 0});
    find_ports();
    const std::vector<Carried> carry = carried(schedule);
    std::size_t next = 0;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      const std::size_t first = next;
      while (next < carry.size() && carry[next].action == id) ++next;
      const Action& action = schedule[id];
      const Queue& queue = schedule[action.queue];
      const auto edges = std::span(carry).subspan(first, next - first);
      if (action.kind == Kind::move && !queue.local()) {
        if (queue.from == m_program.rank) step(id, Step::Does::send, 0, edges);
        if (queue.to == m_program.rank) step(id, Step::Does::receive, 1, edges);
      } else if (concerns(id)) {
        step(id, Step::Does::run, 0, edges);
      }
    }
    m_program.steps.push_back({{},
                               Step::Does::run,
                               0,
                               static_cast<std::uint32_t>(m_program.waits.size()),
                               static_cast<std::uint32_t>(m_program.uses.size())});
    return std::move(m_program);
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;

  [[nodiscard]] bool concerns(ActionId id) const {
    for (const Use& use : m_program.schedule.uses(id))
      if (m_program.schedule[use.buffer].rank == m_program.rank) return true;
    const Queue& queue = m_program.schedule[m_program.schedule[id].queue];
    return queue.local() && queue.from == m_program.rank;
  }

  /// Numbers the messages of every port, so that waits can be stated for later and earlier ones.
  void find_ports() {
    const Schedule& schedule = m_program.schedule;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      const Queue& queue = schedule[action.queue];
      if (action.kind != Kind::move || queue.local()) continue;
      for (const std::uint32_t end : {0u, 1u}) {
        if ((end == 0 ? queue.from : queue.to) != m_program.rank) continue;
        std::uint32_t& port = m_port_of[2 * +action.queue + end];
        if (port == none) {
          port = static_cast<std::uint32_t>(m_program.ports.size());
          m_program.ports.push_back({end == 0 ? queue.to : queue.from, queue.lane, end == 0, 0});
        }
        m_ordinal[i][end] = ++m_program.ports[port].messages;
      }
    }
  }

  void step(ActionId id, Step::Does does, std::uint32_t end, std::span<const Carried> edges) {
    const Schedule& schedule = m_program.schedule;
    const bool moves = does != Step::Does::run;
    m_program.steps.push_back({id, does, moves ? m_port_of[2 * +schedule[id].queue + end] : 0,
                               static_cast<std::uint32_t>(m_program.waits.size()),
                               static_cast<std::uint32_t>(m_program.uses.size())});
    for (const After& after : schedule.after(id))
      if (!moves || after.mine == end) wait(after, false);
    for (const Carried& edge : edges)
      if (!moves || edge.on.mine == end) wait(edge.on, true);
    const auto uses = schedule.uses(id);
    for (std::size_t u = 0; u < uses.size(); ++u) {
      if (moves && u != end) continue;
      const Buffer& buffer = schedule[uses[u].buffer];
      if (buffer.rank != m_program.rank) continue;
      std::byte* const begin = m_memory[+uses[u].buffer];
      const Bytes offset = part_offset(buffer, uses[u].first);
      m_program.uses.push_back({begin == nullptr ? nullptr : begin + offset,
                                schedule.bytes(uses[u]), uses[u].buffer, uses[u].access()});
    }
  }

  /// Local predecessors are complete when the walker comes here; only messages are waited for.
  void wait(const After& after, bool is_carried) {
    const Action& on = m_program.schedule[ActionId{after.action}];
    const Queue& queue = m_program.schedule[on.queue];
    if (on.kind != Kind::move || queue.local()) return;
    if ((after.end == 0 ? queue.from : queue.to) != m_program.rank) return;
    m_program.waits.push_back(
        {m_port_of[2 * +on.queue + after.end], m_ordinal[after.action][after.end], is_carried});
  }

  std::vector<std::byte*> m_memory;
  Program m_program;
  std::vector<std::uint32_t> m_port_of;  ///< of (queue, end)
  std::vector<std::array<std::uint32_t, 2>> m_ordinal;
};

}  // namespace impl

/// The part of `schedule` that takes place on `rank`, with memory bound: `bind(id, buffer)` returns
/// where a buffer of this rank begins, and is called once for each of them. Memory may be null
/// where nothing dereferences it (weights that a handler holds itself, or buffers of no bytes).
///
/// @throws contract_error for a rank outside the schedule, or a move whose two ranges differ in
/// size.
template <class Bind>
requires std::is_invocable_r_v<std::byte*, Bind&, BufferId, const Buffer&>
[[nodiscard]] Program slice(const Schedule& schedule, Rank rank, Bind&& bind) {
  expects(+rank < static_cast<std::size_t>(schedule.ranks()), [&] {
    return Complaint{"heddle::slice", "the schedule has no such rank",
                     text("rank ", rank, " of ", schedule.ranks())};
  });
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    if (schedule[id].kind != Kind::move) continue;
    const auto uses = schedule.uses(id);
    expects(schedule.bytes(uses[0]) == schedule.bytes(uses[1]), [&] {
      return Complaint{"heddle::slice", "the two ends of a move differ in size",
                       text(action_text(schedule, id), ": ", schedule.bytes(uses[0]), " and ",
                            schedule.bytes(uses[1]), " bytes")};
    });
  }
  std::vector<std::byte*> memory(schedule.buffers().size(), nullptr);
  for (std::size_t b = 0; b < memory.size(); ++b) {
    const BufferId id{b};
    if (schedule[id].rank == rank) memory[b] = bind(id, schedule[id]);
  }
  return impl::Slicer(schedule, rank, std::move(memory)).run();
}

}  // namespace heddle::inline v0
