// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Implements weave(): makes the storage of the stages and one list of the actions of all ranks.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/order/impl/fault_finder.hpp>
#include <heddle/schedule/order/impl/progress.hpp>
#include <heddle/schedule/order/impl/stage_places.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// The state of one weave() call.
class Weaver {
 public:
  Weaver(const Orders& orders, const StageSizes& sizes)
      : m_orders(orders),
        m_sizes(sizes),
        m_trains(trains(orders)),
        m_builder(orders.name, static_cast<int>(orders.ranks.size())),
        m_graph(graph_of(orders)),
        m_stages(orders, m_graph),
        m_done(m_stages.nodes().size() * m_stages.items()) {}

  /// Returns the Schedule.
  Schedule run() {
    make_buffers();
    add_all();
    if (m_trains && !m_stages.updates()) update_all();
    return std::move(m_builder).build();
  }

 private:
  using Edge = StagePlaces::Edge;
  using Node = StagePlaces::Node;

  /// The actions of a microbatch at a stage that are woven.
  struct Done {
    bool forward = false;
    bool backward = false;  ///< I or B
    bool weights = false;   ///< W or B
  };

  [[nodiscard]] const Edge& edge_at(std::uint32_t number) const { return m_stages.edges()[number]; }

  BufferId make(const char* name, const StagePlace& place, std::uint32_t parts, Bytes each,
                bool transient = true) {
    return m_builder.add_buffer({.rank = place.rank,
                                 .parts = parts,
                                 .stage = place.stage,
                                 .label = m_builder.label(name),
                                 .type = m_sizes.type,
                                 .transient = transient,
                                 .bytes = each * parts});
  }

  void make_buffers() {
    const auto items = static_cast<std::uint32_t>(m_stages.items());
    std::size_t buffers = 0;
    std::size_t parts = 0;
    std::size_t moves = 0;
    for (const StagePlace& place : m_stages.places()) {
      std::size_t many = 2 + place.splits;
      for (const StagePlace::End& end : place.in) many += 1 + end.crosses;
      for (const StagePlace::End& end : place.out) many += end.crosses;
      for (const StagePlace::End& end : place.in)
        moves += end.crosses ? (m_trains ? 2 : 1) * m_stages.items() : 0;
      buffers += many + 2;
      parts += many * m_stages.items() + 2;
    }
    m_builder.reserve_buffers(buffers, parts);
    for (StagePlace& place : m_stages.places()) {
      const Node& node = m_stages.nodes()[+place.stage];
      const Bytes activation = m_sizes.activation;
      place.queue = m_builder.local(place.rank);
      if (!place.out.empty()) place.output = make(role::output, place, items, activation);
      if (m_trains) {
        place.saved = make(role::saved, place, items, m_sizes.saved);
        if (place.splits) place.delta = make(role::delta, place, items, m_sizes.delta);
        place.gradients = make(role::gradients, place, 1, m_sizes.parameters);
      }
      place.weights = make(role::weights, place, place.versions.parts, m_sizes.parameters, false);
      for (std::size_t i = 0; i < place.in.size(); ++i) {
        const bool exchanges = edge_at(node.in[i]).exchanges;
        StagePlace::End& end = place.in[i];
        if (end.crosses)
          end.received = make(exchanges ? role::exchanged : role::input, place, items, activation);
        if (m_trains && !exchanges) end.sent = make(role::input_grad, place, items, activation);
      }
      for (std::size_t o = 0; o < place.out.size(); ++o)
        if (m_trains && place.out[o].crosses && !edge_at(node.out[o]).exchanges)
          place.out[o].received = make(role::output_grad, place, items, activation);
    }
    // This upper bound is exact for chains without split backward passes.
    const std::size_t uses = m_trains ? 5 * m_stages.entries() : 3 * m_stages.entries();
    m_builder.reserve_actions(m_stages.entries() + moves + m_stages.places().size(),
                              uses + 2 * moves + 64);
  }

  /// Adds all actions, in the order in which they would start if they all took the same time.
  void add_all() {
    Progress progress(m_orders, m_graph, Sight::next_sweep);
    const bool complete = progress.run([this](Rank rank, std::span<const Order> together) {
      for (const Order& order : together) compute(order, rank);
      for (const Order& order : together) deliver(order);
    });
    if (!complete) throw infeasible(why_stuck(progress));
    check_complete();
  }

  /// Returns why the orders cannot run to their ends: a wrong or missing action, if there is one,
  /// and the heads that wait.
  [[nodiscard]] ErrorInfo why_stuck(const Progress& progress) const {
    if (const auto fault = FaultFinder(m_orders).wrong_or_missing())
      return m_stages.complaint(fault->what, text(fault->why, "; so ", progress.stuck()));
    return m_stages.complaint("the orders cannot progress", progress.stuck(),
                              "reorder one of these actions");
  }

  void check_complete() const {
    const std::size_t items = m_stages.items();
    for (std::size_t i = 0; i < m_done.size(); ++i) {
      const char* lacks = !m_done[i].forward                ? "F"
                          : m_trains && !m_done[i].backward ? "I or B"
                          : m_trains && !m_done[i].weights  ? "W or B"
                                                            : nullptr;
      expects(lacks == nullptr, [&] { return m_stages.unfinished(i / items, i % items, lacks); });
    }
  }

  /// Notes that `order` is woven. Throws contract_error if it was woven before.
  void note(const Order& order, Rank rank) {
    Done& done = m_done[+order.stage * m_stages.items() + +order.item];
    bool& half = order.kind == Kind::forward           ? done.forward
                 : order.kind == Kind::backward_weight ? done.weights
                                                       : done.backward;
    expects(!half && !(order.kind == Kind::backward && done.weights), [&] {
      return m_stages.complaint("an action appears twice", text(order, " on rank ", rank));
    });
    half = true;
    if (order.kind == Kind::backward) done.weights = true;
  }

  /// Returns the buffer that holds the value of an edge into `place` on its rank. The value was
  /// received or made there.
  [[nodiscard]] BufferId arrived(const StagePlace& place, const Edge& edge, Item item) {
    const StagePlace& source = m_stages.at(edge.from, item);
    return source.rank == place.rank ? source.output : place.in[edge.in_slot].received;
  }
  /// Returns the buffer that holds the gradient of an edge out of `place` on its rank.
  [[nodiscard]] BufferId returned(const StagePlace& place, const Edge& edge, Item item) {
    const StagePlace& target = m_stages.at(edge.to, item);
    return target.rank == place.rank ? target.in[edge.in_slot].sent
                                     : place.out[edge.out_slot].received;
  }

  void compute(const Order& order, Rank rank) {
    using namespace schedule;
    if (order.kind == Kind::update) return update_now(order, rank);
    note(order, rank);
    StagePlace& place = m_stages.at(order.stage, order.item);
    const Node& node = m_stages.nodes()[+order.stage];
    const std::uint32_t m = order.item.value;
    m_uses.clear();
    for (const std::uint32_t e : node.in)
      if (!edge_at(e).exchanges) m_uses.push_back(read(arrived(place, edge_at(e), order.item), m));
    const Use weights = read(place.weights, place.versions.part_for(order.item));
    if (order.kind == Kind::forward) {
      if (!place.out.empty()) m_uses.push_back(write(place.output, m));
      if (m_trains) m_uses.push_back(write(place.saved, m));
      m_uses.push_back(weights);
    } else {
      m_uses.push_back(read(place.saved, m));
      for (const std::uint32_t e : node.out)
        if (!edge_at(e).exchanges)
          m_uses.push_back(read(returned(place, edge_at(e), order.item), m));
      for (const std::uint32_t e : node.in)
        if (edge_at(e).exchanges) m_uses.push_back(read(arrived(place, edge_at(e), order.item), m));
      m_uses.push_back(weights);
      if (order.kind != Kind::backward_weight) {
        for (const std::uint32_t e : node.in)
          if (!edge_at(e).exchanges) m_uses.push_back(write(place.in[edge_at(e).in_slot].sent, m));
      }
      if (order.kind == Kind::backward_input) m_uses.push_back(write(place.delta, m));
      if (order.kind == Kind::backward_weight) m_uses.push_back(read(place.delta, m));
      if (order.kind != Kind::backward_input)
        m_uses.push_back(
            use(std::exchange(place.accumulates, true) ? Access::update : Access::write,
                place.gradients));
    }
    m_builder.add({order.kind, place.queue, order.stage, order.item,
                   order.fused ? flag::with_next : std::uint8_t{0}},
                  m_uses);
  }

  /// Adds the moves of the result of `order` to the ranks that need it.
  void deliver(const Order& order) {
    if (order.kind == Kind::backward_weight || order.kind == Kind::update) return;
    StagePlace& place = m_stages.at(order.stage, order.item);
    const Node& node = m_stages.nodes()[+order.stage];
    if (order.kind == Kind::forward) {
      for (const std::uint32_t e : node.out) {
        const Edge& edge = edge_at(e);
        const StagePlace& target = m_stages.at(edge.to, order.item);
        move(place.output, target.in[edge.in_slot].received, place, place.out[edge.out_slot],
             target, order, 0);
      }
    } else {
      for (const std::uint32_t e : node.in) {
        const Edge& edge = edge_at(e);
        if (edge.exchanges) continue;
        const StagePlace& target = m_stages.at(edge.from, order.item);
        StagePlace::End& end = place.in[edge.in_slot];
        move(end.sent, target.out[edge.out_slot].received, place, end, target, order,
             flag::gradient);
      }
    }
  }

  void move(BufferId from, BufferId to, const StagePlace& source, StagePlace::End& end,
            const StagePlace& target, const Order& order, std::uint8_t flags) {
    if (source.rank == target.rank) return;
    if (end.peer != target.rank.value) {
      end.peer = target.rank.value;
      end.queue = m_builder.queue(source.rank, target.rank);
    }
    const std::uint32_t m = order.item.value;
    m_builder.add({Kind::move, end.queue, order.stage, order.item, flags},
                  {schedule::read(from, m), schedule::write(to, m)});
  }

  /// Adds an update that the orders contain, from the newest version of the weights to the next.
  void update_now(const Order& order, Rank rank) {
    StagePlace& place = m_stages.places()[m_stages.nodes()[+order.stage].places[0]];
    expects(place.accumulates, [&] {
      return m_stages.complaint("an update without a gradient", text(order, " on rank ", rank));
    });
    place.accumulates = false;
    const std::uint32_t from = place.versions.part[place.updates++];
    const std::uint32_t to = place.versions.part[place.updates];
    m_uses.assign(1, schedule::update(place.gradients));
    if (from == to) {
      m_uses.push_back(schedule::update(place.weights, to));
    } else {
      m_uses.push_back(schedule::read(place.weights, from));
      m_uses.push_back(schedule::write(place.weights, to));
    }
    m_builder.add({Kind::update, place.queue, order.stage, order.item}, m_uses);
  }

  /// Adds one update per stage, after the sum of the gradients of its replicas.
  void update_all() {
    const std::vector<StagePlace>& all = m_stages.places();
    for (std::size_t s = 0; s < m_stages.nodes().size(); ++s) {
      const auto& places = m_stages.nodes()[s].places;
      if (places.size() > 1) {
        m_uses.clear();
        for (const std::uint32_t p : places) m_uses.push_back(schedule::update(all[p].gradients));
        m_builder.add({Kind::group, m_builder.local(all[places[0]].rank, Lane{1}), Stage{s}},
                      m_uses);
      }
      for (const std::uint32_t p : places)
        m_builder.add({.kind = Kind::update,
                       .queue = all[p].queue,
                       .stage = Stage{s},
                       .flags = flag::unnamed},
                      {schedule::update(all[p].gradients), schedule::update(all[p].weights)});
    }
  }

  const Orders& m_orders;
  StageSizes m_sizes;
  bool m_trains;
  Builder m_builder;
  StageGraph m_graph;
  StagePlaces m_stages;
  std::vector<Done> m_done;  ///< by stage and microbatch
  std::vector<Use> m_uses;   ///< the uses of the action that is being added
};

}  // namespace heddle::inline v0::impl
