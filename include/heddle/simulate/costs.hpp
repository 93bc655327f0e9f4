// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Costs: what an action takes. Uniform ones for formulas, a table for profiles, and a Machine for
/// the transfers.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/impl/is_time.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// What a move takes: `occupancy` at its channel, then `latency` until it is there.
template <class Time>
struct Transfer {
  Time occupancy = {};  ///< how long the channel carries no other
  Time latency = {};    ///< from then to the arrival
};

/// Prices the actions of a Schedule. `time` is asked for every action but moves, `transfer` for
/// moves. A cost is a finite time of at least 0: simulate() rejects others.
template <class C>
concept Costs = requires(const C& costs, const Schedule& schedule, ActionId id) {
  typename C::Time;
  { costs.time(schedule, id) } -> std::convertible_to<typename C::Time>;
  { costs.transfer(schedule, id) } -> std::convertible_to<Transfer<typename C::Time>>;
};

/// Costs that know what a fused pair takes: `fused(schedule, id)` prices action `id` (which has
/// flag::with_next) and the next one together. Without it a pair takes as long as its two parts.
template <class C>
concept FusedCosts = Costs<C> && requires(const C& costs, const Schedule& schedule, ActionId id) {
  { costs.fused(schedule, id) } -> std::convertible_to<typename C::Time>;
};

/// Costs that are checked once instead of for every action: `check()` throws contract_error if any
/// of them could be negative, infinite or not a number. simulate() calls it first.
template <class C>
concept CheckedCosts = Costs<C> && requires(const C& costs) {
  costs.check();
};

/// Costs with a Machine, which may say that queues share something: then simulate() keeps the time
/// order. `occupancy(schedule, id, shared)` is how long move `id` keeps it.
template <class C>
concept SharingCosts = Costs<C> &&
    requires(const C& costs, const Schedule& schedule, ActionId id, const Shared& shared) {
  { costs.machine() } -> std::convertible_to<const Machine&>;
  { costs.occupancy(schedule, id, shared) } -> std::convertible_to<typename C::Time>;
};

/// The same costs for every stage, in any unit of time: `{.forward = 1, .backward = 2}`. If a
/// backward is split, `{.forward = 1, .backward_input = 1, .backward_weight = 1}` sets its halves,
/// and `backward` is their sum. A move of n bytes occupies its channel for n * per_byte.
template <class T>
struct BasicStageCosts {
  using Time = T;  ///< what costs are in

  T forward = {};                                 ///< F: a forward
  T backward_input = {};                          ///< I: a backward for the input
  T backward_weight = {};                         ///< W: a backward for the weights
  T backward = backward_input + backward_weight;  ///< B: a backward, both at once
  T forward_backward = forward + backward;        ///< a forward and a backward fused
  T combine = {};                                 ///< per byte
  T cast = {};                                    ///< per byte read
  T group = {};                                   ///< a collective as one action
  T update = {};                                  ///< a step of the optimiser
  T user = {};                                    ///< an action of the user's own
  T latency = {};                                 ///< of every move
  T per_byte = {};                                ///< of a move, at its channel

  /// @throws contract_error for a cost that is negative, infinite or not a number; names the
  /// member.
  void check() const {
    const std::pair<const char*, T BasicStageCosts::*> members[] = {
        {"forward", &BasicStageCosts::forward},
        {"backward_input", &BasicStageCosts::backward_input},
        {"backward_weight", &BasicStageCosts::backward_weight},
        {"backward", &BasicStageCosts::backward},
        {"forward_backward", &BasicStageCosts::forward_backward},
        {"combine", &BasicStageCosts::combine},
        {"cast", &BasicStageCosts::cast},
        {"group", &BasicStageCosts::group},
        {"update", &BasicStageCosts::update},
        {"user", &BasicStageCosts::user},
        {"latency", &BasicStageCosts::latency},
        {"per_byte", &BasicStageCosts::per_byte}};
    for (const auto& [name, member] : members)
      impl::expect_time("heddle::StageCosts", name, this->*member);
  }

  /// The cost of an action that is not a move.
  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    switch (schedule[id].kind) {
      case Kind::forward: return forward;
      case Kind::backward_input: return backward_input;
      case Kind::backward_weight: return backward_weight;
      case Kind::backward: return backward;
      case Kind::combine: return combine * bytes(schedule, id);
      case Kind::cast: return cast * bytes(schedule, id);
      case Kind::group: return group;
      case Kind::update: return update;
      case Kind::user: return user;
      case Kind::move: break;
    }
    return {};
  }
  /// The cost of a fused pair.
  [[nodiscard]] T fused(const Schedule& schedule, ActionId id) const {
    const auto is = [&](Kind kind) { return schedule[id].kind == kind; };
    const ActionId next{+id + 1};
    const bool both = (is(Kind::forward) && schedule[next].kind == Kind::backward) ||
                      (is(Kind::backward) && schedule[next].kind == Kind::forward);
    return both ? forward_backward : time(schedule, id) + time(schedule, next);
  }
  /// The cost of a move.
  [[nodiscard]] Transfer<T> transfer(const Schedule& schedule, ActionId id) const {
    return {per_byte * bytes(schedule, id), latency};
  }

 private:
  [[nodiscard]] static T bytes(const Schedule& schedule, ActionId id) {
    const auto uses = schedule.uses(id);
    return uses.empty() ? T{} : T(schedule.bytes(uses.front()));
  }
};

using StageCosts = BasicStageCosts<Seconds>;  ///< in seconds
static_assert(FusedCosts<StageCosts> && CheckedCosts<StageCosts>);

namespace impl {

/// Bytes that a move carries.
[[nodiscard]] inline Bytes moved_bytes(const Schedule& schedule, ActionId id) {
  return schedule.bytes(schedule.uses(id).front());
}

/// The link that a move takes on `machine`: that between its two ranks, or, within a rank, that of
/// the farther of two levels of memory.
[[nodiscard]] inline const Link& link_of(const Machine& machine, const Schedule& schedule,
                                         ActionId id) {
  const Queue& queue = schedule[schedule[id].queue];
  if (!queue.local()) return machine.link(queue.from, queue.to);
  const Buffer& from = schedule[schedule.uses(id).front().buffer];
  const Buffer& to = schedule[schedule.uses(id).back().buffer];
  const std::vector<Memory>& memories = machine.device(to.rank).memories;
  const std::size_t farther = +std::max(from.tier, to.tier);
  if (from.rank == to.rank && from.tier != to.tier && farther < memories.size())
    return memories[farther].link;
  return machine.link(from.rank, to.rank);  // two ranks where one reads the other's memory
}
/// What a move takes on `machine`.
[[nodiscard]] inline Transfer<Seconds> transfer(const Machine& machine, const Schedule& schedule,
                                                ActionId id) {
  const Link& link = link_of(machine, schedule, id);
  return {link.occupancy(moved_bytes(schedule, id)), link.latency};
}

}  // namespace impl

/// The costs of StageCosts over the speed of the device, moves by the links of a Machine.
class MachineCosts {
 public:
  using Time = Seconds;  ///< what costs are in

  /// Local work costs `local` on a device of speed 1.
  /// @throws contract_error for a cost that is negative, infinite or not a number.
  MachineCosts(const StageCosts& local, Machine machine)
      : m_local(local), m_machine(std::move(machine)) {
    check();
  }

  /// @throws contract_error as the constructor does.
  void check() const { m_local.check(); }
  /// Whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// The cost of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    return m_local.time(schedule, id) / speed(schedule, id);
  }
  /// The cost of a fused pair.
  [[nodiscard]] Seconds fused(const Schedule& schedule, ActionId id) const {
    return m_local.fused(schedule, id) / speed(schedule, id);
  }
  /// The cost of a move, by the link between its two ranks.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return impl::transfer(m_machine, schedule, id);
  }
  /// How long a move keeps what it shares.
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const {
    return shared.occupancy(impl::moved_bytes(schedule, id));
  }

 private:
  [[nodiscard]] double speed(const Schedule& schedule, ActionId id) const {
    return m_machine.device(schedule[schedule[id].queue].from).speed;
  }

  StageCosts m_local;
  Machine m_machine;
};
static_assert(SharingCosts<MachineCosts> && FusedCosts<MachineCosts> && CheckedCosts<MachineCosts>);

/// A cost per (kind, stage), and per fused pair of them, as profiled; moves by the links of a
/// Machine.
class TableCosts {
 public:
  using Time = Seconds;  ///< what costs are in

  /// Costs of zero for so many stages; `at` sets them.
  TableCosts(Machine machine, int stages)
      : m_machine(std::move(machine)),
        m_table(static_cast<std::size_t>(std::max(stages, 0)) * kind_count, Seconds{}) {}

  /// The cost of one action of `kind` on `stage`.
  [[nodiscard]] Seconds& at(Kind kind, Stage stage) { return m_table[index(kind, stage)]; }
  /// That of two fused ones together, `kind` on `stage` first. Until this is called such a pair
  /// takes as long as its two parts; the first call finds what they take then.
  [[nodiscard]] Seconds& at(Kind kind, Stage stage, Kind next, Stage next_stage) {
    const std::size_t first = index(kind, stage), second = index(next, next_stage);
    return m_pairs.try_emplace({first, second}, m_table[first] + m_table[second]).first->second;
  }
  /// Whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// Prices moves by another machine from now on.
  void set_machine(Machine machine) { m_machine = std::move(machine); }
  /// @throws contract_error for a cost that is negative, infinite or not a number; names its kind
  ///         and stage, or its pair of them.
  void check() const {
    for (std::size_t i = 0; i < m_table.size(); ++i)
      expects(impl::is_time(m_table[i]),
              [&] { return impl::no_time("heddle::TableCosts", name_of(i), m_table[i]); });
    for (const auto& each : m_pairs)
      expects(impl::is_time(each.second), [&] {
        const auto& [first, second] = each.first;
        return impl::no_time("heddle::TableCosts",
                             text(name_of(first), " fused with ", name_of(second)), each.second);
      });
  }

  /// The cost of an action that is not a move. @throws contract_error for a stage beyond the table.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    return m_table[index(action.kind, action.stage)];
  }
  /// The cost of a fused pair. @throws contract_error for a stage beyond the table.
  [[nodiscard]] Seconds fused(const Schedule& schedule, ActionId id) const {
    const ActionId next{+id + 1};
    const auto found = m_pairs.find({index(schedule[id].kind, schedule[id].stage),
                                     index(schedule[next].kind, schedule[next].stage)});
    return found != m_pairs.end() ? found->second : time(schedule, id) + time(schedule, next);
  }
  /// The cost of a move, by the link between its two ranks.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return impl::transfer(m_machine, schedule, id);
  }
  /// How long a move keeps what it shares.
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const {
    return shared.occupancy(impl::moved_bytes(schedule, id));
  }

 private:
  [[nodiscard]] static std::string name_of(std::size_t place) {
    return text(static_cast<Kind>(place % kind_count), " of stage ", place / kind_count);
  }
  [[nodiscard]] std::size_t index(Kind kind, Stage stage) const {
    const std::size_t found = +stage * kind_count + static_cast<std::size_t>(kind);
    expects(found < m_table.size(), [&] {
      return Complaint{"heddle::TableCosts", "no such stage",
                       text("stage ", stage, " of ", m_table.size() / kind_count)};
    });
    return found;
  }

  Machine m_machine;
  std::vector<Seconds> m_table;
  std::map<std::pair<std::size_t, std::size_t>, Seconds> m_pairs;  ///< by places in the table
};
static_assert(SharingCosts<TableCosts> && FusedCosts<TableCosts> && CheckedCosts<TableCosts>);

}  // namespace heddle::inline v0
