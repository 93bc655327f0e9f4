// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The messages between two stages of a plan, and the time of the busiest of their ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// Messages at a cut, and how long the busiest of their ranks and shared resources is busy.
class CutTraffic {
 public:
  explicit CutTraffic(const Machine& machine)
      : m_machine(&machine),
        m_sends(static_cast<std::size_t>(machine.ranks())),
        m_receives(m_sends.size()),
        m_shared(machine.shared().size()) {}

  void add(Rank from, Rank to, Bytes bytes) {
    const Link& link = m_machine->link(from, to);
    m_sends[+from].add(link.occupancy(bytes), link.latency);
    m_receives[+to].add(link.occupancy(bytes), link.latency);
    if (m_shared.empty()) return;
    const Route route = m_machine->route(from, to, Lane{0});
    for (const auto* way : {&route.out, &route.in})
      for (const SharedId id : *way)
        m_shared[+id].add(m_machine->shared()[+id].occupancy(bytes), link.latency);
  }

  [[nodiscard]] Seconds time() const {
    Seconds longest = 0;
    for (const auto* list : {&m_sends, &m_receives, &m_shared})
      for (const Busy& busy : *list) longest = std::max(longest, busy.occupied + busy.latency);
    return longest;
  }

 private:
  struct Busy {
    Seconds occupied = 0;
    Seconds latency = 0;
    void add(Seconds occupancy, Seconds late) {
      occupied += occupancy;
      latency = std::max(latency, late);
    }
  };
  const Machine* m_machine;
  std::vector<Busy> m_sends, m_receives, m_shared;
};

/// The samples of a rank: [first, last) in units of 1 / (degree of its groups) of a sample.
struct RankSamples {
  Bytes first, last;
};

[[nodiscard]] inline std::vector<RankSamples> samples_by_rank(const PlanStage& stage) {
  const std::size_t degree = stage.ranks.size() / stage.groups();
  std::vector<RankSamples> all;
  Bytes at = 0;
  for (const std::int64_t samples : stage.samples)
    for (std::size_t i = 0; i < degree; ++i) {
      all.push_back({at, at + static_cast<Bytes>(samples)});
      at = all.back().last;
    }
  return all;
}

/// Calls `message(from, to, bytes)` for all messages from stage `s` of a plan to the next one.
template <class Message>
void each_message(const Plan& plan, std::size_t s, const PlanProblem& problem, Message&& message) {
  const PlanStage& from = plan.stages[s];
  const PlanStage& to = plan.stages[s + 1];
  const Bytes output = problem.profile().input_of(to.layers.first);
  const std::vector<RankSamples> sent = samples_by_rank(from), received = samples_by_rank(to);
  const Bytes here = from.ranks.size() / from.groups();
  const Bytes there = to.ranks.size() / to.groups();
  const Bytes unit = here * there;  // the ranges below are in units of 1 / unit of a sample
  const std::optional<Codec>& cast = plan.cast_after(s);
  for (std::size_t i = 0, j = 0; i < sent.size() && j < received.size();) {
    const Bytes first = std::max(sent[i].first * there, received[j].first * here);
    const Bytes end_here = sent[i].last * there, end_there = received[j].last * here;
    const Bytes part = std::min(end_here, end_there) - first;
    Bytes bytes = part / unit * output + (part % unit * output + unit - 1) / unit;
    if (cast) {
      const Bytes element = size_of(problem.options().activation);
      bytes = encoded_bytes(cast->type, cast->block, (bytes + element - 1) / element);
    }
    message(from.ranks[i], to.ranks[j], bytes);
    i += end_here <= end_there;
    j += end_there <= end_here;
  }
}

}  // namespace heddle::inline v0::plan::impl
