// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// std::to_chars() of floating-point numbers for the explorer's module, by printf. That of Debian's
/// C++ library for WebAssembly has tables of 120 kB, which hardly compress: a fifth of the page.

#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

namespace {

std::to_chars_result put(char* first, char* last, std::string_view digits) {
  if (static_cast<std::size_t>(last - first) < digits.size())
    return {last, std::errc::value_too_large};
  std::memcpy(first, digits.data(), digits.size());
  return {first + digits.size(), std::errc()};
}

}  // namespace

/// Writes the shortest digits that read back as the same number, as the standard says: with an
/// exponent if that is shorter.
std::to_chars_result std::to_chars(char* first, char* last, double value) {
  if (value == 0) return put(first, last, std::signbit(value) ? "-0" : "0");
  // A normal double keeps 15 digits, so shorter ones are these without zeros. 17 always suffice.
  char digits[40];
  for (int more = std::abs(value) < DBL_MIN ? 0 : 14; more <= 16; ++more) {
    snprintf(digits, sizeof(digits), "%.*e", more, value);
    if (strtod(digits, nullptr) == value) break;
  }
  char* const sign = strchr(digits, 'e');
  if (sign == nullptr) return put(first, last, digits);  // inf, nan
  const int exponent = atoi(sign + 1);
  char* end = sign;
  while (end[-1] == '0') --end;
  if (end[-1] == '.') --end;
  const bool negative = digits[0] == '-';
  const int count = static_cast<int>(end - digits) - negative - (end - digits > 2 + negative);
  char plain[400];  // the most that a double has before its point
  const int decimals = count - 1 - exponent > 0 ? count - 1 - exponent : 0;
  const int plain_size = snprintf(plain, sizeof(plain), "%.*f", decimals, value);
  const size_t tail = strlen(sign);
  if (static_cast<size_t>(plain_size) <= static_cast<size_t>(end - digits) + tail)
    return put(first, last, {plain, static_cast<size_t>(plain_size)});
  memmove(end, sign, tail);
  return put(first, last, {digits, static_cast<size_t>(end - digits) + tail});
}

std::to_chars_result std::to_chars(char* first, char* last, double value, chars_format format,
                                   int precision) {
  char digits[400];
  const char* const how = format == chars_format::fixed        ? "%.*f"
                          : format == chars_format::scientific ? "%.*e"
                                                               : "%.*g";
  const int size = snprintf(digits, sizeof(digits), how, precision, value);
  if (size < 0 || static_cast<size_t>(size) >= sizeof(digits))
    return {last, std::errc::value_too_large};
  return put(first, last, {digits, static_cast<size_t>(size)});
}

std::to_chars_result std::to_chars(char* first, char* last, long double value, chars_format format,
                                   int precision) {
  return std::to_chars(first, last, static_cast<double>(value), format, precision);
}
