// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counter-based random numbers: every number is f(seed, name, index), so nothing depends on the
/// rank, thread or schedule that asks for it, and no generator has to be carried around.
/// Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace heddle::inline v0 {

/// 64-bit FNV-1a hash: names to keys, and checksums of the files we write.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t hash = 0xcbf29ce484222325u) noexcept {
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3u;
  }
  return hash;
}

/// Ten rounds of Philox on a 128-bit counter and a 64-bit key.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The random stream that belongs to a seed and a name. Copies are free; calls do not change it.
class Random {
 public:
  /// The stream `name` of a seed; streams of other names are independent of it.
  constexpr Random(std::uint64_t seed, std::string_view name) noexcept
      : m_seed(seed), m_name(fnv1a(name)) {}

  /// 64 uniform bits for `index`.
  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t index) const noexcept {
    const auto word =
        philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                static_cast<std::uint32_t>(m_name), static_cast<std::uint32_t>(m_name >> 32)},
               {static_cast<std::uint32_t>(m_seed), static_cast<std::uint32_t>(m_seed >> 32)});
    return (std::uint64_t{word[1]} << 32) | word[0];
  }

  /// Uniform in [0, 1), 53 random bits.
  [[nodiscard]] constexpr double uniform(std::uint64_t index) const noexcept {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }

  /// Uniform in [0, bound) for bound > 0; the bias is below bound / 2^64.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t index,
                                              std::uint64_t bound) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{bits(index)} * bound) >> 64);
  }

  /// Standard normal (Box-Muller on the two halves of `index`'s bits).
  [[nodiscard]] double normal(std::uint64_t index) const noexcept {
    const std::uint64_t word = bits(index);
    const double radius = (static_cast<double>(word >> 32) + 1.0) * 0x1p-32;  // (0, 1]
    const double angle = static_cast<double>(word & 0xffffffffu) * 0x1p-32;
    return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
  }

 private:
  std::uint64_t m_seed;
  std::uint64_t m_name;
};

}  // namespace heddle::inline v0
