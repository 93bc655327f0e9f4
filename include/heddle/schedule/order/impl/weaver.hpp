// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Implements weave(): makes the storage of the stages and one list of the actions of all ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/order/impl/fault_finder.hpp>
#include <heddle/schedule/order/impl/item_buffers.hpp>
#include <heddle/schedule/order/impl/woven_stages.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// The state of one weave() call. It works on DividedOrders, so its stages are shares. The Schedule
/// has the stages that the shares belong to.
class Weaver {
 public:
  Weaver(const Orders& orders, const StageSizes& sizes)
      : m_divided(orders),
        m_orders(checked(m_divided)),
        m_sizes(sizes),
        m_trains(trains(orders)),
        m_builder(orders.name, static_cast<int>(orders.ranks.size())),
        m_graph(graph_of(m_orders)),
        m_stages(m_orders, m_graph),
        m_storage(m_builder, m_divided, sizes.type, m_stages.items()),
        m_done(m_stages.nodes().size() * m_stages.items()) {
    check_sizes();
  }

  /// Returns the Schedule.
  Schedule run() {
    make_buffers();
    add_all();
    if (m_trains && !m_stages.updates()) update_all();
    return std::move(m_builder).build();
  }

 private:
  using Edge = WovenStages::Edge;
  using Node = WovenStages::Node;

  /// The actions of a microbatch at a stage that are woven: F, I or B, and W or B.
  enum Done : std::uint8_t { did_forward = 1, did_backward = 2, did_weights = 4 };

  [[nodiscard]] const Edge& edge_at(std::uint32_t number) const { return m_stages.edges()[number]; }

  /// Returns the orders to weave. Throws if the lists of shares have a fault, because errors that
  /// are found later would name shares instead of stages.
  static const Orders& checked(const DividedOrders& divided) {
    if (divided.divides())
      if (const auto fault = FaultFinder(divided).wrong_or_missing())
        throw contract_error(
            {text("heddle::weave(", divided.orders().name, ")"), fault->what, fault->why});
    return divided.orders();
  }

  /// Checks that every size is whole elements, and that a buffer of all microbatches has a size.
  void check_sizes() const {
    const auto where = [&] { return text("heddle::weave(", m_orders.name, ")"); };
    expects(is_known(m_sizes.type), [&] {
      return ErrorInfo{where(), "StageSizes::type is no element type", text(m_sizes.type)};
    });
    const Bytes most = std::numeric_limits<Bytes>::max() / std::max<Bytes>(1, m_stages.items());
    const std::pair<const char*, Bytes> all[] = {{"activation", m_sizes.activation},
                                                 {"saved", m_sizes.saved},
                                                 {"delta", m_sizes.delta},
                                                 {"parameters", m_sizes.parameters}};
    for (const auto& [name, bytes] : all)
      expects(bytes % size_of(m_sizes.type) == 0 && bytes <= most, [&] {
        return ErrorInfo{
            where(), text("StageSizes::", name, " is not whole elements, or too large"),
            text(bytes, " bytes of ", m_sizes.type, ", ", m_stages.items(), " microbatches"),
            text("give bytes that are a multiple of ", size_of(m_sizes.type))};
      });
  }

  void make_buffers() {
    std::size_t buffers = 0;
    std::size_t parts = 0;
    std::size_t moves = 0;
    std::size_t uses = 0;
    for (const WovenStage& place : m_stages.places()) {
      std::size_t many = 2 + place.splits;
      for (const WovenStage::End& end : place.in) many += 1 + end.crosses;
      for (const WovenStage::End& end : place.out) many += end.crosses;
      for (const WovenStage::End& end : place.in)
        moves += end.crosses ? (m_trains ? 2 : 1) * m_stages.items() : 0;
      buffers += many + 2;
      parts += many * m_stages.items() + 2;
      // F uses its inputs, output, saved and weights; compute() has the uses of the others.
      const std::size_t in = place.in.size(), out = place.out.size();
      std::size_t each = in + 3;
      if (m_trains) each += 2 * in + out + (place.splits ? in + out + 8 : 3);
      uses += each * m_stages.items();
    }
    m_builder.reserve_buffers(buffers, parts);
    for (WovenStage& place : m_stages.places()) {
      const Node& node = m_stages.nodes()[+place.stage];
      place.queue = m_builder.local(place.rank);
      const auto make = [&](const char* name, Bytes each, const std::vector<std::uint32_t>& links) {
        return m_storage.add(name, place, each, m_divided.cuts(place.stage, links));
      };
      const Bytes activation = m_sizes.activation;
      const Bytes parameters = m_sizes.parameters;
      if (!place.out.empty()) place.output = make(role::output, activation, node.out);
      if (m_trains) {
        place.saved = make(role::saved, m_sizes.saved, {});
        if (place.splits) place.delta = make(role::delta, m_sizes.delta, {});
        place.gradients = m_storage.add_parameters(role::gradients, place, 1, parameters);
      }
      place.weights =
          m_storage.add_parameters(role::weights, place, place.versions.parts, parameters, false);
      for (std::size_t i = 0; i < place.in.size(); ++i) {
        const bool exchanges = edge_at(node.in[i]).exchanges;
        const DividedOrders::Link link = m_divided.link(node.in[i]);
        WovenStage::End& end = place.in[i];
        if (!link.first_in) {  // the links of an edge share its buffers
          end.received = place.in[i - 1].received;
          end.sent = place.in[i - 1].sent;
          continue;
        }
        if (end.crosses || !link.alone_in)
          end.received = make(exchanges ? role::exchanged : role::input, activation, {node.in[i]});
        if (m_trains && !exchanges) end.sent = make(role::input_grad, activation, {node.in[i]});
      }
      for (std::size_t o = 0; o < place.out.size(); ++o) {
        const DividedOrders::Link link = m_divided.link(node.out[o]);
        WovenStage::End& end = place.out[o];
        if (!m_trains || edge_at(node.out[o]).exchanges) continue;
        if (!link.first_out)
          end.received = place.out[o - 1].received;
        else if (end.crosses || !link.alone_out)
          end.received = make(role::output_grad, activation, {node.out[o]});
      }
    }
    // These upper bounds are nearly exact for stages on one rank.
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
    if (const auto fault = FaultFinder(m_divided).wrong_or_missing())
      return m_stages.complaint(fault->what, text(fault->why, "; so ", progress.stuck(m_divided)));
    return m_stages.complaint("the orders cannot progress", progress.stuck(m_divided),
                              "reorder one of these actions");
  }

  void check_complete() const {
    const std::size_t items = m_stages.items();
    const int all = m_trains ? did_forward | did_backward | did_weights : did_forward;
    for (std::size_t i = 0; i < m_done.size(); ++i)
      expects(m_done[i] == all, [&] {
        const Kind first_missing = (m_done[i] & did_forward) == 0    ? Kind::forward
                                   : (m_done[i] & did_backward) == 0 ? Kind::backward
                                                                     : Kind::backward_weight;
        return m_stages.unfinished(i / items, i % items, first_missing);
      });
  }

  /// Notes that `order` is woven. Throws contract_error if it was woven before.
  void note(const Order& order, Rank rank) {
    const int own = order.kind == Kind::forward           ? did_forward
                    : order.kind == Kind::backward_weight ? did_weights
                    : order.kind == Kind::backward_input  ? did_backward
                                                          : did_backward | did_weights;
    std::uint8_t& done = m_done[+order.stage * m_stages.items() + +order.item];
    expects((done & own) == 0, [&] {
      return m_stages.complaint("an action appears twice", text(order, " on rank ", rank));
    });
    done = static_cast<std::uint8_t>(done | own);
  }

  /// Returns the buffer that holds the value of edge `number` into `place` on its rank. The value
  /// was received or made there.
  [[nodiscard]] BufferId arrived(const WovenStage& place, std::uint32_t number, Item item) {
    const Edge& edge = edge_at(number);
    const WovenStage& source = m_stages.at(edge.from, item);
    return source.rank == place.rank && m_divided.link(number).alone_in
               ? source.output
               : place.in[edge.in_slot].received;
  }
  /// Returns the buffer that holds the gradient of edge `number` out of `place` on its rank.
  [[nodiscard]] BufferId returned(const WovenStage& place, std::uint32_t number, Item item) {
    const Edge& edge = edge_at(number);
    const WovenStage& target = m_stages.at(edge.to, item);
    return target.rank == place.rank && m_divided.link(number).alone_out
               ? target.in[edge.in_slot].sent
               : place.out[edge.out_slot].received;
  }

  void compute(const Order& order, Rank rank) {
    using namespace schedule;
    if (order.kind == Kind::update) return update_now(order, rank);
    note(order, rank);
    WovenStage& place = m_stages.at(order.stage, order.item);
    const Node& node = m_stages.nodes()[+order.stage];
    const Item item = order.item;
    const auto add = [&](Access access, BufferId id) {
      m_uses.push_back(m_storage.own(access, id, place, item));
    };
    m_uses.clear();
    for (const std::uint32_t e : node.in)
      if (!edge_at(e).exchanges && m_divided.link(e).first_in)
        add(Access::read, arrived(place, e, item));
    const Use weights = read(place.weights, place.versions.part_for(order.item));
    if (order.kind == Kind::forward) {
      if (!place.out.empty()) add(Access::write, place.output);
      if (m_trains) add(Access::write, place.saved);
      m_uses.push_back(weights);
    } else {
      add(Access::read, place.saved);
      for (const std::uint32_t e : node.out)
        if (!edge_at(e).exchanges && m_divided.link(e).first_out)
          add(Access::read, returned(place, e, item));
      for (const std::uint32_t e : node.in)
        if (edge_at(e).exchanges && m_divided.link(e).first_in)
          add(Access::read, arrived(place, e, item));
      m_uses.push_back(weights);
      if (order.kind != Kind::backward_weight) {
        for (const std::uint32_t e : node.in)
          if (!edge_at(e).exchanges && m_divided.link(e).first_in)
            add(Access::write, place.in[edge_at(e).in_slot].sent);
      }
      if (order.kind == Kind::backward_input) add(Access::write, place.delta);
      if (order.kind == Kind::backward_weight) add(Access::read, place.delta);
      if (order.kind != Kind::backward_input)
        m_uses.push_back(
            use(std::exchange(place.accumulates, true) ? Access::update : Access::write,
                place.gradients));
    }
    m_builder.add({order.kind, place.queue, m_divided.stage_of(order.stage), item,
                   order.fused ? flag::with_next : std::uint8_t{0}},
                  m_uses);
  }

  /// Adds the moves of the result of `order` to the ranks that need it.
  void deliver(const Order& order) {
    if (order.kind == Kind::backward_weight || order.kind == Kind::update) return;
    WovenStage& place = m_stages.at(order.stage, order.item);
    const Node& node = m_stages.nodes()[+order.stage];
    if (order.kind == Kind::forward) {
      for (const std::uint32_t e : node.out) {
        const Edge& edge = edge_at(e);
        const WovenStage& target = m_stages.at(edge.to, order.item);
        if (place.rank == target.rank && m_divided.link(e).alone_in) continue;
        move(place.output, target.in[edge.in_slot].received, place, place.out[edge.out_slot],
             target, order, 0);
      }
    } else {
      for (const std::uint32_t e : node.in) {
        const Edge& edge = edge_at(e);
        if (edge.exchanges) continue;
        const WovenStage& target = m_stages.at(edge.from, order.item);
        if (place.rank == target.rank && m_divided.link(e).alone_out) continue;
        WovenStage::End& end = place.in[edge.in_slot];
        move(end.sent, target.out[edge.out_slot].received, place, end, target, order,
             flag::gradient);
      }
    }
  }

  /// Adds the move of the samples that both places compute. It is a copy if they are on one rank.
  void move(BufferId from, BufferId to, const WovenStage& source, WovenStage::End& end,
            const WovenStage& target, const Order& order, std::uint8_t flags) {
    const Item item = order.item;
    const SampleRange both =
        overlap(m_divided.samples(source.stage, item), m_divided.samples(target.stage, item));
    if (m_divided.divides() && both.size() == 0) return;
    if (end.peer != target.rank.value) {
      end.peer = target.rank.value;
      end.queue = m_builder.queue(source.rank, target.rank);
    }
    m_builder.add({Kind::move, end.queue, m_divided.stage_of(order.stage), item, flags},
                  {m_storage.part(Access::read, from, item, both),
                   m_storage.part(Access::write, to, item, both)});
  }

  /// Adds an update that the orders contain, from the newest version of the weights to the next.
  void update_now(const Order& order, Rank rank) {
    WovenStage& place = m_stages.places()[m_stages.nodes()[+order.stage].places[0]];
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
    m_builder.add({Kind::update, place.queue, m_divided.stage_of(order.stage), order.item}, m_uses);
  }

  /// Adds one update per stage and rank, after the sum of the gradients of its replicas or shares.
  void update_all() {
    const std::vector<WovenStage>& all = m_stages.places();
    for (std::size_t s = 0; s < m_stages.nodes().size();) {
      const Stage stage = m_divided.stage_of(Stage{s});
      std::vector<std::uint32_t> places;
      for (; s < m_stages.nodes().size() && m_divided.stage_of(Stage{s}) == stage; ++s)
        places.insert(places.end(), m_stages.nodes()[s].places.begin(),
                      m_stages.nodes()[s].places.end());
      if (places.size() > 1) {
        m_uses.clear();
        for (const std::uint32_t p : places) m_uses.push_back(schedule::update(all[p].gradients));
        m_builder.add({Kind::group, m_builder.local(all[places[0]].rank, Lane{1}), stage}, m_uses);
      }
      for (const std::uint32_t p : places)
        m_builder.add(
            {.kind = Kind::update, .queue = all[p].queue, .stage = stage, .flags = flag::unnamed},
            {schedule::update(all[p].gradients), schedule::update(all[p].weights)});
    }
  }

  DividedOrders m_divided;
  const Orders& m_orders;
  StageSizes m_sizes;
  bool m_trains;
  Builder m_builder;
  StageGraph m_graph;
  WovenStages m_stages;
  ItemBuffers m_storage;
  std::vector<std::uint8_t> m_done;  ///< by stage and microbatch: bits of Done
  std::vector<Use> m_uses;           ///< the uses of the action that is being added
};

}  // namespace heddle::inline v0::impl
