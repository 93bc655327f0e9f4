// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CutTraffic: the time of the messages between two stages of a plan.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::plan::impl {

/// Messages at a cut, and how long the busiest of their ranks and shared resources is busy.
class CutTraffic {
 public:
  explicit CutTraffic(const Machine& machine)
      : m_machine(&machine),
        m_sends(static_cast<std::size_t>(machine.ranks())),
        m_receives(m_sends.size()),
        m_shared(machine.shared().size()) {}

  void add(Rank from, Rank to, Bytes bytes) {
    const Link& link = m_machine->link(from, to);
    m_sends[+from].add(link.occupancy(bytes), link.latency);
    m_receives[+to].add(link.occupancy(bytes), link.latency);
    if (m_shared.empty()) return;
    const Route route = m_machine->route(from, to, Lane{0});
    for (const auto* way : {&route.out, &route.in})
      for (const SharedId id : *way)
        m_shared[+id].add(m_machine->shared()[+id].occupancy(bytes), link.latency);
  }

  [[nodiscard]] Seconds time() const {
    Seconds longest = 0;
    for (const auto* list : {&m_sends, &m_receives, &m_shared})
      for (const Busy& busy : *list) longest = std::max(longest, busy.occupied + busy.latency);
    return longest;
  }

 private:
  struct Busy {
    Seconds occupied = 0;
    Seconds latency = 0;
    void add(Seconds occupancy, Seconds late) {
      occupied += occupancy;
      latency = std::max(latency, late);
    }
  };
  const Machine* m_machine;
  std::vector<Busy> m_sends, m_receives, m_shared;
};

}  // namespace heddle::inline v0::plan::impl
