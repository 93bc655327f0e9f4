// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TrafficRound: the time of messages that many pairs of ranks send at once.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::plan::impl {

/// Adds up messages that begin at the same time, at most one for each pair of ranks. Each pair has
/// a link of its own. A port or line that messages share serves one after another: the last one
/// begins when all others have been served. This is what simulate() does if messages are of equal
/// sizes and resources serve equal numbers of them.
class TrafficRound {
 public:
  explicit TrafficRound(const Machine& machine)
      : m_machine(&machine), m_shared(machine.shared().size()) {}

  /// Adds a message of `bytes` bytes.
  void add(Rank from, Rank to, double bytes) {
    const Link& link = m_machine->link(from, to);
    Seconds longest = bytes / link.bandwidth;
    if (!m_shared.empty()) {
      const Machine::Route route = m_machine->route(from, to, Lane{0});
      const auto occupancy = [&](SharedId id) {
        return bytes / m_machine->shared()[+id].bandwidth;
      };
      for (const auto* way : {&route.out, &route.in})
        for (const SharedId id : *way) longest = std::max(longest, occupancy(id));
      for (const auto* way : {&route.out, &route.in})
        for (const SharedId id : *way) {
          Busy& busy = m_shared[+id];
          if (busy.messages++ == 0) m_used.push_back(id);
          busy.occupied += occupancy(id);
          busy.rest = std::max(busy.rest, longest - occupancy(id) + link.latency);
        }
    }
    m_longest = std::max(m_longest, longest + link.latency);
  }

  /// Returns the time until all messages have arrived.
  [[nodiscard]] Seconds time() const {
    Seconds longest = m_longest;
    for (const SharedId id : m_used)
      longest = std::max(longest, m_shared[+id].occupied + m_shared[+id].rest);
    return longest;
  }

  /// Forgets all messages.
  void clear() {
    m_longest = 0;
    for (const SharedId id : m_used) m_shared[+id] = {};
    m_used.clear();
  }

 private:
  struct Busy {
    Seconds occupied = 0;  ///< by all messages
    Seconds rest = 0;      ///< from the end of the last one's occupancy to its arrival
    std::size_t messages = 0;
  };
  const Machine* m_machine;
  Seconds m_longest = 0;
  std::vector<Busy> m_shared;
  std::vector<SharedId> m_used;  ///< the resources that have messages
};

}  // namespace heddle::inline v0::plan::impl
