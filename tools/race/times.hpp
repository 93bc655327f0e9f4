// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// times_of(): the run times in a text.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>

namespace tool {

/// Returns the numbers in `content`, the text of `file`, between which there is white space.
/// @throws format_error that names the line if one is no time, or if there is none.
[[nodiscard]] inline std::vector<double> times_of(std::string_view content,
                                                  const std::string& file) {
  const std::string_view text = heddle::impl::without_mark(content);
  std::vector<double> times;
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    if (std::string_view(" \t\r\n").find(text[i]) != std::string_view::npos) {
      line += text[i++] == '\n' ? 1u : 0u;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", i), text.size());
    double time = 0;
    const auto [rest, error] = std::from_chars(text.data() + i, text.data() + end, time);
    if (error != std::errc{} || rest != text.data() + end || !std::isfinite(time) || time < 0)
      throw heddle::format_error({heddle::text(file, ':', line),
                                  "a time must be a number of at least 0",
                                  heddle::text('\'', text.substr(i, end - i), '\''),
                                  "leave out runs that found no result"});
    times.push_back(time);
    i = end;
  }
  if (times.empty())
    throw heddle::format_error({file, "a prediction needs the times of runs", "there are none"});
  return times;
}

}  // namespace tool
