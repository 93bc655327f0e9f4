// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SizeClasses: the sizes to which a pool rounds up small and medium blocks. There are eight in
/// each octave, so that at most an eighth of a block is lost.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heddle::inline v0::memory::impl {

/// The unit of addresses and sizes of all blocks but small ones, in bytes.
inline constexpr std::size_t granule = 1024;
/// Rounds `bytes` up to whole granules.
[[nodiscard]] constexpr std::size_t whole(std::size_t bytes) noexcept {
  return (bytes + granule - 1) / granule * granule;
}

/// The size classes. Small blocks share slabs. Medium blocks are whole granules, and threads cache
/// them. Larger blocks are not cached.
struct SizeClasses {
  static constexpr std::size_t least = 16;
  static constexpr std::size_t largest_small = std::size_t{8} << 10;
  static constexpr std::size_t largest = std::size_t{256} << 10;

  /// Returns the class of a size from 1 to `largest`; see size(). It is branchless, because random
  /// sizes would be mispredicted.
  [[nodiscard]] static constexpr std::uint32_t of(std::size_t bytes) noexcept {
    const std::size_t last = bytes - 1;
    const auto octave = static_cast<std::uint32_t>(std::bit_width(last | 8 * least)) - 4;
    return (octave - 4) * 8 + static_cast<std::uint32_t>(last >> octave);
  }
  /// Returns the class of a block that is aligned to `alignment`, at most a granule. The sizes of a
  /// class are multiples of an eighth of their octave, and blocks begin at multiples of their size.
  [[nodiscard]] static constexpr std::uint32_t of(std::size_t bytes,
                                                  std::size_t alignment) noexcept {
    if (alignment > least && bytes <= 8 * alignment)
      bytes = std::bit_ceil(std::max(bytes, alignment));
    return of(bytes);
  }
  /// Returns the block size of a class: eight sizes in each octave, and multiples of `least` below
  /// 8 * `least`.
  [[nodiscard]] static constexpr std::size_t size(std::uint32_t size_class) noexcept {
    const std::uint32_t above = size_class < 8 ? 0 : 1;
    return static_cast<std::size_t>(size_class % 8 + 1 + 8 * above) << (size_class / 8 + 4 - above);
  }
  /// The number of classes.
  static constexpr std::uint32_t count = 96;
};

/// The classes of the blocks in slabs: the small size classes, and 32 sizes in each octave from 512
/// B to 32 KiB for a process whose memory is scarce. No thread caches blocks of these fine classes.
struct SlabClasses {
  static constexpr std::uint32_t small = SizeClasses::of(SizeClasses::largest_small) + 1;
  static constexpr std::size_t below_fine = 512, largest_fine = std::size_t{32} << 10;
  static constexpr std::uint32_t count = small + 6 * 32;

  /// Returns the fine class of a size above `below_fine` and up to `largest_fine`.
  [[nodiscard]] static constexpr std::uint32_t fine(std::size_t bytes) noexcept {
    const std::size_t last = bytes - 1;
    const auto octave = static_cast<std::uint32_t>(std::bit_width(last)) - 10;
    return small + octave * 32 + static_cast<std::uint32_t>(last >> (octave + 4)) - 32;
  }
  /// Returns the block size of a class.
  [[nodiscard]] static constexpr std::size_t size(std::uint32_t slab_class) noexcept {
    if (slab_class < small) return SizeClasses::size(slab_class);
    const std::uint32_t fine = slab_class - small;
    return static_cast<std::size_t>(fine % 32 + 33) << (fine / 32 + 4);
  }
};

}  // namespace heddle::inline v0::memory::impl
