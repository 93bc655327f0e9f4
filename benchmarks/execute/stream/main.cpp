// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// A pipeline of four stages over two threads of one process: heddle::stream() against oneTBB's
/// parallel_pipeline and Taskflow's Pipeline, all with batches of 64 tokens and at most 16 batches
/// under way, with stages that do nothing and such that take 0.1, 1 and 10 us for a batch, which is
/// what all of them hand over. A peer's stages in the middle are tried serial and parallel.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core.hpp>

#include "../../support.hpp"
#include "work.hpp"

namespace {

constexpr const char* name = "execute/stream";

struct Competitor {
  const char* name;
  std::function<std::optional<streams::Result>(const streams::Case&)> run;
};

/// Turns for each token with which a stage takes `seconds` for a batch, on this machine now.
std::uint32_t turns_for(heddle::Seconds seconds) {
  if (seconds == 0) return 0;
  seconds /= streams::batch;
  constexpr std::uint32_t trial = 2'000'000;
  heddle::Seconds best = 1e9;
  for (int i = 0; i < 5; ++i) {
    std::uint64_t x = static_cast<std::uint64_t>(i);
    best = std::min(best, bench::seconds_of([&] { x = streams::stage(x, trial); }));
    if (x == 0) std::cout << ' ';  // it is used
  }
  return std::max(1u, static_cast<std::uint32_t>(seconds / best * trial + 0.5));
}

heddle::Seconds median(std::vector<heddle::Seconds> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// All competitors take turns, `rounds` times.
void compare(std::string_view stage, heddle::Seconds seconds, std::uint64_t tokens, int rounds,
             const std::vector<Competitor>& peers) {
  const streams::Case work{tokens / streams::batch * streams::batch, turns_for(seconds)};
  std::vector<double> ours;
  std::vector<double> latencies;
  std::vector<std::vector<double>> theirs(peers.size());
  std::vector<std::vector<double>> their_latencies(peers.size());
  for (int round = 0; round < rounds; ++round) {
    const streams::Result reference = streams::by_heddle(work);
    bench::require_equal("the number of tokens", reference.gathered.tokens, work.tokens);
    ours.push_back(reference.seconds);
    latencies.push_back(median(reference.latencies));
    for (std::size_t p = 0; p < peers.size(); ++p) {
      const auto result = peers[p].run(work);
      if (!result) continue;
      bench::require_equal("the hash of the results", reference.gathered.hash,
                           result->gathered.hash);
      bench::require_equal("the number of tokens", reference.gathered.tokens,
                           result->gathered.tokens);
      theirs[p].push_back(result->seconds);
      their_latencies[p].push_back(median(result->latencies));
    }
  }
  const auto rate = [&](const std::vector<double>& times) {
    std::vector<double> rates;
    for (const double time : times) rates.push_back(static_cast<double>(work.tokens) / time / 1e6);
    return bench::summarise(rates);
  };
  const auto microseconds = [](std::vector<double> times) {
    for (double& time : times) time *= 1e6;
    return bench::summarise(times);
  };
  bench::print_value(name, heddle::text(stage, "_heddle"), rate(ours), "million_tokens/s");
  bench::print_value(name, heddle::text(stage, "_heddle_latency"), microseconds(latencies), "us");
  for (std::size_t p = 0; p < peers.size(); ++p) {
    if (theirs[p].empty()) {
      std::cout << "skip " << name << " a library to compare with was not found: " << peers[p].name
                << '\n';
      continue;
    }
    const std::string peer = heddle::text(stage, '_', peers[p].name);
    bench::print_value(name, peer, rate(theirs[p]), "million_tokens/s");
    bench::print_value(name, peer + "_latency", microseconds(their_latencies[p]), "us");
    bench::print_ratio(name, peer, bench::ratios(theirs[p], ours));
  }
}

}  // namespace

int main() {
  using streams::by_onetbb, streams::by_taskflow, streams::Case;
  const std::vector<Competitor> peers = {
      {"onetbb_serial", [](const Case& work) { return by_onetbb(work, false); }},
      {"onetbb_parallel", [](const Case& work) { return by_onetbb(work, true); }},
      {"taskflow_serial", [](const Case& work) { return by_taskflow(work, false); }},
      {"taskflow_parallel", [](const Case& work) { return by_taskflow(work, true); }}};
  return bench::status_of(name, [&] {
    compare("empty", 0, 3'200'000, 31, peers);
    compare("0.1us", 0.1e-6, 3'200'000, 31, peers);
    compare("1us", 1e-6, 1'280'000, 31, peers);
    compare("10us", 10e-6, 128'000, 31, peers);
  });
}
