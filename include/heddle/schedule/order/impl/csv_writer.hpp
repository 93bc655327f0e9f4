// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Implements to_csv() with transfers: places them as torch.distributed.pipelining does, or
/// receives as late as possible.

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// The writer. The orders and steps must have no fault.
class CsvWriter {
 public:
  explicit CsvWriter(const LoweredOrders& lowered)
      : m_orders(lowered.orders),
        m_steps(lowered.steps),
        m_graph(heddle::impl::graph_of(m_orders)),
        m_items(heddle::impl::items_of(m_orders)),
        m_homes(static_cast<std::size_t>(m_graph.stages) * m_items),
        m_edges(static_cast<std::size_t>(m_graph.stages)),
        m_steps_done(m_orders.ranks.size()),
        m_lines(m_orders.ranks.size()) {
    m_steps.resize(m_lines.size());
    for (std::size_t rank = 0; rank < m_lines.size(); ++rank)
      for (const Order& order : m_orders.ranks[rank])
        if (order.kind == Kind::forward) m_homes[at(order.stage, order.item)] = Rank{rank};
    for (const auto& [from, to, edge_at] : m_graph.edges) {
      (edge_at == Kind::forward ? m_edges[+from].out : m_edges[+from].exchanged).push_back(to);
      if (edge_at == Kind::forward) m_edges[+to].in.push_back(from);
    }
  }

  /// Returns the file. The sender places the receive.
  std::string write() && {
    const auto compute = [this](Rank rank, std::span<const Order> together) {
      append(rank, together);
      for (const Order& order : together)
        for_each_transfer(rank, order, [this](const Transfer& each) { append(each); });
    };
    heddle::impl::Progress(m_orders, m_graph).run(compute, [this](Rank rank, std::size_t head) {
      return step(rank, head);
    });
    return file();
  }

  /// Returns the file. The receive of a value stands directly before the action that needs it,
  /// unless the ranks would then wait for each other. This is tested with transfers that have no
  /// buffers: a send and its receive each block their rank until the other one is reached.
  std::string write_late() && {
    m_places.resize(m_lines.size());
    count_inputs();
    for (bool any = true; any;) {
      any = false;
      for (std::size_t rank = 0; rank < m_lines.size(); ++rank) any |= advance(Rank{rank});
      if (!any) any = send_early();
    }
    return file();
  }

 private:
  /// The neighbours of a stage.
  struct Edges {
    std::vector<Stage> in;         ///< the stages that get its gradients
    std::vector<Stage> out;        ///< the stages whose forward gets its output
    std::vector<Stage> exchanged;  ///< the stages whose backward gets its output
  };
  /// A value that goes to another rank.
  struct Transfer {
    Rank from, there;
    Stage sender, receiver;
    Item item;
    Kind at;    ///< the pass that makes it: forward, or backward for a gradient
    bool late;  ///< a forward value that only the backward of the receiver needs
  };
  /// The place of a rank in its list.
  struct Place {
    std::size_t head = 0;
    std::deque<Transfer> sends;  ///< the values to send before the head
  };

  [[nodiscard]] std::size_t at(Stage stage, Item item) const { return +stage * m_items + +item; }

  void append(Rank rank, const std::string& cell) {
    std::string& line = m_lines[+rank];
    line += line.empty() ? cell : "," + cell;
  }
  /// Appends the send to one rank and the receive to the other one.
  void append(const Transfer& transfer) {
    const char* payload = transfer.at == Kind::forward ? "_F" : "_B";
    append(transfer.from, text(transfer.sender, "SEND", payload, transfer.item));
    append(transfer.there, text(transfer.receiver, "RECV", payload, transfer.item));
  }
  void append(Rank rank, std::span<const Order> together) {
    append(rank, together.size() == 1 ? text(together[0])
                                      : text("(", together[0], ";", together[1], ")OVERLAP_F_B"));
  }
  /// Returns true if the next parameter step stands before the entry `head`.
  [[nodiscard]] bool is_step(Rank rank, std::size_t head) const {
    const auto& steps = m_steps[+rank];
    const std::size_t done = m_steps_done[+rank];
    return done < steps.size() && steps[done].before <= head;
  }
  /// Appends the next parameter step if it stands before the entry `head`.
  bool step(Rank rank, std::size_t head) {
    if (!is_step(rank, head)) return false;
    append(rank, text(m_steps[+rank][m_steps_done[+rank]++]));
    return true;
  }
  [[nodiscard]] std::string file() const {
    std::string csv;
    for (const std::string& line : m_lines) csv += line + "\n";
    return csv;
  }

  /// Calls `visit` for the transfers of the result of `order` to the ranks that need it.
  template <class Visit>
  void for_each_transfer(Rank rank, const Order& order, const Visit& visit) const {
    if (order.kind == Kind::backward_weight || order.kind == Kind::update) return;
    const bool forward = order.kind == Kind::forward;
    const auto& [in, out, exchanged] = m_edges[+order.stage];
    const auto to = [&](Stage stage, bool late) {
      const Rank there = m_homes[at(stage, order.item)];
      if (there != rank)
        visit(Transfer{rank, there, order.stage, stage, order.item,
                       forward ? Kind::forward : Kind::backward, late});
    };
    for (const Stage stage : forward ? out : in) to(stage, false);
    if (forward)
      for (const Stage stage : exchanged) to(stage, true);
  }

  /// The number of values that an entry of a rank still has to receive.
  int& lacks(Stage stage, Item item, bool backward) { return m_lacks[backward][at(stage, item)]; }
  int& lacks(const Transfer& each) {
    return lacks(each.receiver, each.item, each.late || each.at != Kind::forward);
  }
  void count_inputs() {
    for (auto& counts : m_lacks) counts.assign(m_homes.size(), 0);
    for (std::size_t rank = 0; rank < m_lines.size(); ++rank)
      for (const Order& order : m_orders.ranks[rank])
        for_each_transfer(Rank{rank}, order, [this](const Transfer& each) { ++lacks(each); });
  }
  /// Returns the entries that the rank computes next: none, one or a pair.
  [[nodiscard]] std::span<const Order> next(Rank rank) const {
    const std::span<const Order> list = m_orders.ranks[+rank];
    const std::size_t head = m_places[+rank].head;
    return list.subspan(head, head == list.size() ? 0 : list[head].fused ? 2 : 1);
  }
  [[nodiscard]] static bool needs(const Order& order, const Transfer& each) {
    const bool backward = order.kind == Kind::backward || order.kind == Kind::backward_input;
    return order.stage == each.receiver && order.item == each.item &&
           (each.late || each.at != Kind::forward ? backward : order.kind == Kind::forward);
  }
  void send(Rank rank) {
    const Transfer each = m_places[+rank].sends.front();
    m_places[+rank].sends.pop_front();
    append(each);
    --lacks(each);
  }

  /// Runs a rank up to the place where it waits for another one. Returns true if it ran.
  bool advance(Rank rank) {
    Place& place = m_places[+rank];
    for (bool any = false;; any = true) {
      if (!place.sends.empty()) {
        const Transfer& each = place.sends.front();
        const Place& there = m_places[+each.there];
        const bool ready = there.sends.empty() && !is_step(each.there, there.head) &&
                           std::ranges::any_of(next(each.there), [&](const Order& order) {
                             return needs(order, each);
                           });
        if (!ready) return any;
        send(rank);
        continue;
      }
      if (step(rank, place.head)) continue;
      const auto together = next(rank);
      const auto complete = [this](const Order& order) {
        const bool backward = order.kind != Kind::forward;
        return order.kind == Kind::backward_weight || order.kind == Kind::update ||
               lacks(order.stage, order.item, backward) == 0;
      };
      if (together.empty() || !std::ranges::all_of(together, complete)) return any;
      append(rank, together);
      for (const Order& order : together)
        for_each_transfer(rank, order, [&](const Transfer& each) { place.sends.push_back(each); });
      place.head += together.size();
    }
  }

  /// Ends a wait of ranks for each other: a value is received at the place that its receiver has
  /// reached, if possible before a send rather than before a computation. Returns false if no rank
  /// waits to send.
  bool send_early() {
    for (const bool before_send : {true, false})
      for (std::size_t rank = 0; rank < m_lines.size(); ++rank) {
        const auto& sends = m_places[rank].sends;
        if (sends.empty()) continue;
        if (before_send && m_places[+sends.front().there].sends.empty()) continue;
        send(Rank{rank});
        return true;
      }
    return false;
  }

  const Orders& m_orders;
  std::vector<std::vector<ParameterStep>> m_steps;  ///< by rank
  StageGraph m_graph;
  std::size_t m_items;
  std::vector<Rank> m_homes;  ///< the ranks, by stage and microbatch
  std::vector<Edges> m_edges;
  std::vector<std::size_t> m_steps_done;    ///< by rank
  std::vector<std::string> m_lines;         ///< by rank
  std::vector<Place> m_places;              ///< by rank
  std::array<std::vector<int>, 2> m_lacks;  ///< values to receive, by pass, stage and microbatch
};

}  // namespace heddle::inline v0::schedule::impl
