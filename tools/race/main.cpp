// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core
// package: core

/// @file
/// The program `race`: predicts from the run times of one random search how much faster a race of
/// several is. `race predict runs.txt --walkers 2,8,64`.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>

#include "../common/columns.hpp"
#include "../common/command_line.hpp"

namespace hd = heddle;

namespace {

/// Returns the numbers of a file, between which there is white space.
std::vector<double> read_times(const std::string& file) {
  const std::string content = hd::read_file(file);
  const std::string_view text = hd::impl::without_mark(content);
  std::vector<double> times;
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    if (std::string_view(" \t\r\n").find(text[i]) != std::string_view::npos) {
      line += text[i++] == '\n' ? 1u : 0u;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", i), text.size());
    double time = 0;
    const auto [rest, error] = std::from_chars(text.data() + i, text.data() + end, time);
    if (error != std::errc{} || rest != text.data() + end || !std::isfinite(time) || time < 0)
      throw hd::format_error({hd::text(file, ':', line), "a time must be a number of at least 0",
                              hd::text('\'', text.substr(i, end - i), '\''),
                              "leave out runs that found no result"});
    times.push_back(time);
    i = end;
  }
  if (times.empty())
    throw hd::format_error({file, "a prediction needs the times of runs", "there are none"});
  return times;
}

std::string rounded(double value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 4);
  return {digits, end.ptr};
}

/// Prints how well a distribution fits the runs.
template <class Times>
void print_fit(const std::string& name, const hd::systems::EmpiricalTimes& runs,
               const Times& times) {
  const double difference = hd::systems::largest_difference(runs, times);
  const double accepted = hd::systems::accepted_difference(runs);
  std::cout << name << ": Kolmogorov-Smirnov distance " << rounded(difference)
            << (difference <= accepted ? " <= " : " > ") << rounded(accepted)
            << (difference <= accepted ? ", accepted at 5%\n" : ", rejected at 5%\n");
}

void predict(const std::string& file, const std::vector<int>& walkers) {
  const hd::systems::EmpiricalTimes runs(read_times(file));
  const auto exponential = hd::systems::ShiftedExponential::fit(runs);
  std::optional<hd::systems::LognormalTimes> lognormal;
  if (runs.times().front() > 0) lognormal = hd::systems::LognormalTimes::fit(runs);
  std::cout << runs.times().size() << " runs, mean " << rounded(runs.mean_of_least(1)) << ", least "
            << rounded(runs.times().front()) << '\n';
  print_fit("shifted exponential", runs, exponential);
  if (lognormal)
    print_fit("lognormal", runs, *lognormal);
  else
    std::cout << "lognormal: does not apply, because a run took no time\n";
  std::vector<std::vector<std::string>> table{
      {"walkers", "mean time", "speed-up", "by shifted exponential", "by lognormal"}};
  for (const int n : walkers)
    table.push_back({std::to_string(n), rounded(runs.mean_of_least(n)),
                     rounded(hd::systems::race_speed_up(runs, n)),
                     rounded(hd::systems::race_speed_up(exponential, n)),
                     lognormal ? rounded(hd::systems::race_speed_up(*lognormal, n)) : "-"});
  tool::print_columns(table);
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  std::vector<double> walkers{2, 4, 8, 16, 32, 64};
  tool::CommandLine program("race", "Predicts the speed-up of a race of random searches.");
  auto& command = program.add_command(
      "predict", "Predicts the speed-up from the run times of one search.",
      [&](const tool::CommandLine& line) {
        std::vector<int> numbers;
        for (const double n : walkers) {
          if (!(n >= 1 && n <= 1e9 && n == std::floor(n)))
            throw line.error("--walkers: '" + rounded(n) + "' is no number of walkers",
                             "use whole numbers from 1");
          numbers.push_back(static_cast<int>(n));
        }
        predict(file, numbers);
      });
  command.add_input("RUNS.txt", &file, "the times, or steps, of runs that found a result");
  command.add_option("walkers", &walkers, "the numbers of walkers, such as 2,8,64");
  return program.run(argc, argv);
}
