// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cost_table.hpp.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/network.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/group_level.hpp>

namespace heddle::inline v0 {

namespace impl {

inline constexpr const char* cost_table = "heddle::plan::CostTable";
inline constexpr std::string_view cost_table_head = "heddle-costs ";
inline constexpr int cost_table_version = 1;

[[noreturn]] inline void refuse_table(std::string what, std::string why) {
  throw format_error(
      {cost_table, std::move(what), std::move(why), "measure the table again with tools/measure"});
}

[[nodiscard]] inline std::string cost_table_checksum(std::string_view lines) {
  std::ostringstream out;
  out << std::hex << fnv1a(lines);
  return std::move(out).str();
}

// Reads a number, also "inf", which streams do not read. Returns false if `word` is not a number.
[[nodiscard]] inline bool read_number(const std::string& word, double& value) {
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && rest == word.data() + word.size();
}

// Sets `value` to the one of the first `count` enumerators that is written as `word`. Returns false
// if there is none.
template <class T>
[[nodiscard]] bool read_name(const std::string& word, std::size_t count, T& value) {
  for (std::size_t i = 0; i < count; ++i) {
    value = static_cast<T>(i);
    if (schedule::to_string(value) == word) return true;
  }
  return false;
}

}  // namespace impl

namespace plan {

HEDDLE_INLINE std::size_t CostTable::row_of(schedule::Collective collective) {
  heddle::impl::expect_enumerator(
      heddle::impl::cost_table, "collective", collective,
      static_cast<schedule::Collective>(schedule::collective_count - 1));
  return static_cast<std::size_t>(collective);
}

HEDDLE_INLINE CostTable::CostTable(Machine machine) : m_machine(std::move(machine)) {}

HEDDLE_INLINE void CostTable::set(schedule::Collective collective, Bytes bytes,
                                  const CollectiveChoice& choice, Seconds time) {
  expects(is_possible(collective, choice, time), [&] {
    return ErrorInfo{
        "heddle::plan::CostTable::set",
        "the choice must exist for these ranks, and its time must be above 0 and finite",
        text(collective, ", ", choice, ", ", time, " s, ", m_machine.ranks(), " ranks")};
  });
  auto& rows = m_rows[row_of(collective)];
  auto row = std::ranges::lower_bound(rows, bytes, {}, &Row::bytes);
  if (row == rows.end() || row->bytes != bytes) row = rows.insert(row, {bytes, {}});
  auto entry = std::ranges::find(row->times, choice, &CollectivePrediction::choice);
  if (entry == row->times.end()) entry = row->times.insert(entry, {choice, time});
  entry->time = time;
}

HEDDLE_INLINE CollectivePrediction CostTable::best(schedule::Collective collective, Bytes bytes,
                                                   bool library, bool shared) const {
  const auto& rows = m_rows[row_of(collective)];
  const CollectivePrediction nothing{{.library = true}, 0};
  if (rows.empty()) return nothing;
  const auto above = std::ranges::lower_bound(rows, bytes, {}, &Row::bytes);
  const Row& right = above == rows.end() ? rows.back() : *above;
  const Row& left = above == rows.begin() || right.bytes <= bytes ? right : *std::prev(above);
  constexpr Seconds never = std::numeric_limits<Seconds>::infinity();
  CollectivePrediction found{{.library = true}, never};
  Seconds by_library = never;
  for (const Row* row : {&left, &right}) {
    for (const CollectivePrediction& entry : row->times) {
      if ((entry.choice.library && !library) || (entry.choice.shared && !shared)) continue;
      const Seconds time = between(left, right, entry.choice, bytes);
      if (time < found.time) found = {entry.choice, time};
      if (entry.choice.library) by_library = std::min(by_library, time);
    }
  }
  if (found.time == never) return nothing;
  if (by_library <= margin * found.time) return {{.library = true}, by_library};
  return found;
}

HEDDLE_INLINE CollectiveChoice CostTable::choose(schedule::Collective collective, Bytes bytes,
                                                 bool library, bool shared) const {
  return best(collective, bytes, library, shared).choice;
}

HEDDLE_INLINE std::vector<CollectivePrediction> CostTable::times(schedule::Collective collective,
                                                                 Bytes bytes) const {
  for (const Row& row : m_rows[row_of(collective)])
    if (row.bytes == bytes) return row.times;
  return {};
}

HEDDLE_INLINE std::vector<Bytes> CostTable::sizes(schedule::Collective collective) const {
  std::vector<Bytes> found;
  for (const Row& row : m_rows[row_of(collective)]) found.push_back(row.bytes);
  return found;
}

HEDDLE_INLINE std::string CostTable::to_text() const {
  std::ostringstream body;
  body.precision(std::numeric_limits<double>::max_digits10);
  const int ranks = m_machine.ranks();
  body << "ranks " << ranks << ' ' << m_machine.device(Rank{}).name << '\n';
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const Link& link = m_machine.link(Rank{from}, Rank{to});
      body << "link " << from << ' ' << to << ' ' << link.latency << ' ' << link.bandwidth << '\n';
    }
  }
  for (std::size_t c = 0; c < schedule::collective_count; ++c) {
    for (const Row& row : m_rows[c]) {
      for (const auto& [choice, time] : row.times) {
        body << "time " << static_cast<schedule::Collective>(c) << ' ' << row.bytes << ' ' << time
             << ' ';
        if (choice.library) {
          body << "library\n";
          continue;
        }
        body << choice.algorithm << ' ' << choice.piece << ' ' << choice.root
             << (choice.shared           ? " shared"
                 : choice.levels.empty() ? ""
                                         : " levels");
        for (const schedule::GroupLevel& level : choice.levels) {
          body << ' ' << level.ranks;
          const char* before = ":";
          for (const std::uint32_t group : level.groups)
            body << std::exchange(before, ",") << group;
          body << ' ' << level.algorithm;
        }
        body << '\n';
      }
    }
  }
  const std::string lines = std::move(body).str();
  return text(heddle::impl::cost_table_head, heddle::impl::cost_table_version, ' ',
              heddle::impl::cost_table_checksum(lines), '\n', lines);
}

HEDDLE_INLINE CostTable CostTable::parse(std::string_view content) {
  content = heddle::impl::without_mark(content);
  const std::size_t end = content.find('\n');
  std::istringstream first{std::string(content.substr(0, end))};
  std::string name;
  int number = 0;
  std::string checksum;
  if (!(first >> name >> number >> checksum) || name + ' ' != heddle::impl::cost_table_head)
    heddle::impl::refuse_table("it is not a table of costs", text("it begins with '", name, "'"));
  if (number != heddle::impl::cost_table_version)
    heddle::impl::refuse_table("the version is not known", text("version ", number, ", this is ",
                                                                heddle::impl::cost_table_version));
  const std::string_view lines = content.substr(std::min(end, content.size() - 1) + 1);
  if (checksum != heddle::impl::cost_table_checksum(lines))
    heddle::impl::refuse_table(
        "it was changed or cut",
        text("checksum ", heddle::impl::cost_table_checksum(lines), ", expected ", checksum));
  return read_lines(std::string(lines));
}

HEDDLE_INLINE void CostTable::write(const std::string& path) const { write_file(path, to_text()); }

HEDDLE_INLINE CostTable CostTable::read(const std::string& path) { return parse(read_file(path)); }

HEDDLE_INLINE Seconds CostTable::between(const Row& left, const Row& right,
                                         const CollectiveChoice& choice, Bytes bytes) {
  const auto time_in = [&](const Row& row) {
    const auto entry = std::ranges::find(row.times, choice, &CollectivePrediction::choice);
    return entry == row.times.end() ? 0 : entry->time;
  };
  const Seconds low = time_in(left);
  const Seconds high = time_in(right);
  const auto growth = [bytes](const Row& row) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(row.bytes, 1));
  };
  // Not measured there: as slow as for more bytes, or in proportion to fewer.
  if (low == 0) return high * std::max(growth(right), 1.0);
  if (high == 0 || &left == &right) return low * std::max(growth(left), 1.0);
  const double share =
      std::log(growth(left)) / std::log(static_cast<double>(right.bytes) /
                                        static_cast<double>(std::max<Bytes>(left.bytes, 1)));
  return left.bytes == 0 ? high : low * std::pow(high / low, share);
}

HEDDLE_INLINE CostTable CostTable::read_lines(const std::string& lines) {
  std::istringstream in(lines);
  std::string word, name, line;
  std::size_t ranks = 0;
  if (!(in >> word >> ranks) || word != "ranks" || ranks == 0 || ranks > lines.size() / ranks)
    heddle::impl::refuse_table("the number of ranks is missing", text("'", word, "'"));
  std::getline(in >> std::ws, name);
  std::vector<std::vector<Link>> links(ranks, std::vector<Link>(ranks));
  for (auto& row : links) {
    for (Link& link : row) {
      std::string from, to, latency, bandwidth;
      in >> word >> from >> to >> latency >> bandwidth;
      if (!in || word != "link" || !heddle::impl::read_number(latency, link.latency) ||
          !heddle::impl::read_number(bandwidth, link.bandwidth))
        heddle::impl::refuse_table("a link is missing", text("'", word, ' ', from, ' ', to, "'"));
    }
  }
  CostTable table = [&] {
    try {
      return CostTable(network(links, {.name = name}));
    } catch (const contract_error& error) {
      heddle::impl::refuse_table("a link is not valid", error.what());
    }
  }();
  std::getline(in, line);
  while (std::getline(in, line)) table.read_time(line);
  return table;
}

HEDDLE_INLINE void CostTable::read_time(const std::string& line) {
  using schedule::algorithm_count;
  std::istringstream in(line);
  std::string word, collective, algorithm, rest;
  Bytes bytes = 0;
  Seconds time = 0;
  CollectiveChoice choice;
  schedule::Collective which{};
  std::uint32_t root = 0;
  in >> word >> collective >> bytes >> time >> algorithm;
  bool known =
      word == "time" && heddle::impl::read_name(collective, schedule::collective_count, which);
  choice.library = algorithm == "library";
  if (!choice.library) {
    in >> choice.piece >> root;
    known = known && heddle::impl::read_name(algorithm, algorithm_count, choice.algorithm);
  }
  known = known && !in.fail();
  choice.root = Rank{root};
  if (in >> rest) {
    choice.shared = rest == "shared";
    known = known && !choice.library && (choice.shared || rest == "levels");
    schedule::GroupLevel level;
    while (!choice.shared && in >> level.ranks) {
      level.groups.clear();
      for (char next = ':'; in.peek() == next; next = ',') {
        std::uint32_t group = 0;
        in.ignore() >> group;
        level.groups.push_back(group);
      }
      in >> algorithm;
      known = known && !in.fail() &&
              heddle::impl::read_name(algorithm, algorithm_count, level.algorithm);
      choice.levels.push_back(level);
    }
    known = known && (choice.shared || !choice.levels.empty());
  }
  if (!known || !in.eof() || !is_possible(which, choice, time))
    heddle::impl::refuse_table("a line is not valid", text("'", line, "'"));
  set(which, bytes, choice, time);
}

HEDDLE_INLINE bool CostTable::is_possible(schedule::Collective collective,
                                          const CollectiveChoice& choice, Seconds time) const {
  const auto ranks = static_cast<std::uint32_t>(m_machine.ranks());
  if (static_cast<std::size_t>(collective) >= schedule::collective_count ||
      static_cast<std::size_t>(choice.algorithm) >= schedule::algorithm_count)
    return false;
  const bool nested = choice.algorithm == schedule::Algorithm::hierarchical && !choice.library;
  return time > 0 && std::isfinite(time) && choice.root.value < ranks &&
         !(nested && choice.shared) &&
         (nested ? schedule::CollectiveForm{.collective = collective,
                                            .algorithm = choice.algorithm,
                                            .levels = choice.levels}
                       .why_not(ranks)
                       .empty()
                 : choice.levels.empty());
}

}  // namespace plan

}  // namespace heddle::inline v0
