// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
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

/// Reads "4096", "40GB" or "1.5GiB".
void read_bytes(const std::string& option, std::string_view word, std::uint64_t& bytes) {
  constexpr std::string_view powers = "kMGT";
  std::string_view digits = word;
  double unit = 1;
  if (digits.ends_with('B')) {
    digits.remove_suffix(1);
    const bool binary = digits.ends_with('i');
    if (binary) digits.remove_suffix(1);
    const char last = digits.empty() ? ' ' : digits.back() == 'K' ? 'k' : digits.back();
    const std::size_t power = powers.find(last) + 1;  // 0 if it is none
    if (power > 0) digits.remove_suffix(1);
    if (binary && power == 0) return read(option, word, bytes);
    for (std::size_t i = 0; i < power; ++i) unit *= binary ? 1024 : 1000;
  }
  if (digits.size() == word.size()) return read(option, word, bytes);
  double number = 0;
  read(option, digits, number);
  const double all = number * unit;
  if (!(all >= 0 && all < 9e18 && std::floor(all) == all))
    throw CLI::ValidationError(option, text("not a whole number of bytes ('", word, "')"));
  bytes = static_cast<std::uint64_t>(all);
}

/// Reads all of "1,2,1".
template <class Number>
void read(const std::string& option, std::string_view list, std::vector<Number>& numbers) {
  numbers.clear();
  for (bool more = true; more;) {
    const std::string_view piece = list.substr(0, list.find(','));
    more = piece.size() < list.size();
    list.remove_prefix(piece.size() + more);
    read(option, piece, numbers.emplace_back());
  }
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

struct CommandLine::Parser {
  struct Command {
    std::unique_ptr<CommandLine> line;
    Action action;
  };

  std::string name;                        ///< with the program's before it
  std::unique_ptr<CLI::App> program = {};  ///< of the program's command line, which owns the others
  CLI::App* app = nullptr;
  std::vector<Command> commands = {};

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

void CommandLine::add_file(const std::string& name, std::string& target, const std::string& help) {
  m_parser->app->add_option(name, target, help)
      ->check([](const std::string& value) { return value == "-" ? "" : begins_with_dash(value); })
      ->required(!name.starts_with("--"));
}

void CommandLine::add_option(const std::string& name, Target target, const std::string& help) {
  add(*m_parser->app, "--" + name, target, help);
}

void CommandLine::add_bytes(const std::string& name, std::uint64_t& target,
                            const std::string& help) {
  m_parser->app
      ->add_option_function<std::string>(
          "--" + name,
          [name, &target](const std::string& word) { read_bytes("--" + name, word, target); }, help)
      ->type_name("BYTES")
      ->default_str(text(target));
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
