// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Compositions: all of them, once and in order, against a count through all lists of numbers.

#include <cstddef>
#include <span>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/solver/compositions.hpp>

namespace test_compositions {

using namespace heddle;

namespace {

/// All lists of `parts` numbers from 1 to `total` in lexicographic order, and those with the sum.
std::vector<std::vector<int>> by_counting(int total, int parts) {
  std::vector<std::vector<int>> found;
  if (parts < 1) return found;
  std::vector<int> digits(static_cast<std::size_t>(parts), 1);
  while (true) {
    int sum = 0;
    for (const int digit : digits) sum += digit;
    if (sum == total) found.push_back(digits);
    std::size_t place = digits.size();
    while (place != 0 && digits[place - 1] >= total) digits[--place] = 1;
    if (place == 0) return found;
    ++digits[place - 1];
  }
}

}  // namespace

TEST_CASE("every composition is visited once, in lexicographic order") {
  for (int total = 0; total <= 7; ++total)
    for (int parts = 0; parts <= total + 1; ++parts) {
      std::vector<std::vector<int>> visited;
      plan::for_each_composition(total, parts, [&](std::span<const int> numbers) {
        visited.emplace_back(numbers.begin(), numbers.end());
      });
      INFO(total << " in " << parts);
      CHECK(visited == by_counting(total, parts));
      CHECK(plan::compositions(total, parts) == visited.size());
    }
  CHECK(plan::compositions(61, 31) == 118264581564861424u);
}

}  // namespace test_compositions
