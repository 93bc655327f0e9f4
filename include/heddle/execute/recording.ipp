// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of recording.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/quantile.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

namespace impl {

HEDDLE_INLINE Seconds clock_offset(const TransportRef& transport, const ExecuteOptions& options) {
  constexpr int rounds = 8;
  const std::unique_ptr<impl::MessageRing> ring = transport.open(1);
  const auto pass = [&](Rank peer, Seconds& value, bool sends) {
    auto* const data = reinterpret_cast<std::byte*>(&value);
    if (sends)
      ring->send(0, peer, control_lane, data, sizeof value);
    else
      ring->receive(0, peer, control_lane, data, sizeof value);
    impl::finish(
        transport, [&] { return ring->test(0); }, "clock_offset", options,
        [&] { return std::vector{peer}; });
  };
  Seconds offset = 0;
  Seconds shortest = -1;
  for (int r = 1; r < transport.size(); ++r) {
    for (int round = 0; round < rounds; ++round) {
      Seconds value = steady_seconds();
      if (transport.rank() == Rank{0}) {
        pass(Rank{r}, value, false);
        value = steady_seconds();
        pass(Rank{r}, value, true);
      } else if (transport.rank() == Rank{r}) {
        const Seconds asked = value;
        pass(Rank{0}, value, true);
        pass(Rank{0}, value, false);
        const Seconds told = steady_seconds();
        if (shortest >= 0 && told - asked >= shortest) continue;
        shortest = told - asked;
        offset = value - (asked + told) / 2;
      }
    }
  }
  return offset <= shortest / 2 && offset >= -shortest / 2 ? 0 : offset;
}

/// The time in which one step of a Program took place, in rank 0's steady seconds.
struct StepRecord {
  std::uint32_t action;
  Program::Step::Does does;
  Seconds start, end;
};

HEDDLE_INLINE Timeline merge_stamps(const TransportRef& transport, const Program& program,
                                    std::span<const Stamp> stamps, const Clock& clock,
                                    Seconds offset, const ExecuteOptions& options) {
  std::vector<impl::StepRecord> mine;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const Program::Step& step = program.steps[i];
    if (step.does == Program::Step::Does::settle) continue;  // of another rank's action
    mine.push_back({step.action.value, step.does, clock.seconds(stamps[i].start) + offset,
                    clock.seconds(stamps[i].end) + offset});
  }
  std::vector<Span> spans(program.schedule.size());
  std::vector<bool> seen(spans.size(), false);
  for (const auto& records : all_gather<impl::StepRecord>(transport, mine, options)) {
    for (const impl::StepRecord& record : records) {
      Span& span = spans[record.action];
      if (record.does == Program::Step::Does::receive) {
        span.arrival = record.end;
      } else if (record.does == Program::Step::Does::send) {
        span.start = record.start;
        span.end = record.end;
      } else {
        const bool again = seen[record.action];
        seen[record.action] = true;
        span.start = again ? std::min(span.start, record.start) : record.start;
        span.end = span.arrival = again ? std::max(span.end, record.end) : record.end;
      }
    }
  }
  for (std::size_t i = 0; i + 1 < spans.size(); ++i)
    if (program.schedule[ActionId{i}].flags & flag::with_next) spans[i].arrival = spans[i + 1].end;
  return {program.schedule, std::move(spans)};
}

}  // namespace impl

HEDDLE_INLINE void impl::CostSamples::add(const Program& program, std::span<const Stamp> stamps) {
  if (++m_steps == 2) m_samples.clear();  // caches, pages and libraries were cold in the first one
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (program.steps[i].does != Program::Step::Does::run) continue;
    const Key key(program.schedule, program.steps[i].action);
    auto& [samples, added] = m_samples[key];
    Clock::Ticks ticks = stamps[i].end - stamps[i].start;
    if (key.fused) {
      ++i;  // its partner
      ticks += stamps[i].end - stamps[i].start;
    }
    if (samples.size() < most)
      samples.push_back(ticks);
    else
      samples[added % most] = ticks;
    ++added;
  }
}

HEDDLE_INLINE TableCosts impl::CostSamples::costs(const TransportRef& transport,
                                                  const Schedule& schedule, const Clock& clock,
                                                  const ExecuteOptions& options) const {
  const std::vector<Entry> mine = medians(clock);
  return table(schedule, transport.size(), all_gather<Entry>(transport, mine, options));
}

HEDDLE_INLINE std::vector<impl::CostSamples::Entry> impl::CostSamples::medians(
    const Clock& clock) const {
  std::vector<Entry> mine;
  for (const auto& [key, seen] : m_samples) {
    std::vector<Clock::Ticks> ticks = seen.ticks;
    mine.push_back({key, clock.seconds(impl::median(ticks)) - clock.seconds(0)});
  }
  return mine;
}

HEDDLE_INLINE TableCosts impl::CostSamples::table(const Schedule& schedule, int ranks,
                                                  const std::vector<std::vector<Entry>>& everyone) {
  std::uint32_t stages = 1;
  for (const Action& action : schedule.actions()) stages = std::max(stages, action.stage.value + 1);
  TableCosts table(Machine::uniform(ranks, {}, {}), static_cast<int>(stages));
  std::map<Key, Sum> sums;
  for (const auto& entries : everyone) {
    for (const Entry& entry : entries) sums[entry.key].add(entry.median);
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Key key(schedule, ActionId{i});
    expects(key.kind == Kind::move || sums.contains(key), [&] {
      std::string what = text("nothing was recorded of ", key.kind, " on stage ", key.stage);
      if (key.fused) what += text(" fused with ", key.next, " on stage ", key.next_stage);
      return ErrorInfo{"heddle::Runner::costs",
                       std::move(what),
                       {},
                       "run a step with ExecuteOptions::record first"};
    });
    if (key.fused) ++i;
  }
  add_halves(sums);
  for (const auto& [key, sum] : sums) {
    Seconds& cost = key.fused ? table.at(key.kind, key.stage, key.next, key.next_stage)
                              : table.at(key.kind, key.stage);
    cost = sum.mean();
  }
  for (std::size_t r = 0; r < everyone.size(); ++r)
    for (const Entry& entry : everyone[r]) {
      const Key& key = entry.key;
      if (sums.at(key).count == 1) continue;
      Seconds& cost = key.fused ? table.at(Rank{r}, key.kind, key.stage, key.next, key.next_stage)
                                : table.at(Rank{r}, key.kind, key.stage);
      cost = entry.median;
    }
  return table;
}

HEDDLE_INLINE impl::CostSamples::Key::Key(const Schedule& schedule, ActionId id)
    : kind(schedule[id].kind),
      stage(schedule[id].stage),
      fused((schedule[id].flags & flag::with_next) != 0) {
  if (!fused) return;
  next = schedule[ActionId{+id + 1}].kind;
  next_stage = schedule[ActionId{+id + 1}].stage;
}

HEDDLE_INLINE void impl::CostSamples::add_halves(std::map<Key, Sum>& sums) {
  std::map<Kind, Sum> kinds;  // alone
  for (const auto& [key, sum] : sums)
    if (!key.fused) kinds[key.kind].add(sum.mean());
  std::map<Key, Sum> halves;
  for (const auto& [key, sum] : sums) {
    if (!key.fused) continue;
    const Key first(key.kind, key.stage), second(key.next, key.next_stage);
    const auto usual = [&](const Key& half) -> Seconds {
      if (const auto alone = sums.find(half); alone != sums.end()) return alone->second.mean();
      const auto others = kinds.find(half.kind);
      return others != kinds.end() ? others->second.mean() : 0;
    };
    const Seconds one = usual(first), other = usual(second);
    const double part = one > 0 && other > 0 ? one / (one + other) : 0.5;
    if (!sums.contains(first)) halves[first].add(part * sum.mean());
    if (!sums.contains(second)) halves[second].add((1 - part) * sum.mean());
  }
  sums.merge(halves);
}

}  // namespace heddle::inline v0
