// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Lexer: cuts a C or C++ source into tokens, comments and blanks.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/text.hpp>

namespace tool {

/// No position.
inline constexpr std::size_t none = std::string_view::npos;

/// The classes of characters, without a locale.
[[nodiscard]] inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] inline bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
[[nodiscard]] inline bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] inline bool starts_word(char c) { return is_lower(c) || is_upper(c) || c == '_'; }
[[nodiscard]] inline bool is_word(char c) { return starts_word(c) || is_digit(c); }
[[nodiscard]] inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/// A piece of a source: [begin, end).
struct Token {
  enum class Is { word, number, text, blank, comment, directive, mark } is;
  std::size_t begin, end;
};

/// Cuts C or C++ into tokens, comments and blanks.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : m_source(source) {}

  [[nodiscard]] std::vector<Token> run() const {
    std::vector<Token> tokens;
    bool fresh = true;  // only blanks precede on the line
    for (std::size_t at = 0; at < m_source.size(); at = tokens.back().end) {
      tokens.push_back(next(at, fresh));
      const bool blank = tokens.back().is == Token::Is::blank;
      fresh = blank ? m_source[at] == '\n' || fresh : false;
    }
    return tokens;
  }

 private:
  [[nodiscard]] Token next(std::size_t at, bool fresh) const {
    using enum Token::Is;
    const char c = m_source[at];
    if (is_blank(c) || c == '\n') return {blank, at, at + 1};
    if (c == '/' && (ahead(at) == '/' || ahead(at) == '*')) return {comment, at, comment_end(at)};
    if (c == '#' && fresh) return {directive, at, directive_end(at)};
    if (c == '"' || c == '\'') return {Token::Is::text, at, quoted_end(at)};
    std::size_t end = at + 1;
    if (starts_word(c)) {
      while (end < m_source.size() && is_word(m_source[end])) ++end;
      const std::string_view found = m_source.substr(at, end - at);
      const bool raw =
          found == "R" || found == "LR" || found == "uR" || found == "UR" || found == "u8R";
      if (raw && end < m_source.size() && m_source[end] == '"')
        return {Token::Is::text, at, raw_end(end)};
      return {word, at, end};
    }
    if (!is_digit(c)) return {mark, at, end};
    while (end < m_source.size() && (is_word(m_source[end]) || m_source[end] == '.' ||
                                     (m_source[end] == '\'' && is_word(ahead(end)))))
      ++end;
    return {number, at, end};
  }

  [[nodiscard]] char ahead(std::size_t at) const {
    return at + 1 < m_source.size() ? m_source[at + 1] : '\0';
  }
  /// The end of the line that has `at`, which a backslash carries on.
  [[nodiscard]] std::size_t line_end(std::size_t at) const {
    for (; at < m_source.size(); ++at) {
      if (m_source[at] != '\n') continue;
      const std::size_t last = at >= 2 && m_source[at - 1] == '\r' ? at - 2 : at - 1;
      if (at == 0 || m_source[last] != '\\') return at;
    }
    return at;
  }
  [[nodiscard]] std::size_t comment_end(std::size_t at) const {
    if (m_source[at + 1] == '/') return line_end(at + 1);
    const std::size_t end = m_source.find("*/", at + 2);
    return end == none ? m_source.size() : end + 2;
  }
  /// A comment in a directive may end on a later line.
  [[nodiscard]] std::size_t directive_end(std::size_t at) const {
    std::size_t end = line_end(at);
    for (;;) {
      const std::size_t open = m_source.substr(0, end).find("/*", at);
      if (open == none) return end;
      at = comment_end(open);
      if (at > end) end = line_end(at);
    }
  }
  [[nodiscard]] std::size_t quoted_end(std::size_t at) const {
    const char quote = m_source[at];
    for (++at; at < m_source.size() && m_source[at] != '\n'; ++at) {
      if (m_source[at] == '\\')
        ++at;
      else if (m_source[at] == quote)
        return at + 1;
    }
    return std::min(at, m_source.size());
  }
  /// Returns the end of a raw string whose quote is at `at`.
  [[nodiscard]] std::size_t raw_end(std::size_t at) const {
    const std::size_t open = m_source.find('(', at);
    if (open == none) return m_source.size();
    const std::string close = heddle::text(')', m_source.substr(at + 1, open - at - 1), '"');
    const std::size_t end = m_source.find(close, open);
    return end == none ? m_source.size() : end + close.size();
  }

  std::string_view m_source;
};

/// Returns true for a token that a parser passes over.
[[nodiscard]] inline bool passes(const Token& token) {
  return token.is == Token::Is::blank || token.is == Token::Is::comment;
}

}  // namespace tool
