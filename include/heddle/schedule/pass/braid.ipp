// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of braid.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/braid.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one exchange_sums() call.
class SumExchanger {
 public:
  SumExchanger(const Schedule& schedule, int lines)
      : m_schedule(schedule),
        m_lines(static_cast<std::size_t>(lines)),
        m_builder(Builder::like(schedule, [](const Buffer& buffer) { return buffer; })) {}

  [[nodiscard]] Schedule run() && {
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const Kind kind = m_schedule[ActionId{i}].kind;
      if (kind != Kind::forward && kind != Kind::backward) {
        add(ActionId{i});
        continue;
      }
      const Rank rank = m_schedule[m_schedule[ActionId{i}].queue].from;
      for (std::size_t copy = 0; copy < m_lines; ++copy) {
        check_copy(i, i + copy);
        add(ActionId{i + copy});
      }
      for (auto each = m_pending.begin(); each != m_pending.end();) {
        const auto& [number, pending] = *each++;  // flush() erases it
        if (pending.rank == rank) flush(number);
      }
      send(i, rank);
      i += m_lines - 1;
    }
    while (!m_pending.empty()) flush(m_pending.begin()->first);
    return std::move(m_builder).build();
  }

 private:
  using Part = std::pair<BufferId, std::uint32_t>;
  /// A sum whose messages are in flight, and the moves that wait for it.
  struct Pending {
    Rank rank;  ///< of the first copy
    Stage stage;
    std::vector<std::pair<Use, Use>> sums = {};  ///< from, into
    std::vector<ActionId> moves = {};
    std::vector<Part> parts = {};  ///< that are not complete
  };

  void check_copy(std::size_t first, std::size_t copy) const {
    const auto same = [&] {
      if (copy >= m_schedule.size()) return false;
      const Action &a = m_schedule[ActionId{first}], &b = m_schedule[ActionId{copy}];
      return a.kind == b.kind && a.stage == b.stage && a.item == b.item &&
             m_schedule.uses(ActionId{first}).size() == m_schedule.uses(ActionId{copy}).size();
    };
    expects(same(), [&] {
      return ErrorInfo{
          "heddle::schedule::exchange_sums", "an action has too few copies",
          text(schedule::action_text(m_schedule, ActionId{first}), ", lines = ", m_lines),
          "make the copies with data_parallel() and an axis of `shards`"};
    });
  }

  /// Adds an action behind the sums that it needs. A move of an incomplete sum waits with it.
  void add(ActionId id) {
    const auto uses = m_schedule.uses(id);
    if (m_schedule[id].kind == Kind::move)
      if (const auto found = m_incomplete.find({uses[0].buffer, uses[0].first});
          found != m_incomplete.end()) {
        Pending& pending = m_pending.at(found->second);
        const Part arrives{uses[1].buffer, uses[1].first};
        pending.moves.push_back(id);
        pending.parts.push_back(arrives);
        m_incomplete[arrives] = found->second;
        return;
      }
    for (const Use& use : uses)
      for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
        if (const auto found = m_incomplete.find({use.buffer, part}); found != m_incomplete.end())
          flush(found->second);
    m_builder.add(m_schedule, id, uses);
  }

  void flush(std::size_t number) {
    const Pending pending = std::move(m_pending.at(number));
    m_pending.erase(number);
    for (const Part& part : pending.parts) m_incomplete.erase(part);
    for (const auto& [from, into] : pending.sums)
      m_builder.add(
          {Kind::combine, m_builder.local(m_builder[into.buffer].rank, Lane{1}), pending.stage},
          {from, into});
    for (const ActionId id : pending.moves) m_builder.add(m_schedule, id, m_schedule.uses(id));
  }

  /// Sends the results of the copies from `first` on to each other.
  void send(std::size_t first, Rank rank) {
    const Action& action = m_schedule[ActionId{first}];
    const bool forward = action.kind == Kind::forward;
    Pending pending{rank, action.stage};
    for (std::size_t u = 0; u < m_schedule.uses(ActionId{first}).size(); ++u) {
      const Use& use = m_schedule.uses(ActionId{first})[u];
      const auto& label = m_schedule[m_schedule[use.buffer].label];
      if (!use.writes() || label != (forward ? role::output : role::input_grad)) continue;
      for (std::size_t to = 0; to < m_lines; ++to)
        for (std::size_t from = 0; from < m_lines; ++from)
          if (from != to) exchange(first, u, from, to, pending);
    }
    if (pending.sums.empty()) return;
    for (const Part& part : pending.parts) m_incomplete[part] = m_created;
    m_pending.emplace(m_created++, std::move(pending));
  }
  void exchange(std::size_t first, std::size_t u, std::size_t from, std::size_t to,
                Pending& pending) {
    const Action& action = m_schedule[ActionId{first}];
    const Use& source = m_schedule.uses(ActionId{first + from})[u];
    const Use& target = m_schedule.uses(ActionId{first + to})[u];
    const auto flags = action.kind == Kind::backward ? flag::gradient : std::uint8_t{0};
    const Use arrived = schedule::write(arrival(target.buffer, from), target.first);
    m_builder.add({Kind::move,
                   m_builder.queue(m_schedule[source.buffer].rank, m_schedule[target.buffer].rank),
                   action.stage, action.item, flags},
                  {schedule::read(source.buffer, source.first), arrived});
    pending.sums.emplace_back(schedule::read(arrived.buffer, arrived.first),
                              schedule::use(Access::update, target.buffer, target.first));
    pending.parts.emplace_back(target.buffer, target.first);
  }
  /// The buffer of the parts that line `from` sends to be added to `into`.
  [[nodiscard]] BufferId arrival(BufferId into, std::size_t from) {
    const auto found = m_arrivals.find({into, from});
    if (found != m_arrivals.end()) return found->second;
    Buffer buffer = m_schedule[into];
    buffer.label = m_builder.label("arrived_part");
    return m_arrivals[{into, from}] = m_builder.add_buffer(buffer);
  }

  const Schedule& m_schedule;
  std::size_t m_lines;
  Builder m_builder;
  std::size_t m_created = 0;
  std::map<std::size_t, Pending> m_pending;  ///< in the order of their actions
  std::map<Part, std::size_t> m_incomplete;  ///< the pending sum that completes a part
  std::map<std::pair<BufferId, std::size_t>, BufferId> m_arrivals;
};

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Orders braid(const Orders& orders, int units) {
  constexpr const char* where = "heddle::schedule::braid";
  expects(units >= 1, [&] {
    return ErrorInfo{where, "a stage has at least one unit", text("units = ", units),
                     "give the number of units, such as 2 for an attention and an MLP"};
  });
  const auto complain = [&](bool fits, const char* what, const char* fix) {
    expects(fits, [&] { return ErrorInfo{where, what, text("'", orders.name, "'"), fix}; });
  };
  complain(orders.shares.stages.empty(), "ranks divide the samples of a stage",
           "give each stage to one rank");
  int stages = orders.graph.stages;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) {
      complain(order.kind == Kind::forward || order.kind == Kind::backward,
               "there are updates or split backwards",
               "braid orders of forwards and whole backwards, such as those of combined_1f1b()");
      stages = std::max(stages, static_cast<int>(+order.stage) + 1);
    }
  Orders braided = orders;
  braided.name = text(orders.name, " braided in ", units, " units");
  const auto unit_of = [units](Stage stage, int unit) {
    return Stage{static_cast<int>(+stage) * units + unit};
  };
  StageGraph& graph = braided.graph;
  if (graph.stages == 0) graph = StageGraph::chain(stages);
  for (StageGraph::Edge& edge : graph.edges) {
    complain(edge.at == Kind::forward, "the graph has edges at backward passes",
             "give a graph whose edges are at forward passes only");
    edge.from = unit_of(edge.from, units - 1);
    edge.to = unit_of(edge.to, 0);
  }
  for (int s = 0; s < stages; ++s)
    for (int unit = 1; unit < units; ++unit)
      graph.edges.push_back({unit_of(Stage{s}, unit - 1), unit_of(Stage{s}, unit)});
  graph.stages = stages * units;
  for (auto& list : braided.ranks) {
    const std::vector<Order> passes = std::move(list);
    list.clear();
    const auto add = [&](const Order& pass, int unit) {
      const bool forward = pass.kind == Kind::forward;
      list.push_back(
          {pass.kind, unit_of(pass.stage, forward ? unit : units - 1 - unit), pass.item});
    };
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const bool pair = passes[i].fused && i + 1 < passes.size();
      for (int unit = 0; unit < units; ++unit) {
        add(passes[i], unit);
        if (pair) add(passes[i + 1], unit);
      }
      i += pair ? 1 : 0;
    }
  }
  return braided;
}

HEDDLE_INLINE Schedule exchange_sums(const Schedule& schedule, int lines) {
  expects(lines >= 1, [&] {
    return ErrorInfo{"heddle::schedule::exchange_sums", "a layer has at least one rank",
                     text("lines = ", lines), "give the number of ranks that divide each layer"};
  });
  if (lines == 1) return schedule;
  return heddle::impl::SumExchanger(schedule, lines).run();
}

}  // namespace schedule

}  // namespace heddle::inline v0
