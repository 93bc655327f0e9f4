// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Request: what the explorer's page asks.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace tool {

/// Throws the contract_error of a request.
[[noreturn]] inline void wrong(std::string what, std::string why = {}, std::string fix = {}) {
  throw heddle::contract_error({"explorer", std::move(what), std::move(why), std::move(fix)});
}

/// The pairs of a request.
class Request {
 public:
  explicit Request(std::string_view text) {
    while (!text.empty()) {
      const std::string_view pair = text.substr(0, text.find('&'));
      text.remove_prefix(std::min(text.size(), pair.size() + 1));
      const std::size_t sign = pair.find('=');
      if (sign == std::string_view::npos) wrong("a request has no '='", std::string(pair));
      m_values.insert_or_assign(pair.substr(0, sign), pair.substr(sign + 1));
    }
  }

  [[nodiscard]] bool has(std::string_view key) const { return m_values.contains(key); }
  [[nodiscard]] std::string_view text(std::string_view key) const {
    const auto found = m_values.find(key);
    return found == m_values.end() ? std::string_view() : found->second;
  }
  void read(std::string_view key, int& value) const {
    if (has(key)) value = static_cast<int>(whole(key, -1'000'000'000, 1'000'000'000));
  }
  void read(std::string_view key, heddle::Bytes& value) const {
    if (has(key)) value = static_cast<heddle::Bytes>(whole(key, 0, 1'000'000'000'000'000));
  }
  void read(std::string_view key, bool& value) const {
    if (has(key)) value = text(key) == "1";
  }
  void read(std::string_view key, double& value) const {
    if (has(key)) value = real(key, text(key));
  }
  void read(std::string_view key, std::vector<double>& values) const {
    if (!has(key)) return;
    values.clear();
    for (std::string_view rest = text(key);;) {
      const std::string_view one = rest.substr(0, rest.find(','));
      values.push_back(real(key, one));
      if (one.size() == rest.size()) return;
      rest.remove_prefix(one.size() + 1);
    }
  }

 private:
  [[nodiscard]] std::int64_t whole(std::string_view key, std::int64_t least,
                                   std::int64_t most) const {
    const std::string_view digits = text(key);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < least ||
        value > most)
      wrong(heddle::text(key, " is not a whole number from ", least, " to ", most),
            heddle::text("'", digits, "'"));
    return value;
  }
  // libc++ reads no floating-point numbers with from_chars.
  [[nodiscard]] static double real(std::string_view key, std::string_view digits) {
    const std::string copy(digits);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (copy.empty() || end != copy.c_str() + copy.size() || !std::isfinite(value))
      wrong(heddle::text(key, " is not a number"), "'" + copy + "'");
    return value;
  }

  std::map<std::string_view, std::string_view> m_values;
};

}  // namespace tool
