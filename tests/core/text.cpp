// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// text() against std::ostringstream: numbers of all types, characters, strings and types with an
// operator<<.

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace test_text {

namespace hd = heddle;

template <class... Pieces>
std::string by_stream(const Pieces&... pieces) {
  std::ostringstream out;
  (out << ... << pieces);
  return out.str();
}

template <class... Pieces>
void check_same(const Pieces&... pieces) {
  CHECK(hd::text(pieces...) == by_stream(pieces...));
}

TEST_CASE("text() prints as a stream does", "[core]") {
  CHECK(hd::text().empty());
  check_same("a", std::string("b"), std::string_view("c"), 'd', static_cast<const char*>("e"));
  check_same(true, short{-3}, 7, -7, 7u, 7l, 7ul, std::numeric_limits<long long>::min(),
             std::numeric_limits<unsigned long long>::max());
  check_same(std::int8_t{'x'}, std::uint8_t{'y'}, std::uint16_t{65535}, std::int64_t{-1});
  for (const double number :
       {0.0, -0.0, 1.0, 1.5, 1.0 / 3, 123456.0, 1234567.0, 1e-4, 1e-5, 1e100, 9.999995, 5e-324,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    check_same(number, ' ', static_cast<float>(number), ' ', static_cast<long double>(number));
  check_same(std::numeric_limits<double>::quiet_NaN());
  check_same(hd::Rank{3}, hd::Scalar::bf16);
}

}  // namespace test_text
