// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of machine.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/internal/expect_link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Machine::Machine(const Machine& other) = default;
HEDDLE_INLINE Machine::Machine(Machine&& other) noexcept = default;
HEDDLE_INLINE Machine& Machine::operator=(const Machine& other) = default;
HEDDLE_INLINE Machine& Machine::operator=(Machine&& other) noexcept = default;
HEDDLE_INLINE Machine::~Machine() = default;

HEDDLE_INLINE std::span<const Level> Machine::levels() const noexcept { return m_levels; }
HEDDLE_INLINE std::span<const Link> Machine::links() const noexcept { return m_links; }
HEDDLE_INLINE std::span<const SharedLine> Machine::lines() const noexcept { return m_lines; }
HEDDLE_INLINE std::span<const Shared> Machine::shared() const noexcept { return m_shared; }

HEDDLE_INLINE Machine Machine::uniform(int ranks, Device device, Link link) {
  constexpr const char* where = "heddle::Machine::uniform";
  expects(ranks >= 1, [&] {
    return ErrorInfo{where, "a machine needs at least one rank", text("ranks = ", ranks)};
  });
  impl::expect_link(link, where, [] { return "every link"; });
  Machine machine(std::vector<Device>(static_cast<std::size_t>(ranks), std::move(device)), where);
  machine.set_levels(
      {{.name = "rank", .link = link}, {.name = "machine", .ranks = ranks, .link = link}});
  return machine;
}

HEDDLE_INLINE Machine Machine::hierarchical(std::vector<Device> devices, std::vector<Level> levels,
                                            const std::vector<std::vector<int>>& sizes) {
  constexpr const char* where = "heddle::Machine::hierarchical";
  Machine machine(std::move(devices), where);
  const int ranks = machine.ranks();
  if (!sizes.empty()) machine.set_sizes(sizes, levels, where);
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Level& level = levels[l];
    const int smaller = l == 0 ? 1 : levels[l - 1].ranks;
    const bool nests = !sizes.empty() || level.ranks % smaller == 0;  // set_sizes() has checked
    expects(level.ranks >= smaller && nests, [&] {
      return ErrorInfo{where,
                       "the groups of a level must consist of whole groups of the level below",
                       text("'", level.name, "' has groups of ", level.ranks,
                            " ranks, the level below of ", smaller)};
    });
    const auto whose = [&] { return text("level '", level.name, "'"); };
    impl::expect_link(level.link, where, whose);
    check(level.ports, where, whose);
  }
  const int largest = levels.empty() ? 0 : levels.back().ranks;
  expects(largest >= ranks, [&] {
    return ErrorInfo{where, "the last level must hold all ranks",
                     text("it has ", largest, " of ", ranks)};
  });
  machine.set_levels(std::move(levels));
  return machine;
}

HEDDLE_INLINE Machine Machine::from_links(std::vector<Device> devices, std::vector<Link> links) {
  constexpr const char* where = "heddle::Machine::from_links";
  Machine machine(std::move(devices), where);
  const std::size_t ranks = machine.m_devices.size();
  expects(links.size() == ranks * ranks, [&] {
    return ErrorInfo{
        where, "every ordered pair of ranks needs one link",
        text("expected ", ranks * ranks, " links for ", ranks, " ranks, got ", links.size())};
  });
  for (std::size_t i = 0; i < links.size(); ++i)
    impl::expect_link(links[i], where, [&] { return text("link ", i / ranks, " -> ", i % ranks); });
  machine.set_levels({{.name = "rank"}, {.name = "machine", .ranks = machine.ranks()}});
  machine.m_links = std::move(links);
  return machine;
}

HEDDLE_INLINE void Machine::set_device(Rank rank, Device device) {
  constexpr const char* where = "heddle::Machine::set_device";
  check(rank, where);
  check(device, where);
  m_devices[+rank] = std::move(device);
}

HEDDLE_INLINE void Machine::set_link(Rank from, Rank to, Link link) {
  constexpr const char* where = "heddle::Machine::set_link";
  check(from, where);
  check(to, where);
  impl::expect_link(link, where, [&] { return text("link ", from, " -> ", to); });
  const std::size_t count = m_devices.size();
  if (m_links.empty()) {
    std::vector<Link> links;
    links.reserve(count * count);
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b < count; ++b) links.push_back(this->link(Rank{a}, Rank{b}));
    m_links = std::move(links);
  }
  m_links[+from * count + +to] = link;
}

HEDDLE_INLINE void Machine::set_ports(std::size_t level, std::size_t group, Ports ports) {
  constexpr const char* where = "heddle::Machine::set_ports";
  expects(level < m_ports.size() && group < m_ports[level].size(), [&] {
    return ErrorInfo{
        where, "no such group",
        text("group ", group, " of level ", level,
             level < m_ports.size() ? text(", which has ", m_ports[level].size(), " groups")
                                    : text(" of ", m_ports.size()))};
  });
  check(ports, where,
        [&] { return text("group ", group, " of level '", m_levels[level].name, "'"); });
  m_ports[level][group] = ports;
  number();
}

HEDDLE_INLINE void Machine::share(std::string name, double bandwidth,
                                  std::vector<std::pair<Rank, Rank>> pairs) {
  constexpr const char* where = "heddle::Machine::share";
  impl::expect_bandwidth(bandwidth, where, [&] { return text("'", name, "': "); });
  for (const auto& [from, to] : pairs) {
    check(from, where);
    check(to, where);
  }
  std::ranges::sort(pairs);
  m_lines.push_back({{std::move(name), bandwidth}, std::move(pairs)});
  number();
}

HEDDLE_INLINE bool Machine::shares() const noexcept {
  return !m_shared.empty() ||
         std::ranges::any_of(m_devices, [](const Device& device) { return device.units > 0; });
}

HEDDLE_INLINE Machine::Route Machine::route(Rank from, Rank to, Lane lane) const {
  Machine::Route route;
  const auto number_of = [&](const Numbers& numbers, std::size_t ways) {
    return SharedId{numbers.first + +lane % ways};
  };
  for (std::size_t l = 0; l < m_levels.size() && group(l, from) != group(l, to); ++l) {
    const Group& leaves = m_groups[l][group(l, from)];
    const Group& enters = m_groups[l][group(l, to)];
    if (leaves.out.count != 0) route.out.push_back(number_of(leaves.out, leaves.out.count));
    if (enters.in.count != 0) route.in.push_back(number_of(enters.in, enters.in.count));
  }
  std::ranges::reverse(route.in);
  for (std::size_t line = 0; line < m_lines.size(); ++line)
    if (std::ranges::binary_search(m_lines[line].pairs, std::pair{from, to}))
      route.out.push_back(SharedId{m_shared.size() - m_lines.size() + line});
  return route;
}

HEDDLE_INLINE bool operator==(const Machine& a, const Machine& b) {
  return a.m_devices == b.m_devices && a.m_levels == b.m_levels && a.m_links == b.m_links &&
         a.m_ports == b.m_ports && a.m_group_of == b.m_group_of && a.m_lines == b.m_lines;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Machine& machine) {
  machine.print_devices(out);
  if (!machine.shares() && machine.m_links.empty() &&
      std::ranges::adjacent_find(machine.m_levels, std::ranges::not_equal_to{}, &Level::link) ==
          machine.m_levels.end())
    return out << ", links of " << machine.m_levels[0].link;
  for (std::size_t l = 0; l < machine.m_levels.size(); ++l) machine.print_level(out, l);
  if (!machine.m_links.empty()) machine.print_links(out);
  for (const SharedLine& line : machine.m_lines)
    out << '\n'
        << line.shared.name << ": " << line.shared.bandwidth / 1e9 << " GB/s, shared by "
        << line.pairs.size() << " pairs of ranks";
  return out;
}

HEDDLE_INLINE Machine::Machine(std::vector<Device> devices, const char* where)
    : m_devices(std::move(devices)) {
  expects(!m_devices.empty(), [&] {
    return ErrorInfo{where, "a machine needs at least one rank", "there are no devices"};
  });
  for (const Device& device : m_devices) check(device, where);
}

HEDDLE_INLINE void Machine::check(const Device& device, const char* where) {
  expects(device.speed > 0 && std::isfinite(device.speed) && device.units >= 0, [&] {
    return ErrorInfo{where, "a device needs a finite speed above 0 and at least 0 units",
                     text("'", device.name, "': speed ", device.speed, ", units ", device.units),
                     "use speed 1 and 0 units if they do not matter"};
  });
  for (const Memory& memory : device.memories)
    impl::expect_link(memory.link, where,
                      [&] { return text("memory '", memory.name, "' of '", device.name, "'"); });
}

template <class Whose>
void Machine::check(const Ports& ports, const char* where, Whose&& whose) {
  impl::expect_bandwidth(ports.out, where, [&] { return text("ports of ", whose(), ": out "); });
  impl::expect_bandwidth(ports.in, where, [&] { return text("ports of ", whose(), ": in "); });
  expects(ports.count >= 1, [&] {
    return ErrorInfo{where, "a group needs at least one port in each direction",
                     text("ports of ", whose(), ": count ", ports.count)};
  });
}

HEDDLE_INLINE void Machine::check(Rank rank, const char* where) const {
  expects(+rank < m_devices.size(), [&] {
    return ErrorInfo{where, "no such rank", text("rank ", rank, " of ", m_devices.size())};
  });
}

HEDDLE_INLINE void Machine::set_sizes(const std::vector<std::vector<int>>& sizes,
                                      std::vector<Level>& levels, const char* where) {
  expects(sizes.size() == levels.size(), [&] {
    return ErrorInfo{where, "a list of sizes is missing for a level",
                     text(sizes.size(), " lists for ", levels.size(), " levels"),
                     "give an empty list for a level of equal groups"};
  });
  m_group_of.resize(levels.size());
  std::vector<std::size_t> below(m_devices.size());  // by rank: its group of the level below
  for (std::size_t r = 0; r < below.size(); ++r) below[r] = r;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    Level& level = levels[l];
    std::vector<std::uint32_t>& group_of = m_group_of[l];
    if (!sizes[l].empty()) level.ranks = 1;
    for (const int size : sizes[l]) {
      expects(size >= 1, [&] {
        return ErrorInfo{where, "a group has at least one rank",
                         text("level '", level.name, "': a group of ", size)};
      });
      level.ranks = std::max(level.ranks, size);
      const std::size_t group = group_of.empty() ? 0 : group_of.back() + std::size_t{1};
      const std::size_t end = group_of.size() + static_cast<std::size_t>(size);
      group_of.resize(std::min(end, m_devices.size() + 1), static_cast<std::uint32_t>(group));
    }
    expects(level.ranks >= 1 && (sizes[l].empty() || group_of.size() == m_devices.size()), [&] {
      return ErrorInfo{where, "the groups of a level must hold every rank once",
                       text("level '", level.name, "' has groups for ", group_of.size(), " of ",
                            m_devices.size(), " ranks")};
    });
    std::vector<std::size_t> mine(below.size());
    for (std::size_t r = 0; r < mine.size(); ++r)
      mine[r] = group_of.empty() ? r / static_cast<std::size_t>(level.ranks) : group_of[r];
    for (std::size_t r = 1; r < mine.size(); ++r)
      expects(below[r] != below[r - 1] || mine[r] == mine[r - 1], [&] {
        return ErrorInfo{where,
                         "the groups of a level must consist of whole groups of the level below",
                         text("level '", level.name, "' divides a group before rank ", r)};
      });
    below = std::move(mine);
  }
  if (std::ranges::all_of(m_group_of, &std::vector<std::uint32_t>::empty)) m_group_of.clear();
}

HEDDLE_INLINE void Machine::set_levels(std::vector<Level> levels) {
  m_levels = std::move(levels);
  for (std::size_t l = 0; l < m_levels.size(); ++l)
    m_ports.emplace_back(group(l, Rank{m_devices.size() - 1}) + 1, m_levels[l].ports);
  number();
}

HEDDLE_INLINE void Machine::number() {
  m_shared.clear();
  m_groups.clear();
  for (std::size_t l = 0; l < m_levels.size(); ++l) {
    std::vector<Group>& groups = m_groups.emplace_back();
    for (std::size_t g = 0; g < m_ports[l].size(); ++g) {
      const Ports& ports = m_ports[l][g];
      const auto list = [&](double bandwidth, const char* direction) -> Numbers {
        if (bandwidth == Ports::unlimited) return {};
        const Numbers numbers{m_shared.size(), static_cast<std::size_t>(ports.count)};
        for (int n = 0; n < ports.count; ++n) {
          std::string name = text(m_levels[l].name, ' ', g, ' ', direction);
          if (ports.count > 1) name += text(' ', n);
          m_shared.push_back({std::move(name), bandwidth});
        }
        return numbers;
      };
      const Numbers out = list(ports.out, "out");
      groups.push_back({out, list(ports.in, "in")});
    }
  }
  for (const SharedLine& line : m_lines) m_shared.push_back(line.shared);
}

HEDDLE_INLINE void Machine::print_devices(std::ostream& out) const {
  for (std::size_t begin = 0; begin < m_devices.size();) {
    const std::string& name = m_devices[begin].name;
    std::size_t end = begin + 1;
    while (end < m_devices.size() && m_devices[end].name == name) ++end;
    out << (begin == 0 ? "" : ", ") << end - begin << " x " << name;
    begin = end;
  }
}

HEDDLE_INLINE void Machine::print_level(std::ostream& out, std::size_t l) const {
  const Level& level = m_levels[l];
  out << '\n' << level.name << " of ";
  if (unequal(l)) {
    std::vector<std::size_t> sizes(groups(l));
    for (const std::uint32_t g : m_group_of[l]) ++sizes[g];
    for (std::size_t g = 0; g < sizes.size(); ++g) out << (g == 0 ? "" : " + ") << sizes[g];
  } else {
    out << level.ranks;
  }
  if (m_links.empty()) out << ": links of " << level.link;
  for (std::size_t g = 0; g < m_ports[l].size(); ++g) {
    const Ports& ports = m_ports[l][g];
    if (ports == Ports{} || (g != 0 && ports == m_ports[l][g - 1])) continue;
    out << "; from group " << g << " on ports of " << ports.out / 1e9 << " GB/s out, "
        << ports.in / 1e9 << " GB/s in";
    if (ports.count > 1) out << ", " << ports.count << " each";
  }
}

HEDDLE_INLINE void Machine::print_links(std::ostream& out) const {
  std::vector<Link> links;  // except the links within a rank
  for (std::size_t i = 0; i < m_links.size(); ++i)
    if (i % (m_devices.size() + 1) != 0) links.push_back(m_links[i]);
  if (links.empty()) return;
  const auto [near, far] = std::ranges::minmax(links, {}, &Link::latency);
  const auto [slow, fast] = std::ranges::minmax(links, {}, &Link::bandwidth);
  out << "\nlinks of pairs: " << near.latency * 1e6 << " to " << far.latency * 1e6 << " us, "
      << slow.bandwidth / 1e9 << " to " << fast.bandwidth / 1e9 << " GB/s";
}

}  // namespace heddle::inline v0
