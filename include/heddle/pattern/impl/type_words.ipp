// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of type_words.hpp.

#include <cstddef>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/impl/type_words.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::string number_words(char kind, std::size_t bytes) {
  return text(kind, 8 * bytes);
}

HEDDLE_INLINE std::string class_words(const char* name, std::size_t bytes) {
  return text(name, " of ", bytes, " bytes");
}

}  // namespace heddle::inline v0::impl
