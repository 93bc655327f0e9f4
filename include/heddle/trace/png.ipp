// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of png.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/trace/png.hpp>

namespace heddle::inline v0::trace {

namespace impl {

// Returns the four bytes of a number, the highest first.
[[nodiscard]] inline std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

// Returns a chunk of a PNG file: length, name, data, and the CRC-32 of the two (ISO/IEC 15948, 5.3,
// D).
[[nodiscard]] inline std::string png_chunk(std::string name, std::string_view data) {
  const std::string length = big_endian(static_cast<std::uint32_t>(data.size()));
  name += data;
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : name) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  return length + name + big_endian(~crc);
}

// Returns a zlib stream of stored blocks (RFC 1950; RFC 1951, 3.2.4).
[[nodiscard]] inline std::string zlib_stored(std::string_view data) {
  constexpr std::size_t most = 65535;
  std::uint32_t a = 1, b = 0;  // Adler-32
  for (const char byte : data) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  std::string stream = "\x78\x01";
  do {
    const std::size_t length = std::min(most, data.size());
    const bool last = length == data.size();
    stream += static_cast<char>(last);
    for (const std::size_t number : {length, ~length})  // the lower byte first
      for (const int shift : {0, 8}) stream += static_cast<char>(number >> shift & 0xff);
    stream += data.substr(0, length);
    data.remove_prefix(length);
  } while (!data.empty());
  return stream + big_endian(b << 16 | a);
}

}  // namespace impl

HEDDLE_INLINE std::string to_png(std::size_t width, std::span<const Pixel> pixels) {
  constexpr std::size_t most = 0x7fffffff;
  expects(width > 0 && width <= most && !pixels.empty() && pixels.size() % width == 0 &&
              pixels.size() / width <= most,
          [&] {
            return ErrorInfo{"heddle::trace::to_png",
                             "a picture needs at least one row, and whole rows of pixels",
                             text(pixels.size(), " pixels, ", width, " in a row")};
          });
  std::string rows;
  rows.reserve(pixels.size() * 3 + pixels.size() / width);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    if (i % width == 0) rows += '\0';  // of no filter
    for (const std::uint8_t part : {pixels[i].red, pixels[i].green, pixels[i].blue})
      rows += static_cast<char>(part);
  }
  const std::string size = impl::big_endian(static_cast<std::uint32_t>(width)) +
                           impl::big_endian(static_cast<std::uint32_t>(pixels.size() / width));
  // 8 bits of red, green and blue; the usual compression and filters, not interlaced.
  const std::string form("\x08\x02\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" + impl::png_chunk("IHDR", size + form) +
         impl::png_chunk("IDAT", impl::zlib_stored(rows)) + impl::png_chunk("IEND", {});
}

}  // namespace heddle::inline v0::trace
