// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A pipeline on a network that is shared with others. It starts with 1F1B, uses groups of
// microbatches while transfers are slow, and returns to 1F1B when memory is scarce. Needs neither
// MPI nor Kokkos; the stages only wait, and the network is emulated.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <thread>
#include <vector>

#include <heddle/execute/adaptive_runner.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/heddle_core.hpp>
#include <heddle/plan/schedule_choice.hpp>
#include <heddle/schedule/generator/kfkb.hpp>
#include <heddle/schedule/pass/group.hpp>

namespace hd = heddle;

namespace {

constexpr hd::Seconds forward = 4e-3;
constexpr hd::Bytes message = 10'000;

void wait(const hd::Task& task) {
  if (task.kind() == hd::Kind::update) return;
  const double times = task.kind() == hd::Kind::forward ? 1 : 2;
  std::this_thread::sleep_for(std::chrono::duration<hd::Seconds>(times * forward));
}

}  // namespace

int main() {
  std::vector<hd::Schedule> candidates;  // the one that needs least memory first
  for (const int k : {1, 2})
    candidates.push_back(hd::schedule::kfkb({.ranks = 3,
                                             .microbatches = 8,
                                             .group = k,
                                             .sizes = {.activation = message, .saved = message}}));
  std::atomic<bool> busy = false;  // others use the network
  const auto link = [&](hd::Rank, hd::Rank, hd::Seconds) {
    return busy ? hd::Link{.bandwidth = message / (3 * forward)} : hd::Link{};
  };

  hd::run_threads(3, [&](hd::ThreadTransport& threads) {
    hd::ShapedTransport network(threads, {.link = link});
    hd::AdaptiveRunner run(wait, hd::plan::ScheduleChoice(candidates), network, {.every = 2});
    const hd::plan::ScheduleChoice& choice = run.choice();
    const bool prints = network.rank() == 0;
    const auto say = [&](const char* when) {
      if (prints) std::cout << when << ": " << choice.schedule().name() << '\n';
    };
    say("at first");
    busy = true;
    for (int step = 0; step < 5; ++step) run.step();
    say("slow network");
    run.limit(choice.needs()[0]);
    run.step();
    say("slow network, little memory");
    if (!prints) return;
    std::cout << "a transfer takes " << choice.costs().between(0, 1) * 1e3 << " ms\n";
    for (std::size_t c = 0; c < candidates.size(); ++c)
      std::cout << candidates[c].name() << ": " << choice.needs()[c] << " bytes a rank, a step of "
                << choice.predicted()[c] * 1e3 << " ms\n";
  });
}
