// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Json: builds the answers of the explorer.

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/trace/impl/json.hpp>

namespace tool {

/// Builds JSON. A number is the shortest text that reads back as the same double.
class Json {
 public:
  explicit Json(char open) : m_out(1, open) {}
  [[nodiscard]] std::string close() {
    return std::move(m_out) + (m_out.front() == '{' ? '}' : ']');
  }

  template <class Value>
  Json& add(std::string_view key, const Value& value) {
    separate();
    heddle::trace::impl::append_json(m_out, key);
    m_out += ':';
    put(value);
    return *this;
  }
  template <class Value>
  Json& add(const Value& value) {
    separate();
    put(value);
    return *this;
  }

 private:
  void separate() {
    if (m_out.size() > 1) m_out += ',';
  }
  void put(std::string_view value) { heddle::trace::impl::append_json(m_out, value); }
  void put(const std::string& value) { heddle::trace::impl::append_json(m_out, value); }
  void put(const char* value) { heddle::trace::impl::append_json(m_out, value); }
  void put(bool value) { m_out += value ? "true" : "false"; }
  void put(std::integral auto value) { heddle::trace::impl::append(m_out, value); }
  void put(double value) {
    char digits[32];
    m_out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }
  void put(const Json& value) {
    m_out += value.m_out;
    m_out += value.m_out.front() == '{' ? '}' : ']';
  }
  template <class Value>
  void put(const std::vector<Value>& values) {
    Json list('[');
    for (const Value& value : values) list.add(value);
    put(list);
  }

  std::string m_out;
};

}  // namespace tool
