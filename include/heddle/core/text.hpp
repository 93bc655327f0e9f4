// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// text(): builds the text of messages from pieces.

#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Appends a piece to `out` in the form in which `std::ostream << piece` prints it, but independent
/// of the locale. Other arithmetic types are promoted to one of these.
void append_piece(std::string& out, std::string_view piece);
void append_piece(std::string& out, char piece);
void append_piece(std::string& out, signed char piece);
void append_piece(std::string& out, unsigned char piece);
void append_piece(std::string& out, int piece);
void append_piece(std::string& out, unsigned piece);
void append_piece(std::string& out, long piece);
void append_piece(std::string& out, unsigned long piece);
void append_piece(std::string& out, long long piece);
void append_piece(std::string& out, unsigned long long piece);
void append_piece(std::string& out, double piece);
void append_piece(std::string& out, long double piece);

/// Appends what `print(stream, piece)` writes to a stream.
void append_printed(std::string& out, const void* piece, void (*print)(std::ostream&, const void*));

/// Appends a piece of any type that has an `operator<<` for streams.
template <class Piece>
void append_any(std::string& out, const Piece& piece) {
  if constexpr (std::is_arithmetic_v<Piece> ||
                std::is_convertible_v<const Piece&, std::string_view>)
    append_piece(out, piece);
  else
    append_printed(out, &piece, [](std::ostream& stream, const void* printed) {
      stream << *static_cast<const Piece*>(printed);
    });
}

/// Returns `raw` for a terminal: control characters and bytes that are not UTF-8 become escapes,
/// such as \\n and \\x1b. A backslash stays, so an escaped text stays as it is.
[[nodiscard]] std::string printable(std::string_view raw);

/// Returns the text of a file without the byte order mark of UTF-8 with which editors may begin it.
[[nodiscard]] std::string_view without_mark(std::string_view content);

}  // namespace impl

/// Returns the pieces as text, one after another. A piece is anything that prints with `<<`. The
/// function is meant for messages, so its code is small rather than fast.
template <class... Pieces>
[[nodiscard, gnu::noinline, gnu::cold]] std::string text(const Pieces&... pieces) {
  std::string out;
  (impl::append_any(out, pieces), ...);
  return out;
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/text.ipp>
#endif
