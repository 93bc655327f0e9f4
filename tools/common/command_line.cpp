// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/internal/near_miss.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/version.hpp>

#include "command_line.hpp"
#include "parser.hpp"
#include "quantities.hpp"

namespace tool {

using heddle::text;

namespace {

/// "there are a, b", or nothing of no names.
std::string listed(const std::vector<std::string_view>& names) {
  std::string all;
  for (const std::string_view name : names) all += text(all.empty() ? "there are " : ", ", name);
  return all;
}

/// What --version prints of the program `name`.
std::string version_of(const std::string& name) {
  return text(name, " (Heddle) ", HEDDLE_VERSION_MAJOR, '.', HEDDLE_VERSION_MINOR, '.',
              HEDDLE_VERSION_PATCH);
}

/// Of a text: what is wrong with it, or nothing, as CLI11 asks its validators.
std::string begins_with_dash(const std::string& value) {
  return value.starts_with('-')
             ? text("'", value, "' begins with '-'; a file may be called ./", value)
             : "";
}

std::string dash_or_name(const std::string& value) {
  return value == "-" ? "" : begins_with_dash(value);
}

/// Reads all of `word`. @throws CLI::ValidationError, which names the option, if it is no number.
template <class Number>
void read(const std::string& option, std::string_view word, Number& number) {
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc{} || rest != end)
    throw CLI::ValidationError(
        option, text(error == std::errc::result_out_of_range ? "a number out of range"
                     : std::is_unsigned_v<Number>            ? "not a whole number of at least 0"
                     : std::is_integral_v<Number>            ? "not a whole number"
                                                             : "not a number",
                     " ('", word, "')"));
}

/// Returns what `parse(word)` returns. @throws CLI::ValidationError, which names the option, for
/// what it throws.
template <class Parse>
auto parsed(const std::string& option, std::string_view word, Parse&& parse) {
  try {
    return parse(word);
  } catch (const std::invalid_argument& wrong) {
    throw CLI::ValidationError(option, wrong.what());
  }
}

/// Calls `piece(word)` for each word of "1,2,1".
template <class Piece>
void each_piece(std::string_view list, Piece&& piece) {
  for (bool more = true; more;) {
    const std::string_view word = list.substr(0, list.find(','));
    more = word.size() < list.size();
    list.remove_prefix(word.size() + more);
    piece(word);
  }
}

/// Reads all of "1,2,1".
template <class Number>
void read(const std::string& option, std::string_view list, std::vector<Number>& numbers) {
  numbers.clear();
  each_piece(list, [&](std::string_view word) { read(option, word, numbers.emplace_back()); });
}

/// The option `name` of `app`, read into `target`.
CLI::Option* add(CLI::App& app, const std::string& name, const Target& target,
                 const std::string& help) {
  const auto words = [&](auto& value) {
    CLI::Option* const option =
        app.add_option(name, value, help)->check(begins_with_dash)->capture_default_str();
    // What follows the value of an option is not its own.
    if (name.starts_with("--")) option->allow_extra_args(false);
    return option;
  };
  const auto number = [&](auto& value, const auto& first, const char* type) {
    return app
        .add_option_function<std::string>(
            name, [name, &value](const std::string& word) { read(name, word, value); }, help)
        ->type_name(type)
        ->default_str(text(first));
  };
  return std::visit(
      [&](auto* value) {
        using Value = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::vector<double>>)
          return number(*value, value->front(), "NUMBER[,NUMBER...]");
        else if constexpr (std::is_arithmetic_v<Value>)
          return number(*value, *value, "NUMBER");
        else
          return words(*value);
      },
      target);
}

/// Opens the standard files that are closed, so that no file of the program gets their numbers and
/// what is printed. Reads and writes of them fail as those of closed files do.
const bool standard_files_are_open = [] {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(file, F_GETFD) == -1 && errno == EBADF)
      (void)::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  return true;
}();

}  // namespace

void print_error(const std::string& program, std::string_view message) {
  std::string shown = program + ": ";
  for (bool more = true; more;) {
    const std::string_view line = message.substr(0, message.find('\n'));
    more = line.size() < message.size();
    message.remove_prefix(line.size() + more);
    shown += heddle::impl::printable(line) + '\n';
  }
  std::cerr << shown;
}

int status_with_output(const std::string& program, int status) {
  errno = 0;
  const bool flushed = std::cout.flush().good() && std::fflush(stdout) == 0;
  int reason = errno;
  bool lost = !flushed || std::ferror(stdout) != 0;
  // Some file systems report at close() what they could not write.
  const int copy = lost ? -1 : ::dup(STDOUT_FILENO);
  if (copy >= 0 && ::close(copy) != 0) {
    reason = errno;
    lost = true;
  }
  if (!lost) return status;
  // The write that failed may have been an earlier one. A write of nothing asks again.
  if (reason == 0 && ::write(STDOUT_FILENO, "", 0) < 0) reason = errno;
  print_error(program,
              text("cannot write the standard output: ",
                   reason != 0 ? std::generic_category().message(reason) : "a part of it is lost",
                   "; what was printed is not complete"));
  return status == 0 ? 1 : status;
}

CommandLine::CommandLine(const std::string& name, const std::string& about)
    : m_parser(new Parser{name}) {
  m_parser->program = std::make_unique<CLI::App>(about, name);
  m_parser->app = m_parser->program.get();
  m_parser->app->allow_extras();  // refuse_rest() knows what to say of them
  m_parser->app->set_version_flag("--version", version_of(name));
}

CommandLine::CommandLine(std::unique_ptr<Parser> parser) : m_parser(std::move(parser)) {}

CommandLine::~CommandLine() = default;

CommandLine& CommandLine::add_command(const std::string& name, const std::string& about,
                                      Action action) {
  CLI::App* const app = m_parser->app->add_subcommand(name, about);
  app->allow_extras();
  app->set_version_flag("--version", version_of(m_parser->app->get_name()));
  m_parser->app->require_subcommand(0, 1);  // parse() says which there are
  std::unique_ptr<CommandLine> line(
      new CommandLine(std::unique_ptr<Parser>(new Parser{m_parser->name + ' ' + name, {}, app})));
  return *m_parser->commands.emplace_back(std::move(line), std::move(action)).line;
}

void CommandLine::add_argument(const std::string& name, Target target, const std::string& help,
                               bool required) {
  add(*m_parser->app, name, target, help)->required(required);
}

void CommandLine::add_input(const std::string& name, InputTarget target, const std::string& help,
                            bool required) {
  std::visit(
      [&](auto* value) {
        m_parser->app->add_option(name, *value, help + "; - is the standard input")
            ->check(dash_or_name)
            ->required(required);
      },
      target);
  m_parser->inputs.push_back(target);
}

void CommandLine::add_output(const std::string& name, std::string& target, const std::string& help,
                             const std::string& dash) {
  m_parser->app->add_option(name, target, text(help, "; ", dash))
      ->check(dash_or_name)
      ->required(!name.starts_with("--"));
  m_parser->outputs.push_back(&target);
}

void CommandLine::add_option(const std::string& name, Target target, const std::string& help,
                             bool required) {
  add(*m_parser->app, "--" + name, target, help)->required(required);
}

void CommandLine::add_bytes(const std::string& name, std::uint64_t& target, const std::string& help,
                            const std::string& other) {
  const std::string option = "--" + name;
  m_parser->app
      ->add_option_function<std::string>(
          other.empty() ? option : text(option, ",--", other),
          [option, &target](const std::string& word) {
            target = parsed(option, word, parse_bytes);
          },
          help)
      ->type_name("BYTES")
      ->default_str(text(target));
}

void CommandLine::add_seconds(const std::string& name, double& target, const std::string& help) {
  const std::string option = "--" + name;
  m_parser->app
      ->add_option_function<std::string>(
          option,
          [option, &target](const std::string& word) {
            target = parsed(option, word, parse_time).value;
          },
          help)
      ->type_name("SECONDS")
      ->default_str(text(target));
}

void CommandLine::add_times(const std::string& name, TimeTarget target, const std::string& help) {
  add_quantities("--" + name, target, help, parse_time, "TIME");
}

void CommandLine::add_rate(const std::string& name, double& target, const std::string& help) {
  add_quantities("--" + name, &target, help, parse_rate, "BYTES/TIME");
}

void CommandLine::add_quantities(const std::string& option, TimeTarget target,
                                 const std::string& help, Quantity (*reader)(std::string_view),
                                 const std::string& type) {
  Parser& parser = *m_parser;
  parser.times.all.emplace_back(option, target);
  const auto read_one = [option, reader, &parser](std::string_view word) {
    const Quantity read = parsed(option, word, reader);
    if (read.value != 0) {
      const auto [first, inserted] = parser.times.unit.try_emplace(option, read.unit);
      first->second = first->second && read.unit;
      parser.times.any |= read.unit;
    }
    return read.value;
  };
  const auto read_all = [target, read_one](const std::string& words) {
    if (double* const* one = std::get_if<double*>(&target)) {
      **one = read_one(words);
      return;
    }
    std::vector<double>& all = *std::get<std::vector<double>*>(target);
    all.clear();
    each_piece(words, [&](std::string_view word) { all.push_back(read_one(word)); });
  };
  const bool one = std::holds_alternative<double*>(target);
  parser.app->add_option_function<std::string>(option, read_all, help)
      ->type_name(one ? type : text(type, "[,", type, "...]"))
      ->default_str(
          text(one ? *std::get<double*>(target) : std::get<std::vector<double>*>(target)->front()));
}

void CommandLine::add_flag(const std::string& name, bool& target, const std::string& help) {
  m_parser->app->add_flag("--" + name, target, help);
}

void CommandLine::set_note(std::function<std::string()> note) {
  m_parser->app->footer(std::move(note));
}

std::optional<std::string> CommandLine::parse(int argc, const char* const* argv) {
  // The command line of the command that is given, or else of the program.
  const auto chosen = [&]() -> const CommandLine& {
    for (const auto& command : m_parser->commands)
      if (command.line->m_parser->app->parsed()) return *command.line;
    return *this;
  };
  // As packages install it.
  const std::string installed = "heddle-" + m_parser->name;
  if (argc > 0 && text('/', argv[0]).ends_with('/' + installed)) m_parser->rename(installed);
  try {
    m_parser->app->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return m_parser->app->help();
  } catch (const CLI::CallForVersion& version) {
    return text(version.what(), '\n');
  } catch (const CLI::ParseError& error) {
    const CommandLine& line = chosen();
    line.m_parser->refuse_rest(line);  // a mistyped option is why others lack something
    line.m_parser->refuse_repeated(line);
    throw line.error(error.what());
  }
  const CommandLine& line = chosen();
  m_parser->refuse_rest(*this);
  line.m_parser->refuse_rest(line);
  if (&line == this && !m_parser->commands.empty())
    throw error("a command is missing", listed(m_parser->command_names()));
  line.m_parser->settle(line);
  return {};
}

int CommandLine::run(int argc, const char* const* argv, const std::function<int()>& action) {
  int status = 0;
  try {
    if (const auto answer = parse(argc, argv)) {
      std::cout << *answer;
    } else {
      for (const auto& command : m_parser->commands)
        if (command.line->m_parser->app->parsed()) command.action(*command.line);
      status = action();
    }
  } catch (const usage_error& wrong) {
    print_error(m_parser->name, wrong.what());
    status = 2;
  } catch (const no_answer& none) {
    print_error(m_parser->name, none.what());
    status = 3;
  } catch (const std::exception& wrong) {
    print_error(m_parser->name, wrong.what());
    status = 1;
  }
  return status_with_output(m_parser->name, status);
}

bool CommandLine::has_units() const { return m_parser->times.any; }

bool CommandLine::given(const std::string& name) const {
  return m_parser->app->count("--" + name) > 0;
}

usage_error CommandLine::error(const std::string& what, const std::string& fix) const {
  return usage_error(text(what, fix.empty() ? "" : "; ", fix, '\n', m_parser->usage()));
}

usage_error CommandLine::no_such(const std::string& kind, std::string_view word,
                                 const std::vector<std::string_view>& names) const {
  const std::string meant = heddle::impl::did_you_mean(word, names);
  return error(text("no ", kind, " '", word, "'"), meant.empty() ? listed(names) : meant);
}

}  // namespace tool
