// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// EnergonAI's non-blocking pipeline against stages that wait until what they made is sent, and
/// weights in the memory of a peer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/energonai/energon.hpp>

#include "../../examples/common/gpt_requests.hpp"
#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

/// The simulated throughput of a pipeline of 4 stages and 64 requests over the same that blocks. A
/// transfer takes `transfer` of the time of a stage.
double gain(double transfer) {
  const auto makespan = [transfer](int depth) {
    constexpr hd::Bytes bytes = 1024;
    return hd::simulate(
               hd::systems::energon(
                   {.ranks = 4, .requests = 64, .depth = depth, .sizes = {.activation = bytes}}),
               {.forward = 1, .per_byte = transfer / static_cast<double>(bytes)})
        .makespan();
  };
  return makespan(0) / makespan(1);
}

constexpr int peer_layers = 24, peer_resident = 20;
constexpr int peer_away = peer_layers - peer_resident;

/// The time of a pass in steady state over layers of which 4 of 24 are copied from a peer. A layer
/// takes 1, and a copy `copy`.
double pass_over_peer(double copy, int slots, std::vector<hd::Stage> away = {}) {
  constexpr int passes = 8;
  hd::Orders orders{
      .name = "layers", .ranks = {{}, {}}, .graph = hd::StageGraph::chain(peer_layers)};
  for (int p = 0; p < passes; ++p)
    for (int l = 0; l < peer_layers; ++l)
      orders.ranks[0].push_back({hd::Kind::forward, hd::Stage{l}, hd::Item{p}});
  const hd::Timeline timeline =
      hd::simulate(hd::schedule::peer_memory(hd::weave(orders, {.parameters = 1}), peer_resident,
                                             {.slots = slots, .away = std::move(away)}),
                   {.forward = 1, .per_byte = copy}, hd::Sending::rendezvous);
  double before = 0, last = 0;
  for (std::size_t i = 0; i < timeline.spans().size(); ++i) {
    const hd::Action& action = timeline.schedule()[hd::ActionId{i}];
    if (action.kind == hd::Kind::forward && action.stage == peer_layers - 1)
      before = std::exchange(last, timeline.spans()[i].end);
  }
  return last - before;
}

/// The same by two recurrences: a copy begins when the one before it and the use of its slot's last
/// content have ended, a layer when its copy and the layer before it have.
double pass_by_recurrence(double copy, std::size_t slots, const std::vector<int>& away) {
  std::vector<double> used;
  double copied = 0, done = 0, before = 0;
  for (int p = 0; p < 8; ++p) {
    before = done;
    for (int l = 0; l < peer_layers; ++l) {
      const bool is_away = std::ranges::find(away, l) != away.end();
      if (is_away) {
        copied = std::max(copied, used.size() < slots ? 0 : used[used.size() - slots]) + copy;
        done = std::max(done, copied);
      }
      done += 1;
      if (is_away) used.push_back(done);
    }
  }
  return done - before;
}

/// The line of a number of slots, with spread and with clustered layers.
Comparison peer_line(int slots) {
  std::vector<int> spread, clustered;
  std::vector<hd::Stage> stages;
  for (int k = 0; k < peer_away; ++k) {
    spread.push_back((k + 1) * peer_layers / peer_away - 1);
    clustered.push_back(peer_resident + k);
    stages.push_back(hd::Stage{peer_resident + k});
  }
  const auto places = static_cast<std::size_t>(slots);
  const double even = pass_over_peer(3, slots), together = pass_over_peer(3, slots, stages);
  const bool equal = even == pass_by_recurrence(3, places, spread) &&
                     together == pass_by_recurrence(3, places, clustered);
  return {hd::text("simulated pass over 24 layers, 20 resident, copies of 3 t, slots = ", slots,
                   ": spread, clustered"),
          "little loss", hd::text(even, " t, ", together, " t"),
          "equal to the recurrence; 24 t; more", verdict(equal && even == 24 && together > 24)};
}

/// The line of the messages between stages: the batches of the first prompts of example 25, two
/// groups on two stages. Every text computes the rows of its prompt and of all tokens but the last.
Comparison stage_rows_line() {
  const examples::GptBatchSizes sizes{.groups = 2, .requests = 4, .rows = 16, .context = 256};
  examples::GptBatcher batcher(sizes);
  constexpr int tokens = 48;
  std::size_t expected = 0;
  std::uint32_t number = 0;
  for (const char* prompt : {"#include", "template <", "// The", "namespace std {", "int"}) {
    batcher.submit({.number = number++, .prompt = prompt, .tokens = tokens});
    expected += std::string(prompt).size() + tokens - 1;
  }
  const auto passes = batcher.passes();
  std::size_t rows = 0;
  for (const examples::GptBatchShape& pass : passes) rows += pass.rows;
  return {"rows of all messages between two stages, 5 texts of 48 tokens", "",
          hd::text(rows, " of ", passes.size() * sizes.rows, " that there is room for"),
          hd::text("the rows of the texts, ", expected), verdict(rows == expected)};
}

}  // namespace

std::vector<Comparison> energon() {
  return {
      {"simulated throughput over blocking sends, S=4, 64 requests, c = 0.25 t", "bound 1.25",
       hd::text(gain(0.25), 'x'), "at least 1.18", verdict(gain(0.25) >= 1.18)},
      {"the same with c = 0.1 t", "+10% scaling; bound 1.10", hd::text(gain(0.1), 'x'),
       "at least 1.08", verdict(gain(0.1) >= 1.08)},
      peer_line(2),
      peer_line(1),
      {"the same with copies of 30 t, slots = 2, spread", "none",
       hd::text(pass_over_peer(30, 2), " t"), "120 t: 4 copies",
       verdict(pass_over_peer(30, 2) == 120)},
      stage_rows_line(),
      {"bytes of these messages, counted on 2 to 4 ranks", "", "", "rows x width x sizeof",
       "skipped: scripts/test -R pipeline.generation"},
      {"peer memory executed on 2 ranks and a shaped link, the five cases", "little loss", "",
       "within 10% of the simulated passes", "skipped: scripts/test -R execute.peer_memory_waits"},
      {"time of packed over padded tokens, GPT of the examples", "-37%", "", "at most 0.9",
       "skipped: scripts/test -R kernel.generation"},
      {"latency of tensor parallel inference, packed tokens, as measured", "-37%", "", "none",
       "not reproducible: no 8 devices were at hand"},
  };
}

}  // namespace report
