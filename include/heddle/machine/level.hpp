// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Level: ranks in nodes, nodes in racks, and what they share on the way out.

#include <limits>
#include <string>

#include <heddle/core/index.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

/// What joins a group of ranks to the rest of the machine. All messages that leave the group share
/// its ways out, all that enter it share its ways in.
struct Ports {
  static constexpr double unlimited = std::numeric_limits<double>::infinity();  ///< nothing shared

  double out = unlimited;  ///< bytes per second of each way out
  double in = unlimited;   ///< bytes per second of each way in
  int count = 1;           ///< ways in each direction; those of lane l take number l % count

  friend bool operator==(const Ports&, const Ports&) = default;
};

/// Ranks in consecutive groups of `ranks`; the last group may have fewer. Groups of one level lie
/// in groups of the next. A level of groups of one says what a rank itself has: the link of moves
/// within it, and its own ports.
struct Level {
  std::string name;  ///< of a group, "node"
  int ranks = 1;     ///< in a group
  Link link = {};    ///< between two ranks of one group that no smaller group holds both
  Ports ports = {};  ///< of every group
};

/// Something that messages of several queues pass one at a time, first come, first served.
struct Shared {
  std::string name;      ///< for people to read, "node 3 out"
  double bandwidth = 0;  ///< bytes per second

  /// Time for which a message keeps the next one waiting.
  [[nodiscard]] Seconds occupancy(Bytes bytes) const noexcept {
    return static_cast<double>(bytes) / bandwidth;
  }
};

/// One of the Shared of a Machine, in the order of its list.
using SharedId = Index<struct SharedTag>;

}  // namespace heddle::inline v0
