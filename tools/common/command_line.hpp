// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The command lines of the tools, alike in all of them: help, version, commands, arguments and
/// options. CLI11 reads them, and is seen by command_line.cpp alone because it compiles slowly.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quantities.hpp"

namespace tool {

/// A command line that asks for something that the program does not do. Its text ends with the
/// usage line and with how to print the page that has the options.
class usage_error : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// The program did what it was asked, and there is no answer, such as a plan that fits.
class no_answer : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// Prints "program: message" as an error. Line feeds stay, and other control characters, which the
/// message may have from a file or its name, become escapes.
void print_error(const std::string& program, std::string_view message);

/// Returns the status of a main() that would end with `status`: it flushes the standard output, and
/// if a part of it was lost it prints why, and 0 becomes 1. A main() without CommandLine::run()
/// ends with it.
[[nodiscard]] int status_with_output(const std::string& program, int status);

/// What an argument or option is read into; what it holds before is the default. A text may not
/// begin with `-`: as a file name that is a mistyped option. Several numbers are written 1,2,1.
using Target = std::variant<std::string*, std::vector<std::string>*, int*, std::uint64_t*, double*,
                            std::vector<double>*>;
/// What the name of an input file is read into.
using InputTarget = std::variant<std::string*, std::vector<std::string>*>;
/// What times are read into.
using TimeTarget = std::variant<double*, std::vector<double>*>;

/// The command line of a program, or of one of its commands. Declare what it takes, then parse.
class CommandLine {
 public:
  /// Of the program `name`, whose help begins with `about`. It has --help and --version.
  CommandLine(const std::string& name, const std::string& about);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// What run() does if this command is given. It gets its command line, to ask and to throw with.
  using Action = std::function<void(const CommandLine&)>;

  /// Adds the command `name`; one of the commands must then be given.
  CommandLine& add_command(const std::string& name, const std::string& about, Action action);
  /// Adds an argument without a name of its own, in the order of the calls. A vector of texts takes
  /// all that follow, at least one if it is required.
  void add_argument(const std::string& name, Target target, const std::string& help,
                    bool required = true);
  /// As add_argument(), but for a file that is read. It may be `-`, the standard input, which one
  /// argument of the command line can be; `target` then holds /dev/stdin.
  void add_input(const std::string& name, InputTarget target, const std::string& help,
                 bool required = true);
  /// Adds an argument, or an option if `name` begins with `--`, for a file that is written. It may
  /// be `-`, the standard output, which write_output() knows; one of them can be it. `dash` says
  /// what `-` means.
  void add_output(const std::string& name, std::string& target, const std::string& help,
                  const std::string& dash = "- is the standard output");
  /// Adds `--name VALUE`. A vector of texts takes one of each `--name`.
  void add_option(const std::string& name, Target target, const std::string& help,
                  bool required = false);
  /// Adds `--name BYTES`, a whole number of bytes that may have a unit: 40GB, 1.5GiB. `other` is
  /// another name of the option.
  void add_bytes(const std::string& name, std::uint64_t& target, const std::string& help,
                 const std::string& other = {});
  /// Adds `--name TIME`, seconds or a number with a unit: 5ms, 3min.
  void add_seconds(const std::string& name, double& target, const std::string& help);
  /// Adds `--name TIME` of a command whose times are in any unit of the reader's, or in seconds if
  /// they have a unit. See has_units().
  void add_times(const std::string& name, TimeTarget target, const std::string& help);
  /// As add_times(), for bytes per unit of time: 25GB/s.
  void add_rate(const std::string& name, double& target, const std::string& help);
  /// Adds `--name`, which sets `target`.
  void add_flag(const std::string& name, bool& target, const std::string& help);

  /// Sets the text that ends the help page.
  void set_note(std::function<std::string()> note);

  /// Reads the command line; returns what to print if it asks for help or the version.
  /// @throws usage_error if the program does not take it; near misses of names are named.
  [[nodiscard]] std::optional<std::string> parse(int argc, const char* const* argv);
  /// Parses and performs the action of the command that is given or, of a program without commands,
  /// `action`, which returns the status. All of a main() without ranks: prints errors, and returns
  /// the status 2 if the command line is wrong, 3 if there is no answer, 1 if the action throws
  /// something else or the output is lost.
  [[nodiscard]] int run(
      int argc, const char* const* argv, const std::function<int()>& action = [] { return 0; });

  /// Whether the command line has the option `name`, written without dashes.
  [[nodiscard]] bool given(const std::string& name) const;
  /// Returns true if times and rates have units, so that times are in seconds. Those that are not
  /// 0 have units all or none; parse() has checked it.
  [[nodiscard]] bool has_units() const;
  /// "what; fix" with the usage of this command, to be thrown for values that are wrong together.
  [[nodiscard]] usage_error error(const std::string& what, const std::string& fix = "") const;
  /// The error for a `word` that is not one of `names`, `kind` being what they are.
  [[nodiscard]] usage_error no_such(const std::string& kind, std::string_view word,
                                    const std::vector<std::string_view>& names) const;

 private:
  struct Parser;
  /// As add_times(), for words that `reader` reads.
  void add_quantities(const std::string& option, TimeTarget target, const std::string& help,
                      Quantity (*reader)(std::string_view), const std::string& type);
  explicit CommandLine(std::unique_ptr<Parser> parser);

  std::unique_ptr<Parser> m_parser;
};

}  // namespace tool
