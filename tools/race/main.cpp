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
#include <vector>

#include <heddle/core.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>

#include "../common/columns.hpp"
#include "../common/command_line.hpp"
#include "times.hpp"

namespace hd = heddle;

namespace {

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
  const hd::systems::EmpiricalTimes runs(tool::times_of(hd::read_file(file), file));
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
