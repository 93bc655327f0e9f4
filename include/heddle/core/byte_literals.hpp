// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Literals of sizes: after `using namespace heddle::byte_literals`, `8_MiB` is a number of Bytes.

#include <heddle/core/units.hpp>

namespace heddle::inline v0::byte_literals {

/// Returns kibibytes (1024 bytes) in bytes. Does not compile if they do not fit.
[[nodiscard]] consteval Bytes operator""_KiB(unsigned long long count) {
  return count <= (~Bytes{0} >> 10) ? Bytes{count} << 10
                                    : throw "heddle::byte_literals: the size is too large";
}
/// Returns mebibytes (1024 KiB) in bytes. Does not compile if they do not fit.
[[nodiscard]] consteval Bytes operator""_MiB(unsigned long long count) {
  return count <= (~Bytes{0} >> 20) ? Bytes{count} << 20
                                    : throw "heddle::byte_literals: the size is too large";
}
/// Returns gibibytes (1024 MiB) in bytes. Does not compile if they do not fit.
[[nodiscard]] consteval Bytes operator""_GiB(unsigned long long count) {
  return count <= (~Bytes{0} >> 30) ? Bytes{count} << 30
                                    : throw "heddle::byte_literals: the size is too large";
}

}  // namespace heddle::inline v0::byte_literals
