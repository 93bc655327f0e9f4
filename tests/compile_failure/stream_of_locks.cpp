// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::stream: tokens are movable

/// @file
/// Tokens move from stage to stage, and what cannot be moved is no token.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <heddle/execute.hpp>

#ifdef HEDDLE_OK
using Token = std::string;
#else
using Token = std::mutex;
#endif

std::uint64_t use() {
  return heddle::stream(
      {}, [] { return std::optional<Token>(); }, [](const Token&) {});
}
