// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// nearest_name(): finds the name that a mistyped word probably means, for error messages.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::inline v0::impl {

/// Returns `name` in lower case, without hyphens and underscores: "ZBV", "zb_v" and "zb-v" are
/// equal.
[[nodiscard]] inline std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != '-' && c != '_')
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Returns the number of letters to insert, delete or replace in order to turn `a` into `b`. Two
/// swapped neighbours count once.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] != b[j]), last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// Returns the index of the name that is nearest to `word`, or nothing if none is near. A name is
/// near if at most a third of the letters are wrong (one in a short word) but not all of them, or
/// if it begins with `word`. The first of equally near names is returned.
[[nodiscard]] inline std::optional<std::size_t> nearest_name(
    std::string_view word, const std::vector<std::string_view>& names) {
  const std::string wanted = folded(word);
  std::optional<std::size_t> nearest;
  std::size_t least = std::min(std::max<std::size_t>(1, wanted.size() / 3) + 1, wanted.size());
  for (std::size_t n = 0; n < names.size(); ++n) {
    const std::string name = folded(names[n]);
    const bool begins = wanted.size() >= 3 && name.starts_with(wanted);
    const std::size_t distance = begins ? name != wanted : edit_distance(wanted, name);
    if (distance >= least) continue;
    least = distance;
    nearest = n;
  }
  return nearest;
}

/// Returns "did you mean 'NAME'?", or nothing if no name is near `word`.
[[nodiscard]] inline std::string did_you_mean(std::string_view word,
                                              const std::vector<std::string_view>& names) {
  const auto nearest = nearest_name(word, names);
  return nearest ? "did you mean '" + std::string(names[*nearest]) + "'?" : "";
}

}  // namespace heddle::inline v0::impl
