// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Compares the transfers of a schedule file with the transfers that weave() inserts.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/impl/csv_reader.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// The comparison. The orders must have no fault of their own. The entries of the faults that it
/// finds are cells, not entries of the orders.
class CsvTransfers {
 public:
  explicit CsvTransfers(const CsvContent& content)
      : m_content(content),
        m_graph(heddle::impl::graph_of(content.lowered.orders)),
        m_items(heddle::impl::items_of(content.lowered.orders)) {
    const std::size_t all = static_cast<std::size_t>(m_graph.stages) * m_items;
    m_forward.resize(all);
    m_backward.resize(all);
    m_wanted.resize(4 * all);
    const bool trains = heddle::impl::trains(content.lowered.orders);
    for (std::size_t rank = 0; rank < content.lowered.orders.ranks.size(); ++rank) {
      const auto& list = content.lowered.orders.ranks[rank];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t at = +list[i].stage * m_items + +list[i].item;
        if (list[i].kind == Kind::forward) m_forward[at] = {rank, i};
        if (list[i].kind == Kind::backward_input || list[i].kind == Kind::backward)
          m_backward[at] = {rank, i};
      }
    }
    for (const auto& [from, to, at] : m_graph.edges) {
      if (at == Kind::forward) expect(from, to, false, m_forward, m_forward);
      if (at == Kind::forward && trains) expect(to, from, true, m_backward, m_backward);
      if (at == Kind::backward) expect(from, to, false, m_forward, m_backward);
    }
  }

  /// Returns the first fault, or none.
  std::optional<Fault> find() {
    for (std::size_t rank = 0; rank < m_content.transfers.size(); ++rank)
      for (const CsvTransfer& transfer : m_content.transfers[rank])
        if (auto found = check(rank, transfer)) return found;
    if (auto found = missing()) return found;
    return m_branches ? std::nullopt : in_order();
  }

 private:
  /// An entry of a rank's list.
  struct At {
    std::size_t rank, entry;
  };
  /// One end of a transfer that weave() inserts.
  struct Wanted {
    int needed = 0;          ///< the number of transfers that weave() inserts
    int found = 0;           ///< the number of transfers in the file
    At here = {};            ///< the entry that makes or needs the value
    std::size_t peer = 0;    ///< the rank at the other end
    std::size_t sender = 0;  ///< the stage at the sending end
  };

  [[nodiscard]] std::size_t index(bool sends, bool gradient, Stage stage, Item item) const {
    const std::size_t all = static_cast<std::size_t>(m_graph.stages) * m_items;
    return (sends * 2u + gradient) * all + +stage * m_items + +item;
  }

  /// Notes the transfers from stage `from` to stage `to`, for every microbatch that they compute on
  /// different ranks.
  void expect(Stage from, Stage to, bool gradient, const std::vector<At>& makes,
              const std::vector<At>& needs) {
    for (std::size_t m = 0; m < m_items; ++m) {
      const At& source = makes[+from * m_items + m];
      const At& target = needs[+to * m_items + m];
      if (source.rank == target.rank) continue;
      for (const bool sends : {true, false}) {
        Wanted& wanted = m_wanted[index(sends, gradient, sends ? from : to, Item{m})];
        m_branches |= wanted.needed > 0;
        // A file does not say which of a stage's inputs a receive brings. A receive is late if it
        // is late for the last entry that needs one.
        At here = sends ? source : target;
        if (wanted.needed > 0 && wanted.here.entry > here.entry) here = wanted.here;
        wanted = {wanted.needed + 1, 0, here, sends ? target.rank : source.rank, +from};
      }
    }
  }

  std::optional<Fault> check(std::size_t rank, const CsvTransfer& transfer) {
    const auto fault = [&](std::string what, std::string why) {
      return Fault{Rank{rank}, transfer.cell, std::move(what), std::move(why)};
    };
    const auto& [sends, gradient, stage, item, cell, before] = transfer;
    const bool known = +stage < static_cast<std::size_t>(m_graph.stages) && +item < m_items;
    Wanted* wanted = known ? &m_wanted[index(sends, gradient, stage, item)] : nullptr;
    if (!known || wanted->needed == 0 || wanted->here.rank != rank)
      return fault("no such transfer is needed",
                   text(transfer, " on rank ", rank, " matches no value that ranks exchange"));
    if (++wanted->found > wanted->needed) return fault("a transfer appears twice", text(transfer));
    const std::size_t entry = wanted->here.entry;
    if (sends && entry >= before)
      return fault("a value is sent before it is made",
                   text(transfer, " before ", m_content.lowered.orders.ranks[rank][entry]));
    if (!sends && entry < before)
      return fault("a value is received after it is needed",
                   text(transfer, " after ", m_content.lowered.orders.ranks[rank][entry]));
    auto& messages =
        m_messages[sends ? std::pair(rank, wanted->peer) : std::pair(wanted->peer, rank)];
    (sends ? messages.sent : messages.received).push_back({transfer, wanted->sender});
    return {};
  }

  /// Returns a fault for the first entry that lacks a transfer after or before it.
  std::optional<Fault> missing() const {
    std::optional<Fault> first;
    for (const bool sends : {true, false})
      for (const bool gradient : {false, true})
        for (int s = 0; s < m_graph.stages; ++s)
          for (std::size_t m = 0; m < m_items; ++m) {
            const CsvTransfer lacks{sends, gradient, Stage{s}, Item{m}};
            const Wanted& wanted = m_wanted[index(sends, gradient, lacks.stage, lacks.item)];
            if (wanted.found >= wanted.needed) continue;
            const auto [rank, entry] = wanted.here;
            const std::size_t cell = m_content.cell_of[rank][entry];
            if (first && std::pair(+first->rank, first->entry) <= std::pair(rank, cell)) continue;
            first = Fault{Rank{rank}, cell, "a transfer is missing",
                          text("no ", lacks, sends ? " after " : " before ",
                               m_content.lowered.orders.ranks[rank][entry])};
          }
    return first;
  }

  /// Returns a fault for the first message that the two ranks send and receive in different order.
  std::optional<Fault> in_order() const {
    for (const auto& [ends, messages] : m_messages)
      for (std::size_t i = 0; i < messages.sent.size(); ++i) {
        const auto& [sent, sender] = messages.sent[i];
        const auto& [received, from] = messages.received[i];
        if (sent.gradient == received.gradient && sent.item == received.item && sender == from)
          continue;
        return Fault{Rank{ends.second}, received.cell, "two ranks order their messages differently",
                     text("message ", i + 1, " from rank ", ends.first, " is ", sent,
                          ", but the receive is ", received)};
      }
    return {};
  }

  struct Message {
    CsvTransfer transfer;
    std::size_t sender;
  };
  struct Messages {
    std::vector<Message> sent, received;
  };

  const CsvContent& m_content;
  StageGraph m_graph;
  std::size_t m_items;
  std::vector<At> m_forward, m_backward;  ///< by stage and microbatch
  std::vector<Wanted> m_wanted;           ///< by index()
  bool m_branches = false;  ///< a value goes to several stages, and the file does not say which
  std::map<std::pair<std::size_t, std::size_t>, Messages> m_messages;  ///< by source, destination
};

}  // namespace heddle::inline v0::schedule::impl
