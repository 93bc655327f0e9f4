// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The cost of including Heddle: processor time and peak memory of compiling an empty program that
/// includes one header, against one that includes Kokkos_Core.hpp, with this benchmark's own
/// compiler and flags. Header-only programs and programs that link heddle::core_compiled are
/// measured. Then it measures every public header alone, once in each mode, and names the dearest.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
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

constexpr std::string_view compiled_mode = "-DHEDDLE_CORE_COMPILED";

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
    for (const std::string_view taken : {std::string_view("\\"), compiled_mode})
      for (std::size_t at; (at = command.find(taken)) != std::string::npos;)
        command.erase(at, taken.size());
    return command;
  }
  throw heddle::contract_error({"compile/consumers", "no command for consumers.cpp in",
                                commands.string()});
}

class Compiler {
 public:
  Compiler(std::string command, fs::path folder)
      : m_command(std::move(command)), m_folder(std::move(folder)) {}

  /// Compiles an empty program that includes `header`. @throws contract_error if it does not.
  [[nodiscard]] Cost cost(const std::string& header, std::string_view flags) const {
    const fs::path source = m_folder / "consumer.cpp";
    std::ofstream(source) << "#include <" << header << ">\nint main() {}\n";
    const std::string command = m_command + ' ' + std::string(flags) + " -c " + source.string() +
                                " -o " + (m_folder / "consumer.o").string();
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    if (::wait4(child, &status, 0, &usage) != child || status != 0)
      throw heddle::contract_error({"compile/consumers", "this header does not compile", header});
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

struct Case {
  std::string what;
  std::string header;
  std::string_view flags;
  std::vector<Cost> costs = {};
};

/// Ratios to the costs of Kokkos_Core.hpp in the same round.
void measure_umbrellas(const Compiler& compiler) {
  constexpr int rounds = 11;
  std::vector<Case> cases{{"kokkos", "Kokkos_Core.hpp", ""},
                          {"core", "heddle/heddle_core.hpp", ""},
                          {"core_compiled", "heddle/heddle_core.hpp", compiled_mode},
                          {"heddle", "heddle/heddle.hpp", ""},
                          {"heddle_compiled", "heddle/heddle.hpp", compiled_mode},
                          {"planning", "heddle/plan.hpp", ""},
                          {"planning_compiled", "heddle/plan.hpp", compiled_mode}};
  for (int round = 0; round < rounds; ++round)
    for (Case& each : cases) each.costs.push_back(compiler.cost(each.header, each.flags));
  for (const Case& each : cases) {
    std::vector<double> seconds, megabytes, ratios;
    for (std::size_t i = 0; i < each.costs.size(); ++i) {
      seconds.push_back(each.costs[i].seconds);
      megabytes.push_back(each.costs[i].megabytes);
      ratios.push_back(each.costs[i].seconds / cases.front().costs[i].seconds);
    }
    bench::print_value("compile/consumers", each.what + "_time", bench::summarise(seconds), "s");
    bench::print_value("compile/consumers", each.what + "_peak", bench::summarise(megabytes), "MB");
    if (&each != &cases.front())
      bench::print_value("compile/consumers", each.what + "_over_kokkos", bench::summarise(ratios),
                         "x");
  }
}

/// The ten headers that take longest, and the ratio of the first to Kokkos_Core.hpp.
void measure_headers(const Compiler& compiler, const fs::path& include, std::string_view flags,
                     const std::string& what) {
  std::vector<std::pair<double, std::string>> found;
  const double kokkos = compiler.cost("Kokkos_Core.hpp", flags).seconds;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(include / "heddle")) {
    const std::string header = fs::relative(entry.path(), include).string();
    const bool umbrella = std::count(header.begin(), header.end(), '/') == 1;
    if (entry.path().extension() != ".hpp" || umbrella ||
        header.find("/impl/") != std::string::npos)
      continue;
    found.emplace_back(compiler.cost(header, flags).seconds / kokkos, header);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<double> ratios;
  for (const auto& [ratio, header] : found) ratios.push_back(ratio);
  for (std::size_t i = 0; i < std::min<std::size_t>(10, found.size()); ++i)
    std::cout << std::setw(8) << std::setprecision(3) << found[i].first << "x  " << found[i].second
              << '\n';
  bench::print_value("compile/headers", what + "_median", bench::summarise(ratios), "x");
  bench::print_value("compile/headers", what + "_dearest", bench::summarise({found.front().first}),
                     "x");
}

void run(const fs::path& program) {
  const fs::path folder =
      fs::temp_directory_path() / ("heddle_compile_" + std::to_string(getpid()));
  fs::create_directories(folder);
  ::setenv("CCACHE_DISABLE", "1", 1);
  const fs::path commands = program.parent_path().parent_path() / "compile_commands.json";
  const Compiler compiler(command_of_this_source(commands), folder);
  measure_umbrellas(compiler);
  const fs::path include = fs::canonical(fs::path(__FILE__).parent_path() / "../../include");
  measure_headers(compiler, include, "", "header_only");
  measure_headers(compiler, include, compiled_mode, "compiled");
  fs::remove_all(folder);
}

}  // namespace

int main(int, char** argv) {
  return bench::status_of("compile/consumers", [&] { run(fs::canonical(argv[0])); });
}
