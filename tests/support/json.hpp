// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A strict JSON reader for tests (RFC 8259): it accepts nothing that the standard does not, so
/// that what it reads other programs read too.

#include <cctype>
#include <charconv>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace heddle::test {

struct Json {
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value = nullptr;

  [[nodiscard]] bool has(std::string_view key) const { return object().contains(key); }
  [[nodiscard]] const Json& operator[](std::string_view key) const {
    const auto found = object().find(key);
    if (found == object().end()) throw std::runtime_error("no member " + std::string(key));
    return found->second;
  }
  [[nodiscard]] double number() const { return std::get<double>(value); }
  [[nodiscard]] const std::string& string() const { return std::get<std::string>(value); }
  [[nodiscard]] const Array& array() const { return std::get<Array>(value); }
  [[nodiscard]] const Object& object() const { return std::get<Object>(value); }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : m_text(text) {}

  Json read() {
    Json json = value();
    space();
    if (m_at != m_text.size()) fail("text after the value");
    return json;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(m_at));
  }
  void space() {
    while (m_at < m_text.size() && std::string_view(" \t\r\n").find(peek()) != std::string::npos)
      ++m_at;
  }
  [[nodiscard]] char peek() const {
    if (m_at == m_text.size()) fail("the text ends");
    return m_text[m_at];
  }
  bool take(std::string_view word) {
    if (m_text.substr(m_at, word.size()) != word) return false;
    m_at += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("no '" + std::string(word) + "'");
  }

  Json value() {
    space();
    switch (peek()) {
      case '{': return object();
      case '[': return array();
      case '"': return {string()};
      case 't': expect("true"); return {true};
      case 'f': expect("false"); return {false};
      case 'n': expect("null"); return {nullptr};
      default: return {number()};
    }
  }
  Json object() {
    Json::Object members;
    expect("{");
    space();
    if (take("}")) return {members};
    do {
      space();
      std::string key = string();
      space();
      expect(":");
      if (!members.emplace(std::move(key), value()).second) fail("a key twice");
      space();
    } while (take(","));
    expect("}");
    return {std::move(members)};
  }
  Json array() {
    Json::Array items;
    expect("[");
    space();
    if (take("]")) return {items};
    do {
      items.push_back(value());
      space();
    } while (take(","));
    expect("]");
    return {std::move(items)};
  }
  std::string string() {
    std::string out;
    expect("\"");
    while (peek() != '"') {
      const char c = m_text[m_at++];
      if (static_cast<unsigned char>(c) < 0x20) fail("a bare control character");
      if (c != '\\') {
        out += c;
        continue;
      }
      const char escape = peek();
      ++m_at;
      constexpr std::string_view names = "\"\\/bfnrt";
      constexpr std::string_view means = "\"\\/\b\f\n\r\t";
      if (const auto which = names.find(escape); which != std::string::npos) {
        out += means[which];
      } else if (escape == 'u') {
        unsigned code = 0;
        const char* from = m_text.data() + m_at;
        if (m_text.size() - m_at < 4 || std::from_chars(from, from + 4, code, 16).ptr != from + 4)
          fail("a bad \\u escape");
        if (code > 0x7f) fail("a \\u escape outside ASCII, which these tests do not need");
        out += static_cast<char>(code);
        m_at += 4;
      } else {
        fail("a bad escape");
      }
    }
    ++m_at;
    return out;
  }
  double number() {
    const std::size_t begin = m_at;
    const auto digits = [&] {
      const std::size_t from = m_at;
      while (m_at < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[m_at]))) ++m_at;
      if (m_at == from) fail("no digit");
      return m_at - from;
    };
    take("-");
    const bool zero = peek() == '0';
    if (digits() > 1 && zero) fail("a leading zero");
    if (take(".")) digits();
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      digits();
    }
    double number = 0;
    std::from_chars(m_text.data() + begin, m_text.data() + m_at, number);
    return number;
  }

  std::string_view m_text;
  std::size_t m_at = 0;
};

[[nodiscard]] inline Json read_json(std::string_view text) { return JsonReader(text).read(); }

}  // namespace heddle::test
