// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of usp_degrees.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/plan/usp_degrees.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/internal/is_time.hpp>

namespace heddle::inline v0::plan {

namespace impl {

inline void expect_network(const char* where, const TwoLevelNetwork& network, int ranks) {
  expects(ranks >= 1 && network.node >= 1 && ranks % network.node == 0 && network.outside > 0 &&
              network.inside >= network.outside && std::isfinite(network.inside),
          [&] {
            return ErrorInfo{where, "the network has no such nodes or bandwidths",
                             text(ranks, " ranks in nodes of ", network.node, ", ", network.inside,
                                  " bytes per second inside, ", network.outside, " outside"),
                             "the nodes divide the ranks, and outside is at most inside"};
          });
}

/// The formula of usp_degrees(), with its numbers.
class UspFormula {
 public:
  UspFormula(const schedule::AttentionForm& form, const TwoLevelNetwork& network, Seconds product)
      : m_form(form), m_network(network) {
    const auto tokens = static_cast<double>(form.all_tokens());
    m_queries = tokens * static_cast<double>(form.query_bytes()) / form.ranks;
    m_keys = tokens * static_cast<double>(form.key_bytes()) / form.ranks;
    m_work = 2 * product * tokens * tokens / form.ranks;
  }

  [[nodiscard]] UspCost operator()(int heads, NearAxis near) const {
    UspCost cost{heads, m_form.ranks / heads, near, 0};
    // Ranks of one node on each axis.
    const int first = near == NearAxis::heads ? cost.heads : cost.ring;
    const int of_first = std::min(first, m_network.node);
    const int of_second = std::max(1, m_network.node / first);
    const int heads_inside = near == NearAxis::heads ? of_first : std::min(of_second, cost.heads);
    const int ring_inside = near == NearAxis::heads ? std::min(of_second, cost.ring) : of_first;
    // The share of the rank with the most heads, over an even share.
    const int kv_heads = m_form.key_heads();
    const int most = (kv_heads + cost.heads - 1) / cost.heads;
    const double share = static_cast<double>(most * cost.heads) / kv_heads;
    const Seconds exchange =
        share * (2 * m_queries + 2 * m_keys) / cost.heads *
        ((heads_inside - 1) / m_network.inside + (cost.heads - heads_inside) / m_network.outside);
    const Seconds move =
        share * 2 * m_keys / (ring_inside < cost.ring ? m_network.outside : m_network.inside);
    cost.time = exchange + forward(cost.ring, share, move);
    if (m_form.backward) cost.time += exchange + backward(cost.ring, share, move);
    return cost;
  }

 private:
  [[nodiscard]] bool contiguous() const { return m_form.order == ShardOrder::even(); }
  /// All blocks of the slowest rank. A query sees its own key, too.
  [[nodiscard]] Seconds blocks(int ring) const {
    if (!m_form.mask.causal) return m_work;
    const double own = 0.5 / static_cast<double>(m_form.all_tokens());
    return m_work * ((contiguous() ? (ring - 0.5) / ring : 0.5) + own);
  }
  /// The block that the slowest rank computes last.
  [[nodiscard]] Seconds block(int ring) const {
    if (ring == 1) return blocks(1);
    return m_work / ring / (m_form.mask.causal && !contiguous() ? 2 : 1);
  }
  [[nodiscard]] Seconds forward(int ring, double share, Seconds move) const {
    return std::max(share * blocks(ring), (ring - 1) * move + share * block(ring));
  }
  [[nodiscard]] Seconds backward(int ring, double share, Seconds move) const {
    const Seconds all = 2.5 * share * blocks(ring), one = 2.5 * share * block(ring);
    if (ring == 1) return all;
    const Seconds uncovered = ring == 2 ? one : std::max(0.0, one - move);
    return std::max(all + move, 2 * (ring - 1) * move + uncovered);
  }

  const schedule::AttentionForm& m_form;
  const TwoLevelNetwork& m_network;
  double m_queries = 0;  ///< bytes of Q of a rank
  double m_keys = 0;     ///< bytes of K of a rank
  Seconds m_work = 0;    ///< of a rank, forward and without a mask
};

}  // namespace impl

HEDDLE_INLINE Machine TwoLevelNetwork::machine(int ranks) const {
  impl::expect_network("heddle::plan::TwoLevelNetwork::machine", *this, ranks);
  const Ports ports{inside, inside};
  Machine made = Machine::hierarchical(
      std::vector<Device>(static_cast<std::size_t>(ranks)),
      {{.name = "rank", .ranks = 1, .link = {0, inside}, .ports = ports},
       {.name = "node", .ranks = node, .link = {0, inside}, .ports = {}},
       {.name = "machine", .ranks = ranks, .link = {0, outside}, .ports = {}}});
  for (int from = 0; from < ranks; ++from) {
    std::vector<std::pair<Rank, Rank>> pairs;
    for (int to = 0; to < ranks; ++to)
      if (to / node != from / node) pairs.emplace_back(Rank{from}, Rank{to});
    if (!pairs.empty()) made.share(text("card of rank ", from), outside, std::move(pairs));
  }
  return made;
}

HEDDLE_INLINE std::vector<UspCost> usp_degrees(const schedule::AttentionForm& form,
                                               const TwoLevelNetwork& network, Seconds product) {
  constexpr const char* where = "heddle::plan::usp_degrees";
  form.expect_valid(where);
  impl::expect_network(where, network, form.ranks);
  heddle::impl::expect_time(where, "product", product);
  // An order with weights fits one number of ranks only.
  expects(form.mask.segments.empty() && form.order.fits(1) && form.order.fits(2), [&] {
    return ErrorInfo{where, "the formula knows neither segments nor weights",
                     text(form.mask.segments.size(), " segments, order ", form.order),
                     "use sequence_choice(), which simulates"};
  });
  const impl::UspFormula formula(form, network, product);
  std::vector<UspCost> all;
  for (int heads = 1; heads <= form.ranks; ++heads) {
    if (form.ranks % heads != 0 || heads > form.key_heads()) continue;
    all.push_back(formula(heads, NearAxis::heads));
    if (heads > 1 && heads < form.ranks) all.push_back(formula(heads, NearAxis::ring));
  }
  for (const UspCost& cost : all)
    heddle::impl::expect_sum(
        where, cost.time, [&] { return text("U = ", cost.heads, ", R = ", cost.ring); },
        "correct `product` and the bandwidths of the network");
  std::ranges::stable_sort(all, {}, &UspCost::time);
  return all;
}

}  // namespace heddle::inline v0::plan
