// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// PNG files, taken apart again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/trace.hpp>

#include "support/complaint.hpp"

namespace test_png {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

std::size_t number(std::string_view bytes) {
  std::size_t value = 0;
  for (const char byte : bytes) value = value * 256 + static_cast<unsigned char>(byte);
  return value;
}

/// The data of the chunk that `png` begins with, which is taken off.
std::string_view chunk(std::string_view& png, std::string_view name) {
  const std::size_t length = number(png.substr(0, 4));
  REQUIRE(png.substr(4, 4) == name);
  const std::string_view data = png.substr(8, length);
  png.remove_prefix(12 + length);
  return data;
}

/// What a stream of stored blocks holds.
std::string inflated(std::string_view stream) {
  REQUIRE(number(stream.substr(0, 2)) % 31 == 0);  // its check
  stream.remove_prefix(2);
  std::string data;
  for (bool last = false; !last;) {
    last = stream[0] == 1;
    REQUIRE((last || stream[0] == 0));
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(stream[i]); };
    const std::size_t length = at(1) + 256u * at(2);
    REQUIRE(length + at(3) + 256u * at(4) == 0xffff);
    data += stream.substr(5, length);
    stream.remove_prefix(5 + length);
  }
  std::size_t a = 1, b = 0;
  for (const char byte : data) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  REQUIRE(number(stream) == b * 65536 + a);
  return data;
}

}  // namespace

TEST_CASE("pixels come out of a picture as they went in") {
  for (const std::size_t width : {1, 3, 211})
    for (const std::size_t height : {1, 2, 127}) {  // 211 x 127 needs two blocks
      std::vector<trace::Pixel> pixels(width * height);
      for (std::size_t i = 0; i < pixels.size(); ++i)
        pixels[i] = {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i / 3),
                     static_cast<std::uint8_t>(255 - i % 251)};
      const std::string file = trace::to_png(width, pixels);
      std::string_view png = file;
      REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
      png.remove_prefix(8);
      const std::string_view head = chunk(png, "IHDR");
      CHECK(number(head.substr(0, 4)) == width);
      CHECK(number(head.substr(4, 4)) == height);
      CHECK(head.substr(8) == std::string_view("\x08\x02\x00\x00\x00", 5));
      const std::string rows = inflated(chunk(png, "IDAT"));
      REQUIRE(rows.size() == height * (1 + 3 * width));
      bool same = true;
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::size_t at = i / width * (1 + 3 * width) + 1 + 3 * (i % width);
        same = same && rows[i / width * (1 + 3 * width)] == 0 &&
               rows[at] == static_cast<char>(pixels[i].red) &&
               rows[at + 1] == static_cast<char>(pixels[i].green) &&
               rows[at + 2] == static_cast<char>(pixels[i].blue);
      }
      CHECK(same);
      // The last chunk of every PNG file there is, with its checksum.
      CHECK(png == std::string_view("\0\0\0\0IEND\xae\x42\x60\x82", 12));
    }
}

TEST_CASE("what is no picture is refused") {
  const std::vector<trace::Pixel> pixels(6);
  for (const std::size_t width : {0, 4})
    CHECK_THAT(
        test::message_of<contract_error>([&] { (void)trace::to_png(width, pixels); }),
        ContainsSubstring(
            "heddle::trace::to_png: a picture needs at least one row, and whole rows of pixels "
            "(6 pixels, "));
  CHECK_THAT(test::message_of<contract_error>([] { (void)trace::to_png(1, {}); }),
             ContainsSubstring("(0 pixels, 1 in a row)"));
}

}  // namespace test_png
