// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of text.hpp.

#include <charconv>
#include <cstddef>
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

// Returns the bytes of the printable character in UTF-8 at the front of `raw`, or 0 if there is
// none.
inline std::size_t printable_bytes(std::string_view raw) {
  const auto byte = [&](std::size_t i) {
    return i < raw.size() ? static_cast<unsigned char>(raw[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0u) != 0x80) return 0;
  const unsigned front = first << 8 | byte(1);
  const bool control = front < 0xc2a0;  // U+0080 to U+009F
  const bool surrogate = front >= 0xeda0 && front <= 0xedbf;
  const bool outside = front < 0xe0a0   ? bytes == 3  // longer than needed
                       : front < 0xf090 ? bytes == 4
                                        : front > 0xf48f;
  return control || surrogate || outside ? 0 : bytes;
}

HEDDLE_INLINE std::string printable(std::string_view raw) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  while (!raw.empty()) {
    const std::size_t bytes = printable_bytes(raw);
    const auto first = static_cast<unsigned char>(raw[0]);
    if (bytes > 0)
      shown += raw.substr(0, bytes);
    else if (first == '\n')
      shown += "\\n";
    else if (first == '\t')
      shown += "\\t";
    else if (first == '\r')
      shown += "\\r";
    else
      (shown += "\\x") += {digits[first / 16], digits[first % 16]};
    raw.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return shown;
}

HEDDLE_INLINE std::string_view without_mark(std::string_view content) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return content.starts_with(mark) ? content.substr(mark.size()) : content;
}

}  // namespace heddle::inline v0::impl
