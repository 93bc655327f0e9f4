// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ByteTimes: how long links, ports and lines take for messages that are sent at once.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::systems::impl {

/// Adds up the seconds per byte of messages of one size, by link or by sender and receiver, and by
/// port and line.
class ByteTimes {
 public:
  explicit ByteTimes(const Machine& machine)
      : m_machine(&machine),
        m_sends(static_cast<std::size_t>(machine.ranks())),
        m_receives(m_sends.size()),
        m_shared(machine.shared().size()) {}

  void add(Rank from, Rank to) {
    const Seconds time = 1 / m_machine->link(from, to).bandwidth;
    m_sends[+from] += time;
    m_receives[+to] += time;
    if (m_shared.empty()) return;
    const Machine::Route route = m_machine->route(from, to, Lane{0});
    for (const auto* way : {&route.out, &route.in})
      for (const SharedId id : *way) m_shared[+id] += 1 / m_machine->shared()[+id].bandwidth;
  }
  [[nodiscard]] Seconds busiest() const {
    Seconds most = 0;
    for (const auto* list : {&m_sends, &m_receives, &m_shared})
      for (const Seconds time : *list) most = std::max(most, time);
    return most;
  }

 private:
  const Machine* m_machine;
  std::vector<Seconds> m_sends, m_receives, m_shared;
};

}  // namespace heddle::inline v0::systems::impl
