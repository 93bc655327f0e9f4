// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of join.hpp.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/join.hpp>

namespace heddle::inline v0 {

namespace impl {

/// One join() call.
class MachineJoiner {
 public:
  MachineJoiner(const std::vector<Machine>& machines, Link link) : m_link(link) {
    std::size_t first = 0;
    for (const Machine& machine : machines) {
      m_parts.push_back({&machine, first});
      first += static_cast<std::size_t>(machine.ranks());
      m_levels = std::max(m_levels, machine.levels().size());
    }
  }

  [[nodiscard]] Machine run(const std::optional<Shared>& line) const {
    std::vector<std::vector<int>> sizes = this->sizes();
    std::vector<Level> levels = this->levels();
    for (std::size_t l = 0; l < sizes.size(); ++l) {
      if (std::ranges::adjacent_find(sizes[l], std::ranges::not_equal_to{}) != sizes[l].end())
        continue;
      levels[l].ranks = sizes[l].front();  // equal groups need no list
      sizes[l].clear();
    }
    Machine machine = Machine::hierarchical(devices(), std::move(levels), sizes);
    set_ports(machine);
    if (needs_links()) set_links(machine);
    for (const Part& part : m_parts)
      for (const heddle::SharedLine& each : part.machine->lines())
        machine.share(each.shared.name, each.shared.bandwidth, moved(each.pairs, part.first));
    if (line) add_lines(machine, *line);
    return machine;
  }

 private:
  struct Part {
    const Machine* machine;
    std::size_t first;  ///< its first rank in the joined machine
  };
  using Pairs = std::vector<std::pair<Rank, Rank>>;

  /// Returns the level of a part that is level `l` of the joined machine. Its last level is the
  /// last level but one there, and stands in for those that it lacks.
  [[nodiscard]] std::size_t own(const Part& part, std::size_t l) const {
    const std::size_t last = part.machine->levels().size() - 1;
    return l + 1 == m_levels ? last : std::min(l, last);
  }
  /// Returns whether a part lacks level `l`.
  [[nodiscard]] bool lacks(const Part& part, std::size_t l) const {
    return l + 1 < m_levels && l + 1 >= part.machine->levels().size();
  }
  [[nodiscard]] static std::size_t size_of_part(const Part& part) {
    return static_cast<std::size_t>(part.machine->ranks());
  }

  [[nodiscard]] std::vector<Device> devices() const {
    std::vector<Device> all;
    for (const Part& part : m_parts)
      for (int r = 0; r < part.machine->ranks(); ++r) all.push_back(part.machine->device(Rank{r}));
    return all;
  }

  [[nodiscard]] std::vector<Level> levels() const {
    const auto most = std::ranges::max_element(
        m_parts, {}, [](const Part& part) { return part.machine->levels().size(); });
    std::vector<Level> all(most->machine->levels().begin(), most->machine->levels().end());
    for (Level& level : all) level.ports = {};
    all.push_back({.name = "joined", .link = m_link});
    return all;
  }

  [[nodiscard]] std::vector<std::vector<int>> sizes() const {
    std::vector<std::vector<int>> all(m_levels + 1);
    for (std::size_t l = 0; l < m_levels; ++l)
      for (const Part& part : m_parts) {
        std::vector<int> of_part(part.machine->groups(own(part, l)));
        for (int r = 0; r < part.machine->ranks(); ++r)
          ++of_part[part.machine->group(own(part, l), Rank{r})];
        all[l].insert(all[l].end(), of_part.begin(), of_part.end());
      }
    all.back() = {static_cast<int>(m_parts.back().first + size_of_part(m_parts.back()))};
    return all;
  }

  void set_ports(Machine& machine) const {
    for (std::size_t l = 0; l < m_levels; ++l) {
      std::size_t group = 0;
      for (const Part& part : m_parts)
        for (std::size_t g = 0; g < part.machine->groups(own(part, l)); ++g, ++group)
          if (const Ports& ports = part.machine->ports(own(part, l), g);
              !lacks(part, l) && ports != Ports{})
            machine.set_ports(l, group, ports);
    }
  }

  /// Returns whether the links of the joined levels are not those of all parts.
  [[nodiscard]] bool needs_links() const {
    for (std::size_t l = 0; l < m_levels; ++l)
      for (const Part& part : m_parts)
        if (!part.machine->links().empty() || lacks(part, l) ||
            part.machine->levels()[own(part, l)].link !=
                m_parts.front().machine->levels()[own(m_parts.front(), l)].link)
          return true;
    return false;
  }

  void set_links(Machine& machine) const {
    for (const Part& part : m_parts)
      for (std::size_t a = 0; a < size_of_part(part); ++a)
        for (std::size_t b = 0; b < size_of_part(part); ++b)
          machine.set_link(Rank{part.first + a}, Rank{part.first + b},
                           part.machine->link(Rank{a}, Rank{b}));
  }

  [[nodiscard]] static Pairs moved(Pairs pairs, std::size_t by) {
    for (auto& [from, to] : pairs) {
      from = Rank{+from + by};
      to = Rank{+to + by};
    }
    return pairs;
  }

  void add_lines(Machine& machine, const Shared& line) const {
    for (std::size_t a = 0; a < m_parts.size(); ++a)
      for (std::size_t b = 0; b < m_parts.size(); ++b) {
        if (a == b) continue;
        Pairs pairs;
        for (std::size_t from = 0; from < size_of_part(m_parts[a]); ++from)
          for (std::size_t to = 0; to < size_of_part(m_parts[b]); ++to)
            pairs.emplace_back(Rank{m_parts[a].first + from}, Rank{m_parts[b].first + to});
        machine.share(text(line.name, ' ', a, " -> ", b), line.bandwidth, std::move(pairs));
      }
  }

  Link m_link;
  std::vector<Part> m_parts;
  std::size_t m_levels = 0;  ///< the most levels of a part
};

}  // namespace impl

HEDDLE_INLINE Machine join(const std::vector<Machine>& machines, Link link,
                           const std::optional<Shared>& line) {
  expects(!machines.empty(), [] {
    return ErrorInfo{"heddle::join", "at least one machine can be joined", "machines: 0"};
  });
  return impl::MachineJoiner(machines, link).run(line);
}

}  // namespace heddle::inline v0
