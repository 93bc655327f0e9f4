// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Builds the text of messages. Everything that prints with `<<` can be a piece.

#include <sstream>
#include <string>

namespace heddle::inline v0 {

/// The pieces, printed one after another. For people to read, so it is kept small, not fast.
template <class... Pieces>
[[nodiscard, gnu::noinline, gnu::cold]] std::string text(const Pieces&... pieces) {
  std::ostringstream out;
  (out << ... << pieces);
  return std::move(out).str();
}

}  // namespace heddle::inline v0
