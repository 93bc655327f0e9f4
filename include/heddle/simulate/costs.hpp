// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Costs: what an action takes. Uniform ones for formulas, a table for profiles, and a Machine for
/// the transfers.

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// What a move takes: `occupancy` at its channel, then `latency` until it is there.
template <class Time>
struct Transfer {
  Time occupancy = {};
  Time latency = {};
};

/// Prices the actions of a Schedule. `time` is asked for every action but moves, `transfer` for
/// moves.
template <class C>
concept Costs = requires(const C& costs, const Schedule& schedule, ActionId id) {
  typename C::Time;
  { costs.time(schedule, id) } -> std::convertible_to<typename C::Time>;
  { costs.transfer(schedule, id) } -> std::convertible_to<Transfer<typename C::Time>>;
};

/// The same cost for every stage; `{.F = 1, .B = 2}`, or `{.F = 1, .I = 1, .W = 1}` with B = I + W.
/// A move of n bytes occupies its channel for n * per_byte. In any unit of time.
template <class T>
struct BasicStageCosts {
  using Time = T;

  T F = {};
  T I = {};
  T W = {};
  T B = I + W;
  T combine = {};  ///< per byte
  T cast = {};     ///< per byte read
  T group = {};
  T update = {};
  T user = {};
  T latency = {};
  T per_byte = {};

  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    switch (schedule[id].kind) {
      case Kind::F: return F;
      case Kind::I: return I;
      case Kind::W: return W;
      case Kind::B: return B;
      case Kind::combine: return combine * bytes(schedule, id);
      case Kind::cast: return cast * bytes(schedule, id);
      case Kind::group: return group;
      case Kind::update: return update;
      case Kind::user: return user;
      case Kind::move: break;
    }
    return {};
  }
  [[nodiscard]] Transfer<T> transfer(const Schedule& schedule, ActionId id) const {
    return {per_byte * bytes(schedule, id), latency};
  }

 private:
  [[nodiscard]] static T bytes(const Schedule& schedule, ActionId id) {
    return T(schedule.bytes(schedule.uses(id).front()));
  }
};

using StageCosts = BasicStageCosts<Seconds>;
static_assert(Costs<StageCosts>);

/// A cost per (kind, stage), as profiled; moves by the links of a Machine.
class TableCosts {
 public:
  using Time = Seconds;

  TableCosts(Machine machine, int stages)
      : m_machine(std::move(machine)),
        m_table(static_cast<std::size_t>(std::max(stages, 0)) * kind_count, Seconds{}) {}

  /// The cost of one action of `kind` on `stage`.
  [[nodiscard]] Seconds& at(Kind kind, Stage stage) { return m_table[index(kind, stage)]; }
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  void set_machine(Machine machine) { m_machine = std::move(machine); }

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    return m_table[index(action.kind, action.stage)];
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    const Queue& queue = schedule[schedule[id].queue];
    const Link& link = m_machine.link(queue.from, queue.to);
    return {link.occupancy(schedule.bytes(schedule.uses(id).front())), link.latency};
  }

 private:
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
};
static_assert(Costs<TableCosts>);

}  // namespace heddle::inline v0
