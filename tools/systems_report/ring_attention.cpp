// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Ring Attention, RSA and TokenRing: what their schedules send, counted, and how long they take,
/// simulated. The references are formulas and loops that this file contains.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/attention.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::schedule::AttentionForm;

constexpr std::int64_t rank_tokens = 24;  ///< tokens of a rank
constexpr int head_columns = 64;          ///< columns of the one head
constexpr int rank_counts[] = {2, 3, 4, 8};

AttentionForm form_of(int ranks, bool causal, hd::ShardOrder order = {}, int ways = 1) {
  return {.ranks = ranks,
          .order = std::move(order),
          .ways = ways,
          .mask = {.causal = causal},
          .tokens = rank_tokens * ranks,
          .head_width = head_columns};
}

/// Sent by a rank on average, in units of the queries of a rank.
double units(const hd::Schedule& list, const AttentionForm& form) {
  double bytes = 0;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const hd::ActionId id{i}; list[id].kind == hd::Kind::move)
      bytes += static_cast<double>(list.bytes(list.uses(id)[0]));
  return bytes / static_cast<double>(form.query_bytes()) / static_cast<double>(form.all_tokens());
}

/// The same for the link between two ranks that carries most.
double busiest(const hd::Schedule& list, const AttentionForm& form) {
  std::map<std::pair<hd::Rank, hd::Rank>, double> load;
  double most = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const hd::ActionId id{i};
    const hd::Queue& queue = list[list[id].queue];
    if (queue.local()) continue;
    double& link = load[{queue.from, queue.to}];
    link += static_cast<double>(list.bytes(list.uses(id)[0]));
    most = std::max(most, link);
  }
  return most / static_cast<double>(form.query_bytes()) / static_cast<double>(rank_tokens);
}

/// A pair of whole blocks takes 1, a message of K and V of a block `message`, in two slots.
double makespan(const hd::Schedule& list, const AttentionForm& form, double message,
                double latency = 0) {
  const double pairs = static_cast<double>(rank_tokens * rank_tokens);
  const double bytes =
      2.0 * static_cast<double>(rank_tokens) * static_cast<double>(form.key_bytes());
  return hd::simulate(
             hd::schedule::fold_attention(list, form),
             hd::BasicAttentionCosts<hd::Seconds>{.pieces = hd::schedule::AttentionPieces(form),
                                                  .product = latency == 0 ? 0.5 / pairs : 0,
                                                  .latency = latency,
                                                  .per_byte = message / bytes})
      .makespan();
}

bool agrees(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

/// Share of the bytes that drop_unread() leaves under a causal mask.
double kept(int ranks, hd::ShardOrder order, int ways) {
  const AttentionForm form = form_of(ranks, true, std::move(order), ways);
  const hd::Schedule all = hd::schedule::ring_attention(form);
  return units(hd::schedule::drop_unread(all), form) / units(all, form);
}

double causal_time(int ranks, hd::ShardOrder order) {
  const AttentionForm form = form_of(ranks, true, std::move(order));
  return makespan(hd::schedule::drop_unread(hd::schedule::ring_attention(form)), form, 0);
}

constexpr const char* kernels =
    "not reproducible: it needs the authors' accelerators; the schedules are simulated here, and "
    "run over threads with integers in the tests";

}  // namespace

std::vector<Comparison> ring_attention() {
  bool bytes = true, causal = true, overlap = true, work = true;
  for (const int p : rank_counts) {
    AttentionForm form = form_of(p, false);
    const hd::Schedule forward = hd::schedule::ring_attention(form);
    bytes = bytes && agrees(units(forward, form), 2.0 * (p - 1));
    overlap = overlap && agrees(makespan(forward, form, 1), p) &&
              agrees(makespan(forward, form, 2), 2.0 * p - 1);
    form.backward = true;
    bytes = bytes && agrees(units(hd::schedule::ring_attention(form), form), 4.0 * (p - 1));
    causal = causal && agrees(kept(p, hd::ShardOrder::even(), 1), 0.5) &&
             agrees(kept(p, hd::ShardOrder::zigzag(), 1), 1 - 0.5 / p) &&
             agrees(kept(p, hd::ShardOrder::zigzag(), 2), 0.75);
    const double own = 0.5 / static_cast<double>(rank_tokens);  // pairs of a token with itself
    work = work && agrees(causal_time(p, hd::ShardOrder::even()), p - 0.5 + own) &&
           agrees(causal_time(p, hd::ShardOrder::zigzag()), 0.5 * p + own);
  }
  const AttentionForm four = form_of(4, false);
  AttentionForm four_backward = four;
  four_backward.backward = true;
  const hd::Schedule ring = hd::schedule::ring_attention(four);
  return {
      {"bytes sent by a rank, forward and backward, P=4, in N d/P elements",
       "6; 6 + 8 (the gradients move P times)",
       hd::text(units(ring, four), "; ", units(hd::schedule::ring_attention(four_backward), four)),
       "2(P-1); 4(P-1), P = 2, 3, 4, 8", verdict(bytes)},
      {"bytes left under a causal mask, P=4: contiguous; zigzag; zigzag two ways", "",
       hd::text(kept(4, hd::ShardOrder::even(), 1), "; ", kept(4, hd::ShardOrder::zigzag(), 1),
                "; ", kept(4, hd::ShardOrder::zigzag(), 2)),
       "1/2; 1-1/(2P); 3/4, P = 2, 3, 4, 8", verdict(causal)},
      {"simulated time in blocks, P=4: a move as long as a block; twice as long", "hidden; not",
       hd::text(makespan(ring, four, 1), "; ", makespan(ring, four, 2)),
       "P; 2P-1, P = 2, 3, 4, 8, two slots", verdict(overlap)},
      {"simulated causal work, P=4: contiguous over zigzag", "7/4 (without a token's own pair)",
       hd::text(causal_time(4, hd::ShardOrder::even()) / causal_time(4, hd::ShardOrder::zigzag())),
       "P-1/2 and P/2 blocks, and 1/(2 tokens) for own pairs", verdict(work)},
      {"share of the ideal speed", "85-90% (zigzag)", "", "none", kernels},
  };
}

std::vector<Comparison> rsa() {
  bool bytes = true, latencies = true, scores = true;
  for (const int p : rank_counts) {
    AttentionForm form = form_of(p, false);
    const hd::Schedule list = hd::schedule::rsa(form);
    latencies = latencies && agrees(makespan(list, form, 0, 1), 2.0 * (p - 1)) &&
                agrees(makespan(hd::schedule::ring_attention(form), form, 0, 1), p - 1.0);
    for (const hd::Buffer& buffer : list.buffers())
      if (list[buffer.label] == "scores")
        scores =
            scores && buffer.bytes == static_cast<hd::Bytes>(p * rank_tokens * rank_tokens) * 8;
    bytes = bytes && agrees(units(list, form), 2.0 * (p - 1));
    form.backward = true;
    bytes = bytes && agrees(units(hd::schedule::rsa(form), form), 4.0 * (p - 1));
  }
  return {
      {"bytes sent by a rank, forward and backward, P=4, in N d/P elements",
       "6; two all-reduces of N d: 12", bytes ? "6; 12" : "others",
       "2(P-1); 4(P-1), P = 2, 3, 4, 8", verdict(bytes)},
      {"latencies, forward, over the ring's", "2", latencies ? "2" : "others",
       "2(P-1) and P-1, P = 2, 3, 4, 8", verdict(latencies)},
      {"memory of scores over that of a pair of blocks", "P", scores ? "P" : "others",
       "P, P = 2, 3, 4, 8", verdict(scores)},
      {"batch and sequence on 64 GPUs", "13.7x, 3.0x", "", "none", kernels},
  };
}

std::vector<Comparison> token_ring() {
  bool bytes = true, links = true, fair = true, grouped = true;
  for (const int p : rank_counts) {
    const AttentionForm form = form_of(p, false);
    const hd::Schedule list = hd::schedule::token_ring(form);
    bytes = bytes && agrees(units(list, form), (p - 1) * (2 + 2.0 / head_columns));
    links = links && agrees(busiest(list, form), p + 2.0 / head_columns) &&
            agrees(busiest(hd::schedule::ring_attention(form), form), 2.0 * (p - 1));
    if (p == 2) continue;  // both ways are one link
    const AttentionForm two = form_of(p, false, {}, 2);
    fair = fair && agrees(busiest(hd::schedule::ring_attention(two), two), p - 1.0);
    AttentionForm few = form_of(p, false);
    few.heads = 4;
    few.head_width = head_columns / 4;
    few.kv_heads = 1;
    grouped = grouped && busiest(hd::schedule::token_ring(few), few) >
                             busiest(hd::schedule::ring_attention(few), few);
  }
  const AttentionForm four = form_of(4, false);
  const double token = busiest(hd::schedule::token_ring(four), four);
  return {
      {"bytes sent by a rank, P=4, in N d/P elements", "",
       hd::text(units(hd::schedule::token_ring(four), four)), "(P-1)(2+2H/d), P = 2, 3, 4, 8",
       verdict(bytes)},
      {"busiest link over the ring's, private links, P=4", "", hd::text(token / 6),
       "(P+2H/d)/(2(P-1)), P = 2, 3, 4, 8", verdict(links)},
      {"the same for a ring with two ways, the fair baseline", "", fair ? "0.5" : "others",
       "1/2, P = 3, 4, 8", verdict(fair)},
      {"a quarter of the K,V heads: the ring's busiest link carries less", "",
       grouped ? "it does" : "it does not", "P = 3, 4, 8", verdict(grouped)},
      {"time of a round", "7.6 ms to 3.5-4.6 ms", "", "none", kernels},
  };
}

}  // namespace report
