// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of divided_orders.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/internal/progress.hpp>

namespace heddle::inline v0::impl {

inline void sort_and_erase_doubles(std::vector<std::int64_t>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

HEDDLE_INLINE void refuse_shares(const Orders& orders, const char* where) {
  expects(orders.shares.empty(), [&] {
    return ErrorInfo{where, "the orders have shares", text("'", orders.name, "'"),
                     "call it before in_shares()"};
  });
}

HEDDLE_INLINE DividedOrders::DividedOrders(const Orders& orders) : m_given(orders) {
  orders.shares.check();
  if (orders.shares.empty()) return;
  m_graph = graph_of(orders);
  m_sizes = orders.shares.microbatches;
  m_sizes.push_back(orders.shares.samples);
  sort_and_erase_doubles(m_sizes);
  find_shares();
  connect_shares();
}

HEDDLE_INLINE void DividedOrders::find_shares() {
  const auto complaint = [&](std::string what, std::string why, std::string fix = {}) {
    return ErrorInfo{text("heddle::StageShares, '", m_given.name, "'"), std::move(what),
                     std::move(why), std::move(fix)};
  };
  const StageShares& shares = m_given.shares;
  expects(static_cast<std::size_t>(m_graph.stages) == stages(), [&] {
    return complaint("every stage needs its shares",
                     text(stages(), " entries for ", m_graph.stages, " stages"));
  });
  std::vector<std::vector<Rank>> homes(stages());
  bool updates = false;
  for (std::size_t rank = 0; rank < m_given.ranks.size(); ++rank)
    for (const Order& order : m_given.ranks[rank]) {
      updates |= order.kind == Kind::update;
      if (+order.stage >= stages()) continue;  // FaultFinder and StagePlaces complain
      std::vector<Rank>& ranks = homes[+order.stage];
      if (ranks.empty() || ranks.back() != Rank{rank}) ranks.push_back(Rank{rank});
    }
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    const std::size_t wanted = shares.stages[stage].size();
    const bool replicas = m_given.graph.replicas;
    expects(!replicas || wanted == 1, [&] {
      return complaint("a stage with replicas has one share",
                       text("stage ", stage, " has ", wanted),
                       "divide either the microbatches or their samples between the ranks");
    });
    expects(homes[stage].size() == wanted || (replicas && !homes[stage].empty()), [&] {
      std::string ranks;
      for (const Rank rank : homes[stage]) ranks += text(ranks.empty() ? "" : ", ", rank);
      return complaint("a stage has another number of shares than ranks",
                       text("stage ", stage, " has ", wanted, " shares and ", homes[stage].size(),
                            " ranks: ", ranks),
                       "give every rank of the stage its entries, for example with in_shares()");
    });
    expects(!updates || wanted == 1, [&] {
      return complaint("a stage on several ranks cannot update on its own", text("stage ", stage),
                       "remove the updates; weave() appends one at the end of the step");
    });
    m_first.push_back(m_shares.size());
    for (std::size_t k = 0; k < wanted; ++k) m_shares.push_back({Stage{stage}, k, homes[stage][k]});
  }
  if (shares.microbatches.empty()) return;
  const std::size_t items = items_of(m_given);
  expects(shares.microbatches.size() == items, [&] {
    return complaint("every microbatch needs its size",
                     text(shares.microbatches.size(), " sizes for ", items, " microbatches"));
  });
}

HEDDLE_INLINE void DividedOrders::connect_shares() {
  const auto meet = [&](const Share& a, const Share& b) {
    return std::ranges::any_of(m_sizes, [&](std::int64_t size) {
      return overlap(range(a, size), range(b, size)).size() > 0;
    });
  };
  StageGraph graph{static_cast<int>(m_shares.size())};
  graph.replicas = m_given.graph.replicas;
  const auto end_of = [&](Stage stage) {
    return +stage + 1 < stages() ? m_first[+stage + 1] : m_shares.size();
  };
  for (std::uint32_t e = 0; e < m_graph.edges.size(); ++e) {
    const StageGraph::Edge& edge = m_graph.edges[e];
    expects(+edge.from < stages() && +edge.to < stages(), [&] {
      return ErrorInfo{text("heddle::StageShares, '", m_given.name, "'"),
                       "the stage graph has an edge to no stage",
                       text(edge.from, " -> ", edge.to, ", stages 0 to ", stages() - 1)};
    });
    const std::size_t begin = m_links.size();
    for (std::size_t a = m_first[+edge.from]; a < end_of(edge.from); ++a)
      for (std::size_t b = m_first[+edge.to]; b < end_of(edge.to); ++b)
        if (meet(m_shares[a], m_shares[b])) {
          graph.edges.push_back({Stage{a}, Stage{b}, edge.at});
          m_links.push_back({e, true, true, true, true});
        }
    for (std::size_t i = begin; i < m_links.size(); ++i)
      for (std::size_t j = begin; j < m_links.size(); ++j) {
        if (i == j) continue;
        if (graph.edges[i].to == graph.edges[j].to) {
          m_links[i].alone_in = false;
          m_links[i].first_in &= i < j;
        }
        if (graph.edges[i].from == graph.edges[j].from) {
          m_links[i].alone_out = false;
          m_links[i].first_out &= i < j;
        }
      }
  }
  m_divided = Orders{m_given.name, m_given.ranks, std::move(graph), m_given.vertical_sync};
  for (std::size_t rank = 0; rank < m_given.ranks.size(); ++rank)
    for (Order& order : m_divided->ranks[rank]) {
      if (+order.stage >= stages()) {
        order.stage = Stage{m_shares.size() + +order.stage - stages()};
        continue;
      }
      std::size_t share = m_first[+order.stage];
      if (m_given.shares.stages[+order.stage].size() > 1)
        while (m_shares[share].rank != Rank{rank}) ++share;
      order.stage = Stage{share};
    }
}

HEDDLE_INLINE void DividedOrders::add_boundaries(Stage stage,
                                                 std::vector<std::int64_t>& boundaries) const {
  for (const std::int64_t size : m_sizes) {
    boundaries.push_back(0);
    for (std::size_t k = 0; k < m_given.shares.stages[+stage].size(); ++k)
      boundaries.push_back(m_given.shares.range(stage, k, size).end);
  }
}

HEDDLE_INLINE std::vector<std::int64_t> DividedOrders::cuts(Stage share) const {
  std::vector<std::int64_t> cuts;
  if (!divides()) return cuts;
  for (const std::int64_t size : m_sizes) {
    const SampleRange own = range(m_shares[+share], size);
    cuts.push_back(own.begin);
    cuts.push_back(own.end);
  }
  sort_and_erase_doubles(cuts);
  return cuts;
}

HEDDLE_INLINE std::vector<std::int64_t> DividedOrders::cuts(
    Stage share, const std::vector<std::uint32_t>& links) const {
  std::vector<std::int64_t> result = cuts(share);
  if (!divides()) return result;
  const std::int64_t begin = result.front();
  const std::int64_t end = result.back();
  for (const std::uint32_t each : links) {
    add_boundaries(m_graph.edges[m_links[each].edge].from, result);
    add_boundaries(m_graph.edges[m_links[each].edge].to, result);
  }
  std::erase_if(result, [&](std::int64_t cut) { return cut < begin || cut > end; });
  sort_and_erase_doubles(result);
  return result;
}

HEDDLE_INLINE std::string DividedOrders::describe(const Order& order) const {
  if (!divides()) return text(order);
  Order given = order;
  if (+order.stage >= m_shares.size()) {
    given.stage = Stage{+order.stage - m_shares.size() + stages()};
    return text(given);
  }
  const Share& share = m_shares[+order.stage];
  given.stage = share.stage;
  return m_given.shares.stages[+share.stage].size() == 1 ? text(given)
                                                         : text(given, " of rank ", share.rank);
}

}  // namespace heddle::inline v0::impl
