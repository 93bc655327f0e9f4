// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ring_exchange(): the times in which blocks of keys and values travel around a ring of ranks.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0::plan::impl {

/// The least bandwidths and the greatest latency between two ranks of a ring.
struct RingLink {
  Seconds latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per second of the links
  double shared = std::numeric_limits<double>::infinity();     ///< the least of ports and lines

  /// Returns the bytes per second of a message that nothing else delays.
  [[nodiscard]] double slowest() const noexcept { return std::min(bandwidth, shared); }
};

/// Returns the limits of a ring of ranks.
[[nodiscard]] inline RingLink ring_link(const Machine& machine, std::span<const Rank> ranks) {
  RingLink slowest;
  const auto note = [&](Rank from, Rank to) {
    const Link& link = machine.link(from, to);
    slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth);
    slowest.latency = std::max(slowest.latency, link.latency);
  };
  // If levels give the links, two ranks that are far apart have the link of some neighbours between
  // them, so the neighbours have all links.
  if (machine.links().empty() && machine.shared().empty()) {
    std::vector<Rank> sorted(ranks.begin(), ranks.end());
    std::ranges::sort(sorted);
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i - 1] != sorted[i]) note(sorted[i - 1], sorted[i]);
    return slowest;
  }
  for (const Rank from : ranks)
    for (const Rank to : ranks) {
      if (from == to) continue;
      note(from, to);
      if (machine.shared().empty()) continue;
      const Machine::Route route = machine.route(from, to, Lane{0});
      for (const auto* way : {&route.out, &route.in})
        for (const SharedId id : *way)
          slowest.shared = std::min(slowest.shared, machine.shared()[+id].bandwidth);
    }
  return slowest;
}

/// The times in which the ranks of a group exchange the keys, values, queries and outputs of the
/// attention of all layers of a stage.
struct KeyExchange {
  Seconds forward = 0;   ///< for one forward
  Seconds backward = 0;  ///< for one backward
};

/// Returns the times in which P >= 2 ranks send the keys and values of a layer and a sample around
/// a ring, `keys` bytes in all. They equal those of simulate() for schedule::ring_attention() with
/// one way and for schedule::rsa(), without a mask and without computation, if all links between
/// the ranks are alike and each rank has ports of its own or none. If links differ, the slowest one
/// counts.
///
/// Let m be the time of a message of 1/P of the keys, and s the part of it in which a port or line
/// on its route carries nothing else. A forward of the ring takes (P - 1) m. In a backward the
/// gradients follow the keys on a lane of their own, one step behind, and share ports with them.
/// It takes 2 m for two ranks and 3 m + s + (P - 3) max(m, 2 s) for more, which is P m if nothing
/// is shared.
///
/// RSA sends messages of half the size, with the occupancy o and the latency l, all on one lane. A
/// forward takes 2 (P - 1) (o + l), because the values wait for all scores. In a backward, four
/// rounds of P - 1 messages follow one another. Three of them begin when the link is free, before
/// the last message has arrived. It takes 4 (P - 1) o + (4 P - 7) l, and for two ranks at least
/// 3 o + 2 l.
[[nodiscard]] inline KeyExchange ring_exchange(std::span<const Rank> line, double keys,
                                               SequenceMethod method, const Machine& machine) {
  const auto ranks = static_cast<double>(line.size());
  const RingLink link = ring_link(machine, line);
  const double block = keys / ranks;
  const Seconds latency = link.latency;
  if (method == SequenceMethod::rsa) {
    const Seconds half = block / 2 / link.slowest();
    const Seconds backward = 4 * (ranks - 1) * half + (4 * ranks - 7) * latency;
    return {2 * (ranks - 1) * (half + latency), std::max(backward, 3 * half + 2 * latency)};
  }
  const Seconds message = block / link.slowest() + latency, shared = block / link.shared;
  return {(ranks - 1) * message,
          line.size() == 2 ? 2 * message
                           : 3 * message + shared + (ranks - 3) * std::max(message, 2 * shared)};
}

}  // namespace heddle::inline v0::plan::impl
