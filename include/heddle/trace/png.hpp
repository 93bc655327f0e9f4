// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_png(): pixels as a PNG file, without a library: its data is stored, not compressed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// A colour, 0 to 255 each.
struct Pixel {
  std::uint8_t red = 0;    ///< of it
  std::uint8_t green = 0;  ///< likewise
  std::uint8_t blue = 0;   ///< likewise
};

/// The file of a picture `width` pixels wide, of rows from the top, each from the left.
/// @throws contract_error for no pixels, a side above 2^31 - 1, or rows that are not whole.
[[nodiscard]] std::string to_png(std::size_t width, std::span<const Pixel> pixels);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/png.ipp>
#endif
