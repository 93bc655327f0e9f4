// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Slicer: makes a Program for slice(). It walks the list once, and numbers the events that ranks
/// wait for: messages and moves per port, and the progress of each rank of the domain.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/is_tier_move.hpp>
#include <heddle/schedule/internal/use_roles.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The state of one slice() call.
class Slicer {
 public:
  Slicer(const Schedule& schedule, Rank rank, std::vector<std::byte*> memory,
         const std::function<ProgressCounter*(Rank)>& progress)
      : m_memory(std::move(memory)),
        m_carried(schedule::impl::carried(schedule)),
        m_progress(progress),
        m_lanes(mover_lanes(schedule)),
        m_roles(schedule) {
    m_program.schedule = schedule;
    m_program.rank = rank;
  }

  Program run() {
    const Schedule& schedule = m_program.schedule;
    m_port_of.assign(2 * schedule.queues().size(), none);
    m_ordinal.assign(schedule.size(), {0, 0});
    find_ports();
    if (!schedule.domains().empty()) count_progress();
    if (!m_entered.empty() && m_entered[+m_program.rank])
      m_program.steps.push_back({ActionId{0}, Program::Step::Does::settle, 0, entered, 0, 0});
    for (std::size_t i = 0, next = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      const auto edges = carried_to(id, next);
      const Action& action = schedule[id];
      const Queue& queue = schedule[action.queue];
      if (action.kind == Kind::move && !queue.local()) {
        if (queue.from == m_program.rank) step(id, Program::Step::Does::send, 0, edges);
        if (queue.to == m_program.rank) step(id, Program::Step::Does::receive, 1, edges);
      } else if (concerns(id)) {
        step(id, m_lanes[+action.queue] ? Program::Step::Does::move : Program::Step::Does::run, 0,
             edges);
      } else if (const auto settled = m_settled.find({id, m_program.rank});
                 settled != m_settled.end()) {
        settle(id, settled->second, edges);
      }
    }
    m_program.steps.push_back({{},
                               Program::Step::Does::run,
                               0,
                               0,
                               static_cast<std::uint32_t>(m_program.waits.size()),
                               static_cast<std::uint32_t>(m_program.uses.size())});
    return std::move(m_program);
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  static constexpr std::uint32_t entered = 1;  ///< how far a rank has come that begins a step

  /// The dependencies of `id` on the step before; `next` runs through all of them.
  [[nodiscard]] std::span<const Carried> carried_to(ActionId id, std::size_t& next) const {
    const std::size_t first = next;
    while (next < m_carried.size() && m_carried[next].action == id) ++next;
    return std::span(m_carried).subspan(first, next - first);
  }

  [[nodiscard]] bool concerns(ActionId id) const {
    const Action& action = m_program.schedule[id];
    if (action.kind != Kind::group) return m_program.schedule[action.queue].from == m_program.rank;
    for (const Use& use : m_program.schedule.uses(id))
      if (m_program.schedule[use.buffer].rank == m_program.rank) return true;
    return false;
  }

  /// Returns true if the action is a message, or a move that a Mover performs.
  [[nodiscard]] bool posted(std::size_t action) const {
    const QueueId queue = m_program.schedule[ActionId{action}].queue;
    return !m_program.schedule[queue].local() || m_lanes[+queue];
  }

  /// The rank on which `end` of a move takes place.
  [[nodiscard]] Rank place(const Queue& queue, std::uint32_t end) const {
    return end == 0 ? queue.from : queue.to;
  }

  /// Numbers the messages and moves of every port, so that waits can be stated for later and
  /// earlier ones. Both ends of a move within the rank have the same port and number.
  void find_ports() {
    const Schedule& schedule = m_program.schedule;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      const Queue& queue = schedule[action.queue];
      if (action.kind != Kind::move || !posted(i)) continue;
      if (queue.local()) {
        if (queue.from == m_program.rank) number_move(i);
        continue;
      }
      for (const std::uint32_t end : {0u, 1u}) {
        if (place(queue, end) != m_program.rank) continue;
        std::uint32_t& port = m_port_of[2 * +action.queue + end];
        if (port == none) {
          port = static_cast<std::uint32_t>(m_program.ports.size());
          m_program.ports.push_back({place(queue, 1 - end), queue.lane, end == 0});
        }
        m_ordinal[i][end] = ++m_program.ports[port].messages;
      }
    }
  }

  void number_move(std::size_t i) {
    const Queue& queue = m_program.schedule[m_program.schedule[ActionId{i}].queue];
    std::uint32_t* const ports = &m_port_of[2 * +m_program.schedule[ActionId{i}].queue];
    if (ports[0] == none) {
      ports[0] = ports[1] = static_cast<std::uint32_t>(m_program.ports.size());
      m_program.ports.push_back({queue.from, queue.lane, false, 0, nullptr, true});
    }
    m_ordinal[i][0] = m_ordinal[i][1] = ++m_program.ports[ports[0]].messages;
  }

  /// Calls `on(rank, earlier, end)` for what the local action `id` depends on that takes place on
  /// other ranks of its domain.
  template <class Call>
  void elsewhere(ActionId id, std::span<const Carried> edges, Call&& on) const {
    const Schedule& schedule = m_program.schedule;
    const auto tell = [&](const After& after) {
      const Queue& queue = schedule[schedule[ActionId{after.action}].queue];
      const Rank rank = place(queue, queue.local() ? 0 : after.end);
      if (rank != schedule[schedule[id].queue].from) on(rank, after);
    };
    for (const After& after : schedule.after(id)) tell(after);
    for (const Carried& edge : edges) tell(edge.on);
  }

  /// Returns true if `use` is of what an owner other than `rank` has had since before the step. It
  /// may have changed between two steps, by none of their actions.
  [[nodiscard]] bool belongs_to_other(const Use& use, Rank rank) const {
    const Buffer& buffer = m_program.schedule[use.buffer];
    return buffer.rank != rank && !buffer.transient;
  }

  /// Finds the ranks that must tell the others when they begin a step, because other ranks read or
  /// write their persistent memory.
  void find_entered() {
    const Schedule& schedule = m_program.schedule;
    m_entered.assign(static_cast<std::size_t>(schedule.ranks()), false);
    m_met.assign(m_entered.size(), false);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      const Queue& queue = schedule[action.queue];
      if (!queue.local() || action.kind == Kind::group) continue;
      for (const Use& use : schedule.uses(ActionId{i}))
        if (belongs_to_other(use, queue.from)) m_entered[+schedule[use.buffer].rank] = true;
    }
  }

  /// Numbers what every rank of the domain does: its local actions, and the places where it settles
  /// messages that others depend on. Finds whom this rank waits for, and who touches its memory.
  void count_progress() {
    const Schedule& schedule = m_program.schedule;
    find_entered();
    std::vector<std::uint32_t> come(static_cast<std::size_t>(schedule.ranks()), 0);
    for (std::size_t r = 0; r < come.size(); ++r)
      if (m_entered[r]) come[r] = entered;
    m_awaited.assign(schedule.size(), false);
    std::vector<bool> meets(come.size(), false);
    for (std::size_t i = 0, next = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      const auto edges = carried_to(id, next);
      const Action& action = schedule[id];
      const Queue& queue = schedule[action.queue];
      refuse_group(schedule, id);
      if (!queue.local()) continue;
      elsewhere(id, edges, [&](Rank rank, const After& after) {
        if (queue.from == m_program.rank) meets[+rank] = true;
        if (!posted(after.action))
          m_awaited[last_of(after)] = true;
        else if (std::uint32_t& settled = m_settled[{id, rank}]; settled == 0)
          settled = ++come[+rank];
      });
      if (m_lanes[+action.queue]) continue;  // settled, not counted; it touches its own memory
      m_ordinal[i][0] = ++come[+queue.from];
      for (const Use& use : schedule.uses(id)) {
        const Rank owner = schedule[use.buffer].rank;
        if (owner == queue.from) continue;
        if (owner == m_program.rank) meets[+queue.from] = true;
        if (queue.from == m_program.rank) meets[+owner] = true;
      }
    }
    for (std::size_t i = 0; i < schedule.size(); ++i)
      for (const After& after : schedule.after(ActionId{i})) await_end(ActionId{i}, after, meets);
    for (const Carried& edge : m_carried) await_end(edge.action, edge.on, meets);
    m_progress_port.assign(come.size(), none);
    for (std::size_t r = 0; r < come.size(); ++r) {
      if (!meets[r]) continue;
      m_progress_port[r] = static_cast<std::uint32_t>(m_program.ports.size());
      m_program.ports.push_back({Rank{r}, {}, false, come[r], m_progress(Rank{r})});
    }
    m_program.progress = m_progress(m_program.rank);
    m_program.progress_per_step = come[+m_program.rank];
  }

  /// A move between domains may depend on what another rank than its own has done locally.
  void await_end(ActionId id, const After& after, std::vector<bool>& meets) {
    const Schedule& schedule = m_program.schedule;
    const Queue& queue = schedule[schedule[id].queue];
    const Queue& on = schedule[schedule[ActionId{after.action}].queue];
    if (queue.local() || !on.local() || on.from == place(queue, after.mine)) return;
    m_awaited[last_of(after)] = true;
    if (place(queue, after.mine) == m_program.rank) meets[+on.from] = true;
  }

  /// A group has no one place in the list of each member, and none where it ends for the others.
  static void refuse_group(const Schedule& schedule, ActionId id) {
    expects(schedule[id].kind != Kind::group, [&] {
      return ErrorInfo{
          "heddle::slice", "ranks that share memory cannot see the progress of a group action",
          schedule::action_text(schedule, id), "replace the group by its moves with expand()"};
    });
  }

  /// The action at whose end the dependency ends: a fused one is done with its partner.
  [[nodiscard]] std::size_t last_of(const After& after) const {
    const bool pair = (m_program.schedule[ActionId{after.action}].flags & flag::with_next) != 0;
    return after.action + (pair && after.end != 0 ? 1u : 0u);
  }

  void step(ActionId id, Program::Step::Does does, std::uint32_t end,
            std::span<const Carried> edges) {
    const Schedule& schedule = m_program.schedule;
    const Action& action = schedule[id];
    const bool moves = does == Program::Step::Does::send || does == Program::Step::Does::receive;
    const bool awaited = does == Program::Step::Does::run && !m_awaited.empty() && m_awaited[+id];
    m_program.steps.push_back(
        {id, does, does == Program::Step::Does::run ? 0 : m_port_of[2 * +action.queue + end],
         awaited ? m_ordinal[+id][0] : 0, static_cast<std::uint32_t>(m_program.waits.size()),
         static_cast<std::uint32_t>(m_program.uses.size())});
    for (const After& after : schedule.after(id))
      if (!moves || after.mine == end) wait(id, after, false);
    for (const Carried& edge : edges)
      if (!moves || edge.on.mine == end) wait(id, edge.on, true);
    const auto uses = schedule.uses(id);
    for (std::size_t u = 0; u < uses.size(); ++u) {
      if (moves && u != end) continue;
      if (!moves && action.kind != Kind::group && !m_entered.empty()) wait_for_owner(uses[u]);
      const Buffer& buffer = schedule[uses[u].buffer];
      if (action.kind == Kind::group && buffer.rank != m_program.rank) continue;
      std::byte* const begin = m_memory[+uses[u].buffer];
      const Bytes offset = schedule::part_offset(buffer, uses[u].first);
      m_program.uses.push_back({begin == nullptr ? nullptr : begin + offset,
                                schedule.bytes(uses[u]), uses[u].buffer, uses[u].access(),
                                m_roles.of(action.kind, uses[u])});
    }
  }

  /// Before the first touch of what belongs to another rank in a step, that must have begun it.
  void wait_for_owner(const Use& use) {
    const std::size_t owner = +m_program.schedule[use.buffer].rank;
    if (m_met[owner] || !belongs_to_other(use, m_program.rank)) return;
    m_met[owner] = true;
    m_program.waits.push_back({m_progress_port[owner], entered, false});
  }

  /// Waits for the messages of this rank that action `id` of another one depends on.
  void settle(ActionId id, std::uint32_t progress, std::span<const Carried> edges) {
    m_program.steps.push_back({id, Program::Step::Does::settle, 0, progress,
                               static_cast<std::uint32_t>(m_program.waits.size()),
                               static_cast<std::uint32_t>(m_program.uses.size())});
    const auto mine = [&](const After& after) {
      const Queue& queue = m_program.schedule[m_program.schedule[ActionId{after.action}].queue];
      return posted(after.action) && place(queue, queue.local() ? 0 : after.end) == m_program.rank;
    };
    for (const After& after : m_program.schedule.after(id))
      if (mine(after)) wait(id, after, false);
    for (const Carried& edge : edges)
      if (mine(edge.on)) wait(id, edge.on, true);
  }

  /// Adds the wait for an action that `id` depends on, if it is posted or on another rank. This
  /// rank's other actions are complete when it reaches `id`.
  void wait(ActionId id, const After& after, bool is_carried) {
    const QueueId at = m_program.schedule[ActionId{after.action}].queue;
    const Queue& queue = m_program.schedule[at];
    const Rank rank = place(queue, queue.local() ? 0 : after.end);
    if (rank != m_program.rank) {
      if (m_progress_port.empty() || m_progress_port[+rank] == none) return;  // a group's member
      if (!posted(after.action))
        m_program.waits.push_back(
            {m_progress_port[+rank], m_ordinal[last_of(after)][0], is_carried});
      else  // settled in this step, whenever the message was sent
        m_program.waits.push_back({m_progress_port[+rank], m_settled.at({id, rank}), false});
    } else if (posted(after.action)) {
      m_program.waits.push_back(
          {m_port_of[2 * +at + after.end], m_ordinal[after.action][after.end], is_carried});
    }
  }

  std::vector<std::byte*> m_memory;
  std::vector<Carried> m_carried;
  const std::function<ProgressCounter*(Rank)>& m_progress;
  std::vector<bool> m_lanes;  ///< the queues whose moves a Mover performs
  UseRoles m_roles;           ///< refers to the schedule of the caller
  Program m_program;
  std::vector<std::uint32_t> m_port_of;  ///< the port of each (queue, end)
  /// The number of a posted move among those of its two ports. For another local action: [0] is
  /// the progress of its rank at its end.
  std::vector<std::array<std::uint32_t, 2>> m_ordinal;
  std::vector<bool> m_entered;  ///< ranks that tell when they begin a step; empty without domains
  std::vector<bool> m_met;      ///< ranks whose begin this one has waited for
  std::vector<bool> m_awaited;  ///< local actions, by other ranks
  std::map<std::pair<ActionId, Rank>, std::uint32_t> m_settled;  ///< how far the rank has come
  std::vector<std::uint32_t> m_progress_port;                    ///< by rank; none: never met
};

}  // namespace heddle::inline v0::impl
