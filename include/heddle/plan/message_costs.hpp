// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MessageCosts: the times of the actions of a collective on a Machine, with the message protocols
/// of MPI libraries.

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

/// Costs of moves, combines and casts; other actions take no time. A message of more than `eager`
/// bytes uses the rendezvous protocol of MPI libraries: it waits for an answer of its receiver,
/// which takes two more latencies.
class MessageCosts {
 public:
  using Time = Seconds;  ///< the type of costs

  /// Constructs costs over the links of `machine`. Each byte that is merged, converted or copied
  /// takes `per_byte` seconds. The default of `eager` is that of Open MPI over TCP.
  /// @throws contract_error if `per_byte` is negative, infinite or not a number.
  explicit MessageCosts(Machine machine, Bytes eager = 64 * 1024, Seconds per_byte = 0.25e-9);

  /// Returns the Machine whose links price the moves and whose ports they share.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// Returns the cost of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Kind kind = schedule[id].kind;
    return kind == Kind::combine || kind == Kind::cast
               ? m_per_byte * static_cast<double>(bytes(schedule, id))
               : 0;
  }
  /// Returns the cost of a move, by the link between its two ranks, or per byte if it is a copy
  /// within a rank.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    const Queue& queue = schedule[schedule[id].queue];
    const Bytes size = bytes(schedule, id);
    if (queue.local()) return {m_per_byte * static_cast<double>(size), 0};
    const Link& link = m_machine.link(queue.from, queue.to);
    return {link.occupancy(size), (size > m_eager ? 3 : 1) * link.latency};
  }
  /// Returns the time for which a move keeps a shared resource.
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const {
    return shared.occupancy(bytes(schedule, id));
  }

 private:
  [[nodiscard]] static Bytes bytes(const Schedule& schedule, ActionId id) {
    return schedule.bytes(schedule.uses(id).front());
  }

  Machine m_machine;
  Bytes m_eager;
  Seconds m_per_byte;
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/message_costs.ipp>
#endif
