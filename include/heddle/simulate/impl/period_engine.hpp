// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PeriodEngine: the simulation of a PeriodProgram, which skips periods whose times are proven.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/simulate/impl/class_prices.hpp>
#include <heddle/simulate/impl/period_program.hpp>
#include <heddle/simulate/impl/round_log.hpp>
#include <heddle/simulate/periodic.hpp>

namespace heddle::inline v0::impl {

/// One simulation. In a round, every rank computes its entries until it has computed as many as one
/// repetition has, or until it lacks a message. The times do not depend on the rounds: these are
/// only the order in which the simulation visits the entries.
///
/// When RoundLog finds that the times are steady, the ranks jump over as many windows of rounds as
/// they have repetitions for and as the winners of all maxima are proven for. The messages of these
/// windows become runs, which are arithmetic sequences.
class PeriodEngine {
 public:
  explicit PeriodEngine(const PeriodProgram& program)
      : m_program(program),
        m_step(program.step()),
        m_ranks(program.ranks().size()),
        m_channels(program.channels().size()),
        m_series(program.series()),
        m_added(program.gradients()),
        m_log(64 + 4 * std::max(m_ranks.size(), program.longest())) {}

  PeriodicStep run() {
    while (run_round()) {
      if (m_step.simulated > most_simulated)
        no_period(m_program.name(), text("the times of ", m_step.simulated, " of ", m_step.orders,
                                         " orders were not steady"));
      jump();
    }
    return finish();
  }

 private:
  static constexpr std::int64_t most_simulated = 20'000'000;
  static constexpr std::uint32_t run_mark = 0xffffffffu;  ///< a message of a run was received
  static constexpr std::uint32_t end_mark = 0xfffffffeu;  ///< the next rank follows

  using Message = PeriodProgram::Message;
  using Unit = PeriodProgram::Unit;
  using Phase = PeriodProgram::Phase;

  struct RankState {
    std::size_t phase = 0, unit = 0;
    std::int64_t done = 0;  ///< repetitions of the phase
    PeriodTicks clock = 0;
  };
  struct ChannelState {
    PeriodTicks free = 0, delivered = 0;
  };
  /// The arrivals of a jump: microbatch first + k * shift arrives at time + k * growth.
  struct Run {
    std::int64_t first, shift, count;
    PeriodTicks time, growth;
  };
  struct Arrival {
    PeriodTicks time;
    std::uint32_t round;
  };
  /// The arrivals of the messages of one edge, in one direction.
  struct Series {
    std::unordered_map<std::int64_t, Arrival> single;
    std::vector<Run> runs;
  };

  /// Lets every rank compute. Returns false if all are at their ends.
  bool run_round() {
    m_round = {};
    bool open = false, any = false;
    for (std::size_t number = 0; number < m_ranks.size(); ++number) {
      RankState& rank = m_ranks[number];
      const std::vector<Phase>& phases = m_program.ranks()[number].phases;
      m_round.marks.push_back(static_cast<std::uint32_t>(rank.phase));
      m_round.marks.push_back(static_cast<std::uint32_t>(rank.unit));
      if (rank.phase < phases.size()) {
        open = true;
        any |= run_rank(rank, phases[rank.phase]);
      }
      m_round.marks.push_back(end_mark);
      m_round.done.push_back(rank.done);
      m_round.at.push_back(rank.phase);
    }
    if (open && !any) no_period(m_program.name(), "the orders cannot progress");
    for (const RankState& rank : m_ranks) m_round.state.push_back(rank.clock);
    for (const ChannelState& channel : m_channels)
      m_round.state.insert(m_round.state.end(), {channel.free, channel.delivered});
    m_log.add(std::move(m_round));
    ++m_number;
    return open;
  }

  /// Computes at most one repetition. Returns false if the rank lacks a message at once.
  bool run_rank(RankState& rank, const Phase& phase) {
    std::size_t units = 0;
    for (; units < phase.units.size() && run_unit(rank, phase); ++units)
      if (++rank.unit == phase.units.size()) {
        rank.unit = 0;
        if (++rank.done == phase.times) {
          rank.done = 0;
          ++rank.phase;
          ++units;
          break;
        }
      }
    return units > 0;
  }

  /// Computes the next unit. Returns false if it lacks a message.
  bool run_unit(RankState& rank, const Phase& phase) {
    const Unit& unit = phase.units[rank.unit];
    const std::int64_t later = rank.done * phase.shift;
    m_needed.clear();
    for (const Message& message : unit.needs) {
      const auto arrival = find(message.series, message.item + later);
      if (!arrival) return false;
      m_needed.push_back(*arrival);
    }
    m_terms.assign(1, rank.clock);
    for (const Found& found : m_needed) {
      m_terms.push_back(found.time);
      if (found.run) {
        m_round.from_runs.push_back(*found.run);
        m_round.marks.push_back(run_mark);
      } else {
        m_round.marks.push_back(found.age);
        m_round.oldest = std::max(m_round.oldest, found.age);
      }
    }
    rank.clock = (m_terms.size() > 1 || !unit.sends.empty() ? latest() : rank.clock) + unit.time;
    for (const std::size_t gradients : unit.adds) m_added[gradients] = rank.clock;
    const std::size_t start = m_place;
    for (const Message& message : unit.sends) {
      const PeriodProgram::Channel& kind = m_program.channels()[message.channel];
      ChannelState& channel = m_channels[message.channel];
      PeriodTicks arrival = rank.clock;
      std::size_t place = start;
      const auto wait_for = [&](PeriodTicks time) {
        m_terms = {arrival, time};
        arrival = latest();
        place = m_place;
      };
      if (kind.occupied) wait_for(channel.free);
      channel.free = arrival += message.occupancy;
      arrival += message.latency;
      if (kind.unequal) wait_for(channel.delivered);
      channel.delivered = arrival;
      m_series[message.series].single[message.item + later] = {arrival, m_number};
      m_round.sent.push_back({message.series, message.item + later, arrival, place});
    }
    m_step.simulated += unit.entries;
    return true;
  }

  /// Returns the maximum of the terms, and logs it.
  PeriodTicks latest() {
    const PeriodTicks result = *std::ranges::max_element(m_terms);
    m_round.times.insert(m_round.times.end(), m_terms.begin(), m_terms.end());
    m_place = m_round.times.size();
    m_round.times.push_back(result);
    m_round.sizes.push_back(static_cast<std::uint32_t>(m_terms.size()));
    m_round.marks.push_back(m_round.sizes.back());
    return result;
  }

  /// An arrival that was found.
  struct Found {
    PeriodTicks time;
    std::uint32_t age = 0;              ///< rounds since it was sent
    std::optional<Round::FromRun> run;  ///< if it is in a run
  };
  [[nodiscard]] std::optional<Found> find(std::size_t number, std::int64_t item) const {
    const Series& series = m_series[number];
    if (const auto single = series.single.find(item); single != series.single.end())
      return Found{single->second.time, m_number - single->second.round, {}};
    for (std::size_t r = series.runs.size(); r-- > 0;) {
      const Run& run = series.runs[r];
      const std::int64_t place = (item - run.first) / run.shift;
      if (place < 0 || place >= run.count || run.first + place * run.shift != item) continue;
      return Found{run.time + place * run.growth, 0, Round::FromRun{place, run.count, run.shift}};
    }
    return {};
  }

  /// Jumps over as many windows as are proven, if there are any.
  void jump() {
    const auto window = m_log.steady();
    if (!window) return;
    std::int64_t shift = 0;  // microbatches of a window
    std::int64_t windows = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> repetitions(m_ranks.size(), 0);
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
      if (m_log[0].at[r] != m_log[*window].at[r]) return;
      const std::vector<Phase>& phases = m_program.ranks()[r].phases;
      if (m_log[0].at[r] == phases.size()) continue;
      const Phase& phase = phases[m_ranks[r].phase];
      const std::int64_t done = m_log[0].done[r] - m_log[*window].done[r];
      if (done == 0) continue;
      if (shift != 0 && done * phase.shift != shift) return;
      shift = done * phase.shift;
      repetitions[r] = done;
      windows = std::min(windows, (phase.times - 2 - m_ranks[r].done) / done);
    }
    if (shift == 0) return;
    for (std::size_t r = 0; r < *window; ++r)
      for (const Round::FromRun& from : m_log[r].from_runs) {
        if (shift % from.shift != 0) return;
        const std::int64_t step = shift / from.shift;
        const std::int64_t rest = step > 0 ? from.count - 1 - from.place : from.place;
        windows = std::min(windows, rest / (step > 0 ? step : -step));
      }
    if (windows < 2) return;
    windows = m_log.kept(*window, windows);
    if (windows < 2) return;
    skip(*window, windows, shift, repetitions);
  }

  void skip(std::size_t window, std::int64_t windows, std::int64_t shift,
            const std::vector<std::int64_t>& repetitions) {
    for (std::size_t r = 0; r < window; ++r) {
      const Round& now = m_log[r];
      for (const Round::Sent& sent : now.sent) {
        const PeriodTicks growth = now.times[sent.place] - m_log[r + window].times[sent.place];
        m_series[sent.series].runs.push_back(
            {sent.item + shift, shift, windows, sent.arrival + growth, growth});
      }
    }
    auto before = m_log[window].state.begin();
    const auto advance = [&](PeriodTicks& time) { time += windows * (time - *before++); };
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
      m_ranks[r].done += windows * repetitions[r];
      advance(m_ranks[r].clock);
    }
    for (ChannelState& channel : m_channels) {
      advance(channel.free);
      advance(channel.delivered);
    }
    m_step.period = static_cast<int>(shift < 0 ? -shift : shift) * m_program.copies();
    m_log.clear();
  }

  /// Adds the sums of gradients and the updates, and returns the step. The last repetitions of all
  /// entries were simulated, so that m_added has the ends of the last ones.
  PeriodicStep finish() {
    const ClassPrices& prices = m_program.prices();
    std::vector<PeriodTicks> summed(m_ranks.size()), updates(m_ranks.size());
    for (const PeriodProgram::StageEnd& stage : m_program.ends()) {
      PeriodTicks ready = 0;
      if (stage.ranks.size() > 1) {
        // The first rank of a stage sums one stage after another, beside its other work.
        ready = summed[stage.ranks[0]];
        for (std::size_t copy = 0; copy < stage.ranks.size(); ++copy)
          ready = std::max(ready, m_added[stage.gradients + copy]);
        ready += stage.sum;
        summed[stage.ranks[0]] = ready;
      }
      for (std::size_t copy = 0; copy < stage.ranks.size(); ++copy) {
        PeriodTicks& clock = m_ranks[stage.ranks[copy]].clock;
        clock = std::max(clock, ready) + stage.updates[copy];
        updates[stage.ranks[copy]] += stage.updates[copy];
      }
    }
    PeriodTicks end = 0;
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
      end = std::max(end, m_ranks[r].clock);
      m_step.busy.push_back(prices.seconds(m_program.ranks()[r].busy + updates[r]));
    }
    for (const ChannelState& channel : m_channels) end = std::max(end, channel.delivered);
    m_step.makespan = prices.seconds(end);
    return std::move(m_step);
  }

  const PeriodProgram& m_program;
  PeriodicStep m_step;
  std::vector<RankState> m_ranks;
  std::vector<ChannelState> m_channels;
  std::vector<Series> m_series;
  std::vector<PeriodTicks> m_added;  ///< when the last unit has added to each of the gradients
  std::uint32_t m_number = 0;        ///< the number of the present round
  Round m_round;                     ///< the present round
  RoundLog m_log;
  std::vector<Found> m_needed;       ///< the messages that the present unit needs
  std::vector<PeriodTicks> m_terms;  ///< the terms of the present maximum
  std::size_t m_place = 0;           ///< the place of the last maximum in the times of the round
};

}  // namespace heddle::inline v0::impl
