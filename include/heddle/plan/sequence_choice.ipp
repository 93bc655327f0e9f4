// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_choice.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/sequence_program.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
#include <heddle/schedule/attention/ring_attention.hpp>
#include <heddle/schedule/attention/rsa.hpp>
#include <heddle/schedule/attention/token_ring.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/attention_costs.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan {

namespace impl {

using schedule::AttentionForm;

/// The K,V heads of rank `rank` of the heads axis.
inline int own_kv_heads(const AttentionForm& form, int heads_ranks, int rank) {
  return static_cast<int>(even_share(static_cast<std::size_t>(form.key_heads()),
                                     static_cast<std::size_t>(heads_ranks),
                                     static_cast<std::size_t>(rank))
                              .count);
}

/// Checks a form whose order and ways are those of a candidate.
inline void expect_form(const char* where, AttentionForm form, std::size_t sequences) {
  form.order = {};  // it is of the ring axis: each candidate has its own
  form.ways = 1;
  form.expect_valid(where);
  expects(sequences >= 1, [&] {
    return ErrorInfo{where, "there must be at least one sequence", text(sequences, " sequences")};
  });
}

/// The form of the ring of heads rank `heads_rank`.
inline AttentionForm ring_form(const SequenceCandidate& candidate, AttentionForm form,
                               int heads_rank) {
  const int kv_heads = own_kv_heads(form, candidate.heads, heads_rank);
  form.tokens = form.all_tokens();
  form.heads = kv_heads * (form.heads / form.key_heads());
  form.kv_heads = kv_heads;
  form.ranks = candidate.ring;
  form.ways = candidate.ways;
  return form;
}

/// The attention along the ring, as it is executed.
inline Schedule ring_schedule(SequenceMethod method, const AttentionForm& form) {
  const auto generated = [&] {
    switch (method) {
      case SequenceMethod::rsa: return schedule::rsa(form);
      case SequenceMethod::token_ring: return schedule::token_ring(form);
      default: return schedule::ring_attention(form);
    }
  };
  return schedule::fold_attention(schedule::drop_unread(generated()), form);
}

/// Why `candidate` cannot compute attention of `form`; empty if it can.
inline std::string refusal(const SequenceCandidate& candidate, const AttentionForm& form) {
  if (candidate.heads > form.key_heads())
    return text(candidate.heads, " heads ranks, but only ", form.key_heads(),
                " K,V heads; take the ring axis for the other ranks");
  if (!form.order.fits(static_cast<std::size_t>(candidate.ring)))
    return text("the order ", form.order, " has weights for another number of ring ranks than ",
                candidate.ring);
  if (candidate.method == SequenceMethod::token_ring && form.backward)
    return "TokenRing has no backward pass; train with a ring of one or two ways";
  return {};
}

/// The local costs of sequence_schedule().
struct SequenceProgramCosts {
  using Time = Seconds;

  BasicAttentionCosts<Seconds> attention;  ///< over all heads
  std::vector<double> share;               ///< of all heads, by rank

  void check() const { attention.check(); }
  [[nodiscard]] Seconds time(const Schedule& list, ActionId id) const {
    const Action& action = list[id];
    const Seconds all = attention.time(list, id);
    return action.kind <= Kind::backward ? all * share[+list[action.queue].from] : all;
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& list, ActionId id) const {
    return attention.transfer(list, id);
  }
};

inline SequencePass sequence_pass(const SequenceCandidate& candidate, const AttentionForm& form,
                                  bool backward, const Machine& machine,
                                  const AttentionWork& work) {
  const Schedule list = sequence_schedule(candidate, form, backward, work.sequences);
  SequencePass pass;
  std::vector<Bytes> bytes(static_cast<std::size_t>(list.ranks()), 0);
  std::vector<std::size_t> moves(bytes.size(), 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ActionId id{i};
    const Queue& queue = list[list[id].queue];
    if (list[id].kind != Kind::move || queue.local()) continue;
    bytes[+queue.from] += list.bytes(list.uses(id).front());
    ++moves[+queue.from];
  }
  for (const Bytes sent : bytes) pass.all_bytes += sent;
  pass.bytes = std::ranges::max(bytes);
  pass.moves = std::ranges::max(moves);
  SequenceProgramCosts costs{{.pieces = schedule::AttentionPieces(ring_form(candidate, form, 0)),
                              .product = work.product,
                              .combine = work.combine,
                              .cast = work.cast,
                              .user = work.user},
                             std::vector<double>(bytes.size())};
  for (int u = 0; u < candidate.heads; ++u)
    for (int r = 0; r < candidate.ring; ++r)
      costs.share[+candidate.rank(u, r)] =
          static_cast<double>(own_kv_heads(form, candidate.heads, u)) / form.key_heads();
  pass.time = simulate(list, BasicMachineCosts(std::move(costs), machine)).makespan();
  return pass;
}

/// All candidates, without their costs.
inline std::vector<SequenceCandidate> sequence_candidates(int ranks) {
  using enum SequenceMethod;
  std::vector<SequenceCandidate> all = {{.method = ulysses, .heads = ranks},
                                        {.method = ring, .ring = ranks}};
  if (ranks > 1) all.push_back({.method = ring, .ring = ranks, .ways = 2});
  for (int heads = 2; heads < ranks; ++heads)
    for (const int ways : {1, 2})
      for (const NearAxis near : {NearAxis::heads, NearAxis::ring})
        if (ranks % heads == 0)
          all.push_back(
              {.method = usp, .heads = heads, .ring = ranks / heads, .ways = ways, .near = near});
  all.push_back({.method = rsa, .ring = ranks});
  all.push_back({.method = token_ring, .ring = ranks});
  return all;
}

}  // namespace impl

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const SequenceCandidate& candidate) {
  out << candidate.method;
  if (candidate.method == SequenceMethod::usp)
    out << ' ' << candidate.heads << " x " << candidate.ring
        << (candidate.near == NearAxis::heads ? ", heads near" : ", ring near");
  if (candidate.ways == 2) out << ", two ways";
  return out;
}

HEDDLE_INLINE Schedule sequence_schedule(const SequenceCandidate& candidate,
                                         const schedule::AttentionForm& form, bool backward,
                                         std::size_t sequences) {
  constexpr const char* where = "heddle::plan::sequence_schedule";
  impl::expect_form(where, form, sequences);
  heddle::impl::expect_enumerator(where, "SequenceCandidate::method", candidate.method,
                                  SequenceMethod::token_ring);
  heddle::impl::expect_enumerator(where, "SequenceCandidate::near", candidate.near, NearAxis::ring);
  expects(candidate.heads >= 1 && candidate.ring >= 1 && form.ranks % candidate.heads == 0 &&
              form.ranks / candidate.heads == candidate.ring && candidate.heads <= form.key_heads(),
          [&] {
            return ErrorInfo{
                where, "the candidate does not fit the form",
                text(candidate.heads, " heads ranks times ", candidate.ring, " ring ranks; ",
                     form.ranks, " ranks, ", form.key_heads(), " K,V heads")};
          });
  const bool takes_heads = candidate.method == SequenceMethod::ulysses;
  expects(candidate.method == SequenceMethod::usp ||
              (takes_heads ? candidate.ring : candidate.heads) == 1,
          [&] {
            return ErrorInfo{
                where, text(candidate.method, " has one axis only"),
                text(candidate.heads, " heads ranks times ", candidate.ring, " ring ranks"),
                "use usp for two axes"};
          });
  std::vector<std::vector<Rank>> heads_groups(static_cast<std::size_t>(candidate.ring));
  std::vector<std::vector<Rank>> rings(static_cast<std::size_t>(candidate.heads));
  for (int r = 0; r < candidate.ring; ++r)
    for (int u = 0; u < candidate.heads; ++u) {
      heads_groups[static_cast<std::size_t>(r)].push_back(candidate.rank(u, r));
      rings[static_cast<std::size_t>(u)].push_back(candidate.rank(u, r));
    }
  impl::SequenceProgram program(
      text(candidate, backward ? " backward" : "", " P=", form.ranks, ' ', form.order), form.ranks);
  // Forward, Q, K and V go to heads, backward the gradients of the output.
  const auto exchange = [&](bool qkv, bool to_tokens) {
    if (candidate.heads == 1) return;
    std::vector<Schedule> parts;
    for (int r = 0; r < candidate.ring; ++r)
      parts.push_back(schedule::to_schedule(
          schedule::HeadExchange{
              .sequences = sequences,
              .tokens = form.order.share(form.all_tokens(), candidate.ring, r).size(),
              .heads = static_cast<std::size_t>(form.heads),
              .kv_heads = static_cast<std::size_t>(form.key_heads()),
              .head_width = static_cast<std::size_t>(form.head_width),
              .qkv = qkv,
              .to_tokens = to_tokens}
              .blocks(static_cast<std::size_t>(candidate.heads), size_of(form.type)),
          "tokens and heads", form.type));
    program.add(parts, heads_groups);
  };
  exchange(!backward, false);
  std::vector<Schedule> parts;
  for (int u = 0; u < candidate.heads; ++u) {
    schedule::AttentionForm of_ring = impl::ring_form(candidate, form, u);
    of_ring.backward = backward;
    parts.push_back(impl::ring_schedule(candidate.method, of_ring));
  }
  for (std::size_t s = 0; s < sequences; ++s) program.add(parts, rings);
  exchange(backward, true);
  return std::move(program).build();
}

HEDDLE_INLINE std::vector<SequenceCandidate> sequence_choice(const schedule::AttentionForm& form,
                                                             const Machine& machine,
                                                             const AttentionWork& work) {
  constexpr const char* where = "heddle::plan::sequence_choice";
  impl::expect_form(where, form, work.sequences);
  expects(form.ranks <= machine.ranks(), [&] {
    return ErrorInfo{where, "the machine has all ranks of the form",
                     text(form.ranks, " ranks, ", machine.ranks(), " on the machine")};
  });
  std::vector<SequenceCandidate> all = impl::sequence_candidates(form.ranks);
  for (SequenceCandidate& each : all) {
    each.refused = impl::refusal(each, form);
    if (!each.refused.empty()) continue;
    each.forward = impl::sequence_pass(each, form, false, machine, work);
    if (each.method != SequenceMethod::token_ring)
      each.backward = impl::sequence_pass(each, form, true, machine, work);
    each.time = each.forward.time + (form.backward ? each.backward->time : 0);
  }
  const auto key = [](const SequenceCandidate& each) {
    return std::pair(!each.refused.empty(), each.time);
  };
  std::ranges::stable_sort(all, {}, key);
  return all;
}

HEDDLE_INLINE std::string to_table(std::span<const SequenceCandidate> candidates) {
  using Row = std::array<std::string, 8>;
  std::vector<Row> rows = {{"method", "bytes", "moves", "s", "bytes", "moves", "s", "all s"}};
  for (const SequenceCandidate& each : candidates) {
    Row row = {text(each)};
    const auto put = [&](std::size_t first, const SequencePass& pass) {
      row[first] = text(pass.bytes);
      row[first + 1] = text(pass.moves);
      row[first + 2] = text(pass.time);
    };
    if (each.refused.empty()) {
      put(1, each.forward);
      if (each.backward) put(4, *each.backward);
      row[7] = text(each.time);
    }
    rows.push_back(std::move(row));
  }
  std::array<std::size_t, 8> widths{};
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string table;
  const auto cell = [&](const std::string& content, std::size_t width, bool left) {
    const std::string fill(width - std::min(width, content.size()), ' ');
    table += left ? content + fill : "  " + fill + content;
  };
  const auto width_of = [&](std::size_t first) {
    return widths[first] + widths[first + 1] + widths[first + 2] + 4;
  };
  cell({}, widths[0], true);
  cell("forward, a rank", width_of(1), false);
  cell("backward, a rank", width_of(4), false);
  table += '\n';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool refused = i > 0 && !candidates[i - 1].refused.empty();
    cell(rows[i][0], widths[0], true);
    if (refused) table += "  refused: " + candidates[i - 1].refused;
    for (std::size_t c = 1; c < rows[i].size() && !refused; ++c) cell(rows[i][c], widths[c], false);
    table += '\n';
  }
  return table;
}

}  // namespace heddle::inline v0::plan
