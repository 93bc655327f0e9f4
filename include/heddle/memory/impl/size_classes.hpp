// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The sizes that small and middle blocks of a pool are rounded up to: eight in every octave, so
/// that no more than an eighth of a block is lost.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heddle::inline v0::memory::impl {

/// What addresses and sizes of everything but small blocks are multiples of.
inline constexpr std::size_t granule = 1024;
/// So many bytes in whole granules.
[[nodiscard]] constexpr std::size_t whole(std::size_t bytes) noexcept {
  return (bytes + granule - 1) / granule * granule;
}

/// Small blocks share slabs, middle ones are whole granules and kept by threads for a while, larger
/// ones go back at once.
struct SizeClasses {
  static constexpr std::size_t least = 16;
  static constexpr std::size_t largest_small = std::size_t{8} << 10;
  static constexpr std::size_t largest = std::size_t{256} << 10;

  /// The class of a size from 1 to `largest`; see size().
  [[nodiscard]] static constexpr std::uint32_t of(std::size_t bytes) noexcept {
    if (bytes <= 8 * least) return static_cast<std::uint32_t>((bytes - 1) / least);
    const auto octave = static_cast<std::uint32_t>(std::bit_width(bytes - 1)) - 4;
    return (octave - 4) * 8 + static_cast<std::uint32_t>((bytes - 1) >> octave);
  }
  /// Likewise, of a block whose address is a multiple of `alignment`, at most a granule: sizes of a
  /// class are multiples of an eighth of their octave, and blocks begin at multiples of their size.
  [[nodiscard]] static constexpr std::uint32_t of(std::size_t bytes,
                                                  std::size_t alignment) noexcept {
    if (alignment > least && bytes <= 8 * alignment)
      bytes = std::bit_ceil(std::max(bytes, alignment));
    return of(bytes);
  }
  /// The size of the blocks of a class.
  [[nodiscard]] static constexpr std::size_t size(std::uint32_t size_class) noexcept {
    if (size_class < 8) return (size_class + 1) * least;
    const std::uint32_t octave = size_class / 8 + 3;
    return static_cast<std::size_t>(size_class % 8 + 9) << octave;
  }
  /// How many there are.
  static constexpr std::uint32_t count = 96;
};

}  // namespace heddle::inline v0::memory::impl
