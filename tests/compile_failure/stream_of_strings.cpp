// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::stream: tokens are trivially copyable and aligned to at most 64 bytes

/// @file
/// Tokens change threads as bytes: a string would be freed twice.

#include <cstdint>
#include <optional>
#include <string>

#include <heddle/execute.hpp>

#ifdef HEDDLE_OK
using Token = int;
#else
using Token = std::string;
#endif

std::uint64_t use() {
  return heddle::stream(
      {}, [] { return std::optional<Token>(); }, [](const Token&) {});
}
