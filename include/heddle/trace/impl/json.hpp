// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Appends JSON to a string. Traces have millions of events, so there is neither a tree nor a
/// stream.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <heddle/trace/internal/number.hpp>

namespace heddle::inline v0::trace::impl {

/// Appends `raw` between quotes and escapes it as RFC 8259 requires. Bytes above 127 are taken for
/// UTF-8 and kept.
inline void append_json(std::string& out, std::string_view raw) {
  constexpr const char* hex = "0123456789abcdef";
  out += '"';
  for (const char c : raw) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += hex[c >> 4];
          out += hex[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

/// Returns a number as 16 hexadecimal digits.
[[nodiscard]] inline std::string hex_text(std::uint64_t number) {
  std::string out(16, '0');
  for (std::size_t digit = 16; digit-- > 0; number >>= 4)
    out[digit] = "0123456789abcdef"[number & 15];
  return out;
}

/// Appends an object member by member. Keys are literals of this library and need no escape.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : m_out(out) { m_out += '{'; }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;
  ~JsonObject() { m_out += '}'; }

  JsonObject& member(std::string_view key, std::string_view value) {
    name(key);
    append_json(m_out, value);
    return *this;
  }
  JsonObject& member(std::string_view key, std::integral auto value) {
    name(key);
    append(m_out, value);
    return *this;
  }
  /// Appends nanoseconds as microseconds, the unit of trace events, always with three decimals.
  JsonObject& microseconds(std::string_view key, std::int64_t nanoseconds) {
    name(key);
    append(m_out, nanoseconds / 1000);
    const auto rest = static_cast<int>(nanoseconds % 1000);
    m_out += '.';
    m_out += static_cast<char>('0' + rest / 100);
    m_out += static_cast<char>('0' + rest / 10 % 10);
    m_out += static_cast<char>('0' + rest % 10);
    return *this;
  }
  /// Appends `key` and returns the string, to which the caller appends the value.
  std::string& value(std::string_view key) {
    name(key);
    return m_out;
  }

 private:
  void name(std::string_view key) {
    if (m_out.back() != '{') m_out += ',';
    m_out.append("\"").append(key).append("\":");
  }

  std::string& m_out;
};

}  // namespace heddle::inline v0::trace::impl
