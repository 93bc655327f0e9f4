// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The cost of including and using Heddle: processor time and peak memory of compiling, against an
/// empty program that includes Kokkos_Core.hpp, with this benchmark's own compiler and flags, in
/// turn. Measured are empty programs that include an umbrella, in the three ways of
/// core/linkage.hpp; whole examples; a program that was ported, against the same by hand; the
/// sources that define HEDDLE_IMPLEMENTATION_ROOM; and every public header alone.
///
///     bench_compile_consumers [--short] [--before INCLUDE]
///     bench_compile_consumers --check | --record
///
/// --short leaves out what takes long: single headers, defining sources and most repetitions.
/// --before measures every umbrella against the same of an earlier include folder as well, and
/// fails where one takes more than 1.1 times as long. --check does the same for umbrellas and some
/// programs with the ratios to Kokkos_Core.hpp in recorded.csv, and is a test. --record prints a
/// new recorded.csv.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>

#include "../support.hpp"

namespace fs = std::filesystem;

namespace {

constexpr std::string_view compiled_mode = "-DHEDDLE_CORE_COMPILED -DHEDDLE_FULL_COMPILED";
constexpr std::string_view inline_mode = "-DHEDDLE_HEADER_ONLY=1";
constexpr std::string_view declared_mode = "";  // HEDDLE_IMPLEMENTATION elsewhere

/// Time and memory of one compilation.
struct Cost {
  double seconds = 0;    ///< of processor time, user and system
  double megabytes = 0;  ///< of peak resident memory
};

/// The compiler and the flags of this source, without what names its files.
[[nodiscard]] std::string command_of_this_source(const fs::path& commands) {
  std::ifstream in(commands);
  for (std::string line; std::getline(in, line);) {
    if (line.find("compile/consumers.cpp") == std::string::npos) continue;
    const std::size_t begin = line.find("\"command\": \"");
    const std::size_t end = line.find(" -o ");
    if (begin == std::string::npos || end == std::string::npos) continue;
    std::string command = line.substr(begin + 12, end - begin - 12);
    for (const std::string_view taken :
         {"\\", "-DHEDDLE_CORE_COMPILED", "-DHEDDLE_FULL_COMPILED", "-DHEDDLE_HEADER_ONLY=1"})
      for (std::size_t at; (at = command.find(taken)) != std::string::npos;)
        command.erase(at, taken.size());
    return command;
  }
  throw heddle::contract_error(
      {"compile/consumers", "no command for consumers.cpp in", commands.string()});
}

/// `command` without the include folder of this repository.
[[nodiscard]] std::string without(std::string command, const fs::path& include) {
  for (const char* const option : {"-I", "-isystem "}) {
    const std::string words = option + include.string() + ' ';
    for (std::size_t at; (at = command.find(words)) != std::string::npos;)
      command.erase(at, words.size());
  }
  return command;
}

/// A program: what is compiled, and how.
struct Program {
  std::string what;
  fs::path source;
  std::string flags = {};
};

class Compiler {
 public:
  Compiler(std::string command, fs::path folder)
      : m_command(std::move(command)), m_folder(std::move(folder)) {}

  /// Returns an empty program that includes `headers`, after `head`.
  [[nodiscard]] Program including(const std::string& what, const std::vector<std::string>& headers,
                                  std::string_view flags, std::string_view head = {}) const {
    const fs::path source = m_folder / (what + ".cpp");
    std::ofstream out(source);
    out << head;
    for (const std::string& header : headers) out << "#include <" << header << ">\n";
    out << "int main() {}\n";
    return {what, source, std::string(flags)};
  }

  /// Compiles `program`. @throws contract_error if it does not compile.
  [[nodiscard]] Cost cost(const Program& program) const {
    const std::string command = m_command + ' ' + program.flags + " -c " + program.source.string() +
                                " -o " + (m_folder / "consumer.o").string();
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    if (::wait4(child, &status, 0, &usage) != child || status != 0)
      throw heddle::contract_error({"compile/consumers", "this does not compile", program.what});
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
            static_cast<double>(usage.ru_maxrss) / 1000};
  }

 private:
  std::string m_command;
  fs::path m_folder;
};

/// The costs of programs, which are compiled in turn, and their ratios to the first one's.
class Comparison {
 public:
  Comparison(const Compiler& compiler, std::vector<Program> programs, int rounds)
      : m_programs(std::move(programs)), m_costs(m_programs.size()) {
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < m_programs.size(); ++i)
        m_costs[i].push_back(compiler.cost(m_programs[i]));
  }

  /// Prints all of them as values of `name`; the ratios are said to be `over` the first.
  void print(std::string_view name, const std::string& over) const {
    for (std::size_t i = 0; i < m_programs.size(); ++i) {
      const std::string& what = m_programs[i].what;
      std::vector<double> seconds, megabytes;
      for (const Cost& cost : m_costs[i]) {
        seconds.push_back(cost.seconds);
        megabytes.push_back(cost.megabytes);
      }
      bench::print_value(name, what + "_time", bench::summarise(seconds), "s");
      bench::print_value(name, what + "_peak", bench::summarise(megabytes), "MB");
      if (i > 0) bench::print_value(name, what + over, ratio(i), "x");
    }
  }

  /// Prints the largest ratio and the largest memory of all but the first.
  void print_dearest(std::string_view name, const std::string& over) const {
    double time = 0, memory = 0;
    for (std::size_t i = 1; i < m_costs.size(); ++i) {
      time = std::max(time, ratio(i).median);
      for (const Cost& cost : m_costs[i]) memory = std::max(memory, cost.megabytes);
    }
    bench::print_value(name, "dearest" + over, bench::summarise({time}), "x");
    bench::print_value(name, "dearest_peak", bench::summarise({memory}), "MB");
  }

  /// Time of program `i` over that of the first in the same round.
  [[nodiscard]] bench::Summary ratio(std::size_t i) const {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < m_costs[i].size(); ++round)
      ratios.push_back(m_costs[i][round].seconds / m_costs.front()[round].seconds);
    return bench::summarise(ratios);
  }

 private:
  std::vector<Program> m_programs;
  std::vector<std::vector<Cost>> m_costs;
};

/// The folders of this repository.
struct Folders {
  fs::path root = fs::canonical(fs::path(__FILE__).parent_path() / "../..");
  fs::path include = root / "include";
};

[[nodiscard]] Program kokkos(const Compiler& compiler) {
  return compiler.including("kokkos", {"Kokkos_Core.hpp"}, "");
}

/// The umbrella headers of all rooms.
[[nodiscard]] std::vector<std::string> rooms(const fs::path& include) {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(include / "heddle"))
    if (entry.path().extension() == ".hpp" && entry.path().stem() != "json")
      found.push_back("heddle/" + entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

void measure_umbrellas(const Compiler& compiler, const Folders& folders, int rounds) {
  std::vector<Program> programs{kokkos(compiler)};
  for (const char* const umbrella : {"heddle_core", "heddle"}) {
    const std::vector<std::string> header{"heddle/" + std::string(umbrella) + ".hpp"};
    const std::string name(umbrella);
    programs.push_back(compiler.including(name + "_compiled", header, compiled_mode));
    programs.push_back(compiler.including(name + "_declared", header, declared_mode));
    programs.push_back(compiler.including(name + "_inline", header, inline_mode));
  }
  programs.push_back(compiler.including("all_rooms", rooms(folders.include), compiled_mode));
  Comparison(compiler, std::move(programs), rounds).print("compile/consumers", "_over_kokkos");
}

/// Whole examples, and the ported program over the one by hand.
void measure_programs(const Compiler& compiler, const Folders& folders, int rounds) {
  std::vector<Program> programs{kokkos(compiler)};
  const std::string common =
      std::string(compiled_mode) + " -I" + (folders.root / "examples/common").string();
  for (const char* const example : {"01_print_and_simulate", "07_stream", "08_farm",
                                    "13_collectives", "14_own_model", "20_heat3d"}) {
    const std::string name(example);
    programs.push_back({"example_" + name.substr(0, 2),
                        folders.root / "examples" / name / (name.substr(3) + ".cpp"), common});
  }
  Comparison(compiler, std::move(programs), rounds).print("compile/examples", "_over_kokkos");
  const fs::path heat = folders.root / "benchmarks/compile/heat";
  Comparison(compiler,
             {{"by_hand", heat / "by_hand.cpp", std::string(compiled_mode)},
              {"ported", heat / "ported.cpp", std::string(compiled_mode)}},
             rounds)
      .print("compile/ported", "_over_hand");
}

/// The sources that compile the definitions of a room each.
void measure_definitions(const Compiler& compiler, const Folders& folders) {
  std::vector<Program> programs{kokkos(compiler)};
  std::ifstream linkage(folders.include / "heddle/core/linkage.hpp");
  constexpr std::string_view macro = "#define HEDDLE_DEFINES_";
  for (std::string line; std::getline(linkage, line);) {
    if (line.compare(0, macro.size(), macro) != 0 || line.back() != '1') continue;
    std::string room = line.substr(macro.size(), line.size() - macro.size() - 2);
    // Systems have no umbrella. A source compiles those that it includes.
    if (room == "ALL" || room == "FULL_ALL" || room.find("SYSTEMS") != std::string::npos) continue;
    const std::string head = "#define HEDDLE_IMPLEMENTATION_" + room + '\n';
    std::transform(room.begin(), room.end(), room.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string umbrella = "heddle/" + room.substr(0, room.find('_')) + ".hpp";
    programs.push_back(compiler.including("defines_" + room, {umbrella}, "", head));
  }
  const Comparison costs(compiler, std::move(programs), 1);
  costs.print("compile/definitions", "_over_kokkos");
  costs.print_dearest("compile/definitions", "_over_kokkos");
}

/// The ten headers that take longest, and the ratio of the first to Kokkos_Core.hpp.
void measure_headers(const Compiler& compiler, const Folders& folders) {
  std::vector<std::pair<double, std::string>> found;
  const double once = compiler.cost(kokkos(compiler)).seconds;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(folders.include / "heddle")) {
    const std::string header = fs::relative(entry.path(), folders.include).string();
    const bool umbrella = std::count(header.begin(), header.end(), '/') == 1;
    if (entry.path().extension() != ".hpp" || umbrella ||
        header.find("/impl/") != std::string::npos)
      continue;
    const Program program = compiler.including("header", {header}, compiled_mode);
    found.emplace_back(compiler.cost(program).seconds / once, header);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<double> ratios;
  for (const auto& [ratio, header] : found) ratios.push_back(ratio);
  for (std::size_t i = 0; i < std::min<std::size_t>(10, found.size()); ++i)
    std::cout << std::setw(8) << std::setprecision(3) << found[i].first << "x  " << found[i].second
              << '\n';
  bench::print_value("compile/headers", "compiled_median", bench::summarise(ratios), "x");
  bench::print_value("compile/headers", "compiled_dearest", bench::summarise({found.front().first}),
                     "x");
}

/// Every umbrella against the one of an earlier include folder. Returns false where one has become
/// dearer by a tenth.
[[nodiscard]] bool compare_with(const fs::path& before, const Compiler& compiler,
                                const Folders& folders) {
  bool good = true;
  for (const std::string& header : rooms(folders.include)) {
    if (!fs::exists(before / header)) continue;
    const std::string name = fs::path(header).stem().string();
    const std::string mode(compiled_mode);
    // The folder that is named first is looked through first.
    const auto in = [&](const fs::path& include) { return mode + " -I" + include.string(); };
    const Comparison both(compiler,
                          {compiler.including("before_" + name, {header}, in(before)),
                           compiler.including(name, {header}, in(folders.include))},
                          5);
    const bench::Summary ratio = both.ratio(1);
    bench::print_value("compile/since", name, ratio, "x");
    if (ratio.median <= 1.1) continue;
    std::cerr << "compile/since: " << header << " takes " << ratio.median
              << " times as long to compile as before\n";
    good = false;
  }
  return good;
}

/// What recorded.csv has: umbrellas, and programs. All with the compiled libraries, optimised.
[[nodiscard]] std::vector<Program> recorded_programs(const Compiler& compiler,
                                                     const Folders& folders) {
  const std::string flags = std::string(compiled_mode) + " -O3 -DNDEBUG";
  std::vector<Program> programs;
  for (const std::string& header : rooms(folders.include))
    programs.push_back(compiler.including(fs::path(header).stem().string(), {header}, flags));
  const std::string common = flags + " -I" + (folders.root / "examples/common").string();
  for (const char* const source :
       {"examples/07_stream/stream.cpp", "examples/08_farm/farm.cpp",
        "examples/14_own_model/own_model.cpp", "benchmarks/compile/heat/ported.cpp"})
    programs.push_back({source, folders.root / source, common});
  return programs;
}

/// Prints recorded.csv: the median of five pairs each.
void record(const Compiler& compiler, const Folders& folders) {
  std::cout << "what,ratio\n" << std::setprecision(3);
  for (const Program& program : recorded_programs(compiler, folders)) {
    Program base = kokkos(compiler);
    base.flags = "-O3 -DNDEBUG";
    const Comparison both(compiler, {base, program}, 5);
    std::cout << program.what << ',' << both.ratio(1).median << '\n' << std::flush;
  }
}

/// The ratios that recorded.csv has, by program.
[[nodiscard]] std::map<std::string, double> recorded_ratios(const Folders& folders) {
  std::map<std::string, double> recorded;
  std::ifstream table(folders.root / "benchmarks/compile/recorded.csv");
  std::string line;
  std::getline(table, line);  // the head
  while (std::getline(table, line)) {
    const std::size_t comma = line.rfind(',');
    recorded[line.substr(0, comma)] = std::stod(line.substr(comma + 1));
  }
  return recorded;
}

/// Returns false where something takes more than 1.1 times as long as recorded.csv says, or is not
/// in it. Programs are compiled in up to five rounds, until their least ratio to Kokkos_Core.hpp is
/// within the limit: on a busy machine one compilation may be wrong by a third. Kokkos_Core.hpp is
/// compiled before every fourth of them.
[[nodiscard]] bool check(const Compiler& compiler, const Folders& folders) {
  const std::map<std::string, double> recorded = recorded_ratios(folders);
  struct Open {
    Program program;
    double limit, least = std::numeric_limits<double>::infinity();
  };
  std::vector<Open> open;
  for (Program& program : recorded_programs(compiler, folders)) {
    const auto found = recorded.find(program.what);
    const double limit = found != recorded.end() ? 1.1 * found->second : 0;
    open.push_back({std::move(program), limit});
  }
  Program base = kokkos(compiler);
  base.flags = "-O3 -DNDEBUG";
  std::cout << std::setprecision(3);
  for (int round = 0; round < 5; ++round) {
    double once = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (i % 4 == 0) once = compiler.cost(base).seconds;
      open[i].least = std::min(open[i].least, compiler.cost(open[i].program).seconds / once);
    }
    std::erase_if(open, [](const Open& each) {
      if (each.least > each.limit) return false;
      std::cout << each.program.what << ": " << each.least << " times as long as Kokkos_Core.hpp"
                << std::endl;
      return true;
    });
  }
  for (const Open& each : open)
    std::cout << each.program.what << ": " << each.least
              << " times as long as Kokkos_Core.hpp; expected at most " << each.limit
              << ", see benchmarks/compile/recorded.csv\n";
  return open.empty();
}

/// Returns false where something has become dearer.
[[nodiscard]] bool run(const fs::path& program, std::string_view what, const fs::path& before) {
  const fs::path folder =
      fs::temp_directory_path() / ("heddle_compile_" + std::to_string(getpid()));
  fs::create_directories(folder);
  ::setenv("CCACHE_DISABLE", "1", 1);
  const fs::path commands = program.parent_path().parent_path() / "compile_commands.json";
  const Folders folders;
  const std::string command = command_of_this_source(commands);
  const Compiler compiler(command, folder);
  if (what == "--check" || what == "--record") {
    const bool good = what == "--record" || check(compiler, folders);
    if (what == "--record") record(compiler, folders);
    fs::remove_all(folder);
    return good;
  }
  const bool all = what.empty();
  measure_umbrellas(compiler, folders, all ? 11 : 3);
  measure_programs(compiler, folders, all ? 5 : 1);
  if (all) {
    measure_definitions(compiler, folders);
    measure_headers(compiler, folders);
  }
  bool good = true;
  if (!before.empty())
    good = compare_with(before, Compiler(without(command, folders.include), folder), folders);
  fs::remove_all(folder);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view what;
  bool good = true;
  fs::path before;
  const int failed = bench::status_of("compile/consumers", [&] {
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == "--short" || word == "--check" || word == "--record")
        what = word;
      else if (word == "--before" && i + 1 < argc)
        before = fs::canonical(argv[++i]);
      else
        throw heddle::contract_error({"compile/consumers", "this option is unknown",
                                      std::string(word),
                                      "[--short | --check | --record] [--before INCLUDE]"});
    }
    good = run(fs::canonical(argv[0]), what, before);
  });
  return failed != 0 || !good ? 1 : 0;
}
