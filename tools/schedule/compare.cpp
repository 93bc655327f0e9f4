// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <heddle/schedule.hpp>
#include <heddle/trace.hpp>

#include "commands.hpp"
#include "settings.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Prints the rows in columns; the first is the head.
void print(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      if (c + 1 < row.size()) line.append(width[c] + 2 - row[c].size(), ' ');
    }
    std::cout << line << '\n';
  }
}

}  // namespace

int list() {
  std::vector<std::vector<std::string>> rows = {{"name", "what it is"}};
  for (const auto& entry : schedule::catalogue())
    rows.push_back({std::string(entry.name), std::string(entry.about)});
  print(rows);
  return 0;
}

int compare(std::span<char*> arguments) {
  const Arguments line = read(arguments, {.name = "compare",
                                          .what = "one or more names of schedules",
                                          .most = std::numeric_limits<std::size_t>::max(),
                                          .shapes = true,
                                          .prices = true});
  if (line.help) return 0;
  const Settings& s = line.settings;
  std::vector<std::vector<std::string>> rows = {
      {"schedule", "makespan", "bubble", "live activations", "messages"}};
  const bool sized = s.sized();
  if (sized) rows[0].insert(rows[0].end(), {"bytes sent", "most bytes kept"});
  const std::vector<Orders> all = named_orders(line);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Priced priced = price(all[i], s);
    auto& row = rows.emplace_back(std::vector<std::string>{
        line.names[i], number(priced.timeline.makespan()), percent(priced.timeline.bubble_ratio()),
        of_ranks(priced.activations), text(priced.messages)});
    if (!sized) continue;
    Bytes most = 0;
    for (const auto& peaks : trace::memory_peaks(priced.timeline))
      most = std::max(most, peaks.all.bytes);
    row.push_back(text(priced.messages * s.activation));
    row.push_back(text(most));
  }
  print(rows);
  return 0;
}

}  // namespace tool
