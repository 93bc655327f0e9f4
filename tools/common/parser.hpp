// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CommandLine::Parser: what command_line.cpp keeps of a command line. No other source includes it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/internal/near_miss.hpp>
#include <heddle/core/text.hpp>

#include "command_line.hpp"

namespace tool {

using heddle::text;

struct CommandLine::Parser {
  struct Command {
    std::unique_ptr<CommandLine> line;
    Action action;
  };

  std::string name;                        ///< with the program's before it
  std::unique_ptr<CLI::App> program = {};  ///< of the program's command line, which owns the others
  CLI::App* app = nullptr;
  std::vector<Command> commands = {};
  std::vector<InputTarget> inputs = {};
  std::vector<const std::string*> outputs = {};
  /// The options of times and rates.
  struct Times {
    std::vector<std::pair<std::string, TimeTarget>> all = {};
    std::map<std::string, bool> unit = {};  ///< by option, if it is given and not 0
    bool any = false;                       ///< one of them has a unit
  };
  Times times = {};

  /// Replaces `-` among the input files. @throws usage_error if several files are `-`, or if only
  /// some of the times have a unit.
  void settle(const CommandLine& line) const {
    std::ptrdiff_t read = 0;
    const auto replace = [&read](std::string& file) {
      if (file != "-") return;
      file = "/dev/stdin";
      ++read;
    };
    for (const InputTarget& target : inputs)
      if (auto* const* one = std::get_if<std::string*>(&target))
        replace(**one);
      else
        std::ranges::for_each(*std::get<std::vector<std::string>*>(target), replace);
    if (read > 1) throw line.error("the standard input is one file", "name the other ones");
    if (std::ranges::count_if(outputs, [](const std::string* file) { return *file == "-"; }) > 1)
      throw line.error("the standard output is one file", "name the other ones");
    if (!line.has_units()) return;
    for (const auto& [option, target] : times.all) {
      const auto given = times.unit.find(option);
      const auto zero = [](double value) { return value == 0; };
      const bool none = std::holds_alternative<double*>(target)
                            ? zero(*std::get<double*>(target))
                            : std::ranges::all_of(*std::get<std::vector<double>*>(target), zero);
      if (!none && (given == times.unit.end() || !given->second))
        throw line.error(text(option, " has no unit, and other times have one"),
                         "give all times units, such as 5ms, or none");
    }
  }

  /// The name of the program is `other` from now on.
  void rename(const std::string& other) {
    for (const Command& command : commands)
      command.line->m_parser->name.replace(0, name.size(), other);
    name = other;
    app->name(other);
  }

  /// The usage, and the line that names the page of the options.
  [[nodiscard]] std::string usage() const {
    std::string line = CLI::Formatter().make_usage(app, name);
    line.erase(line.find_last_not_of('\n') + 1);
    return text(line.substr(line.find_first_not_of('\n')), "\n", name,
                " --help says what the options are");
  }

  /// @throws usage_error for the first word that was not expected, if there is one.
  void refuse_rest(const CommandLine& line) const {
    for (const std::string& word : app->remaining()) {
      if (word == "--") continue;
      if (!word.starts_with('-')) {
        if (!commands.empty()) throw line.no_such("command", word, command_names());
        throw line.error(text("'", word, "' is one argument too many"));
      }
      std::vector<std::string> names;
      for (const CLI::Option* option : app->get_options())
        if (option->nonpositional()) names.push_back(option->get_name());
      const std::string wrong = word.substr(0, word.find('='));
      throw line.error(text("no option '", wrong, "'"),
                       heddle::impl::did_you_mean(wrong, {names.begin(), names.end()}));
    }
  }

  /// @throws usage_error for an option that is given more than once.
  void refuse_repeated(const CommandLine& line) const {
    for (const CLI::Option* option : app->get_options())
      if (option->nonpositional() && option->get_items_expected_max() == 1 && option->count() > 1)
        throw line.error(text(option->get_name(), " is given ", option->count(), " times"),
                         "give it once");
  }

  [[nodiscard]] std::vector<std::string_view> command_names() const {
    std::vector<std::string_view> names;
    for (const Command& command : commands)
      names.push_back(command.line->m_parser->app->get_name());
    return names;
  }
};

}  // namespace tool
