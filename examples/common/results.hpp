// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a run computed, as a file: scripts/backends compares those of all back ends.

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string>
#include <sys/stat.h>

#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>

namespace examples {
namespace impl {

/// The head of the file says how far two runs may be apart. Then each line has one value, with the
/// fewest digits from which the same value is read.
template <class Values>
void write_results(const std::string& name, const std::string& kind, const Values& values) {
  const char* const named = std::getenv("HEDDLE_RESULTS");
  if (named == nullptr || *named == '\0') return;
  std::string lines = "heddle results 1\n" + kind + '\n';
  for (const auto value : values) {
    char digits[32];
    lines.append(digits, std::to_chars(digits, std::end(digits), value).ptr) += '\n';
  }
  const std::string folder = std::string(named) + '/';
  for (std::size_t at = folder.find('/', 1); at != folder.npos; at = folder.find('/', at + 1))
    ::mkdir(folder.substr(0, at).c_str(), 0777);  // an existing one stays
  heddle::write_file(folder + name + ".txt", lines);
}

}  // namespace impl

/// Writes `values` to NAME.txt in the folder that the environment's HEDDLE_RESULTS names, and does
/// nothing where there is none. Of several ranks one calls it. Integers must be the same
/// everywhere.
template <class Values>
requires std::integral<typename Values::value_type>
void write_results(const std::string& name, const Values& values) {
  impl::write_results(name, "integers", values);
}

/// Writes `values`, too; two runs may differ by `tolerance` times the largest magnitude of all.
template <class Values>
requires std::floating_point<typename Values::value_type>
void write_results(const std::string& name, const Values& values, double tolerance) {
  impl::write_results(name, heddle::text("floats ", tolerance), values);
}

}  // namespace examples
