// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of equal_terms.hpp.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::string exact_text(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return std::string(digits.data(), end);
}

HEDDLE_INLINE void check_equal_terms(const char* where,
                                     const std::vector<std::vector<std::byte>>& terms) {
  const auto text_of = [&](std::size_t rank) {
    return std::string_view(reinterpret_cast<const char*>(terms[rank].data()), terms[rank].size());
  };
  for (std::size_t rank = 1; rank < terms.size(); ++rank) {
    std::string_view first = text_of(0);
    std::string_view other = text_of(rank);
    if (first == other) continue;
    const auto line = [](std::string_view& lines) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      const std::string_view taken = lines.substr(0, end);
      lines.remove_prefix(std::min(end + 1, lines.size()));
      return taken;
    };
    std::string_view a;
    std::string_view b;
    while (a == b) {
      a = line(first);
      b = line(other);
    }
    throw contract_error({where, "the options differ between the ranks",
                          text("rank 0 has ", a, ", rank ", rank, " has ", b),
                          "give every rank the same options"});
  }
}

}  // namespace heddle::inline v0::impl
