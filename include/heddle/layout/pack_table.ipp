// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of pack_table.hpp.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <istream>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/pack_table.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE PackTable::PackTable(std::vector<Bytes> sizes, std::vector<Bytes> runs,
                                   std::vector<double> gains)
    : m_sizes(std::move(sizes)), m_runs(std::move(runs)), m_gains(std::move(gains)) {
  const auto ascend = [](const char* name, const std::vector<Bytes>& values) {
    constexpr const char* what = "sizes and runs must ascend from more than 0";
    expects(!values.empty(), [&] {
      return ErrorInfo{"heddle::PackTable", what, text(name, " has 0 numbers")};
    });
    for (std::size_t i = 0; i < values.size(); ++i)
      expects(values[i] > (i == 0 ? 0 : values[i - 1]), [&] {
        return ErrorInfo{"heddle::PackTable", what, text(name, "[", i, "] = ", values[i])};
      });
  };
  ascend("sizes", m_sizes);
  ascend("runs", m_runs);
  expects(m_gains.size() == m_sizes.size() * m_runs.size(), [&] {
    return ErrorInfo{"heddle::PackTable", "there must be one gain for every size and run",
                     text(m_gains.size(), " for ", m_sizes.size(), " x ", m_runs.size())};
  });
  for (std::size_t i = 0; i < m_gains.size(); ++i)
    expects(m_gains[i] > 0 && std::isfinite(m_gains[i]), [&] {
      return ErrorInfo{"heddle::PackTable",
                       "a gain is a ratio of times, and must be finite and more than 0",
                       text("gains[", i, "] = ", m_gains[i])};
    });
}

HEDDLE_INLINE double PackTable::gain(Bytes bytes, Bytes run) const {
  const Place s = place(m_sizes, bytes);
  const Place r = place(m_runs, run);
  const auto in_row = [&](std::size_t size) {
    const double* const row = m_gains.data() + size * m_runs.size();
    return std::lerp(std::log(row[r.below]), std::log(row[r.above]), r.share);
  };
  return std::exp(std::lerp(in_row(s.below), in_row(s.above), s.share));
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const PackTable& table) {
  out << "heddle-pack-table 1\nbytes";
  for (const Bytes run : table.m_runs) out << ' ' << run;
  for (std::size_t s = 0; s < table.m_sizes.size(); ++s) {
    out << '\n' << table.m_sizes[s];
    for (std::size_t r = 0; r < table.m_runs.size(); ++r) {
      std::array<char, 32> digits;  // the fewest digits that read back as the same number
      const double gain = table.m_gains[s * table.m_runs.size() + r];
      const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), gain).ptr;
      out << ' ' << std::string_view(digits.data(), end);
    }
  }
  return out << '\n';
}

HEDDLE_INLINE PackTable::Place PackTable::place(const std::vector<Bytes>& values, Bytes value) {
  const auto next = std::ranges::upper_bound(values, value);
  const auto above = static_cast<std::size_t>(next - values.begin());
  if (above == 0) return {0, 0, 0};
  if (above == values.size()) return {above - 1, above - 1, 0};
  const auto logarithm = [](Bytes bytes) { return std::log(static_cast<double>(bytes)); };
  const double low = logarithm(values[above - 1]);
  return {above - 1, above, (logarithm(value) - low) / (logarithm(values[above]) - low)};
}

HEDDLE_INLINE PackTable PackTable::read(std::istream& in) {
  const auto wrong = [](std::string what, std::string why) {
    return format_error({"heddle::PackTable::read", std::move(what), std::move(why)});
  };
  std::string line;
  std::getline(in, line);
  if (impl::without_mark(line) != "heddle-pack-table 1")
    throw wrong("the first line must be \"heddle-pack-table 1\"", '"' + line + '"');
  std::vector<Bytes> sizes, runs;
  std::vector<double> gains;
  for (int number = 2; std::getline(in, line); ++number) {
    // Whole words only, because a stream reads "8.5" as 8, and "-8" as a size of 2^64 - 8.
    const auto parse = [&](std::string_view word, auto& value) {
      const char* const end = word.data() + word.size();
      const auto [at, error] = std::from_chars(word.data(), end, value);
      if (error == std::errc() && at == end) return;
      throw wrong(text("line ", number, " must hold whole numbers of bytes, and gains"),
                  text('"', line, "\", where ", word, " is neither"));
    };
    std::istringstream words(line);
    std::string word;
    for (bool first = true; words >> word; first = false) {
      if (number == 2 && first) continue;  // "bytes"
      if (number == 2)
        parse(word, runs.emplace_back());
      else if (first)
        parse(word, sizes.emplace_back());
      else
        parse(word, gains.emplace_back());
    }
  }
  try {
    return {std::move(sizes), std::move(runs), std::move(gains)};
  } catch (const contract_error& error) {
    throw wrong("the numbers do not make a table", error.what());
  }
}

}  // namespace heddle::inline v0
