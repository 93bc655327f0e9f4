// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of machine.hpp, compiled in heddle::json.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/file.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/json/internal/document.ipp>
#include <heddle/json/machine.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::json {

namespace impl {

inline constexpr FileKind machine_file{"machine", "heddle::json::read_machine"};
inline constexpr int most_devices = 1 << 20;
inline constexpr std::size_t most_ports = 1 << 20;  ///< of a level, in one direction

[[nodiscard]] inline Link read_link(const JsonValue& value) {
  value.only({"latency", "bandwidth"});
  Link link;
  if (const auto latency = value.optional("latency")) link.latency = latency->number();
  if (const auto bandwidth = value.optional("bandwidth")) link.bandwidth = bandwidth->bandwidth();
  return link;
}

[[nodiscard]] inline Ports read_ports(const JsonValue& value) {
  value.only({"out", "in", "count"});
  Ports ports;
  if (const auto out = value.optional("out")) ports.out = out->bandwidth();
  if (const auto in = value.optional("in")) ports.in = in->bandwidth();
  if (const auto count = value.optional("count")) ports.count = count->count(1, 1 << 16);
  return ports;
}

inline void read_devices(const JsonValue& value, std::vector<Device>& devices) {
  value.only({"name", "count", "speed", "units", "memories"});
  Device device;
  if (const auto name = value.optional("name")) device.name = name->string();
  if (const auto speed = value.optional("speed")) device.speed = speed->number(true);
  if (const auto units = value.optional("units")) device.units = units->count(0);
  if (const auto memories = value.optional("memories"))
    for (const JsonValue& each : memories->elements()) {
      each.only({"name", "capacity", "link"});
      Memory& memory = device.memories.emplace_back();
      if (const auto name = each.optional("name")) memory.name = name->string();
      if (const auto capacity = each.optional("capacity")) memory.capacity = capacity->bytes();
      if (const auto link = each.optional("link")) memory.link = read_link(*link);
    }
  int count = 1;
  if (const auto many = value.optional("count")) count = many->count(1, most_devices);
  if (devices.size() + static_cast<std::size_t>(count) > most_devices)
    value.wrong(text("at most ", most_devices, " devices in all"));
  devices.insert(devices.end(), static_cast<std::size_t>(count), device);
}

/// The levels of a file.
struct ReadLevels {
  std::vector<Level> levels;
  std::vector<std::vector<int>> sizes;
  std::vector<std::vector<Ports>> ports;  ///< by level and group, if they differ
  bool unequal = false;
};

inline void read_level(const JsonValue& value, std::size_t devices, ReadLevels& all) {
  value.only({"name", "ranks", "sizes", "link", "ports", "group_ports"});
  Level& level = all.levels.emplace_back();
  std::vector<int>& sizes = all.sizes.emplace_back();
  std::vector<Ports>& ports = all.ports.emplace_back();
  if (const auto name = value.optional("name")) level.name = name->string();
  if (const auto list = value.optional("sizes")) {
    if (value.optional("ranks")) value.wrong("either 'ranks' or 'sizes'");
    for (const JsonValue& size : list->elements()) sizes.push_back(size.count(1, most_devices));
    if (sizes.empty()) list->wrong("at least one size");
    all.unequal = true;
  } else {
    level.ranks = value.member("ranks").count(1);
  }
  if (const auto link = value.optional("link")) level.link = read_link(*link);
  if (const auto each = value.optional("ports")) level.ports = read_ports(*each);
  if (const auto list = value.optional("group_ports"))
    for (const JsonValue& each : list->elements()) ports.push_back(read_ports(each));
  std::size_t most = static_cast<std::size_t>(level.ports.count);
  for (const Ports& each : ports) most = std::max(most, static_cast<std::size_t>(each.count));
  if (most * devices > most_ports) value.wrong("fewer ports");
}

[[nodiscard]] inline SharedLine read_line(const JsonValue& value, int ranks) {
  value.only({"name", "bandwidth", "pairs"});
  SharedLine line;
  if (const auto name = value.optional("name")) line.shared.name = name->string();
  line.shared.bandwidth = value.member("bandwidth").bandwidth();
  for (const JsonValue& pair : value.member("pairs").elements()) {
    const std::vector<JsonValue> ends = pair.elements();
    if (ends.size() != 2) pair.wrong("two ranks");
    line.pairs.emplace_back(Rank{ends[0].count(0, ranks - 1)}, Rank{ends[1].count(0, ranks - 1)});
  }
  return line;
}

inline void read_links(const JsonValue& value, Machine& machine) {
  const std::vector<JsonValue> rows = value.elements();
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  if (rows.size() != ranks) value.wrong(text("a list for each of ", ranks, " ranks"));
  for (std::size_t from = 0; from < ranks; ++from) {
    const std::vector<JsonValue> row = rows[from].elements();
    if (row.size() != ranks) rows[from].wrong(text("a link to each of ", ranks, " ranks"));
    for (std::size_t to = 0; to < ranks; ++to)
      machine.set_link(Rank{from}, Rank{to}, read_link(row[to]));
  }
}

[[nodiscard]] inline Json bandwidth_json(double bandwidth) {
  return std::isinf(bandwidth) ? Json(unlimited) : Json(bandwidth);
}
[[nodiscard]] inline Json json_of(const Link& link) {
  return {{"latency", link.latency}, {"bandwidth", bandwidth_json(link.bandwidth)}};
}
[[nodiscard]] inline Json json_of(const Ports& ports) {
  return {
      {"out", bandwidth_json(ports.out)}, {"in", bandwidth_json(ports.in)}, {"count", ports.count}};
}
[[nodiscard]] inline Json json_of(const Device& device, std::size_t count) {
  Json memories = Json::array();
  for (const Memory& memory : device.memories)
    memories.push_back(
        {{"name", memory.name}, {"capacity", memory.capacity}, {"link", json_of(memory.link)}});
  return {{"name", device.name},
          {"count", count},
          {"speed", device.speed},
          {"units", device.units},
          {"memories", memories}};
}

[[nodiscard]] inline Json devices_json(const Machine& machine) {
  Json all = Json::array();
  for (int begin = 0; begin < machine.ranks();) {
    int end = begin + 1;
    while (end < machine.ranks() && machine.device(Rank{end}) == machine.device(Rank{begin})) ++end;
    all.push_back(json_of(machine.device(Rank{begin}), static_cast<std::size_t>(end - begin)));
    begin = end;
  }
  return all;
}

[[nodiscard]] inline Json level_json(const Machine& machine, std::size_t l) {
  const Level& level = machine.levels()[l];
  Json json = {
      {"name", level.name}, {"link", json_of(level.link)}, {"ports", json_of(level.ports)}};
  if (machine.unequal(l)) {
    std::vector<int> sizes(machine.groups(l));
    for (int r = 0; r < machine.ranks(); ++r) ++sizes[machine.group(l, Rank{r})];
    json["sizes"] = sizes;
  } else {
    json["ranks"] = level.ranks;
  }
  Json ports = Json::array();
  bool differ = false;
  for (std::size_t g = 0; g < machine.groups(l); ++g) {
    differ = differ || !(machine.ports(l, g) == level.ports);
    ports.push_back(json_of(machine.ports(l, g)));
  }
  if (differ) json["group_ports"] = std::move(ports);
  return json;
}

}  // namespace impl

Machine parse_machine(std::string_view content, const std::string& name) {
  const impl::JsonDocument document(impl::machine_file, content, name);
  const impl::JsonValue value = document.value();
  value.only({"devices", "levels", "links", "lines"});
  std::vector<Device> devices;
  for (const impl::JsonValue& each : value.member("devices").elements())
    impl::read_devices(each, devices);
  impl::ReadLevels read;
  for (const impl::JsonValue& level : value.member("levels").elements())
    impl::read_level(level, devices.size(), read);
  return document.checked([&] {
    Machine machine =
        Machine::hierarchical(std::move(devices), read.levels,
                              read.unequal ? read.sizes : std::vector<std::vector<int>>{});
    for (std::size_t l = 0; l < read.ports.size(); ++l) {
      expects(read.ports[l].empty() || read.ports[l].size() == machine.groups(l), [&] {
        return ErrorInfo{"", "'group_ports' must have the ports of every group",
                         text("level '", read.levels[l].name, "' has ", machine.groups(l),
                              " groups and ports of ", read.ports[l].size())};
      });
      for (std::size_t g = 0; g < read.ports[l].size(); ++g)
        if (!(machine.ports(l, g) == read.ports[l][g])) machine.set_ports(l, g, read.ports[l][g]);
    }
    if (const auto links = value.optional("links")) impl::read_links(*links, machine);
    if (const auto lines = value.optional("lines"))
      for (const impl::JsonValue& each : lines->elements()) {
        SharedLine line = impl::read_line(each, machine.ranks());
        machine.share(line.shared.name, line.shared.bandwidth, std::move(line.pairs));
      }
    return machine;
  });
}

Machine read_machine(const std::string& path) {
  return parse_machine(impl::content_of(impl::machine_file, path), path);
}

std::string machine_text(const Machine& machine) {
  using impl::Json;
  Json json = {{"devices", impl::devices_json(machine)}, {"levels", Json::array()}};
  for (std::size_t l = 0; l < machine.levels().size(); ++l)
    json["levels"].push_back(impl::level_json(machine, l));
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  for (std::size_t i = 0; i < machine.links().size(); ++i) {
    if (i % ranks == 0) json["links"].push_back(Json::array());
    json["links"].back().push_back(impl::json_of(machine.links()[i]));
  }
  for (const SharedLine& line : machine.lines()) {
    Json pairs = Json::array();
    for (const auto& [from, to] : line.pairs) pairs.push_back(Json::array({+from, +to}));
    json["lines"].push_back({{"name", line.shared.name},
                             {"bandwidth", impl::bandwidth_json(line.shared.bandwidth)},
                             {"pairs", pairs}});
  }
  return impl::file_text(impl::machine_file, "heddle::json::write_machine", std::move(json),
                         parse_machine);
}

void write_machine(const std::string& path, const Machine& machine) {
  write_file(path, machine_text(machine));
}

}  // namespace heddle::inline v0::json
