// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// farm() of empty items on two threads, against pipelines of oneTBB and Taskflow with a serial
/// source, a parallel stage and a serial sink, in batches of 64 items. A farm measures its chunks
/// and keeps of each item who works on it, its attempt and its error; the peers have none of these.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/pattern/farm.hpp>

#include "../../support.hpp"
#include "work.hpp"

namespace {

constexpr const char* name = "pattern/farm";
constexpr std::size_t rounds = 31;

farms::Result by_heddle() {
  farms::Result result;
  std::uint64_t next = 0;
  result.seconds = bench::seconds_of([&] {
    heddle::pattern::farm(
        {.workers = farms::threads},
        [&] { return next < farms::items ? std::optional<std::uint64_t>(next++) : std::nullopt; },
        farms::work,
        [&](std::int64_t, heddle::pattern::FarmOutcome<std::uint64_t>&& outcome) {
          result.gathered(*outcome.value);
        });
  });
  return result;
}

struct Competitor {
  const char* name;
  std::optional<farms::Result> (*run)();
  std::vector<double> times = {};
};

void compare() {
  std::vector<Competitor> competitors = {{"heddle", [] { return std::optional(by_heddle()); }},
                                         {"onetbb", farms::by_onetbb},
                                         {"taskflow", farms::by_taskflow}};
  std::optional<farms::Gathered> reference;
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t turn = 0; turn < competitors.size(); ++turn) {
      Competitor& competitor = competitors[(turn + round) % competitors.size()];
      const std::optional<farms::Result> result = competitor.run();
      if (!result) continue;
      if (!reference) reference = result->gathered;
      bench::require_equal("the number of results", result->gathered.count, farms::items);
      bench::require_equal("the sum of the results", result->gathered.hash, reference->hash);
      competitor.times.push_back(result->seconds);
    }
  for (const Competitor& competitor : competitors) {
    if (competitor.times.empty()) {
      std::cout << "skip " << name
                << " a library to compare with was not found: " << competitor.name << '\n';
      continue;
    }
    std::vector<double> each;
    for (const double time : competitor.times)
      each.push_back(1e6 * time / static_cast<double>(farms::items));
    bench::print_value(name, heddle::text(competitor.name, "_item"), bench::summarise(each), "us");
    if (&competitor != &competitors.front())
      bench::print_ratio(name, competitor.name,
                         bench::ratios(competitor.times, competitors.front().times));
  }
}

}  // namespace

int main() {
  return bench::status_of(name, [] { compare(); });
}
