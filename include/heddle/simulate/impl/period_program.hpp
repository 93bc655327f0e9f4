// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PeriodProgram: RepeatedOrders with their prices and messages, for PeriodEngine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/simulate/impl/class_prices.hpp>
#include <heddle/simulate/impl/repeated_orders.hpp>
#include <heddle/simulate/periodic.hpp>

namespace heddle::inline v0::impl {

/// The work and the messages of every rank.
class PeriodProgram {
 public:
  /// A message to or from another rank, in the first repetition.
  struct Message {
    std::size_t series;
    std::int64_t item;
    std::size_t channel = 0;
    PeriodTicks occupancy = 0, latency = 0;
  };
  /// An entry or a fused pair, with the messages that it needs and sends.
  struct Unit {
    PeriodTicks time = 0;
    std::int64_t entries = 1;
    std::vector<Message> needs, sends;
  };
  /// The units of a Repetition.
  struct Phase {
    std::vector<Unit> units;
    std::int64_t times, shift;
  };
  /// The entries of one rank.
  struct RankProgram {
    std::vector<Phase> phases;
    PeriodTicks busy = 0;
  };
  /// The queue between two ranks.
  struct Channel {
    /// Any message occupies it. Otherwise it is free whenever its rank has computed.
    bool occupied = false;
    /// The latencies differ. Otherwise the messages arrive in order by themselves.
    bool unequal = false;
    std::optional<PeriodTicks> latency;  ///< the latency of the first message
  };

  /// @throws infeasible if the orders have no period that can be skipped.
  PeriodProgram(const RepeatedOrders& lists, const StageGraph& graph, bool trains,
                ClassPrices& prices, std::string name)
      : m_lists(lists),
        m_graph(graph),
        m_trains(trains),
        m_prices(prices),
        m_name(std::move(name)),
        m_edges(static_cast<std::size_t>(graph.stages)),
        m_ranks(lists.size()) {
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
      m_edges[+graph.edges[e].from].push_back(e);
      m_edges[+graph.edges[e].to].push_back(e);
    }
    find_homes();
    count();
    m_prices.choose_ticks(3 * static_cast<double>(m_step.orders + 1));
    for (std::size_t rank = 0; rank < lists.size(); ++rank) make_phases(rank);
    if (m_trains)
      for (std::uint32_t stage = 0; stage < m_home.size(); ++stage) {
        m_updates.resize(m_ranks.size(), 0);
        m_updates[m_home[stage]] += m_prices.work(m_home[stage], Kind::update, stage);
      }
  }

  [[nodiscard]] const std::string& name() const noexcept { return m_name; }
  [[nodiscard]] const ClassPrices& prices() const noexcept { return m_prices; }
  [[nodiscard]] const std::vector<RankProgram>& ranks() const noexcept { return m_ranks; }
  [[nodiscard]] const std::vector<Channel>& channels() const noexcept { return m_channels; }
  /// Returns the number of series: two for each edge, its outputs and its gradients.
  [[nodiscard]] std::size_t series() const noexcept { return 2 * m_graph.edges.size(); }
  /// Returns the most units of a repetition. A rank may compute one of them in a round, so that a
  /// period may have as many rounds.
  [[nodiscard]] std::size_t longest() const noexcept { return m_longest; }
  /// Returns the time of the updates of a rank, which follow its list.
  [[nodiscard]] PeriodTicks updates(std::size_t rank) const {
    return m_updates.empty() ? 0 : m_updates[rank];
  }
  /// Returns the step without its times.
  [[nodiscard]] const PeriodicStep& step() const noexcept { return m_step; }

 private:
  static constexpr std::uint32_t nowhere = 0xffffffffu;

  void find_homes() {
    m_home.assign(static_cast<std::size_t>(m_graph.stages), nowhere);
    for (std::uint32_t rank = 0; rank < m_lists.size(); ++rank)
      for (const Repetition& repetition : m_lists[rank])
        for (const RepeatedEntry& entry : repetition.entries) {
          if (entry.kind > Kind::backward) no_period(m_name, "the orders have updates");
          std::uint32_t& home = m_home[entry.stage];
          if (home != nowhere && home != rank)
            no_period(m_name, text("stage ", entry.stage, " is on ranks ", home, " and ", rank));
          home = rank;
        }
  }

  /// Counts the orders and messages, and finds the peaks of live activations.
  void count() {
    for (std::uint32_t rank = 0; rank < m_lists.size(); ++rank) {
      std::int64_t live = 0, peak = 0;
      for (const Repetition& repetition : m_lists[rank]) {
        std::int64_t change = 0, highest = 0;
        for (std::size_t e = 0; e < repetition.entries.size(); ++e) {
          const RepeatedEntry& entry = repetition.entries[e];
          if (entry.kind == Kind::forward) ++change;
          // A pair keeps the activations of both of its entries until it ends.
          const bool second = e > 0 && repetition.entries[e - 1].fused;
          std::int64_t freed = releases(entry);
          if (second) freed += releases(repetition.entries[e - 1]);
          highest = std::max(highest, change);
          if (!entry.fused) change -= freed;
        }
        peak = std::max({peak, live + highest, live + (repetition.times - 1) * change + highest});
        live += repetition.times * change;
        m_step.orders += repetition.times * static_cast<std::int64_t>(repetition.entries.size());
      }
      m_step.live.push_back(m_trains ? peak : 0);
    }
  }
  [[nodiscard]] static std::int64_t releases(const RepeatedEntry& entry) {
    return entry.kind == Kind::backward || entry.kind == Kind::backward_weight;
  }

  void make_phases(std::size_t number) {
    RankProgram& rank = m_ranks[number];
    const auto own = static_cast<std::uint32_t>(number);
    for (const Repetition& repetition : m_lists[number]) {
      Phase& phase = rank.phases.emplace_back(Phase{{}, repetition.times, repetition.shift});
      for (std::size_t e = 0; e < repetition.entries.size(); ++e) {
        const RepeatedEntry& entry = repetition.entries[e];
        Unit& unit = phase.units.emplace_back();
        connect(unit, entry);
        if (entry.fused) {
          const RepeatedEntry& next = repetition.entries[++e];
          connect(unit, next);
          unit.entries = 2;
          unit.time = m_prices.pair(own, entry.kind, entry.stage, next.kind, next.stage);
        } else {
          unit.time = m_prices.work(own, entry.kind, entry.stage);
        }
        rank.busy += unit.time * phase.times;
        m_longest = std::max(m_longest, phase.units.size());
        m_step.messages += phase.times * static_cast<std::int64_t>(unit.sends.size());
      }
    }
  }

  /// Adds the messages of `entry` to its unit, in the order in which weave() adds them.
  void connect(Unit& unit, const RepeatedEntry& entry) {
    if (entry.kind == Kind::backward_weight) return;
    const bool forward = entry.kind == Kind::forward;
    for (const std::size_t e : m_edges[entry.stage]) {
      const StageGraph::Edge& edge = m_graph.edges[e];
      const bool exchanges = edge.at == Kind::backward;
      if (m_home[+edge.from] == m_home[+edge.to]) continue;
      const auto send = [&](Stage from, Stage to, std::size_t series, std::uint8_t flags) {
        const auto channel =
            m_channel_of.try_emplace({m_home[+from], m_home[+to]}, m_channels.size());
        if (channel.second) m_channels.emplace_back();
        const Transfer<Seconds>& price =
            m_prices.move(m_home[+from], m_home[+to], from.value, flags);
        const Message& message = unit.sends.emplace_back(
            Message{series, entry.item, channel.first->second, m_prices.ticks(price.occupancy),
                    m_prices.ticks(price.latency)});
        Channel& passed = m_channels[message.channel];
        passed.occupied |= message.occupancy != 0;
        if (!passed.latency) passed.latency = message.latency;
        passed.unequal |= *passed.latency != message.latency;
      };
      if (edge.to == entry.stage && forward != exchanges) unit.needs.push_back({2 * e, entry.item});
      if (edge.from == entry.stage && !forward && !exchanges)
        unit.needs.push_back({2 * e + 1, entry.item});
      if (edge.from == entry.stage && forward) send(edge.from, edge.to, 2 * e, 0);
      if (edge.to == entry.stage && !forward && !exchanges)
        send(edge.to, edge.from, 2 * e + 1, flag::gradient);
    }
  }

  const RepeatedOrders& m_lists;
  const StageGraph& m_graph;
  bool m_trains;
  ClassPrices& m_prices;
  std::string m_name;
  PeriodicStep m_step;
  std::vector<std::uint32_t> m_home;                ///< by stage: its rank
  std::vector<std::vector<std::uint32_t>> m_edges;  ///< by stage: the edges at it
  std::vector<RankProgram> m_ranks;
  std::vector<PeriodTicks> m_updates;  ///< by rank; empty if there are none
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> m_channel_of;
  std::vector<Channel> m_channels;
  std::size_t m_longest = 0;
};

}  // namespace heddle::inline v0::impl
