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

TEST_CASE("printable() escapes all that is no character of UTF-8 or controls a terminal",
          "[core]") {
  using hd::impl::printable;
  const auto same = [](std::string_view raw) { CHECK(printable(raw) == raw); };
  same("");
  same("a ~ \\x1b");
  same("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");              // of two, three and four bytes
  same("\xC2\xA0\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF");  // beside those below
  CHECK(printable("a\n\t\r\x1b[31m\x7f") == "a\\n\\t\\r\\x1b[31m\\x7f");
  CHECK(printable(std::string_view("\0\x01", 2)) == "\\x00\\x01");
  CHECK(printable("\xC2\x9B[31m") == "\\xc2\\x9b[31m");   // U+009B begins a sequence, too
  CHECK(printable("\xC3") == "\\xc3");                    // it ends too early
  CHECK(printable("\xE2\x82.") == "\\xe2\\x82.");         // it has too few bytes
  CHECK(printable("\xC0\xAF") == "\\xc0\\xaf");           // it is longer than needed
  CHECK(printable("\xE0\x9F\xBF") == "\\xe0\\x9f\\xbf");  // likewise
  CHECK(printable("\xF0\x8F\xBF\xBF") == "\\xf0\\x8f\\xbf\\xbf");
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xFF\xFE\x80") == "\\xff\\xfe\\x80");
  for (int c = 0; c < 256; ++c) {
    const std::string once = printable(std::string(1, static_cast<char>(c)));
    CHECK(printable(once) == once);
  }
}

}  // namespace test_text
