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
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/simulate/impl/class_prices.hpp>
#include <heddle/simulate/internal/repeated_orders.hpp>
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
    std::vector<std::size_t> adds;  ///< the numbers of the gradients that it adds to
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
  /// A stage behind its last backward. Its copies sum their gradients, which have the numbers
  /// `gradients`, `gradients` + 1, ... in the order of the ranks. Then each copy is updated.
  struct StageEnd {
    std::vector<std::uint32_t> ranks;  ///< in order
    std::size_t gradients = 0;
    PeriodTicks sum = 0;               ///< 0 if there is one copy
    std::vector<PeriodTicks> updates;  ///< by copy
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
  PeriodProgram(const PeriodicOrders& orders, const StageGraph& graph, ClassPrices& prices)
      : m_lists(orders.lists),
        m_samples(orders.samples),
        m_copies(orders.copies),
        m_graph(graph),
        m_trains(trains(orders.sample)),
        m_prices(prices),
        m_name(orders.sample.name),
        m_edges(static_cast<std::size_t>(graph.stages)),
        m_ends(m_edges.size()),
        m_ranks(m_lists.size()) {
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
      m_edges[+graph.edges[e].from].push_back(e);
      m_edges[+graph.edges[e].to].push_back(e);
    }
    find_homes(orders.sample);
    count();
    m_prices.choose_ticks(3 * static_cast<double>(m_step.orders + 1));
    for (std::size_t rank = 0; rank < m_lists.size(); ++rank) make_phases(rank);
    if (!m_trains || m_updates)
      m_ends.clear();
    else
      for (std::uint32_t stage = 0; stage < m_ends.size(); ++stage) {
        StageEnd& end = m_ends[stage];
        if (end.ranks.size() > 1) end.sum = m_prices.work(end.ranks[0], Kind::group, stage);
        for (const std::uint32_t rank : end.ranks)
          end.updates.push_back(m_prices.work(rank, Kind::update, stage));
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
  /// Returns the ends of all stages, or nothing if no updates follow the lists.
  [[nodiscard]] const std::vector<StageEnd>& ends() const noexcept { return m_ends; }
  /// Returns the number of gradients that are summed.
  [[nodiscard]] std::size_t gradients() const noexcept { return m_gradients; }
  /// Returns the number of ranks that divide the microbatches of a stage.
  [[nodiscard]] int copies() const noexcept { return m_copies; }
  /// Returns the step without its times.
  [[nodiscard]] const PeriodicStep& step() const noexcept { return m_step; }

 private:
  /// Finds the ranks of every stage and, if it has copies, of every microbatch of the sample.
  void find_homes(const Orders& sample) {
    m_items = items_of(sample);
    const bool copies = sample.graph.replicas;
    if (copies) m_home.resize(m_ends.size() * m_items);
    for (std::uint32_t rank = 0; rank < sample.ranks.size(); ++rank)
      for (const Order& order : sample.ranks[rank]) {
        m_updates |= order.kind == Kind::update;
        std::vector<std::uint32_t>& ranks = m_ends[+order.stage].ranks;
        if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
        if (copies) m_home[+order.stage * m_items + +order.item] = rank;
      }
    for (StageEnd& end : m_ends) {
      if (end.ranks.size() < 2) continue;
      end.gradients = m_gradients;
      m_gradients += end.ranks.size();
    }
  }

  /// Returns the rank that computes `stage` for the microbatches of an entry of a sample, which is
  /// repeated as `sample` says.
  [[nodiscard]] std::uint32_t home(Stage stage, std::int64_t item, const Repetition& sample) const {
    const std::vector<std::uint32_t>& ranks = m_ends[+stage].ranks;
    if (ranks.size() == 1) return ranks[0];
    const auto of = [&](std::int64_t repetition) {
      return m_home[+stage * m_items + static_cast<std::size_t>(item + repetition * sample.shift)];
    };
    for (std::int64_t r = 1; r < sample.times; ++r)
      if (of(r) != of(0))
        no_period(m_name, text("consecutive microbatches of stage ", stage, " are on ranks ", of(0),
                               " and ", of(r)));
    return of(0);
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
    for (std::size_t place = 0; place < m_lists[number].size(); ++place) {
      const Repetition& repetition = m_lists[number][place];
      const Repetition& sample = m_samples[number][place];
      Phase& phase = rank.phases.emplace_back(Phase{{}, repetition.times, repetition.shift});
      for (std::size_t e = 0; e < repetition.entries.size(); ++e) {
        const RepeatedEntry& entry = repetition.entries[e];
        Unit& unit = phase.units.emplace_back();
        connect(unit, own, entry, sample, e);
        if (entry.fused) {
          const RepeatedEntry& next = repetition.entries[++e];
          connect(unit, own, next, sample, e);
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

  /// Adds the messages of `entry` of rank `own` to its unit, in the order in which weave() adds
  /// them. `number` is the place of the entry in its repetition.
  void connect(Unit& unit, std::uint32_t own, const RepeatedEntry& entry, const Repetition& sample,
               std::size_t number) {
    const StageEnd& end = m_ends[entry.stage];
    if (releases(entry) && end.ranks.size() > 1)
      unit.adds.push_back(
          end.gradients +
          static_cast<std::size_t>(std::ranges::find(end.ranks, own) - end.ranks.begin()));
    if (entry.kind == Kind::backward_weight || entry.kind == Kind::update) return;
    const bool forward = entry.kind == Kind::forward;
    for (const std::size_t e : m_edges[entry.stage]) {
      const StageGraph::Edge& edge = m_graph.edges[e];
      const bool exchanges = edge.at == Kind::backward;
      const std::uint32_t other = home(+edge.from == entry.stage ? edge.to : edge.from,
                                       sample.entries[number].item, sample);
      if (other == own) continue;
      const auto send = [&](std::size_t series, std::uint8_t flags) {
        const auto channel = m_channel_of.try_emplace({own, other}, m_channels.size());
        if (channel.second) m_channels.emplace_back();
        const Transfer<Seconds>& price = m_prices.move(own, other, entry.stage, flags);
        const Message& message = unit.sends.emplace_back(
            Message{series, entry.item, channel.first->second, m_prices.ticks(price.occupancy),
                    m_prices.ticks(price.latency)});
        Channel& passed = m_channels[message.channel];
        passed.occupied |= message.occupancy != 0;
        if (!passed.latency) passed.latency = message.latency;
        passed.unequal |= *passed.latency != message.latency;
      };
      const bool leaves = +edge.from == entry.stage;
      if (!leaves && forward != exchanges) unit.needs.push_back({2 * e, entry.item});
      if (leaves && !forward && !exchanges) unit.needs.push_back({2 * e + 1, entry.item});
      if (leaves && forward) send(2 * e, 0);
      if (!leaves && !forward && !exchanges) send(2 * e + 1, flag::gradient);
    }
  }

  const RepeatedOrders& m_lists;
  const RepeatedOrders& m_samples;
  int m_copies;
  const StageGraph& m_graph;
  bool m_trains;
  bool m_updates = false;  ///< the lists have updates
  ClassPrices& m_prices;
  std::string m_name;
  PeriodicStep m_step;
  std::size_t m_items = 0;                          ///< the microbatches of the sample
  std::vector<std::uint32_t> m_home;                ///< with copies: by stage and microbatch
  std::vector<std::vector<std::uint32_t>> m_edges;  ///< by stage: the edges at it
  std::vector<StageEnd> m_ends;                     ///< by stage
  std::size_t m_gradients = 0;
  std::vector<RankProgram> m_ranks;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> m_channel_of;
  std::vector<Channel> m_channels;
  std::size_t m_longest = 0;
};

}  // namespace heddle::inline v0::impl
