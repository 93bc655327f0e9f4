// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Costs: the times of the actions of a Schedule. StageCosts are uniform, for formulas; TableCosts
/// are a table, for profiles; MachineCosts add devices of different speeds. A Machine prices
/// transfers.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The cost of a move: it occupies its channel for `occupancy` and arrives `latency` later.
template <class Time>
struct Transfer {
  Time occupancy = {};  ///< the time in which the channel carries no other message
  Time latency = {};    ///< the time from then to the arrival
};

/// A type that prices the actions of a Schedule: `time` prices every action but moves, and
/// `transfer` prices moves. A cost is a finite time of at least 0; simulate() rejects others.
template <class C>
concept Costs = requires(const C& costs, const Schedule& schedule, ActionId id) {
  typename C::Time;
  { costs.time(schedule, id) } -> std::convertible_to<typename C::Time>;
  { costs.transfer(schedule, id) } -> std::convertible_to<Transfer<typename C::Time>>;
};

/// Costs that price a fused pair: `fused(schedule, id)` prices action `id`, which has
/// flag::with_next, and the next action together. Without it, a pair takes as long as its two
/// parts.
template <class C>
concept FusedCosts = Costs<C> && requires(const C& costs, const Schedule& schedule, ActionId id) {
  { costs.fused(schedule, id) } -> std::convertible_to<typename C::Time>;
};

/// Costs that are checked once instead of for every action: `check()` throws contract_error if a
/// cost could be negative, infinite or not a number. simulate() calls it first.
template <class C>
concept CheckedCosts = Costs<C> && requires(const C& costs) {
  costs.check();
};

/// Costs with a Machine. If queues share resources of the Machine, simulate() handles events in the
/// order of time. `occupancy(schedule, id, shared)` is the time for which move `id` keeps a shared
/// resource.
template <class C>
concept SharingCosts = Costs<C> &&
    requires(const C& costs, const Schedule& schedule, ActionId id, const Shared& shared) {
  { costs.machine() } -> std::convertible_to<const Machine&>;
  { costs.occupancy(schedule, id, shared) } -> std::convertible_to<typename C::Time>;
};

/// The same costs for every stage, in any unit of time: `{.forward = 1, .backward = 2}`. If a
/// backward is split, `{.forward = 1, .backward_input = 1, .backward_weight = 1}` sets its halves,
/// and `backward` is their sum unless it is set, too. If the stages recompute activations, each
/// half of a split backward runs a part of the forward again, so the halves take longer than
/// `backward`. A move of n bytes occupies its channel for n * per_byte.
template <class T>
struct BasicStageCosts {
  using Time = T;  ///< the type of costs

  T forward = {};                                 ///< F: a forward
  T backward_input = {};                          ///< I: a backward for the input
  T backward_weight = {};                         ///< W: a backward for the weights
  T backward = backward_input + backward_weight;  ///< B: a whole backward
  T forward_backward = forward + backward;        ///< a forward and a backward fused
  T combine = {};                                 ///< a combine, per byte
  T cast = {};                                    ///< a cast, per byte that it reads
  T group = {};                                   ///< a collective that is one action
  T update = {};                                  ///< a step of the optimiser
  T user = {};                                    ///< an action of the user's own
  T latency = {};                                 ///< the latency of every move
  T per_byte = {};                                ///< the occupancy of a move, per byte

  /// Checks all costs. @throws contract_error if one is negative, infinite or not a number. The
  /// error names the member.
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

  /// Returns the cost of an action that is not a move.
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
  /// Returns the cost of a fused pair.
  [[nodiscard]] T fused(const Schedule& schedule, ActionId id) const {
    const auto is = [&](Kind kind) { return schedule[id].kind == kind; };
    const ActionId next{+id + 1};
    const bool both = (is(Kind::forward) && schedule[next].kind == Kind::backward) ||
                      (is(Kind::backward) && schedule[next].kind == Kind::forward);
    return both ? forward_backward : time(schedule, id) + time(schedule, next);
  }
  /// Returns the cost of a move.
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

namespace impl {

/// Returns the bytes that a move carries.
[[nodiscard]] inline Bytes moved_bytes(const Schedule& schedule, ActionId id) {
  return schedule.bytes(schedule.uses(id).front());
}

/// Returns the link of a move on `machine`. It is the link between its two ranks or, if the move
/// stays within a rank, the link of the farther of the two memory levels.
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
  return machine.link(from.rank, to.rank);  // two ranks: one reads the other's memory
}
/// Returns the cost of a move on `machine`.
[[nodiscard]] inline Transfer<Seconds> transfer(const Machine& machine, const Schedule& schedule,
                                                ActionId id) {
  const Link& link = link_of(machine, schedule, id);
  return {link.occupancy(moved_bytes(schedule, id)), link.latency};
}

}  // namespace impl

/// Costs on a Machine: local work takes the costs of `Local` divided by the speed of its device,
/// and the links of the Machine price the moves.
template <class Local>
class BasicMachineCosts {
 public:
  using Time = Seconds;  ///< the type of costs

  /// Constructs the costs. Local work costs `local` on a device of speed 1.
  /// @throws contract_error if a cost is negative, infinite or not a number.
  BasicMachineCosts(Local local, Machine machine)
      : m_local(std::move(local)), m_machine(std::move(machine)) {
    check();
  }

  /// Checks all costs. @throws contract_error as the constructor does.
  void check() const { m_local.check(); }
  /// Returns the Machine whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// Returns the cost of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    return m_local.time(schedule, id) / speed(schedule, id);
  }
  /// Returns the cost of a fused pair.
  [[nodiscard]] Seconds fused(const Schedule& schedule,
                              ActionId id) const requires FusedCosts<Local> {
    return m_local.fused(schedule, id) / speed(schedule, id);
  }
  /// Returns the cost of a move, by the link between its two ranks.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return impl::transfer(m_machine, schedule, id);
  }
  /// Returns the time for which a move keeps a shared resource.
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const {
    return shared.occupancy(impl::moved_bytes(schedule, id));
  }

 private:
  [[nodiscard]] double speed(const Schedule& schedule, ActionId id) const {
    return m_machine.device(schedule[schedule[id].queue].from).speed;
  }

  Local m_local;
  Machine m_machine;
};

using MachineCosts = BasicMachineCosts<StageCosts>;  ///< with the same local costs for every stage

/// A table of costs, such as a profile gives: a cost per (kind, stage) and per fused pair. If ranks
/// of a stage differ, they have costs of their own. The links of a Machine price the moves.
class TableCosts {
 public:
  using Time = Seconds;  ///< the type of costs

  /// Constructs a table of zeros for so many stages. `at` sets costs.
  TableCosts(Machine machine, int stages);

  /// Returns the cost of an action of `kind` on `stage`, to be set or read.
  [[nodiscard]] Seconds& at(Kind kind, Stage stage) { return m_table[index(kind, stage)]; }
  /// Returns the cost of a fused pair, to be set or read; `kind` on `stage` is its first action.
  /// Before the first call a pair costs as much as its two parts; the first call starts with their
  /// sum.
  [[nodiscard]] Seconds& at(Kind kind, Stage stage, Kind next, Stage next_stage);
  /// Returns the cost of an action of `kind` on `stage` on one rank, to be set or read. Before the
  /// first call it is the cost of the stage; afterwards changes of that do not reach this rank.
  [[nodiscard]] Seconds& at(Rank rank, Kind kind, Stage stage);
  /// Returns the cost of a fused pair on one rank, to be set or read. Before the first call it is
  /// the cost of the pair on every rank.
  [[nodiscard]] Seconds& at(Rank rank, Kind kind, Stage stage, Kind next, Stage next_stage);
  /// Returns the Machine whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// Replaces the Machine that prices moves.
  void set_machine(Machine machine) { m_machine = std::move(machine); }
  /// Checks all costs. @throws contract_error if one is negative, infinite or not a number. The
  /// error names its kind and stage, or those of its pair.
  void check() const;

  /// Returns the cost of an action that is not a move. @throws contract_error if the table does not
  /// have its stage.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    const std::size_t place = index(action.kind, action.stage);
    return m_by_rank.empty() ? m_table[place] : cost_of(schedule[action.queue].from, place);
  }
  /// Returns the cost of a fused pair. @throws contract_error if the table does not have a stage.
  [[nodiscard]] Seconds fused(const Schedule& schedule, ActionId id) const;
  /// Returns the cost of a move, by the link between its two ranks.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return impl::transfer(m_machine, schedule, id);
  }
  /// Returns the time for which a move keeps a shared resource.
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const {
    return shared.occupancy(impl::moved_bytes(schedule, id));
  }

 private:
  [[nodiscard]] static std::string name_of(std::size_t place);
  [[noreturn]] void refuse_stage(Stage stage) const;
  void expect_rank(Rank rank) const;
  [[nodiscard]] std::size_t index(Kind kind, Stage stage) const {
    const std::size_t found = +stage * kind_count + static_cast<std::size_t>(kind);
    if (found >= m_table.size()) [[unlikely]]
      refuse_stage(stage);
    return found;
  }

  [[nodiscard]] Seconds cost_of(Rank rank, std::size_t place) const {
    const auto found = m_by_rank.find({+rank, place});
    return found != m_by_rank.end() ? found->second : m_table[place];
  }

  using Places = std::pair<std::size_t, std::size_t>;  ///< the places of a pair

  Machine m_machine;
  std::vector<Seconds> m_table;
  std::map<Places, Seconds> m_pairs;
  std::map<std::pair<std::size_t, std::size_t>, Seconds> m_by_rank;   ///< by rank and place
  std::map<std::pair<std::size_t, Places>, Seconds> m_pairs_by_rank;  ///< by rank and places
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SIMULATE
#include <heddle/simulate/costs.ipp>
#endif
