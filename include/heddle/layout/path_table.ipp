// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of path_table.hpp.

#include <algorithm>
#include <istream>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/path_table.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, StridedPath path) {
  return out << impl::name_of(path);
}

HEDDLE_INLINE PathTable::PathTable(std::vector<Entry> entries) : m_entries(std::move(entries)) {
  expects(!m_entries.empty(), [] {
    return ErrorInfo{"heddle::PathTable", "a table needs at least one path"};
  });
  for (auto entry = m_entries.begin(); entry != m_entries.end(); ++entry)
    expects(std::none_of(m_entries.begin(), entry,
                         [&](const Entry& other) { return other.path == entry->path; }),
            [&] {
              return ErrorInfo{"heddle::PathTable", text("path ", entry->path, " appears twice")};
            });
}

HEDDLE_INLINE PathTable::PathTable(StridedPath path)
    : PathTable({{path, PackTable({1}, {1}, {1.0})}}) {}

HEDDLE_INLINE PathTable::PathTable(PackTable gains)
    : PathTable({{StridedPath::datatype, PackTable({1}, {1}, {PackTable::noise})},
                 {StridedPath::direct, std::move(gains)}}) {}

HEDDLE_INLINE StridedPath PathTable::choose(Bytes bytes, Bytes run) const {
  const Entry* best = &m_entries.front();
  double most = best->gains.gain(bytes, run);
  for (const Entry& entry : m_entries) {
    const double gain = entry.gains.gain(bytes, run);
    if (gain <= most) continue;
    most = gain;
    best = &entry;
  }
  return best->path;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const PathTable& table) {
  out << "heddle-path-table 1\n";
  for (const PathTable::Entry& entry : table.m_entries) out << entry.path << '\n' << entry.gains;
  return out;
}

HEDDLE_INLINE PathTable PathTable::read(std::istream& in) {
  const auto wrong = [](std::string what, std::string why) {
    return format_error({"heddle::PathTable::read", std::move(what), std::move(why)});
  };
  const auto path_of = [](std::string_view name) -> std::optional<StridedPath> {
    for (const StridedPath path :
         {StridedPath::datatype, StridedPath::direct, StridedPath::one_shot, StridedPath::staged})
      if (name == impl::name_of(path)) return path;
    return {};
  };
  std::string line;
  std::getline(in, line);
  if (impl::without_mark(line) != "heddle-path-table 1")
    throw wrong("the first line must be \"heddle-path-table 1\"", '"' + line + '"');
  std::vector<std::pair<StridedPath, std::string>> tables;  // with their lines
  while (std::getline(in, line)) {
    if (const std::optional<StridedPath> path = path_of(line))
      tables.emplace_back(*path, "");
    else if (tables.empty())
      throw wrong("the second line must name a path", '"' + line + '"');
    else
      tables.back().second += line + '\n';
  }
  std::vector<PathTable::Entry> entries;
  for (const auto& [path, lines] : tables) {
    try {
      std::istringstream gains(lines);
      entries.push_back({path, PackTable::read(gains)});
    } catch (const format_error& error) {
      throw wrong(text("the gains of ", path, " do not make a table"), error.what());
    }
  }
  try {
    return PathTable(std::move(entries));
  } catch (const contract_error& error) {
    throw wrong("the paths do not make a table", error.what());
  }
}

}  // namespace heddle::inline v0
