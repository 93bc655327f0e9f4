// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Builds the text of messages. Everything that prints with `<<` can be a piece.

#include <sstream>
#include <string>

namespace heddle::inline v0 {

/// The pieces, printed one after another.
template <class... Pieces>
[[nodiscard]] std::string text(const Pieces&... pieces) {
  std::ostringstream out;
  (out << ... << pieces);
  return std::move(out).str();
}

}  // namespace heddle::inline v0
