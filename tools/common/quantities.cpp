// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <heddle/core/text.hpp>

#include "quantities.hpp"

namespace tool {

using heddle::text;

namespace {

struct Unit {
  double value;
  std::string_view name;
};
constexpr Unit times[] = {{3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};

/// Returns the factor of a unit of bytes such as "B", "kB" or "GiB", or nothing.
std::optional<double> bytes_of(std::string_view unit) {
  if (!unit.ends_with('B')) return {};
  unit.remove_suffix(1);
  const bool binary = unit.ends_with('i');
  if (binary) unit.remove_suffix(1);
  if (unit.empty()) return binary ? std::nullopt : std::optional(1.0);
  const std::size_t power = std::string_view("kMGT").find(unit[0] == 'K' ? 'k' : unit[0]);
  if (unit.size() > 1 || power == std::string_view::npos) return {};
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

/// Splits a word into its number and its unit. @throws std::invalid_argument if there is no number.
Unit split(std::string_view word) {
  Unit result{0, {}};
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, result.value);
  if (error == std::errc::result_out_of_range)
    throw std::invalid_argument(text("a number out of range ('", word, "')"));
  if (error != std::errc{}) throw std::invalid_argument(text("not a number ('", word, "')"));
  result.name = word.substr(static_cast<std::size_t>(rest - word.data()));
  return result;
}

/// Returns a number rounded to three digits.
double three_digits(double value) {
  std::array<char, 32> word{};
  const char* const end =
      std::to_chars(word.data(), word.data() + word.size(), value, std::chars_format::scientific, 2)
          .ptr;
  std::from_chars(word.data(), end, value);
  return value;
}

std::string with_unit(double value, std::span<const Unit> units) {
  const double size = std::abs(three_digits(value));  // 999.9 kB are printed as 1 MB
  std::size_t unit = 0;
  while (unit + 1 < units.size() && size < units[unit].value) ++unit;
  if (value == 0) unit = units.size() - 1;
  std::ostringstream out;
  if (const double number = value / units[unit].value; size < 1000 * units[unit].value)
    out << std::setprecision(3) << number;
  else  // all digits of the whole part instead of an exponent
    out << std::setprecision(15) << std::round(number);
  out << ' ' << units[unit].name;
  return out.str();
}

}  // namespace

std::uint64_t parse_bytes(std::string_view word) {
  std::uint64_t whole = 0;
  const char* const end = word.data() + word.size();
  if (const auto [rest, error] = std::from_chars(word.data(), end, whole);
      error == std::errc{} && rest == end)
    return whole;
  const Unit parts = split(word);
  if (parts.name.empty())
    throw std::invalid_argument(text("not a whole number of at least 0 ('", word, "')"));
  const auto unit = bytes_of(parts.name);
  if (!unit)
    throw std::invalid_argument(
        text("no unit of bytes '", parts.name, "'; write for example 40GB or 1.5GiB"));
  const double bytes = parts.value * *unit;
  const double whole_bytes = std::round(bytes);
  // 4.1 and 4.1 * 1e9 are rounded, each by at most half of the epsilon.
  const double rounding = std::numeric_limits<double>::epsilon() * bytes;
  if (!(bytes >= 0 && bytes < 9e18 && std::abs(bytes - whole_bytes) <= rounding))
    throw std::invalid_argument(text("not a whole number of bytes ('", word, "')"));
  return static_cast<std::uint64_t>(whole_bytes);
}

Quantity parse_time(std::string_view word) {
  const Unit parts = split(word);
  if (parts.name.empty()) return {parts.value, false};
  for (const Unit& unit : times)
    if (unit.name == parts.name) return {parts.value * unit.value, true};
  throw std::invalid_argument(
      text("no unit of time '", parts.name, "'; there are h, min, s, ms, us"));
}

Quantity parse_rate(std::string_view word) {
  const Unit parts = split(word);
  if (parts.name.empty()) return {parts.value, false};
  const bool rate = parts.name.ends_with("/s");
  const auto unit = rate ? bytes_of(parts.name.substr(0, parts.name.size() - 2)) : std::nullopt;
  if (!unit)
    throw std::invalid_argument(
        text("no unit of a bandwidth '", parts.name, "'; write for example 25GB/s"));
  return {parts.value * *unit, true};
}

std::string time_text(double seconds) {
  return with_unit(seconds, std::span(times).subspan(2));  // hours and minutes are for arguments
}

std::string bytes_text(double bytes) {
  constexpr Unit units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};
  return with_unit(bytes, units);
}

}  // namespace tool
