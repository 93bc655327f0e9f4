// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Ulysses and USP: what the schedules of a rank send, counted, and the degrees that the closed
/// form picks against exhaustive simulation.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/plan/usp_degrees.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::plan::SequenceCandidate;
using hd::schedule::AttentionForm;

constexpr std::int64_t tokens_each = 48;  ///< tokens of a rank

/// 48 heads of 2 columns, without a mask.
AttentionForm line_form(int ranks, int groups = 1) {
  return {.ranks = ranks,
          .mask = {.causal = false},
          .tokens = tokens_each * ranks,
          .heads = 48,
          .kv_heads = 48 / groups,
          .head_width = 2};
}

/// Bytes that the busiest rank sends, counted from the messages of a Schedule.
hd::Bytes sent_by_busiest(const hd::Schedule& list) {
  std::vector<hd::Bytes> bytes(static_cast<std::size_t>(list.ranks()), 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const hd::ActionId id{i};
    const hd::Queue& queue = list[list[id].queue];
    if (list[id].kind == hd::Kind::move && !queue.local())
      bytes[+queue.from] += list.bytes(list.uses(id).front());
  }
  return *std::ranges::max_element(bytes);
}

/// U heads ranks, consecutive, and the other ranks on the ring.
hd::Bytes usp_bytes(const AttentionForm& form, int heads, bool backward) {
  return sent_by_busiest(hd::plan::sequence_schedule(
      {.method = hd::SequenceMethod::usp, .heads = heads, .ring = form.ranks / heads}, form,
      backward));
}

/// In N d/P elements.
double in_units(hd::Bytes bytes, const AttentionForm& form) {
  return static_cast<double>(bytes) /
         static_cast<double>(static_cast<hd::Bytes>(tokens_each) * form.query_bytes());
}

/// Whether the bytes are ((2 + 2/G)(U - 1)/U + (2 or 4)/G (R - 1)) units, in whole numbers.
bool equals_formula(const AttentionForm& form, int heads, bool backward) {
  const auto u = static_cast<hd::Bytes>(heads), r = static_cast<hd::Bytes>(form.ranks / heads);
  const hd::Bytes queries = static_cast<hd::Bytes>(tokens_each) * form.query_bytes();
  const hd::Bytes keys = static_cast<hd::Bytes>(tokens_each) * form.key_bytes();
  return usp_bytes(form, heads, backward) * u ==
         (2 * queries + 2 * keys) * (u - 1) + (backward ? 4 : 2) * keys * (r - 1) * u;
}

/// Two all-gathers and two reduce-scatters of N d elements: a pass of tensor parallelism with
/// sharded rows.
hd::Bytes sharded_rows_bytes(const AttentionForm& form) {
  using hd::schedule::Algorithm;
  using hd::schedule::Collective;
  const hd::schedule::CollectiveOptions options{
      .ranks = form.ranks, .bytes = static_cast<hd::Bytes>(form.all_tokens()) * form.query_bytes()};
  return 2 * sent_by_busiest(
                 hd::schedule::collective(Collective::all_gather, Algorithm::ring, options)) +
         2 * sent_by_busiest(
                 hd::schedule::collective(Collective::reduce_scatter, Algorithm::ring, options));
}

/// On how many machines of two levels the closed form picks the degrees of the least simulated
/// time, and of how many.
std::pair<std::size_t, std::size_t> best_degrees() {
  std::size_t good = 0, all = 0;
  for (const int node : {2, 4})
    for (const double ratio : {2, 5, 10, 20, 50})
      for (const int groups : {1, 3, 6})
        for (const double work : {0.0, 1.0, 10.0, 100.0}) {
          const AttentionForm form = line_form(8, groups);
          const hd::plan::TwoLevelNetwork network{node, 1e9, 1e9 / ratio};
          const auto tokens = static_cast<double>(form.tokens);
          const double product = work * static_cast<double>(tokens_each) *
                                 static_cast<double>(form.query_bytes()) / 1e9 /
                                 (2 * tokens * tokens / 8);
          const auto picked = hd::plan::usp_degrees(form, network, product).front();
          double best = std::numeric_limits<double>::infinity(), of_picked = best;
          for (const SequenceCandidate& each :
               hd::plan::sequence_choice(form, network.machine(8), {.product = product})) {
            if (!each.refused.empty() || each.ways == 2 || each.method == hd::SequenceMethod::rsa ||
                each.method == hd::SequenceMethod::token_ring)
              continue;
            best = std::min(best, each.time);
            if (each.heads == picked.heads && each.near == picked.near) of_picked = each.time;
          }
          good += of_picked <= best * (1 + 1e-9) ? 1u : 0u;
          ++all;
        }
  return {good, all};
}

constexpr int line_sizes[] = {2, 3, 4, 6, 8};

}  // namespace

std::vector<Comparison> ulysses() {
  bool bytes = true, rows = true, grown = true;
  for (const int p : line_sizes) {
    const AttentionForm form = line_form(p);
    bytes = bytes && equals_formula(form, p, false) && equals_formula(form, p, true);
    rows =
        rows && usp_bytes(form, p, false) * static_cast<hd::Bytes>(p) == sharded_rows_bytes(form);
  }
  for (const int p : {2, 3, 4}) {  // ((2P-1)/2P) / ((P-1)/P), in whole numbers
    const auto n = static_cast<hd::Bytes>(p);
    grown = grown && usp_bytes(line_form(2 * p), 2 * p, false) * 2 * (n - 1) ==
                         usp_bytes(line_form(p), p, false) * (2 * n - 1);
  }
  const AttentionForm four = line_form(4), eight = line_form(8);
  return {
      {"bytes sent by a rank, forward and backward, P=4, in N d/P elements",
       "4; 4 (with what a rank keeps)",
       hd::text(in_units(usp_bytes(four, 4, false), four), "; ",
                in_units(usp_bytes(four, 4, true), four)),
       "4(P-1)/P, P = 2, 3, 4, 6, 8", verdict(bytes)},
      {"the same over two all-gathers and two reduce-scatters of N d elements", "1/P",
       rows ? "1/P, exact" : "not 1/P", "1/P, P = 2, 3, 4, 6, 8", verdict(rows)},
      {"bytes of a rank if N and P double, P=4", "1 (with what a rank keeps)",
       hd::text(static_cast<double>(usp_bytes(eight, 8, false)) /
                static_cast<double>(usp_bytes(four, 4, false))),
       "((2P-1)/2P)/((P-1)/P), P = 2, 3, 4", verdict(grown)},
      {"throughput", "up to 2.5x, 54% of peak on 64 A100", "", "none",
       "not reproducible: it needs the authors' accelerators; the bytes are counted here"},
  };
}

std::vector<Comparison> usp() {
  bool bytes = true, grouped = true;
  for (const int p : line_sizes)
    for (int heads = 1; heads <= p; ++heads) {
      if (p % heads != 0) continue;
      for (const bool backward : {false, true}) {
        bytes = bytes && equals_formula(line_form(p), heads, backward);
        if (12 % heads == 0) grouped = grouped && equals_formula(line_form(p, 4), heads, backward);
      }
    }
  const AttentionForm eight = line_form(8), few = line_form(8, 4);
  const auto listed = [](const AttentionForm& form, std::initializer_list<int> heads) {
    std::string all;
    for (const int each : heads)
      all += hd::text(all.empty() ? "" : "; ", in_units(usp_bytes(form, each, false), form));
    return all;
  };
  const auto [good, all] = best_degrees();
  return {
      {"bytes sent by a rank, forward, P=8: U = 8 (Ulysses), 4, 2, 1 (ring)", "",
       listed(eight, {8, 4, 2, 1}),
       "4(U-1)/U + 2(R-1), backward 4(U-1)/U + 4(R-1), all U R = 2, 3, 4, 6, 8", verdict(bytes)},
      {"the same with a quarter of the K,V heads: U = 4, 2, 1", "", listed(few, {4, 2, 1}),
       "2.5(U-1)/U + (R-1)/2", verdict(grouped)},
      {"U, R and placement of least simulated time, found by the closed form, 2 nodes of 4 and 4 "
       "of 2, links 2:1 to 50:1",
       "", hd::text(good, " of ", all), "all", verdict(good == all)},
      {"model flops utilisation, 2 x 8 A800", "86% (later text: 47%)", "", "none",
       "not reproducible: it needs the authors' accelerators; the two figures contradict each "
       "other"},
  };
}

}  // namespace report
