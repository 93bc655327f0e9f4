// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of text.hpp.

#include <charconv>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::impl {

// `format` is empty for integers; for others it is a std::chars_format and a number of digits.
template <class Number, class... Format>
void append_number(std::string& out, Number number, Format... format) {
  char digits[64];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number, format...).ptr);
}

HEDDLE_INLINE void append_piece(std::string& out, std::string_view piece) { out += piece; }
HEDDLE_INLINE void append_piece(std::string& out, char piece) { out += piece; }
HEDDLE_INLINE void append_piece(std::string& out, signed char piece) {
  out += static_cast<char>(piece);
}
HEDDLE_INLINE void append_piece(std::string& out, unsigned char piece) {
  out += static_cast<char>(piece);
}
HEDDLE_INLINE void append_piece(std::string& out, int piece) { append_number(out, piece); }
HEDDLE_INLINE void append_piece(std::string& out, unsigned piece) { append_number(out, piece); }
HEDDLE_INLINE void append_piece(std::string& out, long piece) { append_number(out, piece); }
HEDDLE_INLINE void append_piece(std::string& out, unsigned long piece) {
  append_number(out, piece);
}
HEDDLE_INLINE void append_piece(std::string& out, long long piece) { append_number(out, piece); }
HEDDLE_INLINE void append_piece(std::string& out, unsigned long long piece) {
  append_number(out, piece);
}
// Six significant digits, as streams have them.
HEDDLE_INLINE void append_piece(std::string& out, double piece) {
  append_number(out, piece, std::chars_format::general, 6);
}
HEDDLE_INLINE void append_piece(std::string& out, long double piece) {
  append_number(out, piece, std::chars_format::general, 6);
}

HEDDLE_INLINE void append_printed(std::string& out, const void* piece,
                                  void (*print)(std::ostream&, const void*)) {
  std::ostringstream stream;
  print(stream, piece);
  out += stream.str();  // libc++ 16 has no view()
}

}  // namespace heddle::inline v0::impl
