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

  /// The class of a size from 1 to `largest`; see size(). Without a branch, which sizes that come
  /// at random would mislead.
  [[nodiscard]] static constexpr std::uint32_t of(std::size_t bytes) noexcept {
    const std::size_t last = bytes - 1;
    const auto octave = static_cast<std::uint32_t>(std::bit_width(last | 8 * least)) - 4;
    return (octave - 4) * 8 + static_cast<std::uint32_t>(last >> octave);
  }
  /// Likewise, of a block whose address is a multiple of `alignment`, at most a granule: sizes of a
  /// class are multiples of an eighth of their octave, and blocks begin at multiples of their size.
  [[nodiscard]] static constexpr std::uint32_t of(std::size_t bytes,
                                                  std::size_t alignment) noexcept {
    if (alignment > least && bytes <= 8 * alignment)
      bytes = std::bit_ceil(std::max(bytes, alignment));
    return of(bytes);
  }
  /// The size of the blocks of a class: eight in an octave, and below 8 * `least` its multiples.
  [[nodiscard]] static constexpr std::size_t size(std::uint32_t size_class) noexcept {
    const std::uint32_t above = size_class < 8 ? 0 : 1;
    return static_cast<std::size_t>(size_class % 8 + 1 + 8 * above) << (size_class / 8 + 4 - above);
  }
  /// How many there are.
  static constexpr std::uint32_t count = 96;
};

}  // namespace heddle::inline v0::memory::impl
