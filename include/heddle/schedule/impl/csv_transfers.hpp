// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Compares the transfers that a schedule file writes with those that weave() inserts.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/fault.hpp>
#include <heddle/schedule/impl/csv_reader.hpp>
#include <heddle/schedule/impl/progress.hpp>
#include <heddle/schedule/orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// For orders that have no fault of their own; the faults it finds count cells, not entries.
class CsvTransfers {
 public:
  explicit CsvTransfers(const CsvContent& content) : m_content(content) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const auto& list = content.orders.ranks[rank];
      for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].kind != Kind::W && list[i].kind != Kind::update)
          m_made[{list[i].kind != Kind::F, +list[i].stage, +list[i].item}] = {rank, i};
    }
    const StageGraph graph = heddle::impl::graph_of(content.orders);
    for (const auto& [from, to, at] : graph.edges) {
      expect(from, to, false, at == Kind::B);
      if (at == Kind::F) expect(to, from, true, true);
    }
  }

  std::optional<Fault> find() {
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      for (const CsvTransfer& transfer : m_content.transfers[rank])
        if (auto found = check(rank, transfer)) return found;
    std::optional<Fault> first;
    for (const auto& [where, wanted] : m_expected) {
      if (wanted.count == 0) continue;
      const std::size_t cell = m_content.cell_of[where.rank][wanted.entry];
      if (first && std::pair(+first->rank, first->entry) <= std::pair(where.rank, cell)) continue;
      const CsvTransfer lacks{where.sends, where.gradient, Stage{where.stage}, Item{where.item}};
      first = Fault{Rank{where.rank}, cell, "a transfer is missing",
                    text("no ", lacks, where.sends ? " after " : " before ",
                         m_content.orders.ranks[where.rank][wanted.entry])};
    }
    return first || m_branches ? first : in_order();
  }

 private:
  struct Key {
    std::size_t rank, stage, item;
    bool sends, gradient;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Wanted {
    int count = 0;           ///< not yet found
    std::size_t entry = 0;   ///< of its rank: what makes or needs the value
    std::size_t peer = 0;    ///< rank at the other end
    std::size_t sender = 0;  ///< the stage at the sending end
  };
  struct At {
    std::size_t rank, entry;
  };

  [[nodiscard]] std::size_t ranks() const { return m_content.orders.ranks.size(); }

  /// What the forward (backward) of `from` makes goes to the forward (backward) of `to`, for every
  /// microbatch that both compute on different ranks.
  void expect(Stage from, Stage to, bool gradient, bool to_backward) {
    for (auto made = m_made.lower_bound({gradient, +from, 0});
         made != m_made.end() && std::get<0>(made->first) == gradient &&
         std::get<1>(made->first) == +from;
         ++made) {
      const std::size_t item = std::get<2>(made->first);
      const auto needed = m_made.find({to_backward, +to, item});
      if (needed == m_made.end() || needed->second.rank == made->second.rank) continue;
      for (const bool sends : {true, false}) {
        const At& here = sends ? made->second : needed->second;
        const At& there = sends ? needed->second : made->second;
        Wanted& wanted = m_expected[{here.rank, sends ? +from : +to, item, sends, gradient}];
        m_branches |= wanted.count > 0;
        wanted = {wanted.count + 1, here.entry, there.rank, +from};
      }
    }
  }

  std::optional<Fault> check(std::size_t rank, const CsvTransfer& transfer) {
    const auto fault = [&](std::string what, std::string why) {
      return Fault{Rank{rank}, transfer.cell, std::move(what), std::move(why)};
    };
    const auto found =
        m_expected.find({rank, +transfer.stage, +transfer.item, transfer.sends, transfer.gradient});
    if (found == m_expected.end())
      return fault("no such transfer is needed",
                   text(transfer, " on rank ", rank, ": nothing that its stages make there"));
    Wanted& wanted = found->second;
    if (wanted.count == 0) return fault("a transfer appears twice", text(transfer));
    --wanted.count;
    const Order& other = m_content.orders.ranks[rank][wanted.entry];
    if (transfer.sends && wanted.entry >= transfer.before)
      return fault("a value is sent before it is made", text(transfer, " before ", other));
    if (!transfer.sends && wanted.entry < transfer.before)
      return fault("a value is received after it is needed", text(transfer, " after ", other));
    auto& messages =
        m_messages[transfer.sends ? std::pair(rank, wanted.peer) : std::pair(wanted.peer, rank)];
    (transfer.sends ? messages.sent : messages.received).push_back({transfer, wanted.sender});
    return {};
  }

  /// Messages between two ranks are matched by their order.
  std::optional<Fault> in_order() const {
    for (const auto& [ends, messages] : m_messages)
      for (std::size_t i = 0; i < messages.sent.size(); ++i) {
        const auto& [sent, sender] = messages.sent[i];
        const auto& [received, from] = messages.received[i];
        if (sent.gradient == received.gradient && sent.item == received.item && sender == from)
          continue;
        return Fault{Rank{ends.second}, received.cell,
                     "two ranks do not agree about the order of their messages",
                     text("message ", i + 1, " from rank ", ends.first, " is ", sent,
                          ", not that of ", received)};
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
  std::map<std::tuple<bool, std::size_t, std::size_t>, At> m_made;  ///< by backward, stage, item
  std::map<Key, Wanted> m_expected;
  bool m_branches = false;  ///< one value goes to several stages, and the file does not say which
  std::map<std::pair<std::size_t, std::size_t>, Messages> m_messages;  ///< by source, destination
};

}  // namespace heddle::inline v0::schedule::impl
