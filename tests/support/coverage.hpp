// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Coverage: how many cases of a random test were of each class that matters.

#include <cstddef>
#include <iosfwd>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>

namespace heddle::test {

/// Counts the random cases of each class. A test prints the counts and checks that none is too
/// small, because a class that the generator never draws is a class that the test does not test.
class Coverage {
 public:
  /// `what` names the cases in print.
  explicit Coverage(std::string what) : m_what(std::move(what)) {}

  /// Counts one case of class `name` if `is` is true. A class whose every case is false is counted
  /// 0 times, which is what rarer_than() is for.
  void count(std::string_view name, bool is) {
    for (auto& [known, cases] : m_classes)
      if (known == name) {
        cases += is;
        return;
      }
    m_classes.emplace_back(name, is);
  }

  /// Returns the classes of fewer than `least` cases, in words; an empty string if there are none.
  [[nodiscard]] std::string rarer_than(std::size_t least) const {
    std::string rare;
    for (const auto& [name, cases] : m_classes)
      if (cases < least) rare += text(name, ": ", cases, "\n");
    return rare;
  }

  friend std::ostream& operator<<(std::ostream& out, const Coverage& coverage) {
    out << "coverage of " << coverage.m_what << ":";
    for (const auto& [name, cases] : coverage.m_classes) out << "\n  " << cases << " " << name;
    return out << "\n";
  }

 private:
  std::string m_what;
  std::vector<std::pair<std::string, std::size_t>> m_classes;
};

}  // namespace heddle::test
