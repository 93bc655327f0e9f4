// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A farm: many independent items on threads. The first part asks a service that is sometimes busy;
// failed attempts are repeated, and the answers come in order. The second part forecasts how the
// same farm does with more workers. The third is a search that proposes each point by the results
// so far, and finds the same on any number of workers.

#include <cmath>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/pattern/farm.hpp>
#include <heddle/pattern/farm_forecast.hpp>
#include <heddle/systems/aiperf/farm_search.hpp>

namespace hd = heddle;

namespace {

/// Counts the letters of a word, unless the service is busy, which three in ten attempts find.
std::size_t ask(const std::string& word, const hd::pattern::FarmTask& task) {
  const hd::Random busy(1, "busy");
  if (busy.uniform(static_cast<std::uint64_t>(10 * task.item + task.attempt)) < 0.3)
    throw std::runtime_error("the service is busy");
  return word.size();
}

void ask_for_all() {
  const std::vector<std::string> words{"warp", "weft", "shuttle", "reed", "treadle", "heddle"};
  const auto sizes = hd::pattern::farm({.workers = 3, .attempts = 4, .backoff = 1e-3}, words, ask);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::cout << words[i] << ": ";
    if (sizes[i].value)
      std::cout << *sizes[i].value << " letters";
    else
      std::cout << sizes[i].error;
    std::cout << " (attempts: " << sizes[i].attempts << ")\n";
  }
}

void forecast() {
  const hd::Random times(1, "times");
  for (const int workers : {1, 4, 16, 64}) {
    const auto farm = hd::pattern::forecast_farm(
        {.workers = workers, .ordered = false}, 320,
        [&](hd::Worker, const hd::pattern::FarmTask& task) {
          return hd::pattern::FarmForecast::Attempt{
              0.5 + times.uniform(static_cast<std::uint64_t>(task.item))};
        });
    std::cout << workers << (workers == 1 ? " worker: 320" : " workers: 320")
              << " items of 0.5 to 1.5 s in " << std::lround(farm.makespan) << " s, utilisation "
              << std::lround(100 * farm.utilisation()) << "%\n";
  }
}

/// Returns the point of the least value that 40 proposals find. Each is near the best point among
/// the results up to 4 items back.
double search(int workers) {
  int proposals = 0;
  double best = 0;
  double least = 1e9;
  std::vector<double> points;
  const auto propose =
      [&](std::span<const hd::pattern::FarmOutcome<double>> seen) -> std::optional<double> {
    if (proposals == 40) return std::nullopt;
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (*seen[i].value < least) {
        least = *seen[i].value;
        best = points[i];
      }
    const double step = hd::Random(3, "step").normal(static_cast<std::uint64_t>(proposals++));
    points.push_back(best + step / (1 + 0.1 * proposals));
    return points.back();
  };
  const auto value = [](double x) { return (x - 1.5) * (x - 1.5) + 0.1 * std::cos(9 * x); };
  hd::pattern::farm({.workers = workers, .lag = 4}, propose, value,
                    [](std::int64_t, hd::pattern::FarmOutcome<double>&&) {});
  return best;
}

}  // namespace

int main() {
  ask_for_all();
  forecast();
  const double found = search(1);
  std::cout << "the search finds " << std::round(1'000 * found) / 1'000
            << (search(3) == found ? ", and the same point on 3 workers\n"
                                   : ", and another point on 3 workers\n");
  return 0;
}
