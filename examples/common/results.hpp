// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a run computed, as a file: scripts/backends compares those of all back ends.

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <ranges>
#include <sstream>
#include <string>

#include <heddle/core/file.hpp>

namespace examples {
namespace impl {

/// The head of the file says how far two runs may be apart; then one value a line.
template <class Values>
void write_results(const std::string& name, const std::string& kind, const Values& values) {
  const char* const folder = std::getenv("HEDDLE_RESULTS");
  if (folder == nullptr || *folder == '\0') return;
  using Value = std::ranges::range_value_t<Values>;
  std::ostringstream lines;
  lines.precision(std::numeric_limits<Value>::max_digits10);
  lines << "heddle results 1\n" << kind << '\n';
  for (const Value& value : values) lines << value << '\n';
  std::filesystem::create_directories(folder);
  heddle::write_file(std::filesystem::path(folder) / (name + ".txt"), lines.str());
}

}  // namespace impl

/// Writes `values` to NAME.txt in the folder that the environment's HEDDLE_RESULTS names, and does
/// nothing where there is none. Of several ranks one calls it. Integers must be the same
/// everywhere.
template <std::ranges::input_range Values>
requires std::integral<std::ranges::range_value_t<Values>>
void write_results(const std::string& name, const Values& values) {
  impl::write_results(name, "integers", values);
}

/// Likewise; two runs may differ by `tolerance` times the largest magnitude of all values.
template <std::ranges::input_range Values>
requires std::floating_point<std::ranges::range_value_t<Values>>
void write_results(const std::string& name, const Values& values, double tolerance) {
  std::ostringstream kind;
  kind << "floats " << tolerance;
  impl::write_results(name, kind.str(), values);
}

}  // namespace examples
