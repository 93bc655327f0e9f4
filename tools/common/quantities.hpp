// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Bytes and times with units, as the tools read and print them: 40GB, 1.5GiB, 5ms.

#include <cstdint>
#include <string>
#include <string_view>

namespace tool {

/// Returns the bytes of a word such as "4096", "40GB" or "1.5GiB".
/// @throws std::invalid_argument with what is wrong with the word.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view word);

/// A number of a command line that may have a unit.
struct Quantity {
  double value = 0;
  bool unit = false;  ///< the word had a unit
};

/// Returns the seconds of a word such as "5ms", "2.5us" or "3min", or the number of a word without
/// a unit. @throws std::invalid_argument as parse_bytes().
[[nodiscard]] Quantity parse_time(std::string_view word);
/// Returns the bytes per second of a word such as "25GB/s", or the number of a word without a unit.
/// @throws std::invalid_argument as parse_bytes().
[[nodiscard]] Quantity parse_rate(std::string_view word);

/// Returns a number with three digits and the largest unit in which it is at least 1. From 1000
/// seconds on, all digits of the whole seconds are printed.
[[nodiscard]] std::string time_text(double seconds);
/// Returns a number with three digits and the largest unit in which it is at least 1. Units are
/// powers of 1000. From 1000 TB on, all digits of the whole TB are printed.
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace tool
