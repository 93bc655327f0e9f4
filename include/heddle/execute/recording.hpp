// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Recording: from the stamps of one rank to the Timeline of all, and to the costs that predict it.

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

/// Seconds to add to this rank's steady clock to get rank 0's. Zero where the difference is within
/// what the messages can tell (half a round trip), as between processes of one host.
/// Method: the exchange with the shortest round trip of several, as in NTP. All ranks must call it.
template <Transport T>
[[nodiscard]] Seconds clock_offset(T& transport, const ExecuteOptions& options = {}) {
  constexpr int rounds = 8;
  const auto pass = [&](Rank peer, Seconds& value, bool sends) {
    auto* const data = reinterpret_cast<std::byte*>(&value);
    auto request = sends ? transport.send(peer, control_lane, data, sizeof value)
                         : transport.receive(peer, control_lane, data, sizeof value);
    finish(transport, request, "clock_offset", options);
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
  return std::abs(offset) <= shortest / 2 ? 0 : offset;
}

/// The Timeline of all ranks from the stamps of each. All ranks must call it; all get it.
/// A move starts when its sender posted it, ends when the sender saw it complete and arrives when
/// the receiver did; a group starts with its first member and ends with its last; a fused action
/// arrives when its partner has ended.
template <Transport T>
[[nodiscard]] Timeline merge_stamps(T& transport, const Program& program,
                                    std::span<const Stamp> stamps, const Clock& clock,
                                    Seconds offset, const ExecuteOptions& options = {}) {
  struct Record {
    std::uint32_t action;
    Step::Does does;
    Seconds start, end;
  };
  std::vector<Record> mine;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const Step& step = program.steps[i];
    if (step.does == Step::Does::settle) continue;  // of another rank's action
    mine.push_back({step.action.value, step.does, clock.seconds(stamps[i].start) + offset,
                    clock.seconds(stamps[i].end) + offset});
  }
  std::vector<Span> spans(program.schedule.size());
  std::vector<bool> seen(spans.size(), false);
  const auto everyone = all_gather_values<Record>(transport, mine, options);
  for (const auto& records : everyone) {
    for (const Record& record : records) {
      Span& span = spans[record.action];
      if (record.does == Step::Does::receive) {
        span.arrival = record.end;
      } else if (record.does == Step::Does::send) {
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

/// Durations seen per (kind, stage), and per fused pair of them, on this rank.
class CostSamples {
 public:
  /// Adds those of one recorded step. A pair is one sample, that of its two halves together.
  void add(const Program& program, std::span<const Stamp> stamps) {
    for (std::size_t i = 0; i < stamps.size(); ++i) {
      if (program.steps[i].does != Step::Does::run) continue;
      const Key key(program.schedule, program.steps[i].action);
      auto& [samples, added] = m_samples[key];
      Ticks ticks = stamps[i].end - stamps[i].start;
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

  /// The median per (kind, stage) and per fused pair, averaged over the ranks that have it. Of a
  /// half that was nowhere alone an estimate: its part of the pair's time, by what the two halves
  /// take alone, there or else on average over the stages; the half of it where that is not known.
  /// A group's time holds the wait for its other members. All ranks must call it.
  /// @throws contract_error on every rank, where nothing was recorded of a kind in the schedule.
  template <Transport T>
  [[nodiscard]] TableCosts costs(T& transport, const Schedule& schedule, const Clock& clock,
                                 const ExecuteOptions& options = {}) const {
    struct Entry {
      Key key;
      Seconds median;
    };
    std::vector<Entry> mine;
    for (const auto& [key, seen] : m_samples) {
      std::vector<Ticks> sorted = seen.ticks;
      const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
      std::nth_element(sorted.begin(), middle, sorted.end());
      mine.push_back({key, clock.seconds(*middle) - clock.seconds(0)});
    }
    std::uint32_t stages = 1;
    for (const Action& action : schedule.actions())
      stages = std::max(stages, action.stage.value + 1);
    TableCosts table(Machine::uniform(transport.size(), {}, {}), static_cast<int>(stages));
    std::map<Key, Sum> sums;
    for (const auto& entries : all_gather_values<Entry>(transport, mine, options)) {
      for (const Entry& entry : entries) sums[entry.key].add(entry.median);
    }
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Key key(schedule, ActionId{i});
      expects(key.kind == Kind::move || sums.contains(key), [&] {
        std::string what = text("nothing was recorded of ", key.kind, " on stage ", key.stage);
        if (key.fused) what += text(" fused with ", key.next, " on stage ", key.next_stage);
        return Complaint{"heddle::Runner::costs",
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
    return table;
  }

 private:
  static constexpr std::size_t most = 4096;
  /// An action, or one and that which it is fused with.
  struct Key {
    Kind kind = Kind::user;
    Stage stage = {};
    bool fused = false;
    Kind next = Kind::user;
    Stage next_stage = {};

    Key() = default;
    Key(Kind alone, Stage at) : kind(alone), stage(at) {}
    Key(const Schedule& schedule, ActionId id)
        : kind(schedule[id].kind),
          stage(schedule[id].stage),
          fused((schedule[id].flags & flag::with_next) != 0) {
      if (!fused) return;
      next = schedule[ActionId{+id + 1}].kind;
      next_stage = schedule[ActionId{+id + 1}].stage;
    }
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// Of medians.
  struct Sum {
    Seconds all = 0;
    int count = 0;

    void add(Seconds each) {
      all += each;
      ++count;
    }
    [[nodiscard]] Seconds mean() const { return all / count; }
  };

  /// Adds estimates of the halves of pairs that were nowhere alone.
  static void add_halves(std::map<Key, Sum>& sums) {
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

  /// The latest durations of one key: a ring once it is full.
  struct Seen {
    std::vector<Ticks> ticks;
    std::size_t added = 0;
  };
  std::map<Key, Seen> m_samples;
};

}  // namespace heddle::inline v0
