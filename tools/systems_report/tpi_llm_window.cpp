// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// TPI-LLM's window of weights: when a use waits for its load, against a recurrence of two chains
/// and the paper's conditions, and how much memory a window needs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/place_lives.hpp>
#include <heddle/simulate.hpp>

#include "../../examples/common/gpt_window_schedule.hpp"
#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

/// Attention and MLP blocks in turns: seconds of a use with the sum behind it, and of a load.
struct WindowCase {
  double use[2] = {11 + 14, 17 + 14};
  hd::Bytes load[2] = {18, 30};
  std::size_t blocks = 160;

  [[nodiscard]] std::vector<hd::Bytes> objects() const {
    std::vector<hd::Bytes> sizes;
    for (std::size_t k = 0; k < blocks; ++k) sizes.push_back(load[k % 2]);
    return sizes;
  }
  [[nodiscard]] bool tight() const {
    return use[0] >= static_cast<double>(load[1]) && use[1] >= static_cast<double>(load[0]);
  }
  [[nodiscard]] bool loose() const {
    return use[0] + use[1] >= static_cast<double>(load[0] + load[1]);
  }
};

/// When all is done, and how long uses waited after the first two.
struct WindowTimes {
  double makespan = 0;
  double waits = 0;

  friend bool operator==(const WindowTimes&, const WindowTimes&) = default;
};

/// Simulated: a byte takes a second to load.
hd::Timeline window_timeline(const WindowCase& of, int window) {
  const hd::Device device{.memories = {{"memory"}, {"file", 0, {.latency = 0, .bandwidth = 1}}}};
  hd::TableCosts costs(hd::Machine::uniform(1, device, {}), static_cast<int>(of.blocks));
  for (std::size_t k = 0; k < of.blocks; ++k)
    costs.at(hd::Kind::forward, hd::Stage{k}) = of.use[k % 2];
  return hd::simulate(hd::schedule::prefetch_window({.objects = of.objects(), .window = window}),
                      costs, hd::Sending::rendezvous);
}

WindowTimes window_simulated(const WindowCase& of, int window) {
  const hd::Timeline timeline = window_timeline(of, window);
  WindowTimes times{timeline.makespan(), 0};
  double free = 0;
  for (std::size_t i = 0, use = 0; i < timeline.spans().size(); ++i) {
    if (timeline.schedule()[hd::ActionId{i}].kind != hd::Kind::forward) continue;
    if (use++ >= 2) times.waits += timeline.spans()[i].start - free;
    free = timeline.spans()[i].end;
  }
  return times;
}

/// The reference: a load begins when the one before it and the use `window` blocks earlier have
/// ended, and a use when its load and the use before it have.
WindowTimes window_recurrence(const WindowCase& of, int window) {
  std::vector<double> used(of.blocks);
  WindowTimes times;
  double loaded = 0, free = 0;
  for (std::size_t k = 0; k < of.blocks; ++k) {
    const auto w = static_cast<std::size_t>(window);
    loaded = std::max(loaded, k < w ? 0 : used[k - w]) + static_cast<double>(of.load[k % 2]);
    if (k >= 2) times.waits += std::max(0.0, loaded - free);
    free = used[k] = std::max(loaded, free) + of.use[k % 2];
  }
  times.makespan = free;
  return times;
}

/// The random cases that contradict the conditions: no wait with a window of 2 if and only if it is
/// tight, with one of 3 if and only if loads take no longer than uses.
int window_exceptions(int cases) {
  const hd::Random random(0, "systems_report windows");
  int exceptions = 0;
  for (int c = 0; c < cases; ++c) {
    const auto draw = [&](std::uint64_t i) {
      return 1 + random.below(4 * static_cast<std::uint64_t>(c) + i, 40);
    };
    const WindowCase of{{static_cast<double>(draw(0)), static_cast<double>(draw(1))},
                        {draw(2), draw(3)}};
    for (const int window : {2, 3}) {
      const bool waits = window_simulated(of, window).waits > 0;
      exceptions += waits == (window == 2 ? of.tight() : of.loose()) ? 1 : 0;
    }
  }
  return exceptions;
}

/// The line of two stages, each with a window of 3 over its own 8 halves of blocks, and two groups
/// in flight: the time of a batch in steady state, and the loads. A half takes 30, its load 18 or
/// 30, and a message nothing.
Comparison stages_line() {
  constexpr int halves = 8, batches = 40, window = 3;
  constexpr double use = 30;
  hd::schedule::PrefetchWindowOptions of{.window = window, .passes = batches};
  for (int h = 0; h < halves; ++h) of.objects.push_back(h % 2 == 0 ? 18 : 30);
  const hd::Schedule list =
      examples::window_schedule({.stages = 2, .groups = 2, .activation = 8, .tokens = 8}, {of, of});
  const hd::Device device{.memories = {{"memory"}, {"file", 0, {.latency = 0, .bandwidth = 1}}}};
  hd::TableCosts costs(hd::Machine::uniform(2, device, {}), 2 * halves);
  for (int h = 0; h < 2 * halves; ++h) costs.at(hd::Kind::forward, hd::Stage{h}) = use;
  const hd::Timeline timeline = hd::simulate(list, costs, hd::Sending::rendezvous);
  std::vector<double> ends;
  hd::Bytes loaded = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const hd::Action& action = list[hd::ActionId{i}];
    if (action.kind == hd::Kind::forward && action.stage == 2 * halves - 1)
      ends.push_back(timeline.spans()[i].end);
    if (action.kind == hd::Kind::move && list[action.queue].local())
      loaded += list.bytes(list.uses(hd::ActionId{i})[0]);
  }
  const double batch = (ends.back() - ends[9]) / static_cast<double>(ends.size() - 10);
  const hd::Bytes whole = std::accumulate(of.objects.begin(), of.objects.end(), hd::Bytes{0});
  return {
      "two stages, each with a window of 3 over its own 8 halves that take 30 to use and 18 or "
      "30 to load: time of a batch, bytes loaded",
      "none", hd::text(batch, ", ", loaded),
      hd::text(halves * use, " (the uses alone), ", 2 * batches * whole),
      verdict(batch == halves * use && loaded == 2 * batches * whole)};
}

}  // namespace

std::vector<Comparison> tpi_llm_window() {
  const WindowCase example;
  const WindowTimes two = window_simulated(example, 2), three = window_simulated(example, 3);
  const bool equal = two == window_recurrence(example, 2) && three == window_recurrence(example, 3);
  const int cases = 500, exceptions = window_exceptions(cases);

  // The blocks of Llama 2 70B on 8 devices, 4 bytes a weight: 64 heads and 8 of K and V.
  constexpr hd::Bytes width = 8192, keys = 1024, inner = 28672, devices = 8;
  const WindowCase llama{
      .use = {1e9, 1e9},  // longer than loads, so that the window fills
      .load = {4 * 2 * width * (width + keys) / devices, 4 * 3 * width * inner / devices}};
  const std::vector<hd::Bytes> objects = llama.objects();
  const auto whole =
      static_cast<double>(std::accumulate(objects.begin(), objects.end(), hd::Bytes{0}));
  const auto saved = [&](hd::Bytes bytes) {
    return 100 * (1 - static_cast<double>(bytes) / whole);
  };
  const hd::Bytes slots =
      hd::schedule::PrefetchWindowOptions{.objects = objects, .window = 3}.slot_bytes();
  const hd::Bytes peak = hd::schedule::peak(window_timeline(llama, 3), hd::Rank{0}).bytes;
  std::vector<hd::SizedLife<std::size_t>> lives;
  for (std::size_t k = 0; k < objects.size(); ++k) lives.push_back({k, k + 3, objects[k]});
  const hd::PlacedLives placed = hd::schedule::place_lives(lives);
  for (hd::SizedLife<std::size_t>& life : lives) life.end = life.begin + 2;
  const hd::PlacedLives even = hd::schedule::place_lives(lives);
  const hd::Bytes small = llama.load[0], large = llama.load[1];
  return {
      {"simulated waits after the first two blocks, t = (11, 17, 14), loads (18, 30), 160 blocks, "
       "windows of 2 and 3",
       "some, none",
       hd::text(two.waits, " of ", two.makespan, ", ", three.waits, " of ", three.makespan),
       "equal to the recurrence; some, none", verdict(equal && two.waits > 0 && three.waits == 0)},
      {hd::text("random (t, load) that contradict the conditions for no wait, of ", cases,
                ", windows of 2 and 3"),
       "0", hd::text(exceptions), "0", verdict(exceptions == 0)},
      {"memory of blocks, Llama 2 70B on 8 devices, 3 of 160 blocks in slots", "-90%",
       hd::text('-', saved(slots), "%: ", static_cast<double>(slots) * 1e-6, " MB"), "none",
       not_judged("3 of 160 blocks, without keys and values, embedding and activations")},
      {"most live bytes of that window over 1 attention block and 2 MLPs", "about 1",
       hd::text(static_cast<double>(peak) / static_cast<double>(small + 2 * large)), "1",
       verdict(peak == small + 2 * large)},
      {"arena of place_lives for windows of 2 and 3 over their live bytes", "none",
       hd::text(static_cast<double>(even.bytes) / static_cast<double>(even.live), ", ",
                static_cast<double>(placed.bytes) / static_cast<double>(placed.live)),
       "1, and the least that brute force finds: 1 attention block more",
       verdict(even.bytes == small + large && placed.bytes == 2 * (small + large))},
      stages_line(),
      {"executed from a file of a given bandwidth, windows of 2 and 3", "none", "",
       "1.1 of the longer of loads and uses, and one load",
       "skipped: scripts/test -R execute.window_waits"},
      {"texts of a GPT with its blocks in a file, on 2 to 4 ranks, windows of 1 to all halves",
       "none", "", "those of all in memory, in double",
       "skipped: scripts/test -R pipeline.generation"},
      {"time per token, 70B on 8 devices", "26.1 s, 3.1 GB a device", "", "none",
       "not reproducible: it needs the authors' devices, model and network"},
  };
}

}  // namespace report
