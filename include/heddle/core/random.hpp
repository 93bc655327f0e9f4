// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counter-based random numbers. Each number is a function of (seed, name, index). It therefore
/// does not depend on the rank, thread or schedule that computes it, and there is no generator
/// state. Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11).

#include <array>
#include <cstdint>
#include <string_view>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// Returns the 64-bit FNV-1a hash of `bytes`. It makes keys from names and checksums of text files.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t hash = 0xcbf29ce484222325u) noexcept {
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3u;
  }
  return hash;
}

namespace impl {

/// Applies ten rounds of Philox to a 128-bit counter with a 64-bit key.
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

}  // namespace impl

/// The random stream of a seed and a name. It has no state: calls do not change it.
class Random {
 public:
  /// Constructs the stream `name` of a seed. Streams with different names are independent.
  constexpr Random(std::uint64_t seed, std::string_view name) noexcept
      : m_seed(seed), m_name(fnv1a(name)) {}

  /// Returns 64 uniform random bits for `index`.
  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t index) const noexcept {
    const auto word = impl::philox(
        {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
         static_cast<std::uint32_t>(m_name), static_cast<std::uint32_t>(m_name >> 32)},
        {static_cast<std::uint32_t>(m_seed), static_cast<std::uint32_t>(m_seed >> 32)});
    return (std::uint64_t{word[1]} << 32) | word[0];
  }

  /// Returns a number that is uniform in [0, 1), with 53 random bits.
  [[nodiscard]] constexpr double uniform(std::uint64_t index) const noexcept {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }

  /// Returns a number that is uniform in [0, bound), bound > 0. The bias is below bound / 2^64.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t index,
                                              std::uint64_t bound) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{bits(index)} * bound) >> 64);
  }

  /// Returns a standard normal number, by Box-Muller from the two halves of bits(index).
  [[nodiscard]] double normal(std::uint64_t index) const noexcept;

 private:
  std::uint64_t m_seed;
  std::uint64_t m_name;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/random.ipp>
#endif
