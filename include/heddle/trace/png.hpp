// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_png(): encodes pixels as a PNG file. It needs no library, because the data is not compressed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::trace {

/// A colour. Each part is 0 to 255.
struct Pixel {
  std::uint8_t red = 0;    ///< the red part
  std::uint8_t green = 0;  ///< the green part
  std::uint8_t blue = 0;   ///< the blue part
};

/// Returns the PNG file of a picture that is `width` pixels wide. The rows are ordered from the
/// top, and their pixels from the left.
/// @throws contract_error if there are no pixels, if a side is above 2^31 - 1, or if the last row
///         is not complete.
[[nodiscard]] std::string to_png(std::size_t width, std::span<const Pixel> pixels);

}  // namespace heddle::inline v0::trace

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/png.ipp>
#endif
