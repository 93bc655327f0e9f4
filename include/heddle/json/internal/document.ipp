// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// JsonValue: a value of a file, with its place for error messages. It is included by the sources
/// of heddle::json only.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <initializer_list>
#include <ios>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/near_miss.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::json::impl {

using Json = nlohmann::json;

/// The kind of a file: what it holds, and who reads it.
struct FileKind {
  const char* member;  ///< "profile"
  const char* reader;  ///< "heddle::json::read_profile"
};

inline constexpr int format_version = 1;
inline constexpr int deepest = 16;  ///< nested values of a file
inline constexpr const char* unlimited = "unlimited";

/// Throws the format_error of a file. `place` is the path of a member, or empty.
[[noreturn]] inline void refuse(const FileKind& kind, const std::string& file,
                                const std::string& place, const std::string& what,
                                const std::string& why = {}, const std::string& fix = {}) {
  throw format_error(
      {kind.reader, text("'", file, "': ", place, place.empty() ? "" : ": ", what), why, fix});
}

/// A value of a file, and its place.
class JsonValue {
 public:
  JsonValue(const FileKind& kind, const std::string& file, const Json& json, std::string place)
      : m_kind(&kind), m_file(&file), m_json(&json), m_place(std::move(place)) {}

  [[noreturn]] void wrong(const std::string& expected) const {
    std::string got = m_json->dump(-1, ' ', true, Json::error_handler_t::replace);
    if (got.size() > 60) got = got.substr(0, 57) + "...";
    refuse(*m_kind, *m_file, m_place, text("expected ", expected), text("got ", got),
           "correct the member, and remove 'checksum' if the file has one");
  }

  /// Throws the format_error of a value of the right form that does not fit another value.
  [[noreturn]] void mismatch(const std::string& what, const std::string& why,
                             const std::string& fix) const {
    refuse(*m_kind, *m_file, m_place, what, why, fix);
  }
  /// Returns the value as it was parsed.
  [[nodiscard]] const Json& json() const noexcept { return *m_json; }

  /// Checks that this is an object with no other members than these.
  void only(std::initializer_list<std::string_view> names) const {
    if (!m_json->is_object()) wrong("an object");
    for (const auto& item : m_json->items()) {
      if (std::find(names.begin(), names.end(), item.key()) != names.end()) continue;
      std::string fix = heddle::impl::did_you_mean(item.key(), names);
      if (fix.empty()) {
        for (const std::string_view name : names) fix += text(fix.empty() ? "" : ", ", name);
        fix = "the members are " + fix;
      }
      refuse(*m_kind, *m_file, m_place, text("there is no member '", item.key(), "'"), "", fix);
    }
  }
  [[nodiscard]] std::optional<JsonValue> optional(const char* name) const {
    const auto found = m_json->find(name);
    if (found == m_json->end()) return {};
    return JsonValue(*m_kind, *m_file, *found, m_place.empty() ? name : m_place + '.' + name);
  }
  [[nodiscard]] JsonValue member(const char* name) const {
    auto found = optional(name);
    if (!found)
      refuse(*m_kind, *m_file, m_place, text("the member '", name, "' is missing"), "",
             "add it, and remove 'checksum' if the file has one");
    return *std::move(found);
  }
  [[nodiscard]] std::vector<JsonValue> elements() const {
    if (!m_json->is_array()) wrong("a list");
    std::vector<JsonValue> all;
    for (std::size_t i = 0; i < m_json->size(); ++i)
      all.emplace_back(*m_kind, *m_file, (*m_json)[i], text(m_place, '[', i, ']'));
    return all;
  }
  [[nodiscard]] bool null() const { return m_json->is_null(); }

  [[nodiscard]] std::string string() const {
    if (!m_json->is_string()) wrong("a text");
    return m_json->get<std::string>();
  }
  [[nodiscard]] bool boolean() const {
    if (!m_json->is_boolean()) wrong("true or false");
    return m_json->get<bool>();
  }
  /// Returns a finite number of at least 0, or above 0.
  [[nodiscard]] double number(bool positive = false) const {
    const char* expected = positive ? "a number above 0" : "a number of at least 0";
    if (!m_json->is_number()) wrong(expected);
    const auto value = m_json->get<double>();
    if (!(std::isfinite(value) && (positive ? value > 0 : value >= 0))) wrong(expected);
    return value;
  }
  /// Returns a finite number.
  [[nodiscard]] double real() const {
    if (!m_json->is_number() || !std::isfinite(m_json->get<double>())) wrong("a finite number");
    return m_json->get<double>();
  }
  /// Returns a number above 0, or infinity.
  [[nodiscard]] double bandwidth() const {
    if (m_json->is_string() && m_json->get<std::string>() == unlimited)
      return std::numeric_limits<double>::infinity();
    if (!m_json->is_number()) wrong(R"(a number above 0, or "unlimited")");
    return number(true);
  }
  /// Returns a whole number between `least` and `most`; it may be written as 1e9.
  [[nodiscard]] std::uint64_t whole(std::uint64_t least, std::uint64_t most) const {
    std::optional<std::uint64_t> value;
    if (m_json->is_number_unsigned()) {
      value = m_json->get<std::uint64_t>();
    } else if (m_json->is_number_float()) {
      const auto real = m_json->get<double>();
      if (real >= 0 && real <= 0x1p53 && real == std::floor(real))
        value = static_cast<std::uint64_t>(real);
    }
    if (!value || *value < least || *value > most)
      wrong(most == std::numeric_limits<std::uint64_t>::max()
                ? text("a whole number of at least ", least)
                : text("a whole number from ", least, " to ", most));
    return *value;
  }
  [[nodiscard]] std::uint64_t bytes() const {
    return whole(0, std::numeric_limits<std::uint64_t>::max());
  }
  [[nodiscard]] int count(int least, int most = std::numeric_limits<int>::max()) const {
    return static_cast<int>(
        whole(static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most)));
  }

 private:
  const FileKind* m_kind;
  const std::string* m_file;
  const Json* m_json;
  std::string m_place;
};

/// Returns the text that the checksum is computed of.
[[nodiscard]] inline std::string canonical(const Json& json) { return json.dump(); }

[[nodiscard]] inline std::string checksum_of(const Json& json) {
  const std::string content = canonical(json);
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(content.data(), content.size())));
  std::string digits(8, '0');
  char hexadecimal[8];
  const auto end = std::to_chars(hexadecimal, hexadecimal + 8, sum, 16).ptr;
  std::copy(hexadecimal, end, digits.end() - (end - hexadecimal));
  return "crc32c:" + digits;
}

/// A file that was read: the value, whose format, version and checksum are right.
class JsonDocument {
 public:
  JsonDocument(const FileKind& kind, std::string_view content, std::string file)
      : m_kind(kind), m_file(std::move(file)), m_json(parsed(content)) {
    const JsonValue whole(m_kind, m_file, m_json, "");
    const std::string format = text("heddle-", kind.member);
    if (!m_json.is_object()) whole.wrong("an object");
    const auto found = m_json.find("format");
    if (found == m_json.end() || *found != format)
      refuse(m_kind, m_file, "format", text("this is no file of a ", kind.member),
             found == m_json.end() ? "there is no member 'format'" : text("it is ", found->dump()),
             text("a file of a ", kind.member, R"( has "format": ")", format, '"'));
    const std::uint64_t version = whole.member("version").bytes();
    if (version != format_version)
      refuse(m_kind, m_file, "version",
             text("the file has version ", version, ", and this release reads version ",
                  format_version),
             "",
             version > format_version ? "use a newer release of Heddle"
                                      : "write the file again by this release");
    whole.only({"format", "version", "checksum", kind.member});
    const JsonValue value = whole.member(kind.member);
    if (const auto checksum = whole.optional("checksum")) {
      const std::string is = checksum_of(m_json[kind.member]);
      if (checksum->string() != is)
        refuse(m_kind, m_file, "checksum", "the file is damaged or was edited",
               text("its checksum is ", is, ", expected ", checksum->string()),
               "copy the file again; if it was edited on purpose, remove 'checksum'");
    }
  }

  /// Returns the value that the file holds.
  [[nodiscard]] JsonValue value() const {
    return {m_kind, m_file, m_json[m_kind.member], m_kind.member};
  }
  /// Returns what `make()` returns, and names the file if it throws contract_error.
  template <class Make>
  [[nodiscard]] auto checked(Make&& make) const {
    try {
      return make();
    } catch (const contract_error& error) {
      const ErrorInfo& info = error.complaint();
      refuse(m_kind, m_file, m_kind.member, info.what, info.why,
             info.fix.empty() ? "correct it, and remove 'checksum' if the file has one" : info.fix);
    }
  }

 private:
  [[nodiscard]] Json parsed(std::string_view content) const {
    std::vector<std::set<std::string>> names;
    std::string twice;
    bool deep = false;
    const auto look = [&](int depth, Json::parse_event_t event, Json& json) {
      using enum Json::parse_event_t;
      if (depth > deepest) deep = true;
      if (event == object_start) names.emplace_back();
      if (event == object_end && !names.empty()) names.pop_back();
      if (event == key && !names.empty() && !names.back().insert(json.get<std::string>()).second)
        twice = json.get<std::string>();
      return depth <= deepest;
    };
    Json json;
    try {
      json = Json::parse(content.begin(), content.end(), look);
    } catch (const Json::exception& error) {
      refuse(m_kind, m_file, "", "the file is not JSON, or it is incomplete", error.what(),
             "copy it again, or correct that place");
    }
    if (deep) refuse(m_kind, m_file, "", text("values are nested deeper than ", deepest));
    if (!twice.empty())
      refuse(m_kind, m_file, "", text("a member '", twice, "' is given twice"), "",
             "remove one of them");
    return json;
  }

  FileKind m_kind;
  std::string m_file;
  Json m_json;
};

[[nodiscard]] inline std::string content_of(const FileKind& kind, const std::string& path) {
  std::string why;
  try {
    std::ifstream in(path, std::ios::binary);
    if (in.is_open()) return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  } catch (const std::ios_base::failure& error) {  // a folder, or a broken disk
    why = error.what();
  }
  refuse(kind, path, "", "the file cannot be read", why, "check its name and permissions");
}

/// Appends `json` to `out`: in one line if it fits, else a line for each member or element.
inline void print(std::string& out, const Json& json, std::size_t indent) {
  constexpr std::size_t columns = 100;
  std::string line = json.dump();
  if (line.size() + indent <= columns || !json.is_structured()) {
    out += line;
    return;
  }
  const bool list = json.is_array();
  out += list ? '[' : '{';
  bool first = true;
  for (const auto& item : json.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 2, ' ');
    if (!list) out += Json(item.key()).dump() + ": ";
    print(out, item.value(), indent + 2);
  }
  out += '\n';
  out.append(indent, ' ');
  out += list ? ']' : '}';
}

/// Returns the text that `make()` returns. @throws contract_error in the name of `writer` if it
/// cannot write a name.
template <class Make>
[[nodiscard]] std::string in_utf8(const char* writer, Make&& make) {
  try {
    return make();
  } catch (const Json::exception& error) {
    throw contract_error({writer, "a name is not valid UTF-8", error.what(), "use another name"});
  }
}

/// Returns the text of a file that holds `value`. `parse(content, name)` reads such a file.
/// @throws contract_error as in_utf8(), or if the file could not be read.
template <class Parse>
[[nodiscard]] std::string file_text(const FileKind& kind, const char* writer, Json value,
                                    Parse&& parse) {
  std::string content = in_utf8(writer, [&] {
    Json file;
    file["format"] = text("heddle-", kind.member);
    file["version"] = format_version;
    file["checksum"] = checksum_of(value);
    file[kind.member] = std::move(value);
    std::string out;
    print(out, file, 0);
    return out + '\n';
  });
  try {
    static_cast<void>(parse(content, "the file"));
  } catch (const format_error& error) {
    const ErrorInfo& info = error.complaint();
    throw contract_error({writer, "a file of this value could not be read: " + info.what, info.why,
                          text("give a ", kind.member, " within these limits")});
  }
  return content;
}

}  // namespace heddle::inline v0::json::impl
