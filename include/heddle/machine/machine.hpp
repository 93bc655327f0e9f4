// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Machine: the devices and links that a Schedule is priced on, as data.

#include <cstddef>
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

/// What a message passes that it shares with others, in this order, the latency of the link between
/// the two lists.
struct Route {
  std::vector<SharedId> out;  ///< the ways out of the sender's groups, the smallest first
  std::vector<SharedId> in;   ///< the ways into the receiver's groups, the largest first
};

/// The ranks' devices, the links between any two of them, and what their messages share. A value.
///
///     Machine cluster = Machine::hierarchical(
///         std::vector<Device>(16, {"gpu"}),
///         {{.name = "node", .ranks = 4, .link = {1e-6, 200e9}, .ports = {25e9, 25e9}},
///          {.name = "cluster", .ranks = 16, .link = {3e-6, 25e9}}});
class Machine {
 public:
  /// `ranks` equal devices, every pair joined by a link of its own in each direction. Its levels
  /// are "rank" and "machine", as are those of from_links().
  /// @throws contract_error for no ranks, or a link of nonsense.
  [[nodiscard]] static Machine uniform(int ranks, Device device, Link link);

  /// Groups in groups, `levels` from the smallest to the one that holds all ranks. What a level
  /// says can be changed for one of its groups (set_ports) and for one pair of ranks (set_link).
  /// @throws contract_error where groups do not nest or leave ranks out, for links or ports of
  ///         nonsense.
  [[nodiscard]] static Machine hierarchical(std::vector<Device> devices, std::vector<Level> levels);

  /// A link of its own for every ordered pair of ranks: `links[from * ranks + to]`, as measured.
  /// That of a rank to itself is for moves within it.
  /// @throws contract_error for another number of links, or one of nonsense.
  [[nodiscard]] static Machine from_links(std::vector<Device> devices, std::vector<Link> links);

  /// Number of ranks.
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(m_devices.size()); }
  /// Where a rank computes.
  [[nodiscard]] const Device& device(Rank rank) const noexcept { return m_devices[+rank]; }
  /// The link from one rank to another, or of moves within one.
  [[nodiscard]] const Link& link(Rank from, Rank to) const noexcept {
    if (!m_links.empty()) return m_links[+from * m_devices.size() + +to];
    for (std::size_t l = 0; l + 1 < m_levels.size(); ++l)
      if (group(l, from) == group(l, to)) return m_levels[l].link;
    return m_levels.back().link;
  }
  /// The levels, from the smallest groups to the one that holds all ranks.
  [[nodiscard]] std::span<const Level> levels() const noexcept { return m_levels; }
  /// The group of level `level` in which `rank` lies.
  [[nodiscard]] std::size_t group(std::size_t level, Rank rank) const noexcept {
    const auto ranks = static_cast<std::size_t>(m_levels[level].ranks);
    return ranks == 1 ? +rank : +rank / ranks;  // a division is what a link costs to find
  }
  /// What a group of a level has to the outside.
  [[nodiscard]] const Ports& ports(std::size_t level, std::size_t group) const noexcept {
    return m_ports[level][group];
  }

  /// Changes the link of one ordered pair of ranks.
  /// @throws contract_error for no such rank, or a link of nonsense.
  void set_link(Rank from, Rank to, Link link);
  /// Changes what one group of a level has to the outside.
  /// @throws contract_error for no such group, or ports of nonsense.
  void set_ports(std::size_t level, std::size_t group, Ports ports);
  /// Lets the messages between some ordered pairs of ranks, whatever their lane, share something
  /// more, such as the one line between two sites: they pass it after the ways out of their groups.
  /// @throws contract_error for no such rank, or no bandwidth.
  void share(std::string name, double bandwidth, std::vector<std::pair<Rank, Rank>> pairs);

  /// Whether queues wait for each other: at ports, on lines that they share, for a device's units.
  /// Then simulate() keeps the time order; otherwise every queue has what it needs for itself.
  [[nodiscard]] bool shares() const noexcept;
  /// What messages share, by SharedId.
  [[nodiscard]] std::span<const Shared> shared() const noexcept { return m_shared; }
  /// What a message in this queue shares with others.
  [[nodiscard]] Route route(Rank from, Rank to, Lane lane) const;

  /// A uniform machine in one line, any other with a line for each level.
  friend std::ostream& operator<<(std::ostream& out, const Machine& machine);

 private:
  struct Line {
    Shared shared;
    std::vector<std::pair<Rank, Rank>> pairs;
  };
  /// Consecutive SharedIds of ways in one direction; none where they are unlimited.
  struct Numbers {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct Group {
    Numbers out, in;
  };

  Machine(std::vector<Device> devices, const char* where);

  /// `whose()` says in words where the link is.
  template <class Whose>
  static void check(const Link& link, const char* where, Whose&& whose);
  template <class Whose>
  static void check(const Ports& ports, const char* where, Whose&& whose);
  template <class Whose>
  static void check_bandwidth(double bandwidth, const char* where, Whose&& whose);
  void check(Rank rank, const char* where) const;

  void set_levels(std::vector<Level> levels);

  /// Lists what is shared: the ports of the groups level by level, then the lines.
  void number();

  /// "4 x a100, 2 x v100"
  void print_devices(std::ostream& out) const;
  void print_level(std::ostream& out, std::size_t l) const;
  void print_links(std::ostream& out) const;

  std::vector<Device> m_devices;
  std::vector<Level> m_levels;
  std::vector<Link> m_links;                ///< of all ordered pairs; none: as the levels say
  std::vector<std::vector<Ports>> m_ports;  ///< by level and group
  std::vector<Line> m_lines;
  std::vector<Shared> m_shared;              ///< what of that is limited
  std::vector<std::vector<Group>> m_groups;  ///< its numbers, by level and group
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/machine/machine.ipp>
#endif
