// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// microbatch_size(): the samples of a microbatch, or the numbers that would divide.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_microbatch_size {

using namespace heddle;
using Catch::Matchers::EndsWith;

namespace {

std::string refusal(std::int64_t samples, int microbatches) {
  return test::message_of<infeasible>(
      [&] { static_cast<void>(schedule::microbatch_size(samples, microbatches)); });
}

/// The numbers of a sentence, in their order.
std::vector<std::int64_t> numbers_of(const std::string& words) {
  std::vector<std::int64_t> numbers;
  std::istringstream in(words);
  for (std::string word; in >> word;)
    if (word.find_first_not_of("0123456789,;") == word.npos) numbers.push_back(std::stoll(word));
  return numbers;
}

}  // namespace

TEST_CASE("samples divide into microbatches") {
  CHECK(schedule::microbatch_size(8, 4) == 2);
  CHECK(schedule::microbatch_size(1, 1) == 1);
  CHECK(schedule::microbatch_size(3ll << 40, 3) == 1ll << 40);
}

TEST_CASE("samples that do not divide are refused with the numbers that would") {
  CHECK_THAT(refusal(8, 3), EndsWith("8 samples do not divide into 3 microbatches; "
                                     "use 2 or 4 microbatches, or 6 or 9 samples"));
  CHECK_THAT(refusal(7, 3), EndsWith("use 1 or 7 microbatches, or 6 or 9 samples"));
  CHECK_THAT(refusal(1, 8),
             EndsWith("there are fewer samples than microbatches (samples = 1, microbatches = 8); "
                      "use 8 samples, or as many microbatches as samples"));
}

TEST_CASE("what a refusal names divides, and nothing nearer does") {
  for (std::int64_t samples = 2; samples <= 60; ++samples)
    for (int microbatches = 1; microbatches < samples; ++microbatches) {
      if (samples % microbatches == 0) {
        CHECK(schedule::microbatch_size(samples, microbatches) * microbatches == samples);
        continue;
      }
      std::vector<std::int64_t> expected = {samples, microbatches};
      for (std::int64_t m = microbatches; m >= 1; --m)
        if (samples % m == 0) {
          expected.push_back(m);
          break;
        }
      for (std::int64_t m = microbatches; m <= samples; ++m)
        if (samples % m == 0) {
          expected.push_back(m);
          break;
        }
      for (std::int64_t n = samples; n >= 1; --n)
        if (n % microbatches == 0) {
          expected.push_back(n);
          break;
        }
      for (std::int64_t n = samples;; ++n)
        if (n % microbatches == 0) {
          expected.push_back(n);
          break;
        }
      CHECK(numbers_of(refusal(samples, microbatches)) == expected);
    }
}

TEST_CASE("a step without samples or microbatches is refused") {
  CHECK_THROWS_AS(schedule::microbatch_size(0, 1), contract_error);
  CHECK_THROWS_AS(schedule::microbatch_size(4, 0), contract_error);
  CHECK_THROWS_AS(schedule::microbatch_size(-4, 2), contract_error);
}

TEST_CASE("sizes of microbatches sum to the batch and differ by at most one, larger ones first") {
  for (int microbatches = 1; microbatches <= 9; ++microbatches)
    for (std::int64_t samples = microbatches; samples <= 40; ++samples) {
      const auto sizes = schedule::microbatch_sizes(samples, microbatches);
      std::int64_t sum = 0;
      for (const std::int64_t size : sizes) sum += size;
      CHECK(sizes.size() == static_cast<std::size_t>(microbatches));
      CHECK(sum == samples);
      CHECK(std::is_sorted(sizes.rbegin(), sizes.rend()));
      CHECK(sizes.front() - sizes.back() <= 1);
    }
  CHECK_THROWS_AS(schedule::microbatch_sizes(0, 1), contract_error);
  CHECK_THROWS_AS(schedule::microbatch_sizes(4, 0), contract_error);
  CHECK_THAT(test::message_of<infeasible>([] { (void)schedule::microbatch_sizes(2, 3); }),
             Catch::Matchers::ContainsSubstring("samples = 2, microbatches = 3"));
}

}  // namespace test_microbatch_size
