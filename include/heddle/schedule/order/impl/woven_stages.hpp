// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// WovenStages: finds the ranks that compute the stages of some Orders, and the edges of the graph
/// that lead from rank to rank. weave() uses it and gives every place its storage.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/impl/weight_versions.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::impl {

/// A stage on one rank.
struct WovenStage {
  /// One end of an edge. The other end is on the same rank or on another one. With replicas it
  /// depends on the microbatch.
  struct End {
    static constexpr std::uint32_t nobody = 0xffffffffu;

    bool crosses = false;         ///< leads to another rank for at least one microbatch
    BufferId received;            ///< if it crosses: the activation (in), its gradient (out)
    BufferId sent;                ///< for an edge in: the gradient that is sent back
    std::uint32_t peer = nobody;  ///< the destination of the last message from here
    QueueId queue;                ///< the channel of this message
  };

  Stage stage;
  Rank rank;
  bool splits = false;       ///< has I and W actions
  bool accumulates = false;  ///< its gradients have a value since the last update
  std::vector<End> in, out;  ///< in the order of the stage's edges
  BufferId output, saved, delta, weights, gradients;
  QueueId queue;              ///< the local queue of the rank
  std::uint32_t updates = 0;  ///< the number of updates woven so far
  WeightVersions versions = {{}, {0}, 1};
};

/// The places of all stages. The constructor rejects orders whose stages or microbatches are on two
/// ranks or on none.
class WovenStages {
 public:
  /// An edge of the graph, and its number among the edges of its two stages.
  struct Edge {
    Stage from, to;
    bool exchanges;  ///< ends at the backward pass of `to`
    std::uint32_t out_slot, in_slot;
  };
  /// A stage with its edges and places.
  struct Node {
    std::vector<std::uint32_t> in, out;
    std::vector<std::uint32_t> places;  ///< one place, or one for each replica
  };

  /// Finds the places.
  /// @throws contract_error in the name of weave(), see there.
  WovenStages(const Orders& orders, const StageGraph& graph) : m_orders(orders) {
    read_graph(graph);
    check_lists();
    place_stages();
    find_crossings();
    if (m_updates) find_versions();
  }

  [[nodiscard]] const std::vector<Edge>& edges() const noexcept { return m_edges; }
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return m_nodes; }
  [[nodiscard]] std::vector<WovenStage>& places() noexcept { return m_places; }
  /// Returns the number of microbatches: one more than the highest microbatch.
  [[nodiscard]] std::size_t items() const noexcept { return m_items; }
  /// Returns the number of entries of all lists.
  [[nodiscard]] std::size_t entries() const noexcept { return m_entries; }
  /// Returns true if the orders contain updates.
  [[nodiscard]] bool updates() const noexcept { return m_updates; }

  /// Returns the place at which `stage` computes `item`.
  [[nodiscard]] WovenStage& at(Stage stage, Item item) {
    return m_places[m_place_of[number_of(stage, item)]];
  }

  [[nodiscard]] ErrorInfo complaint(std::string what, std::string why, std::string fix = {}) const {
    return {text("heddle::weave(", m_orders.name, ")"), std::move(what), std::move(why),
            std::move(fix)};
  }
  /// Returns the complaint for a microbatch that a stage does not finish, because no list has the
  /// action of `kind`.
  [[nodiscard]] ErrorInfo unfinished(std::size_t stage, std::size_t item, Kind kind) const {
    const auto order = [&](Kind of) { return Order{of, Stage{stage}, Item{item}}; };
    std::string lacks = text("no rank has ", order(kind));
    if (kind == Kind::backward)
      lacks += text(", or ", order(Kind::backward_input), " and ", order(Kind::backward_weight));
    return complaint("a stage does not finish a microbatch", std::move(lacks));
  }

 private:
  static constexpr std::uint32_t nowhere = 0xffffffffu;

  void read_graph(const StageGraph& graph) {
    m_nodes.resize(static_cast<std::size_t>(graph.stages));
    for (const StageGraph::Edge& edge : graph.edges) {
      const auto describe = [&] { return text(edge.from, " -> ", edge.to); };
      expects(+edge.from < m_nodes.size() && +edge.to < m_nodes.size(),
              [&] { return complaint("the stage graph has an edge to no stage", describe()); });
      expects(edge.at == Kind::forward || edge.at == Kind::backward, [&] {
        return complaint("an edge must end at a forward (F) or a backward pass (B)",
                         text(describe(), " at ", edge.at));
      });
      auto& out = m_nodes[+edge.from].out;
      auto& in = m_nodes[+edge.to].in;
      const auto number = static_cast<std::uint32_t>(m_edges.size());
      m_edges.push_back({edge.from, edge.to, edge.at == Kind::backward,
                         static_cast<std::uint32_t>(out.size()),
                         static_cast<std::uint32_t>(in.size())});
      out.push_back(number);
      in.push_back(number);
    }
  }

  void check_lists() {
    for (std::size_t rank = 0; rank < m_orders.ranks.size(); ++rank) {
      const auto& list = m_orders.ranks[rank];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Order& order = list[i];
        expects(order.kind <= Kind::backward || order.kind == Kind::update, [&] {
          return complaint("orders may contain only F, I, W, B and UPDATE",
                           text("found ", order, " on rank ", rank));
        });
        expects(+order.stage < m_nodes.size(), [&] {
          return complaint("an action names a stage that is not in the graph",
                           text(order, " on rank ", rank, ", stages 0 to ", m_nodes.size() - 1));
        });
        const bool alone = i + 1 == list.size() || list[i + 1].fused ||
                           order.kind > Kind::backward || list[i + 1].kind > Kind::backward;
        expects(!order.fused || !alone, [&] {
          return complaint("a fused entry needs one partner, the entry after it",
                           text(order, " on rank ", rank));
        });
        m_updates |= order.kind == Kind::update;
        m_items = std::max(m_items, +order.item + 1);
      }
      m_entries += list.size();
    }
  }

  /// Returns the place of the stage of `order` on `rank`. Adds the place if it does not exist.
  std::uint32_t place_on(std::size_t rank, const Order& order) {
    Node& node = m_nodes[+order.stage];
    for (const std::uint32_t p : node.places)
      if (+m_places[p].rank == rank) return p;
    expects(node.places.empty() || m_orders.graph.replicas, [&] {
      return complaint("a stage is on two ranks",
                       text("stage ", order.stage, " on ranks ", m_places[node.places[0]].rank,
                            " and ", rank, ", which has ", order));
    });
    WovenStage& place = m_places.emplace_back();
    place.stage = order.stage;
    place.rank = Rank{rank};
    place.in.resize(node.in.size());
    place.out.resize(node.out.size());
    node.places.push_back(static_cast<std::uint32_t>(m_places.size() - 1));
    return node.places.back();
  }

  /// Returns the number of a stage or, with replicas, of its microbatch.
  [[nodiscard]] std::size_t number_of(Stage stage, Item item) const {
    return m_orders.graph.replicas ? +stage * m_items + +item : +stage;
  }

  void place_stages() {
    const std::size_t items = m_orders.graph.replicas ? m_items : 1;
    m_place_of.assign(m_nodes.size() * items, nowhere);
    for (std::size_t rank = 0; rank < m_orders.ranks.size(); ++rank) {
      for (const Order& order : m_orders.ranks[rank]) {
        const std::uint32_t p = place_on(rank, order);
        m_places[p].splits |= order.kind == Kind::backward_input;
        if (order.kind == Kind::update) continue;
        std::uint32_t& place = m_place_of[number_of(order.stage, order.item)];
        expects(place == nowhere || place == p, [&] {
          return complaint("a microbatch of a stage is on two ranks",
                           text(order, " on rank ", rank, ", and on rank ", m_places[place].rank));
        });
        place = p;
      }
    }
    for (std::size_t stage = 0; stage < m_nodes.size(); ++stage) {
      const auto& places = m_nodes[stage].places;
      expects(!places.empty(),
              [&] { return complaint("no rank runs a stage", text("stage ", stage)); });
      for (std::size_t m = 0; m < items; ++m) {
        std::uint32_t& place = m_place_of[stage * items + m];
        if (place == nowhere && places.size() == 1) place = places[0];
        expects(place != nowhere, [&] { return unfinished(stage, m, Kind::forward); });
      }
    }
  }

  void find_crossings() {
    for (const Edge& edge : m_edges) {
      const bool moves = m_nodes[+edge.from].places.size() + m_nodes[+edge.to].places.size() > 2;
      for (std::size_t m = 0; m < (moves ? m_items : std::min<std::size_t>(m_items, 1)); ++m) {
        WovenStage& source = at(edge.from, Item{m});
        WovenStage& target = at(edge.to, Item{m});
        if (source.rank == target.rank) continue;
        source.out[edge.out_slot].crosses = target.in[edge.in_slot].crosses = true;
      }
    }
  }

  void find_versions() {
    for (std::size_t s = 0; s < m_nodes.size(); ++s) {
      const Node& node = m_nodes[s];
      expects(node.places.size() == 1, [&] {
        return complaint("a stage on several ranks cannot update on its own", text("stage ", s),
                         "remove the updates; weave() appends one at the end of the step");
      });
      WovenStage& place = m_places[node.places[0]];
      const WeightVersions* upstream = nullptr;
      if (m_orders.vertical_sync && !node.in.empty()) {
        const Stage before = m_edges[node.in[0]].from;
        expects(+before < s, [&] {
          return complaint("vertical sync needs a graph whose edges lead to higher stages",
                           text(before, " -> ", s));
        });
        upstream = &m_places[m_nodes[+before].places[0]].versions;
      }
      place.versions = weight_versions(m_orders.ranks[+place.rank], place.stage, m_items, upstream,
                                       complaint({}, {}).where);
    }
  }

  const Orders& m_orders;
  std::vector<Edge> m_edges;
  std::vector<Node> m_nodes;
  std::vector<WovenStage> m_places;
  std::vector<std::uint32_t> m_place_of;  ///< by stage; with replicas by stage and microbatch
  std::size_t m_items = 0;
  std::size_t m_entries = 0;
  bool m_updates = false;
};

}  // namespace heddle::inline v0::impl
