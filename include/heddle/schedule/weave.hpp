// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// weave(): Orders to Schedule. Names the storage of every stage, inserts the moves between ranks,
/// and refuses orders that cannot progress.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/orders.hpp>
#include <heddle/schedule/stage_graph.hpp>

namespace heddle::inline v0 {

/// The roles of the buffers that weave() makes, each with one part per microbatch except weights
/// and gradients, which have one part.
namespace role {
inline constexpr const char* input = "input";              ///< received output of an earlier stage
inline constexpr const char* output = "output";            ///< what a stage hands on
inline constexpr const char* saved = "saved";              ///< kept from forward to backward
inline constexpr const char* output_grad = "output_grad";  ///< received gradient of the output
inline constexpr const char* input_grad = "input_grad";    ///< gradient of the input, handed back
inline constexpr const char* delta = "delta";              ///< kept from I to W
inline constexpr const char* weights = "weights";          ///< parameters of the stage
inline constexpr const char* gradients =
    "gradients";  ///< their gradients, summed over the microbatches
}  // namespace role

/// Sizes that all stages share, in bytes per microbatch (parameters: per stage). Zero where only
/// the order matters; a Runner replaces them by those of the model.
struct StageSizes {
  Bytes activation = 0;        ///< handed on by a stage; so is its gradient, backwards
  Bytes saved = 0;             ///< kept from forward to backward
  Bytes delta = 0;             ///< kept from I to W
  Bytes parameters = 0;        ///< of the stage; the gradients are as large
  Scalar type = Scalar::byte;  ///< of the elements of all of them
};

namespace impl {

/// The state of one weave() call.
class Weaver {
 public:
  Weaver(const Orders& orders, const StageGraph& graph, const StageSizes& sizes)
      : m_orders(orders),
        m_graph(graph),
        m_sizes(sizes),
        m_builder(orders.name, static_cast<int>(orders.ranks.size())) {}

  Schedule run() {
    place_stages();
    make_buffers();
    emit_all();
    if (m_trains) update_all();
    return std::move(m_builder).build();
  }

 private:
  static constexpr std::uint32_t nobody = 0xffffffffu;

  /// What is known of a stage: where it lives, and the buffers of its four sides.
  struct Place {
    std::uint32_t rank = nobody;
    bool splits = false;                 ///< has I and W actions
    bool started = false;                ///< its gradients hold a value of this step
    std::vector<std::uint32_t> in, out;  ///< edges
    BufferId output, saved, delta, weights, gradients;
    QueueId queue;  ///< the rank's own
  };
  /// What is known of an edge: the buffers at its two ends, equal where it stays on one rank.
  struct Wire {
    BufferId sent, received;            ///< activation
    BufferId grad_sent, grad_received;  ///< gradient, the other way
    QueueId there, back;                ///< where it crosses
  };
  /// Rounds in which the actions of one (stage, microbatch) were emitted; 0: not yet.
  struct Done {
    std::uint32_t forward = 0;
    std::uint32_t backward = 0;  ///< I or B
    std::uint32_t weights = 0;   ///< W or B
  };

  [[nodiscard]] Complaint fail(std::string what, std::string why, std::string fix = {}) const {
    return {text("heddle::weave(", m_orders.name, ")"), std::move(what), std::move(why),
            std::move(fix)};
  }

  Done& done(Stage stage, Item item) { return m_done[+stage * m_items + +item]; }

  void place_stages() {
    m_places.resize(static_cast<std::size_t>(m_graph.stages));
    for (std::size_t e = 0; e < m_graph.edges.size(); ++e) {
      const auto [from, to] = m_graph.edges[e];
      expects(+from < m_places.size() && +to < m_places.size(), [&] {
        return fail("the stage graph has an edge to no stage", text(from, " -> ", to));
      });
      m_places[+from].out.push_back(static_cast<std::uint32_t>(e));
      m_places[+to].in.push_back(static_cast<std::uint32_t>(e));
    }
    for (std::uint32_t rank = 0; rank < m_orders.ranks.size(); ++rank) {
      for (const Order& order : m_orders.ranks[rank]) {
        expects(order.kind <= Kind::B,
                [&] { return fail("orders hold F, I, W and B only", text("found ", order)); });
        expects(+order.stage < m_places.size(), [&] {
          return fail("an action names a stage that the graph lacks",
                      text(order, " on rank ", rank, ", stages 0 to ", m_graph.stages - 1));
        });
        Place& place = m_places[+order.stage];
        expects(place.rank == nobody || place.rank == rank, [&] {
          return fail("a stage is on two ranks",
                      text("stage ", order.stage, " on ranks ", place.rank, " and ", rank));
        });
        place.rank = rank;
        place.splits |= order.kind == Kind::I;
        m_trains |= order.kind != Kind::F;
        m_items = std::max(m_items, std::size_t{+order.item + 1});
        ++m_total;
      }
    }
    for (std::size_t stage = 0; stage < m_places.size(); ++stage) {
      expects(m_places[stage].rank != nobody,
              [&] { return fail("no rank runs a stage", text("stage ", stage)); });
    }
    m_done.resize(m_places.size() * m_items);
  }

  BufferId make(const char* name, std::size_t stage, std::uint32_t rank, Bytes each) {
    const auto parts = static_cast<std::uint32_t>(m_items);
    return m_builder.add_buffer({.rank = Rank{rank},
                                 .parts = parts,
                                 .stage = Stage{stage},
                                 .label = m_builder.label(name),
                                 .type = m_sizes.type,
                                 .bytes = each * parts});
  }
  BufferId make_whole(const char* name, std::size_t stage, std::uint32_t rank, bool transient) {
    return m_builder.add_buffer({.rank = Rank{rank},
                                 .stage = Stage{stage},
                                 .label = m_builder.label(name),
                                 .type = m_sizes.type,
                                 .transient = transient,
                                 .bytes = m_sizes.parameters});
  }

  void make_buffers() {
    std::size_t buffers = 0;
    std::size_t parts = 0;
    for (const Place& place : m_places) {
      const std::size_t many = 2 + place.splits + 3 * place.in.size();
      buffers += many + 2;
      parts += many * m_items + 2;
    }
    m_builder.reserve_buffers(buffers, parts);
    for (std::size_t s = 0; s < m_places.size(); ++s) {
      Place& place = m_places[s];
      place.queue = m_builder.local(Rank{place.rank});
      if (!place.out.empty()) place.output = make(role::output, s, place.rank, m_sizes.activation);
      if (m_trains) {
        place.saved = make(role::saved, s, place.rank, m_sizes.saved);
        if (place.splits) place.delta = make(role::delta, s, place.rank, m_sizes.delta);
        place.gradients = make_whole(role::gradients, s, place.rank, true);
      }
      place.weights = make_whole(role::weights, s, place.rank, false);
    }
    m_wires.resize(m_graph.edges.size());
    std::size_t moves = 0;
    for (std::size_t e = 0; e < m_wires.size(); ++e) {
      const auto [from, to] = m_graph.edges[e];
      const Place &source = m_places[+from], &target = m_places[+to];
      const bool crosses = source.rank != target.rank;
      Wire& wire = m_wires[e];
      wire.sent = wire.received = source.output;
      if (crosses) {
        wire.received = make(role::input, +to, target.rank, m_sizes.activation);
        wire.there = m_builder.queue(Rank{source.rank}, Rank{target.rank});
      }
      if (m_trains) {
        wire.grad_sent = wire.grad_received =
            make(role::input_grad, +to, target.rank, m_sizes.activation);
        if (crosses) {
          wire.grad_received = make(role::output_grad, +from, source.rank, m_sizes.activation);
          wire.back = m_builder.queue(Rank{target.rank}, Rank{source.rank});
        }
      }
      moves += crosses ? (m_trains ? 2 : 1) * m_items : 0;
    }
    // An upper bound that is exact for chains without split backward passes.
    const std::size_t uses = m_trains ? 5 * m_total : 3 * m_total;
    m_builder.reserve_actions(m_total + moves + m_places.size(), uses + 2 * moves + 64);
  }

  /// The first thing that `order` still waits for in `round`, or the order itself.
  [[nodiscard]] Order missing(const Order& order, std::uint32_t round) {
    const auto open = [round](std::uint32_t emitted) { return emitted == 0 || emitted >= round; };
    const Place& place = m_places[+order.stage];
    if (order.kind == Kind::F) {
      for (const std::uint32_t e : place.in) {
        const Stage from = m_graph.edges[e].from;
        if (open(done(from, order.item).forward)) return {Kind::F, from, order.item};
      }
    } else if (order.kind == Kind::W) {
      if (open(done(order.stage, order.item).backward)) return {Kind::I, order.stage, order.item};
    } else {
      if (open(done(order.stage, order.item).forward)) return {Kind::F, order.stage, order.item};
      for (const std::uint32_t e : place.out) {
        const Stage to = m_graph.edges[e].to;
        if (open(done(to, order.item).backward))
          return {m_places[+to].splits ? Kind::I : Kind::B, to, order.item};
      }
    }
    return order;
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
        const Order& order = list[head[rank]];
        if (missing(order, round) != order) {
          m_late |= missing(order, nobody) == order;
          continue;
        }
        emit(order, round);
        ++head[rank];
        ++emitted;
      }
      if (emitted == before && !std::exchange(m_late, false)) throw infeasible(stuck(head));
    }
    check_complete();
  }

  [[nodiscard]] Complaint stuck(const std::vector<std::size_t>& head) {
    std::string heads;
    for (std::size_t rank = 0; rank < head.size(); ++rank) {
      if (head[rank] == m_orders.ranks[rank].size()) continue;
      const Order& order = m_orders.ranks[rank][head[rank]];
      if (!heads.empty()) heads += ", ";
      heads += text("rank ", rank, " waits at ", order, " for ", missing(order, nobody));
    }
    return fail("the orders cannot progress", heads, "reorder one of these heads");
  }

  void check_complete() {
    for (std::size_t s = 0; s < m_places.size(); ++s) {
      for (std::size_t m = 0; m < m_items; ++m) {
        const Done& state = m_done[s * m_items + m];
        const char* lacks = state.forward == 0                ? "F"
                            : m_trains && state.backward == 0 ? "I or B"
                            : m_trains && state.weights == 0  ? "W or B"
                                                              : nullptr;
        expects(lacks == nullptr, [&] {
          return fail("a stage does not finish a microbatch",
                      text("stage ", s, ", microbatch ", m, " has no ", lacks));
        });
      }
    }
  }

  void emit(const Order& order, std::uint32_t round) {
    Place& place = m_places[+order.stage];
    Done& state = done(order.stage, order.item);
    const std::uint32_t m = order.item.value;
    std::uint32_t& slot = order.kind == Kind::F   ? state.forward
                          : order.kind == Kind::W ? state.weights
                                                  : state.backward;
    expects(slot == 0 && !(order.kind == Kind::B && state.weights != 0),
            [&] { return fail("an action appears twice", text(order, " on rank ", place.rank)); });
    slot = round;
    if (order.kind == Kind::B) state.weights = round;

    using namespace schedule;
    m_uses.clear();
    const auto inputs = [&] {
      for (const std::uint32_t e : place.in) m_uses.push_back(read(m_wires[e].received, m));
    };
    if (order.kind == Kind::F) {
      inputs();
      if (!place.out.empty()) m_uses.push_back(write(place.output, m));
      if (m_trains) m_uses.push_back(write(place.saved, m));
      m_uses.push_back(read(place.weights));
    } else {
      inputs();
      m_uses.push_back(read(place.saved, m));
      for (const std::uint32_t e : place.out) m_uses.push_back(read(m_wires[e].grad_received, m));
      if (order.kind != Kind::W) {
        m_uses.push_back(read(place.weights));
        for (const std::uint32_t e : place.in) m_uses.push_back(write(m_wires[e].grad_sent, m));
      }
      if (order.kind == Kind::I) m_uses.push_back(write(place.delta, m));
      if (order.kind == Kind::W) m_uses.push_back(read(place.delta, m));
      if (order.kind != Kind::I) {
        const Access access = std::exchange(place.started, true) ? Access::update : Access::write;
        m_uses.push_back(use(access, place.gradients));
      }
    }
    m_builder.add({order.kind, place.queue, order.stage, order.item}, m_uses);

    if (order.kind == Kind::F) {
      for (const std::uint32_t e : place.out) {
        const Wire& wire = m_wires[e];
        move(wire.sent, wire.received, wire.there, order, 0);
      }
    } else if (order.kind != Kind::W) {
      for (const std::uint32_t e : place.in) {
        const Wire& wire = m_wires[e];
        move(wire.grad_sent, wire.grad_received, wire.back, order, flag::gradient);
      }
    }
  }

  /// What `order` made travels to the rank that needs it, unless it is there.
  void move(BufferId from, BufferId to, QueueId queue, const Order& order, std::uint8_t flags) {
    if (from == to) return;
    const std::uint32_t m = order.item.value;
    m_builder.add({Kind::move, queue, order.stage, order.item, flags},
                  {schedule::read(from, m), schedule::write(to, m)});
  }

  void update_all() {
    for (std::size_t s = 0; s < m_places.size(); ++s) {
      const Place& place = m_places[s];
      m_builder.add({Kind::update, place.queue, Stage{s}},
                    {schedule::read(place.gradients), schedule::update(place.weights)});
    }
  }

  const Orders& m_orders;
  const StageGraph& m_graph;
  StageSizes m_sizes;
  Builder m_builder;
  std::vector<Place> m_places;
  std::vector<Wire> m_wires;
  std::vector<Done> m_done;
  std::vector<Use> m_uses;
  std::size_t m_items = 0;
  std::size_t m_total = 0;
  bool m_trains = false;
  bool m_late = false;  ///< some head only waits for the next round
};

}  // namespace impl

/// The Schedule in which every rank computes in its order and each value that another rank needs is
/// moved there as soon as it exists. A training order (one with backward actions) ends with one
/// update per stage.
///
/// Uses of an action, in this order: F [inputs, output, saved, weights]; I, B [inputs, saved,
/// output_grads, weights, input_grads, then delta (I) or gradients (B)]; W [inputs, saved,
/// output_grads, delta, gradients]; update [gradients, weights]. The first backward action of a
/// stage `write`s its gradients, the later ones `update` them.
///
/// @throws infeasible where the orders cannot progress; it names what every stuck head waits for.
/// @throws contract_error for an action twice, a stage on two ranks or on none, a microbatch that a
///         stage does not finish.
[[nodiscard]] inline Schedule weave(const Orders& orders, const StageGraph& graph,
                                    const StageSizes& sizes = {}) {
  return impl::Weaver(orders, graph, sizes).run();
}

}  // namespace heddle::inline v0
