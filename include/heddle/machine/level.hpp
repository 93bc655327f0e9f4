// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Level: ranks in nodes, nodes in racks, and the ports that a group shares.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

/// The ports that join a group of ranks to the rest of the machine. All messages that leave the
/// group share its outgoing ports. All messages that enter it share its incoming ports.
struct Ports {
  static constexpr double unlimited = std::numeric_limits<double>::infinity();  ///< no limit

  double out = unlimited;  ///< bytes per second of each outgoing port
  double in = unlimited;   ///< bytes per second of each incoming port
  int count = 1;           ///< ports in each direction; messages of lane l use port l % count

  friend bool operator==(const Ports&, const Ports&) = default;
};

/// A level of the machine's hierarchy: consecutive groups of `ranks` ranks. The last group may be
/// smaller; see Machine::hierarchical() for groups of other sizes. The groups of one level lie in
/// the groups of the next level. A level with groups of one rank describes the rank itself: the
/// link of moves within it, and its own ports.
struct Level {
  std::string name;  ///< name of a group: "node"
  int ranks = 1;     ///< ranks in a group; of unequal groups, in the largest one
  Link link = {};    ///< between two ranks whose smallest common group is of this level
  Ports ports = {};  ///< ports of every group

  friend bool operator==(const Level&, const Level&) = default;
};

/// A shared resource that messages of several queues pass one at a time, in order of arrival.
struct Shared {
  std::string name;      ///< shown to people: "node 3 out"
  double bandwidth = 0;  ///< bytes per second

  /// Time in seconds for which a message of `bytes` bytes delays the next one.
  [[nodiscard]] Seconds occupancy(Bytes bytes) const noexcept {
    return static_cast<double>(bytes) / bandwidth;
  }

  friend bool operator==(const Shared&, const Shared&) = default;
};

/// A resource that all messages between certain ordered pairs of ranks share, such as the line
/// between two sites. See Machine::share().
struct SharedLine {
  Shared shared;                             ///< the resource
  std::vector<std::pair<Rank, Rank>> pairs;  ///< (from, to), in ascending order

  friend bool operator==(const SharedLine&, const SharedLine&) = default;
};

/// The position of a Shared in Machine::shared().
using SharedId = Index<struct SharedTag>;

}  // namespace heddle::inline v0
