// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The colours of kinds in pictures and graphs, and darker colours for shades.

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include <heddle/schedule/action.hpp>

namespace heddle::inline v0::trace::impl {

/// The style of a kind. White text on the fills has a contrast of at least 4.5.
struct KindStyle {
  const char* fill;
  const char* meaning;
};

/// Returns the style of a kind.
[[nodiscard]] constexpr KindStyle style(Kind kind) noexcept {
  constexpr std::array<KindStyle, kind_count> styles = {
      KindStyle{"#2f6fd0", "F forward"},
      KindStyle{"#0f7b83", "I backward, inputs"},
      KindStyle{"#b45309", "W backward, weights"},
      KindStyle{"#2b7d46", "B backward"},
      KindStyle{"#7a6a58", "move"},
      KindStyle{"#8a4baf", "combine"},
      KindStyle{"#8c5a7a", "cast"},
      KindStyle{"#a63d57", "group"},
      KindStyle{"#6b7280", "update"},
      KindStyle{"#4b5f7a", "user"},
  };
  return styles[static_cast<std::size_t>(kind)];
}

/// Returns `fill`, a "#rrggbb", at `share` of its brightness.
[[nodiscard]] inline std::string darker(std::string_view fill, double share) {
  std::string result = "#";
  for (const std::size_t at : {1u, 3u, 5u}) {
    int value = 0;
    std::from_chars(fill.data() + at, fill.data() + at + 2, value, 16);
    value = static_cast<int>(value * share);
    constexpr const char* digits = "0123456789abcdef";
    result += {digits[value / 16], digits[value % 16]};
  }
  return result;
}

}  // namespace heddle::inline v0::trace::impl
