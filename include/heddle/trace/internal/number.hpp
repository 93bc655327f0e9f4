// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Formats numbers as text, independent of machine and locale.

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <heddle/core/units.hpp>

namespace heddle::inline v0::trace::impl {

/// Appends an integer.
inline void append(std::string& out, std::integral auto number) {
  char digits[std::numeric_limits<decltype(number)>::digits10 + 3];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

/// Appends a number with at most `decimals` decimals, without trailing zeros.
inline void append_fixed(std::string& out, double number, int decimals) {
  char digits[std::numeric_limits<double>::max_exponent10 + 24];
  const char* end =
      std::to_chars(digits, digits + sizeof(digits), number, std::chars_format::fixed, decimals)
          .ptr;
  if (decimals > 0 && std::isfinite(number)) {
    while (end[-1] == '0') --end;
    if (end[-1] == '.') --end;
  }
  const bool negative_zero = end - digits == 2 && digits[0] == '-' && digits[1] == '0';
  out.append(std::string_view(digits, end).substr(negative_zero));
}

/// Returns a number with at most `decimals` decimals, without trailing zeros.
[[nodiscard]] inline std::string fixed(double number, int decimals) {
  std::string out;
  append_fixed(out, number, decimals);
  return out;
}

/// A unit of time. A time in seconds times `per_second` is a number of units. `name` may be empty.
struct TimeUnit {
  double per_second = 1;
  std::string name = "s";
};

/// Returns the largest unit in which `time` is at least 1.
[[nodiscard]] inline TimeUnit unit_for(Seconds time) {
  const double size = std::abs(time);
  if (size == 0 || size >= 1 || std::isnan(size)) return {1, "s"};
  if (size >= 1e-3) return {1e3, "ms"};
  if (size >= 1e-6) return {1e6, "us"};
  return {1e9, "ns"};
}

/// Returns `unit` if it is given; times are then numbers of this unit already. Else returns
/// unit_for(time).
[[nodiscard]] inline TimeUnit unit_for(Seconds time, const std::optional<std::string>& unit) {
  return unit ? TimeUnit{1, *unit} : unit_for(time);
}

/// Returns a time with four significant digits, or with all digits before the point if there are
/// more: "33 s", "1.234 ms", or "33" without a unit.
[[nodiscard]] inline std::string time_text(Seconds time, const TimeUnit& unit) {
  const double number = time * unit.per_second;
  const double size = std::abs(number);
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return fixed(number, decimals) + (unit.name.empty() ? "" : " ") + unit.name;
}
[[nodiscard]] inline std::string time_text(Seconds time) { return time_text(time, unit_for(time)); }

/// Returns bytes in decimal units with at most four significant digits: "311 B", "1.5 MB".
[[nodiscard]] inline std::string bytes_text(Bytes bytes) {
  constexpr const char* names[] = {"B", "kB", "MB", "GB", "TB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 999.95 && unit + 1 < std::size(names); ++unit) number /= 1000;
  const int decimals = unit == 0 || number >= 1000 ? 0 : number >= 100 ? 1 : number >= 10 ? 2 : 3;
  return fixed(number, decimals) + " " + names[unit];
}

/// Returns a share as "27.3%".
[[nodiscard]] inline std::string percent_text(double share) { return fixed(100 * share, 1) + "%"; }

}  // namespace heddle::inline v0::trace::impl
