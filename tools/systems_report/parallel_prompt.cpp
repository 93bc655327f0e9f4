// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// ParallelPrompt: requests of one form side by side, against one after another.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/pattern.hpp>
#include <heddle/pattern/farm_forecast.hpp>
#include <heddle/systems/parallel_prompt/prompt_schema.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

constexpr double wait = 0.02;

/// Returns the seconds that `requests` requests take, of which each waits.
double seconds_for(int requests, int workers) {
  const double begin = hd::steady_seconds();
  (void)hd::systems::map_prompt({.workers = workers}, {"serial", "{index}", "", {}, requests},
                                [](const std::string& request) {
                                  std::this_thread::sleep_for(std::chrono::duration<double>(wait));
                                  return request;
                                });
  return hd::steady_seconds() - begin;
}

/// Returns the median of three ratios of serial over parallel.
double ratio(int requests, int workers) {
  double ratios[3];
  for (double& measured : ratios)
    measured = seconds_for(requests, 1) / seconds_for(requests, workers);
  std::sort(std::begin(ratios), std::end(ratios));
  return ratios[1];
}

/// Returns whether an attempt fails, by an oracle: 20% of them.
bool fails(std::int64_t item, int attempt) {
  return hd::Random(9, "failures").uniform(static_cast<std::uint64_t>(8 * item + attempt)) < 0.2;
}

/// Returns whether 1,000 requests have the oracle's attempts and arrive once, in order.
bool is_the_oracle() {
  std::vector<std::string> words(1'000);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = std::to_string(i);
  const auto answers = hd::systems::map_prompt(
      {.workers = 8, .attempts = 5, .backoff = 1e-5}, {"serial", "{data}", "", words, {}},
      [](const std::string& request, const hd::pattern::FarmTask& task) {
        if (fails(task.item, task.attempt)) throw std::runtime_error("busy");
        return request;
      });
  for (std::size_t i = 0; i < words.size(); ++i) {
    int attempt = 1;
    while (attempt < 5 && fails(static_cast<std::int64_t>(i), attempt)) ++attempt;
    const bool succeeds = !fails(static_cast<std::int64_t>(i), attempt);
    if (answers[i].attempts != attempt || answers[i].value.has_value() != succeeds) return false;
    if (succeeds && *answers[i].value != words[i]) return false;
  }
  return answers.size() == words.size();
}

/// Returns the mean utilisation of 200 farms in virtual time, with 20 tasks a worker that take 1
/// plus or minus 50%.
double utilisation(int workers) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const hd::Random times(seed, "times");
    sum += hd::pattern::forecast_farm(
               {.workers = workers, .ordered = false}, 20 * workers,
               [&](hd::Worker, const hd::pattern::FarmTask& task) {
                 return hd::pattern::FarmForecast::Attempt{
                     0.5 + times.uniform(static_cast<std::uint64_t>(task.item)), true};
               })
               .utilisation();
  }
  return sum / 200;
}

}  // namespace

std::vector<Comparison> parallel_prompt() {
  std::vector<Comparison> lines;
  for (const auto& [requests, workers] : {std::pair{8, 4}, std::pair{7, 3}, std::pair{3, 8}}) {
    const double bound = static_cast<double>(requests) / ((requests + workers - 1) / workers);
    const double measured = ratio(requests, workers);
    lines.push_back({hd::text(requests, " requests that wait 20 ms on ", workers,
                              " workers, serial over parallel"),
                     "up to 5x", hd::text(measured, 'x'), hd::text("within 10% of ", bound),
                     verdict(measured > 0.9 * bound && measured < 1.1 * bound)});
  }
  lines.push_back(
      {"1,000 requests, 20% of the attempts fail, 8 workers", "",
       is_the_oracle() ? "the attempts of the oracle, each once, in order" : "not the oracle's",
       "equal", verdict(is_the_oracle())});
  const double used = utilisation(64);
  lines.push_back(
      {"virtual time, 64 workers, 20 tasks a worker of 1 +- 50%: utilisation, mean of 200", "",
       hd::text(used), "at least 0.95", verdict(used >= 0.95)});
  lines.push_back({"share of real prompts with a schema; speed of a language model", "> 75%; 5x",
                   "", "none", "not reproducible: it needs the data set and a model's service"});
  return lines;
}

}  // namespace report
