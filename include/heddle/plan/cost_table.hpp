// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CostTable: what collectives took on a machine, measured once, kept in a file, and passed to
/// whoever has to choose how one is performed.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/network.hpp>
#include <heddle/plan/collective_choice.hpp>

namespace heddle::inline v0 {

/// Measured times of collectives for some sizes, by some choices, and the network() on which they
/// were measured.
///
/// Between two measured sizes a choice takes a time on the line through its two in logarithms of
/// size and time. Where it was measured at one of the two only, it is taken for no better than it
/// can be: as slow as for the greater size, or slower than for the smaller one in proportion. So
/// what is chosen there is expected to take no longer than either neighbour's best. Beyond the
/// measured sizes times are those of the last one, in proportion to the size.
///
/// The library's own call is kept unless another choice gains at least CostTable::margin over it.
/// A table is measured once, and what is measured changes later: an algorithm whose time was off by
/// less than the margin is never slower than the library, and what is forgone is less than the
/// margin. The spread of one measurement is not its business: measure_collectives() puts in how
/// long a candidate takes at most, compared with the library.
///
/// A value; lookups change nothing and take a few comparisons per measured size.
class CostTable {
 public:
  /// No times yet, on a machine of network().
  explicit CostTable(Machine machine) : m_machine(std::move(machine)) {}

  /// Where it was measured.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }

  /// Adds a measured time, or replaces it. Bytes are those of schedule::CollectiveOptions.
  /// @throws contract_error for a time that is not above 0, a root that is no rank, or levels that
  ///         are not the hierarchical algorithm's, for this collective of these ranks.
  void set(schedule::Collective collective, Bytes bytes, const CollectiveChoice& choice,
           Seconds time) {
    expects(is_possible(collective, choice, time), [&] {
      return Complaint{
          "heddle::CostTable::set", "a choice that these ranks have takes some time",
          text(collective, ", ", choice, ", ", time, " s, ", m_machine.ranks(), " ranks")};
    });
    auto& rows = m_rows[static_cast<std::size_t>(collective)];
    auto row = std::ranges::lower_bound(rows, bytes, {}, &Row::bytes);
    if (row == rows.end() || row->bytes != bytes) row = rows.insert(row, {bytes, {}});
    auto entry = std::ranges::find(row->times, choice, &CollectivePrediction::choice);
    if (entry == row->times.end()) entry = row->times.insert(entry, {choice, time});
    entry->time = time;
  }

  /// How many times as long as the best choice the library's call must take, or it is kept.
  static constexpr double margin = 1.1;

  /// The fastest for so many bytes, or the library's call unless it takes `margin` times as long,
  /// and the time that the choice is expected to take. Without `library` only algorithms of ours
  /// count, for calls that the library cannot make; without `shared` none over shared memory. Where
  /// nothing was measured that counts: the library's own call, and no time.
  [[nodiscard]] CollectivePrediction best(schedule::Collective collective, Bytes bytes,
                                          bool library = true, bool shared = true) const {
    const auto& rows = m_rows[static_cast<std::size_t>(collective)];
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
  /// The choice alone.
  [[nodiscard]] CollectiveChoice choose(schedule::Collective collective, Bytes bytes,
                                        bool library = true, bool shared = true) const {
    return best(collective, bytes, library, shared).choice;
  }

  /// The times by one size, as measured; empty where there are none.
  [[nodiscard]] std::vector<CollectivePrediction> times(schedule::Collective collective,
                                                        Bytes bytes) const {
    for (const Row& row : m_rows[static_cast<std::size_t>(collective)])
      if (row.bytes == bytes) return row.times;
    return {};
  }
  /// The sizes that were measured, ascending.
  [[nodiscard]] std::vector<Bytes> sizes(schedule::Collective collective) const {
    std::vector<Bytes> found;
    for (const Row& row : m_rows[static_cast<std::size_t>(collective)]) found.push_back(row.bytes);
    return found;
  }

  /// As text, which parse() reads back without loss: a line "heddle-costs 1 CHECKSUM", with the
  /// 64-bit FNV-1a hash of the lines below it; the number of ranks and the name of a device; "link
  /// FROM TO LATENCY BANDWIDTH" in seconds and bytes per second; and "time COLLECTIVE BYTES SECONDS
  /// library", "... SECONDS ALGORITHM PIECE ROOT", "... ROOT shared", or, innermost level first,
  /// "... ROOT levels RANKS ALGORITHM RANKS ALGORITHM", RANKS with the group of each member where
  /// there are GroupLevel::groups: "3:0,0,0,1".
  [[nodiscard]] std::string to_text() const {
    std::ostringstream body;
    body.precision(std::numeric_limits<double>::max_digits10);
    const int ranks = m_machine.ranks();
    body << "ranks " << ranks << ' ' << m_machine.device(Rank{}).name << '\n';
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        const Link& link = m_machine.link(Rank{from}, Rank{to});
        body << "link " << from << ' ' << to << ' ' << link.latency << ' ' << link.bandwidth
             << '\n';
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
    return text(head, version, ' ', checksum_of(lines), '\n', lines);
  }

  /// The table of such a text.
  /// @throws format_error for another format or version, a text that was changed or cut, and for a
  ///         line that it does not understand.
  [[nodiscard]] static CostTable parse(std::string_view content) {
    const std::size_t end = content.find('\n');
    std::istringstream first{std::string(content.substr(0, end))};
    std::string name;
    int number = 0;
    std::string checksum;
    if (!(first >> name >> number >> checksum) || name + ' ' != head)
      refuse("it is not a table of costs", text("it begins with '", name, "'"));
    if (number != version)
      refuse("the version is not known", text("version ", number, ", this is ", version));
    const std::string_view lines = content.substr(std::min(end, content.size() - 1) + 1);
    if (checksum != checksum_of(lines))
      refuse("it was changed or cut",
             text("checksum ", checksum_of(lines), ", expected ", checksum));
    return read_lines(std::string(lines));
  }

  /// Writes the text to a file, atomically. @throws format_error as write_file() does.
  void write(const std::filesystem::path& path) const { write_file(path, to_text()); }
  /// Reads such a file. @throws format_error where it cannot be read, or as parse() does.
  [[nodiscard]] static CostTable read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    if (!file || !(content << file.rdbuf()))
      throw format_error(
          {where, text("cannot read '", path.string(), "'"), {}, "write one by tools/measure"});
    return parse(std::move(content).str());
  }

 private:
  struct Row {
    Bytes bytes;
    std::vector<CollectivePrediction> times;
  };

  static constexpr const char* where = "heddle::CostTable";
  static constexpr std::string_view head = "heddle-costs ";
  static constexpr int version = 1;

  [[noreturn]] static void refuse(std::string what, std::string why) {
    throw format_error({where, std::move(what), std::move(why), "measure it anew"});
  }

  [[nodiscard]] static std::string checksum_of(std::string_view lines) {
    std::ostringstream out;
    out << std::hex << fnv1a(lines);
    return std::move(out).str();
  }

  /// Time of `choice` for `bytes`, which lie between the sizes of two rows, or beyond both.
  [[nodiscard]] static Seconds between(const Row& left, const Row& right,
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

  [[nodiscard]] static CostTable read_lines(const std::string& lines) {
    std::istringstream in(lines);
    std::string word, name, line;
    std::size_t ranks = 0;
    if (!(in >> word >> ranks) || word != "ranks" || ranks == 0 || ranks > lines.size() / ranks)
      refuse("the number of ranks is missing", text("'", word, "'"));
    std::getline(in >> std::ws, name);
    std::vector<std::vector<Link>> links(ranks, std::vector<Link>(ranks));
    for (auto& row : links) {
      for (Link& link : row) {
        std::string from, to, latency, bandwidth;
        in >> word >> from >> to >> latency >> bandwidth;
        if (!in || word != "link" || !number(latency, link.latency) ||
            !number(bandwidth, link.bandwidth))
          refuse("a link is missing", text("'", word, ' ', from, ' ', to, "'"));
      }
    }
    CostTable table(network(links, {.name = name}));
    std::getline(in, line);
    while (std::getline(in, line)) table.read_time(line);
    return table;
  }

  /// Streams do not read "inf".
  [[nodiscard]] static bool number(const std::string& word, double& value) {
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && rest == word.data() + word.size();
  }

  /// Whether `value` is one of `count` that are written as `word`, which it is then.
  template <class T>
  [[nodiscard]] static bool named(const std::string& word, std::size_t count, T& value) {
    for (std::size_t i = 0; i < count; ++i) {
      value = static_cast<T>(i);
      if (schedule::to_string(value) == word) return true;
    }
    return false;
  }

  void read_time(const std::string& line) {
    using schedule::algorithm_count;
    std::istringstream in(line);
    std::string word, collective, algorithm, rest;
    Bytes bytes = 0;
    Seconds time = 0;
    CollectiveChoice choice;
    schedule::Collective which{};
    std::uint32_t root = 0;
    in >> word >> collective >> bytes >> time >> algorithm;
    bool known = word == "time" && named(collective, schedule::collective_count, which);
    choice.library = algorithm == "library";
    if (!choice.library) {
      in >> choice.piece >> root;
      known = known && named(algorithm, algorithm_count, choice.algorithm);
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
        known = known && !in.fail() && named(algorithm, algorithm_count, level.algorithm);
        choice.levels.push_back(level);
      }
      known = known && (choice.shared || !choice.levels.empty());
    }
    if (!known || !in.eof() || !is_possible(which, choice, time))
      refuse("a line is not understood", text("'", line, "'"));
    set(which, bytes, choice, time);
  }

  /// Whether these ranks can have made such a choice, in such a time.
  [[nodiscard]] bool is_possible(schedule::Collective collective, const CollectiveChoice& choice,
                                 Seconds time) const {
    const auto ranks = static_cast<std::uint32_t>(m_machine.ranks());
    const bool nested = choice.algorithm == schedule::Algorithm::hierarchical && !choice.library;
    return time > 0 && std::isfinite(time) && choice.root.value < ranks &&
           !(nested && choice.shared) &&
           (nested ? schedule::why_not(collective, choice.levels, ranks).empty()
                   : choice.levels.empty());
  }

  Machine m_machine;
  std::vector<Row> m_rows[schedule::collective_count];  ///< by bytes, ascending
};

}  // namespace heddle::inline v0
