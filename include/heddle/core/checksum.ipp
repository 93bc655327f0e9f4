// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of checksum.hpp.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <heddle/core/checksum.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

namespace impl {

// tables[k][b] is the remainder of byte b followed by k bytes of zeros.
using ChecksumTables = std::array<std::array<std::uint32_t, 256>, 8>;

[[nodiscard]] constexpr ChecksumTables checksum_tables() {
  ChecksumTables tables = {};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? 0x82f63b78u : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

inline constexpr ChecksumTables checksum_table = checksum_tables();

}  // namespace impl

HEDDLE_INLINE std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before) noexcept {
  const impl::ChecksumTables& table = impl::checksum_table;
  std::uint32_t rest = ~before;
  if constexpr (std::endian::native == std::endian::little) {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      std::uint32_t low = 0, high = 0;
      std::memcpy(&low, bytes.data(), 4);
      std::memcpy(&high, bytes.data() + 4, 4);
      low ^= rest;
      rest = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
             table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
             table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
  }
  for (const std::byte byte : bytes)
    rest = rest >> 8 ^ table[0][(rest ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return ~rest;
}

}  // namespace heddle::inline v0
