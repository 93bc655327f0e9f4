// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// crc32c(): the checksum of Heddle's binary files. It detects every error burst of at most 32
/// bits, and any three wrong bits in a file of at most 256 MB.

#include <cstddef>
#include <cstdint>
#include <span>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// Returns the CRC-32C of `bytes` (the Castagnoli polynomial, reflected; RFC 3720, appendix B.4).
/// It continues the checksum `before` of the bytes in front of them. The function treats eight
/// bytes at a time, as Kounavis and Berry, "Novel table lookup-based algorithms for
/// high-performance CRC generation", 2008.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before = 0) noexcept;

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/checksum.ipp>
#endif
