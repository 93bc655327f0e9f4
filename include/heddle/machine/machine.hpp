// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Machine: the devices and links on which a Schedule is simulated, as data.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

/// A machine: the device of each rank, the link between any two ranks, and the resources that their
/// messages share. A value type.
///
///     Machine cluster = Machine::hierarchical(
///         std::vector<Device>(16, {"gpu"}),
///         {{.name = "node", .ranks = 4, .link = {1e-6, 200e9}, .ports = {25e9, 25e9}},
///          {.name = "cluster", .ranks = 16, .link = {3e-6, 25e9}}});
class Machine {
 public:
  /// The shared resources that a message passes, in this order. The latency of the link comes
  /// between the two lists.
  struct Route {
    std::vector<SharedId> out;  ///< outgoing ports of the sender's groups, the smallest group first
    std::vector<SharedId> in;   ///< incoming ports of the receiver's groups, the largest first
  };

  /// Returns a machine of `ranks` equal devices. Every pair of ranks has a link of its own in each
  /// direction. The levels are named "rank" and "machine", as in from_links().
  /// @throws contract_error if `ranks` is below 1, or if the latency or bandwidth is invalid.
  [[nodiscard]] static Machine uniform(int ranks, Device device, Link link);

  /// Returns a machine of nested groups: `levels` from the smallest groups to the one that holds
  /// all ranks. `sizes[l]` are the ranks in each group of level l, in order, if its groups are
  /// unequal; then Level::ranks does not matter. set_ports() changes the ports of one group,
  /// set_link() the link of one pair of ranks.
  /// @throws contract_error if the groups do not nest or do not hold all ranks, or if a link or
  ///         ports are invalid.
  [[nodiscard]] static Machine hierarchical(std::vector<Device> devices, std::vector<Level> levels,
                                            const std::vector<std::vector<int>>& sizes = {});

  /// Returns a machine with a link of its own for every ordered pair of ranks, such as measured
  /// ones: `links[from * ranks + to]`. The link of a rank to itself is used by moves within it.
  /// @throws contract_error if there are not ranks * ranks links, or if one is invalid.
  [[nodiscard]] static Machine from_links(std::vector<Device> devices, std::vector<Link> links);

  // Defined once, because a program that only passes a Machine on would instantiate them.
  /// Copies a machine.
  Machine(const Machine& other);
  /// Moves a machine. `other` may only be assigned to, or destroyed.
  Machine(Machine&& other) noexcept;
  /// Copies a machine.
  Machine& operator=(const Machine& other);
  /// Moves a machine. `other` may only be assigned to, or destroyed.
  Machine& operator=(Machine&& other) noexcept;
  ~Machine();

  /// Number of ranks.
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(m_devices.size()); }
  /// The device of a rank.
  [[nodiscard]] const Device& device(Rank rank) const noexcept { return m_devices[+rank]; }
  /// The link from one rank to another. If they are the same, the link of moves within the rank.
  [[nodiscard]] const Link& link(Rank from, Rank to) const noexcept {
    if (!m_links.empty()) return m_links[+from * m_devices.size() + +to];
    for (std::size_t l = 0; l + 1 < m_levels.size(); ++l)
      if (group(l, from) == group(l, to)) return m_levels[l].link;
    return m_levels.back().link;
  }
  /// The levels, from the smallest groups to the one that holds all ranks.
  [[nodiscard]] std::span<const Level> levels() const noexcept;
  /// The group of level `level` that holds `rank`.
  [[nodiscard]] std::size_t group(std::size_t level, Rank rank) const noexcept {
    if (!m_group_of.empty() && !m_group_of[level].empty()) return m_group_of[level][+rank];
    const auto ranks = static_cast<std::size_t>(m_levels[level].ranks);
    return ranks == 1 ? +rank : +rank / ranks;  // because the division dominates the cost of link()
  }
  /// The number of groups of a level.
  [[nodiscard]] std::size_t groups(std::size_t level) const noexcept {
    return m_ports[level].size();
  }
  /// Whether the groups of a level have sizes of their own, see hierarchical().
  [[nodiscard]] bool unequal(std::size_t level) const noexcept {
    return !m_group_of.empty() && !m_group_of[level].empty();
  }
  /// The links of all ordered pairs, as in from_links(), or none if those of the levels apply.
  [[nodiscard]] std::span<const Link> links() const noexcept;
  /// The lines that share() has added.
  [[nodiscard]] std::span<const SharedLine> lines() const noexcept;
  /// The ports of a group of a level.
  [[nodiscard]] const Ports& ports(std::size_t level, std::size_t group) const noexcept {
    return m_ports[level][group];
  }

  /// Changes the device of one rank.
  /// @throws contract_error if there is no such rank, if the speed is not above 0, if the number of
  ///         units is negative, or if a link of its memories is invalid.
  void set_device(Rank rank, Device device);
  /// Changes the link of one ordered pair of ranks.
  /// @throws contract_error if there is no such rank, or if the link is invalid.
  void set_link(Rank from, Rank to, Link link);
  /// Changes the ports of one group of a level.
  /// @throws contract_error if there is no such group, or if the ports are invalid.
  void set_ports(std::size_t level, std::size_t group, Ports ports);
  /// Adds a resource that all messages between the given ordered pairs of ranks share, such as the
  /// line between two sites. Messages of all lanes pass it, after the outgoing ports of their
  /// groups. `bandwidth` is in bytes per second.
  /// @throws contract_error if there is no such rank, or if the bandwidth is not above 0.
  void share(std::string name, double bandwidth, std::vector<std::pair<Rank, Rank>> pairs);

  /// Returns true if queues can delay each other: at ports, on shared lines, or for the units of a
  /// device. If so, simulate() processes events in time order. Otherwise queues are independent.
  [[nodiscard]] bool shares() const noexcept;
  /// The shared resources, by SharedId.
  [[nodiscard]] std::span<const Shared> shared() const noexcept;
  /// The shared resources that a message of this queue passes.
  [[nodiscard]] Route route(Rank from, Rank to, Lane lane) const;

  /// Whether both have equal devices, levels, links, ports and lines.
  friend bool operator==(const Machine& a, const Machine& b);
  /// Prints a uniform machine in one line, any other machine with one line for each level.
  friend std::ostream& operator<<(std::ostream& out, const Machine& machine);

 private:
  /// Consecutive SharedIds of the ports in one direction. `count` is 0 if they have no limit.
  struct Numbers {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct Group {
    Numbers out, in;
  };

  Machine(std::vector<Device> devices, const char* where);

  static void check(const Device& device, const char* where);
  /// Checks ports. `whose()` returns the name of their group for the error message.
  template <class Whose>
  static void check(const Ports& ports, const char* where, Whose&& whose);
  void check(Rank rank, const char* where) const;

  /// Checks the sizes of groups and that they lie in groups of the next level.
  void set_sizes(const std::vector<std::vector<int>>& sizes, std::vector<Level>& levels,
                 const char* where);
  void set_levels(std::vector<Level> levels);

  /// Numbers the shared resources: the ports of the groups level by level, then the lines.
  void number();

  /// Prints "4 x a100, 2 x v100".
  void print_devices(std::ostream& out) const;
  void print_level(std::ostream& out, std::size_t l) const;
  void print_links(std::ostream& out) const;

  std::vector<Device> m_devices;
  std::vector<Level> m_levels;
  std::vector<Link> m_links;                ///< by ordered pair; empty if levels give them
  std::vector<std::vector<Ports>> m_ports;  ///< by level and group
  /// By level and rank: the group. Empty for levels of equal groups, or if all levels have them.
  std::vector<std::vector<std::uint32_t>> m_group_of;
  std::vector<SharedLine> m_lines;
  std::vector<Shared> m_shared;              ///< ports and lines that have a limit
  std::vector<std::vector<Group>> m_groups;  ///< their numbers, by level and group
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_MACHINE
#include <heddle/machine/machine.ipp>
#endif
