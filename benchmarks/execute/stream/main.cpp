// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// A pipeline of four stages over two threads of one process: heddle::stream() against oneTBB's
/// parallel_pipeline and Taskflow's Pipeline, all with batches of 64 tokens and at most 16 batches
/// under way, with stages that do nothing and such that take 0.1, 1 and 10 us for a batch, which is
/// what all of them hand over; and with std::strings of 48 characters, each of which is allocated
/// by the source and changed by every stage. The stages in the middle are serial for all, and then
/// parallel. Once more with twice as many threads as there are cores, of which some always wait.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>

#include "../../support.hpp"
#include "work.hpp"

namespace {

constexpr const char* name = "execute/stream";

struct Competitor {
  const char* name;
  std::optional<streams::Result> (*run)(const streams::Case&);
};

/// What a stage takes for a batch, with so many turns for each token: its tokens do not wait for
/// each other. The least of several trials.
heddle::Seconds stage_time(std::uint32_t turns) {
  streams::Batch<std::uint64_t> work{};
  heddle::Seconds least = 1e9;
  for (int trial = 0; trial < 9; ++trial) {
    constexpr int batches = 200;
    least = std::min(least, bench::seconds_of([&] {
                              for (int b = 0; b < batches; ++b)
                                for (std::uint64_t& x : work.tokens) x = streams::stage(x, turns);
                            }) / batches);
  }
  if (work.tokens[0] == 0) std::cout << ' ';  // it is used
  return least;
}

/// The turns with which a stage takes `seconds` for a batch, on this machine now.
std::uint32_t turns_for(heddle::Seconds seconds) {
  if (seconds == 0) return 0;
  std::uint32_t low = 0, high = 1;
  while (stage_time(high) < seconds) low = std::exchange(high, 2 * high);
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (stage_time(middle) < seconds ? low : high) = middle;
  }
  return high;
}

heddle::Seconds median(std::vector<heddle::Seconds> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// All competitors take turns, `rounds` times, each of them as often first. Latencies are taken in
/// rounds of their own, of which every fourth is one.
void compare(std::string_view stage, streams::Case work, int rounds,
             const std::vector<Competitor>& competitors) {
  work.tokens = work.tokens / streams::batch * streams::batch;
  const std::string kind =
      heddle::text(work.parallel ? "_parallel" : "_serial", work.threads > 2 ? "_crowded" : "");
  if (!work.strings)
    bench::print_value(name, heddle::text(stage, kind, "_stage"),
                       bench::summarise({stage_time(work.turns) * 1e6}), "us");
  std::vector<std::vector<double>> times(competitors.size());
  std::vector<std::vector<double>> latencies(competitors.size());
  std::optional<streams::Gathered> reference;
  for (int round = 0; round < rounds + rounds / 3; ++round) {
    work.stamped = round % 4 == 3;
    for (std::size_t turn = 0; turn < competitors.size(); ++turn) {
      const std::size_t c = (turn + static_cast<std::size_t>(round)) % competitors.size();
      const auto result = competitors[c].run(work);
      if (!result) continue;
      if (!reference) reference = result->gathered;
      bench::require_equal("the number of tokens", result->gathered.tokens, work.tokens);
      bench::require_equal("the sum of the results", result->gathered.hash, reference->hash);
      if (work.stamped)
        latencies[c].push_back(median(result->latencies));
      else
        times[c].push_back(result->seconds);
    }
  }
  for (std::size_t c = 0; c < competitors.size(); ++c) {
    const std::string what = heddle::text(stage, '_', competitors[c].name, kind);
    if (times[c].empty()) {
      std::cout << "skip " << name << " a library to compare with was not found: " << what << '\n';
      continue;
    }
    std::vector<double> rates;
    for (const double time : times[c])
      rates.push_back(static_cast<double>(work.tokens) / time / 1e6);
    for (double& time : latencies[c]) time *= 1e6;
    bench::print_value(name, what, bench::summarise(rates), "million_tokens/s");
    bench::print_value(name, what + "_latency", bench::summarise(latencies[c]), "us");
    if (c != 0) bench::print_ratio(name, what, bench::ratios(times[c], times[0]));
  }
}

}  // namespace

int main() {
  const std::vector<Competitor> competitors = {
      {"heddle", [](const streams::Case& work) { return std::optional(streams::by_heddle(work)); }},
      {"onetbb", streams::by_onetbb},
      {"taskflow", streams::by_taskflow}};
  return bench::status_of(name, [&] {
    const auto numbers = [&](std::string_view stage, heddle::Seconds seconds, std::uint64_t tokens,
                             bool parallel, int threads = 2) {
      compare(
          stage,
          {.tokens = tokens, .turns = turns_for(seconds), .parallel = parallel, .threads = threads},
          31, competitors);
    };
    for (const bool parallel : {false, true}) {
      numbers("empty", 0, 3'200'000, parallel);
      numbers("0.1us", 0.1e-6, 3'200'000, parallel);
      numbers("1us", 1e-6, 1'280'000, parallel);
      numbers("10us", 10e-6, 128'000, parallel);
      compare("string", {.tokens = 640'000, .parallel = parallel, .strings = true}, 31,
              competitors);
    }
    const int crowd = 2 * static_cast<int>(std::max(std::thread::hardware_concurrency(), 2u));
    numbers("1us", 1e-6, 1'280'000, false, crowd);
  });
}
