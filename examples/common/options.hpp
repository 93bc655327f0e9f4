// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Command lines of the examples: `--name value` and `--flag`, with a help text.

#include <charconv>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/near_miss.hpp>
#include <heddle/core/text.hpp>

namespace examples {

/// The options of a program. Add them, then parse.
class Options {
 public:
  explicit Options(std::string about) : m_about(std::move(about)) {}

  /// `--name VALUE`. A number is read whole: `--steps 10x` is an error. A vector of one number
  /// takes several, too: `--name 1,2,1`.
  template <class T>
  void add(std::string name, T& value, std::string help) {
    help += heddle::text(" (default: ", shown(value), ")");
    m_options.push_back({std::move(name), true, std::move(help),
                         [&value, this](std::string_view argument) { read(argument, value); }});
  }
  /// `--name`, which sets `value`.
  void flag(std::string name, bool& value, std::string help) {
    m_options.push_back(
        {std::move(name), false, std::move(help), [&value](std::string_view) { value = true; }});
  }

  /// Reads the command line. Returns false where the help was asked for.
  /// Throws contract_error for an option that is not known or lacks its value, and for a value that
  /// is not what the option takes.
  [[nodiscard]] bool parse(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument == "--help") return false;
      const Option& option = find(argument);
      m_current = option.name;
      m_given.push_back(option.name);
      if (option.takes_value && i + 1 == argc) fail("the option lacks its value", {});
      option.set(option.takes_value ? argv[++i] : "");
    }
    return true;
  }

  /// The names of the options that the command line had.
  [[nodiscard]] const std::vector<std::string>& given() const { return m_given; }

  [[nodiscard]] std::string help() const {
    std::string lines = m_about + "\n\n";
    for (const Option& option : m_options)
      lines += heddle::text("  --", option.name, option.takes_value ? " VALUE" : "",
                            std::string(pad(option), ' '), option.help, "\n");
    return lines;
  }

 private:
  struct Option {
    std::string name;
    bool takes_value;
    std::string help;
    std::function<void(std::string_view)> set;
  };

  static std::size_t pad(const Option& option) {
    const std::size_t length = option.name.size() + (option.takes_value ? 6 : 0);
    return length < 26 ? 26 - length : 2;
  }

  const Option& find(std::string_view argument) const {
    for (const Option& option : m_options)
      if (argument.starts_with("--") && argument.substr(2) == option.name) return option;
    std::vector<std::string> names = {"--help"};
    for (const Option& option : m_options) names.push_back("--" + option.name);
    const std::string meant = heddle::impl::did_you_mean(argument, {names.begin(), names.end()});
    throw heddle::contract_error({"command line",
                                  heddle::text("no option '", argument, "'"),
                                  {},
                                  meant + (meant.empty() ? "" : " ") + "try --help"});
  }

  [[noreturn]] void fail(const char* what, std::string why) const {
    throw heddle::contract_error(
        {"command line", heddle::text("--", m_current, ": ", what), std::move(why), "try --help"});
  }

  template <class T>
  static const T& shown(const T& value) {
    return value;
  }
  template <class T>
  static const T& shown(const std::vector<T>& values) {
    return values.front();
  }

  void read(std::string_view argument, std::string& value) const {
    if (argument.starts_with("--"))
      fail("the option lacks its value", heddle::text("'", argument, "' is an option"));
    value = argument;
  }
  template <class T>
  requires std::integral<T> || std::floating_point<T>
  void read(std::string_view argument, T& value) const {
    const char* const end = argument.data() + argument.size();
    const auto [rest, error] = std::from_chars(argument.data(), end, value);
    if (error != std::errc{} || rest != end) fail("not a number", heddle::text("'", argument, "'"));
  }

  template <class T>
  void read(std::string_view argument, std::vector<T>& values) const {
    values.clear();
    for (bool more = true; more;) {
      const std::string_view piece = argument.substr(0, argument.find(','));
      more = piece.size() < argument.size();
      argument.remove_prefix(piece.size() + more);
      read(piece, values.emplace_back());
    }
  }

  std::string m_about;
  std::string m_current;
  std::vector<std::string> m_given;
  std::vector<Option> m_options;
};

}  // namespace examples
