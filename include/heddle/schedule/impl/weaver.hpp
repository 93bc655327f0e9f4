// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The work behind weave(): where stages live, what storage they have, and in which order the
/// actions of all ranks become one list.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/impl/progress.hpp>
#include <heddle/schedule/impl/weight_versions.hpp>
#include <heddle/schedule/orders.hpp>
#include <heddle/schedule/stage_graph.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// The state of one weave() call.
class Weaver {
 public:
  Weaver(const Orders& orders, const StageSizes& sizes)
      : m_orders(orders),
        m_sizes(sizes),
        m_trains(trains(orders)),
        m_builder(orders.name, static_cast<int>(orders.ranks.size())) {}

  Schedule run() {
    read_graph();
    place_stages();
    if (m_updates) find_versions();
    make_buffers();
    emit_all();
    if (m_trains && !m_updates) update_all();
    return std::move(m_builder).build();
  }

 private:
  static constexpr std::uint32_t nobody = 0xffffffffu;

  /// An edge of the graph, and its number among those of its two stages.
  struct Edge {
    Stage from, to;
    bool exchanges;  ///< it ends at the backward pass of `to`
    std::uint32_t out_slot, in_slot;
  };
  /// The edges of a stage.
  struct Node {
    std::vector<std::uint32_t> in, out;
    std::vector<std::uint32_t> places;  ///< one, or one for each replica
  };
  /// One end of an edge at a place. Its other end is on this rank, or elsewhere, or, with replicas,
  /// depends on the microbatch.
  struct End {
    bool crosses = false;
    BufferId received;            ///< where it crosses: the activation (in), its gradient (out)
    BufferId sent;                ///< of an edge in: the gradient that is handed back
    std::uint32_t peer = nobody;  ///< the rank of the last message from here, and ...
    QueueId queue;                ///< ... its channel
  };
  /// A stage on one rank.
  struct Place {
    Stage stage;
    Rank rank;
    bool splits = false;       ///< has I and W actions
    bool accumulates = false;  ///< its gradients hold a value since the last update
    std::vector<End> in, out;
    BufferId output, saved, delta, weights, gradients;
    QueueId queue;              ///< the rank's own
    std::uint32_t updates = 0;  ///< emitted so far
    WeightVersions versions = {{}, {0}, 1};
  };
  /// Where a stage computes one microbatch, and the rounds in which that was emitted; 0: not yet.
  struct Done {
    std::uint32_t place = nobody;
    std::uint32_t forward = 0;
    std::uint32_t backward = 0;  ///< I or B
    std::uint32_t weights = 0;   ///< W or B
  };

  [[nodiscard]] std::string where() const { return text("heddle::weave(", m_orders.name, ")"); }
  [[nodiscard]] Complaint fail(std::string what, std::string why, std::string fix = {}) const {
    return {where(), std::move(what), std::move(why), std::move(fix)};
  }

  Done& done(Stage stage, Item item) { return m_done[+stage * m_items + +item]; }

  void read_graph() {
    const StageGraph graph = graph_of(m_orders);
    m_nodes.resize(static_cast<std::size_t>(graph.stages));
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      const StageGraph::Edge& edge = graph.edges[e];
      const auto describe = [&] { return text(edge.from, " -> ", edge.to); };
      expects(+edge.from < m_nodes.size() && +edge.to < m_nodes.size(),
              [&] { return fail("the stage graph has an edge to no stage", describe()); });
      expects(edge.at == Kind::F || edge.at == Kind::B, [&] {
        return fail("an edge ends at a forward (F) or a backward pass (B)",
                    text(describe(), " at ", edge.at));
      });
      auto& out = m_nodes[+edge.from].out;
      auto& in = m_nodes[+edge.to].in;
      m_edges.push_back({edge.from, edge.to, edge.at == Kind::B,
                         static_cast<std::uint32_t>(out.size()),
                         static_cast<std::uint32_t>(in.size())});
      out.push_back(static_cast<std::uint32_t>(e));
      in.push_back(static_cast<std::uint32_t>(e));
    }
  }

  /// The place of `stage` on `rank`, new or known.
  std::uint32_t place_of(Stage stage, std::size_t rank, const Order& order) {
    Node& node = m_nodes[+stage];
    for (const std::uint32_t p : node.places)
      if (+m_places[p].rank == rank) return p;
    expects(node.places.empty() || m_orders.graph.replicas, [&] {
      return fail("a stage is on two ranks",
                  text("stage ", stage, " on ranks ", m_places[node.places[0]].rank, " and ", rank,
                       ", which has ", order));
    });
    Place place;
    place.stage = stage;
    place.rank = Rank{rank};
    place.in.resize(node.in.size());
    place.out.resize(node.out.size());
    m_places.push_back(std::move(place));
    node.places.push_back(static_cast<std::uint32_t>(m_places.size() - 1));
    return node.places.back();
  }

  void place_stages() {
    for (std::size_t rank = 0; rank < m_orders.ranks.size(); ++rank) {
      for (const Order& order : m_orders.ranks[rank]) {
        expects(order.kind <= Kind::B || order.kind == Kind::update, [&] {
          return fail("orders hold F, I, W, B and UPDATE only",
                      text("found ", order, " on rank ", rank));
        });
        expects(+order.stage < m_nodes.size(), [&] {
          return fail("an action names a stage that the graph lacks",
                      text(order, " on rank ", rank, ", stages 0 to ", m_nodes.size() - 1));
        });
        m_updates |= order.kind == Kind::update;
        m_items = std::max(m_items, std::size_t{+order.item + 1});
        ++m_total;
      }
    }
    m_done.resize(m_nodes.size() * m_items);
    for (std::size_t rank = 0; rank < m_orders.ranks.size(); ++rank) {
      for (const Order& order : m_orders.ranks[rank]) {
        const std::uint32_t p = place_of(order.stage, rank, order);
        m_places[p].splits |= order.kind == Kind::I;
        if (order.kind == Kind::update) continue;
        Done& state = done(order.stage, order.item);
        expects(state.place == nobody || state.place == p, [&] {
          return fail("a microbatch of a stage is on two ranks",
                      text(order, " on rank ", rank, ", and on rank ", m_places[state.place].rank));
        });
        state.place = p;
      }
    }
    for (std::size_t stage = 0; stage < m_nodes.size(); ++stage) {
      expects(!m_nodes[stage].places.empty(),
              [&] { return fail("no rank runs a stage", text("stage ", stage)); });
      for (std::size_t m = 0; m < m_items; ++m) {
        std::uint32_t& place = m_done[stage * m_items + m].place;
        if (place == nobody && m_nodes[stage].places.size() == 1) place = m_nodes[stage].places[0];
        expects(place != nobody, [&] { return unfinished(stage, m, "F"); });
      }
    }
    find_crossings();
  }

  void find_crossings() {
    for (const Edge& edge : m_edges) {
      const bool moves = m_nodes[+edge.from].places.size() + m_nodes[+edge.to].places.size() > 2;
      for (std::size_t m = 0; m < (moves ? m_items : std::min<std::size_t>(m_items, 1)); ++m) {
        Place& source = m_places[done(edge.from, Item{m}).place];
        Place& target = m_places[done(edge.to, Item{m}).place];
        if (source.rank == target.rank) continue;
        source.out[edge.out_slot].crosses = target.in[edge.in_slot].crosses = true;
      }
    }
  }

  void find_versions() {
    for (std::size_t s = 0; s < m_nodes.size(); ++s) {
      const Node& node = m_nodes[s];
      expects(node.places.size() == 1, [&] {
        return fail("a stage on several ranks cannot update on its own", text("stage ", s),
                    "leave out the updates: one at the end of the step is appended");
      });
      Place& place = m_places[node.places[0]];
      const WeightVersions* upstream = nullptr;
      if (m_orders.vertical_sync && !node.in.empty()) {
        const Stage before = m_edges[node.in[0]].from;
        expects(+before < s, [&] {
          return fail("vertical sync needs a graph whose edges lead to higher stages",
                      text(before, " -> ", s));
        });
        upstream = &m_places[m_nodes[+before].places[0]].versions;
      }
      place.versions =
          weight_versions(m_orders.ranks[+place.rank], place.stage, m_items, upstream, where());
    }
  }

  BufferId make(const char* name, const Place& place, std::uint32_t parts, Bytes each,
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
    const auto items = static_cast<std::uint32_t>(m_items);
    std::size_t buffers = 0;
    std::size_t parts = 0;
    std::size_t moves = 0;
    for (const Place& place : m_places) {
      std::size_t many = 2 + place.splits;
      for (const End& end : place.in) many += 1 + end.crosses;
      for (const End& end : place.out) many += end.crosses;
      for (const End& end : place.in) moves += end.crosses ? (m_trains ? 2 : 1) * m_items : 0;
      buffers += many + 2;
      parts += many * m_items + 2;
    }
    m_builder.reserve_buffers(buffers, parts);
    for (Place& place : m_places) {
      const Node& node = m_nodes[+place.stage];
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
        const bool exchanges = m_edges[node.in[i]].exchanges;
        End& end = place.in[i];
        if (end.crosses)
          end.received = make(exchanges ? role::exchanged : role::input, place, items, activation);
        if (m_trains && !exchanges) end.sent = make(role::input_grad, place, items, activation);
      }
      for (std::size_t o = 0; o < place.out.size(); ++o)
        if (m_trains && place.out[o].crosses && !m_edges[node.out[o]].exchanges)
          place.out[o].received = make(role::output_grad, place, items, activation);
    }
    // An upper bound that is exact for chains without split backward passes.
    const std::size_t uses = m_trains ? 5 * m_total : 3 * m_total;
    m_builder.reserve_actions(m_total + moves + m_places.size(), uses + 2 * moves + 64);
  }

  /// The first thing that `order` still waits for in `round`.
  [[nodiscard]] std::optional<Order> missing(const Order& order, std::uint32_t round) {
    const auto open = [round](std::uint32_t emitted) { return emitted == 0 || emitted >= round; };
    const auto forward = [&](Stage stage) { return open(done(stage, order.item).forward); };
    const Node& node = m_nodes[+order.stage];
    if (order.kind == Kind::F) {
      for (const std::uint32_t e : node.in)
        if (!m_edges[e].exchanges && forward(m_edges[e].from))
          return Order{Kind::F, m_edges[e].from, order.item};
    } else if (order.kind == Kind::W) {
      if (open(done(order.stage, order.item).backward))
        return Order{Kind::I, order.stage, order.item};
    } else if (order.kind != Kind::update) {
      if (forward(order.stage)) return Order{Kind::F, order.stage, order.item};
      for (const std::uint32_t e : node.in)
        if (m_edges[e].exchanges && forward(m_edges[e].from))
          return Order{Kind::F, m_edges[e].from, order.item};
      for (const std::uint32_t e : node.out) {
        const Stage to = m_edges[e].to;
        const Done& state = done(to, order.item);
        if (!m_edges[e].exchanges && open(state.backward))
          return Order{m_places[state.place].splits ? Kind::I : Kind::B, to, order.item};
      }
    }
    return {};
  }

  /// The same for the entry at `head`, with its partner where it is fused.
  [[nodiscard]] std::optional<Order> missing_at(std::size_t rank, std::size_t head,
                                                std::uint32_t round) {
    const auto& list = m_orders.ranks[rank];
    auto found = missing(list[head], round);
    if (found || !list[head].fused) return found;
    expects(head + 1 < list.size() && !list[head + 1].fused && list[head].kind <= Kind::B &&
                list[head + 1].kind <= Kind::B,
            [&] {
              return fail("a fused entry needs one partner, the entry after it",
                          text(list[head], " on rank ", rank));
            });
    return missing(list[head + 1], round);
  }

  /// Rounds of unit time: in each, a rank emits its head if what the head waits for was emitted in
  /// an earlier round. The list comes out in the order in which equal actions would start.
  void emit_all() {
    std::vector<std::size_t> head(m_orders.ranks.size(), 0);
    std::size_t emitted = 0;
    for (std::uint32_t round = 1; emitted < m_total; ++round) {
      const std::size_t before = emitted;
      for (std::size_t rank = 0; rank < head.size(); ++rank) {
        const auto& list = m_orders.ranks[rank];
        if (head[rank] == list.size()) continue;
        if (missing_at(rank, head[rank], round)) {
          m_late |= !missing_at(rank, head[rank], nobody);
          continue;
        }
        const Order& order = list[head[rank]];
        Place& place = compute(order, rank, round);
        if (order.fused) {
          const Order& partner = list[head[rank] + 1];
          Place& other = compute(partner, rank, round);
          deliver(order, place);
          deliver(partner, other);
        } else {
          deliver(order, place);
        }
        head[rank] += 1 + order.fused;
        emitted += 1 + order.fused;
      }
      if (emitted == before && !std::exchange(m_late, false)) throw infeasible(stuck(head));
    }
    check_complete();
  }

  [[nodiscard]] Complaint stuck(const std::vector<std::size_t>& head) {
    std::string heads;
    for (std::size_t rank = 0; rank < head.size(); ++rank) {
      if (head[rank] == m_orders.ranks[rank].size()) continue;
      if (!heads.empty()) heads += ", ";
      heads += text("rank ", rank, " waits at ", m_orders.ranks[rank][head[rank]], " for ",
                    *missing_at(rank, head[rank], nobody));
    }
    return fail("the orders cannot progress", heads, "reorder one of these heads");
  }

  [[nodiscard]] Complaint unfinished(std::size_t stage, std::size_t item, const char* lacks) const {
    return fail("a stage does not finish a microbatch",
                text("stage ", stage, ", microbatch ", item, " has no ", lacks));
  }

  void check_complete() {
    for (std::size_t s = 0; s < m_nodes.size(); ++s) {
      for (std::size_t m = 0; m < m_items; ++m) {
        const Done& state = m_done[s * m_items + m];
        const char* lacks = state.forward == 0                ? "F"
                            : m_trains && state.backward == 0 ? "I or B"
                            : m_trains && state.weights == 0  ? "W or B"
                                                              : nullptr;
        expects(lacks == nullptr, [&] { return unfinished(s, m, lacks); });
      }
    }
  }

  /// Notes that `order` is emitted in `round`, which it must be only once.
  void note(const Order& order, std::size_t rank, std::uint32_t round) {
    Done& state = done(order.stage, order.item);
    std::uint32_t& slot = order.kind == Kind::F   ? state.forward
                          : order.kind == Kind::W ? state.weights
                                                  : state.backward;
    expects(slot == 0 && !(order.kind == Kind::B && state.weights != 0),
            [&] { return fail("an action appears twice", text(order, " on rank ", rank)); });
    slot = round;
    if (order.kind == Kind::B) state.weights = round;
  }

  /// Where the value of an edge into `place` lies on its rank: received, or made there.
  [[nodiscard]] BufferId arrived(const Place& place, const Edge& edge, Item item) {
    const Place& source = m_places[done(edge.from, item).place];
    return source.rank == place.rank ? source.output : place.in[edge.in_slot].received;
  }
  /// The same for the gradient of an edge out of it.
  [[nodiscard]] BufferId returned(const Place& place, const Edge& edge, Item item) {
    const Place& target = m_places[done(edge.to, item).place];
    return target.rank == place.rank ? target.in[edge.in_slot].sent
                                     : place.out[edge.out_slot].received;
  }

  Place& compute(const Order& order, std::size_t rank, std::uint32_t round) {
    using namespace schedule;
    if (order.kind == Kind::update) return update_now(order, rank);
    note(order, rank, round);
    Place& place = m_places[done(order.stage, order.item).place];
    const Node& node = m_nodes[+order.stage];
    const std::uint32_t m = order.item.value;
    m_uses.clear();
    for (const std::uint32_t e : node.in)
      if (!m_edges[e].exchanges) m_uses.push_back(read(arrived(place, m_edges[e], order.item), m));
    const Use weights = read(place.weights, place.versions.part_for(order.item));
    if (order.kind == Kind::F) {
      if (!place.out.empty()) m_uses.push_back(write(place.output, m));
      if (m_trains) m_uses.push_back(write(place.saved, m));
      m_uses.push_back(weights);
    } else {
      m_uses.push_back(read(place.saved, m));
      for (const std::uint32_t e : node.out)
        if (!m_edges[e].exchanges)
          m_uses.push_back(read(returned(place, m_edges[e], order.item), m));
      for (const std::uint32_t e : node.in)
        if (m_edges[e].exchanges) m_uses.push_back(read(arrived(place, m_edges[e], order.item), m));
      m_uses.push_back(weights);
      if (order.kind != Kind::W) {
        for (const std::uint32_t e : node.in)
          if (!m_edges[e].exchanges) m_uses.push_back(write(place.in[m_edges[e].in_slot].sent, m));
      }
      if (order.kind == Kind::I) m_uses.push_back(write(place.delta, m));
      if (order.kind == Kind::W) m_uses.push_back(read(place.delta, m));
      if (order.kind != Kind::I)
        m_uses.push_back(
            use(std::exchange(place.accumulates, true) ? Access::update : Access::write,
                place.gradients));
    }
    m_builder.add({order.kind, place.queue, order.stage, order.item,
                   order.fused ? flag::with_next : std::uint8_t{0}},
                  m_uses);
    return place;
  }

  /// What `order` made travels to the ranks that need it.
  void deliver(const Order& order, Place& place) {
    const Node& node = m_nodes[+order.stage];
    if (order.kind == Kind::F) {
      for (const std::uint32_t e : node.out) {
        const Edge& edge = m_edges[e];
        const Place& target = m_places[done(edge.to, order.item).place];
        move(place.output, target.in[edge.in_slot].received, place, place.out[edge.out_slot],
             target, order, 0);
      }
    } else if (order.kind == Kind::I || order.kind == Kind::B) {
      for (const std::uint32_t e : node.in) {
        const Edge& edge = m_edges[e];
        if (edge.exchanges) continue;
        const Place& target = m_places[done(edge.from, order.item).place];
        End& end = place.in[edge.in_slot];
        move(end.sent, target.out[edge.out_slot].received, place, end, target, order,
             flag::gradient);
      }
    }
  }

  void move(BufferId from, BufferId to, const Place& source, End& end, const Place& target,
            const Order& order, std::uint8_t flags) {
    if (source.rank == target.rank) return;
    if (end.peer != target.rank.value) {
      end.peer = target.rank.value;
      end.queue = m_builder.queue(source.rank, target.rank);
    }
    const std::uint32_t m = order.item.value;
    m_builder.add({Kind::move, end.queue, order.stage, order.item, flags},
                  {schedule::read(from, m), schedule::write(to, m)});
  }

  /// An update that the orders name: from the newest version of the weights to the next.
  Place& update_now(const Order& order, std::size_t rank) {
    Place& place = m_places[m_nodes[+order.stage].places[0]];
    expects(place.accumulates,
            [&] { return fail("an update without a gradient", text(order, " on rank ", rank)); });
    place.accumulates = false;
    const std::uint32_t from = place.versions.part[place.updates++];
    const std::uint32_t to = place.versions.part[place.updates];
    m_uses.assign(1, schedule::read(place.gradients));
    if (from == to) {
      m_uses.push_back(schedule::update(place.weights, to));
    } else {
      m_uses.push_back(schedule::read(place.weights, from));
      m_uses.push_back(schedule::write(place.weights, to));
    }
    m_builder.add({Kind::update, place.queue, order.stage, order.item}, m_uses);
    return place;
  }

  /// One update per stage, after the sum of the gradients of its replicas.
  void update_all() {
    for (std::size_t s = 0; s < m_nodes.size(); ++s) {
      const auto& places = m_nodes[s].places;
      if (places.size() > 1) {
        m_uses.clear();
        for (const std::uint32_t p : places)
          m_uses.push_back(schedule::update(m_places[p].gradients));
        m_builder.add({Kind::group, m_builder.local(m_places[places[0]].rank, Lane{1}), Stage{s}},
                      m_uses);
      }
      for (const std::uint32_t p : places)
        m_builder.add(
            {Kind::update, m_places[p].queue, Stage{s}},
            {schedule::read(m_places[p].gradients), schedule::update(m_places[p].weights)});
    }
  }

  const Orders& m_orders;
  StageSizes m_sizes;
  bool m_trains;
  Builder m_builder;
  std::vector<Edge> m_edges;
  std::vector<Node> m_nodes;
  std::vector<Place> m_places;
  std::vector<Done> m_done;
  std::vector<Use> m_uses;
  std::size_t m_items = 0;
  std::size_t m_total = 0;
  bool m_updates = false;  ///< the orders say when
  bool m_late = false;     ///< some head only waits for the next round
};

}  // namespace heddle::inline v0::impl
