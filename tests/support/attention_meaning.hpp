// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// attention_fault(): performs an attention Schedule from top to bottom with integer weights in the
/// place of numbers, and compares with a sum over all pairs that the mask leaves.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

namespace heddle::test {

/// Whether the query at position q sees the key at position k.
[[nodiscard]] inline bool sees(const AttentionMask& mask, std::int64_t q, std::int64_t k) {
  const auto segment = [&](std::int64_t at) {
    return std::count_if(mask.segments.begin(), mask.segments.end(),
                         [&](std::int64_t begin) { return begin <= at; }) -
           (!mask.segments.empty() && mask.segments.front() == 0 ? 1 : 0);
  };
  return (!mask.causal || k <= q) && segment(q) == segment(k);
}

/// A weight of a pair, such that sums of different sets of pairs differ.
[[nodiscard]] inline std::uint64_t pair_weight(std::int64_t q, std::int64_t k) {
  std::uint64_t x = static_cast<std::uint64_t>(q) * 0x9e3779b97f4a7c15u ^
                    (static_cast<std::uint64_t>(k) + 1) * 0xc2b2ae3d27d4eb4fu;
  for (int round = 0; round < 3; ++round) x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

/// What a part of a buffer holds.
struct AttentionValue {
  bool written = false;
  bool wrong = false;                    ///< a sum over other tokens
  std::string what = {};                 ///< such as "queries 3.1", of blocks that travel
  std::vector<std::uint64_t> sums = {};  ///< of the tokens of a piece
};

/// Performs one schedule of one form.
class AttentionMeaning {
 public:
  AttentionMeaning(const Schedule& schedule, const schedule::AttentionForm& form)
      : m_schedule(schedule),
        m_mask(form.mask),
        m_pieces(form),
        m_ranks(form.ranks),
        m_backward(form.backward) {
    m_tokens = form.all_tokens();
    for (const Buffer& buffer : schedule.buffers()) m_values.emplace_back(buffer.parts);
    for (std::size_t b = 0; b < m_values.size(); ++b) {
      const std::string& label = role(b);
      const bool block = label == "queries" || label == "keys_values" || label == "keys" ||
                         label == "values" || label == "output_grads";
      const bool saved = form.backward && (label == "state" || label == "output");
      const bool scores = form.backward && label == "scores";
      for (std::size_t part = 0; part < m_values[b].size(); ++part)
        if (block || saved || scores)
          m_values[b][part] = {
              true, false,
              name(label, scores ? part : +schedule.buffers()[b].rank, scores ? 0 : part)};
    }
  }

  /// Empty, or the first fault.
  [[nodiscard]] std::string run() {
    if (const std::string fault = partition(); !fault.empty()) return fault;
    for (std::size_t i = 0; i < m_schedule.size() && m_fault.empty(); ++i) perform(ActionId{i});
    if (m_fault.empty()) compare();
    return m_fault;
  }

 private:
  using Values = std::vector<AttentionValue>;

  [[nodiscard]] const std::string& role(std::size_t buffer) const {
    return m_schedule[m_schedule.buffers()[buffer].label];
  }
  [[nodiscard]] static std::string name(std::string_view label, std::size_t block,
                                        std::size_t piece) {
    return text(label, ' ', block, '.', piece);
  }
  [[nodiscard]] AttentionValue& value(const Use& use, std::uint32_t i = 0) {
    return m_values[+use.buffer][use.first + i];
  }
  void fault(ActionId id, std::string_view what) {
    if (m_fault.empty())
      m_fault = text(m_schedule.name(), ", action ", id, ' ',
                     heddle::schedule::action_text(m_schedule, id), ": ", what);
  }

  /// The pieces hold every token once.
  [[nodiscard]] std::string partition() const {
    std::vector<int> seen(static_cast<std::size_t>(m_tokens), 0);
    for (std::uint32_t r = 0; r < ranks(); ++r)
      for (std::uint32_t piece = 0; piece < m_pieces.pieces(); ++piece)
        for (const Interval& each : m_pieces.positions(r, piece).intervals())
          for (std::int64_t t = each.begin; t < each.end; ++t) ++seen[static_cast<std::size_t>(t)];
    return std::ranges::all_of(seen, [](int times) { return times == 1; })
               ? ""
               : "the pieces do not hold every token once";
  }

  /// The positions of a piece, or of a block if parts are whole blocks.
  [[nodiscard]] std::vector<std::int64_t> positions(std::uint32_t block, std::uint32_t first,
                                                    std::uint32_t count) const {
    std::vector<std::int64_t> all;
    for (std::uint32_t piece = first; piece < first + count; ++piece)
      for (const Interval& each : m_pieces.positions(block, piece).intervals())
        for (std::int64_t t = each.begin; t < each.end; ++t) all.push_back(t);
    return all;
  }

  void perform(ActionId id) {
    const auto uses = m_schedule.uses(id);
    for (const Use& use : uses)
      for (std::uint32_t i = 0; use.reads() && i < use.count; ++i)
        if (!value(use, i).written)
          fault(id, text("reads an unwritten part of ", role(+use.buffer)));
    const bool transfers =
        m_schedule[id].kind == Kind::move || m_schedule[id].kind == Kind::combine;
    if (transfers && m_schedule.bytes(uses[0]) != m_schedule.bytes(uses[1]))
      fault(id, "has a source and a destination of different sizes");
    if (!m_fault.empty()) return;
    switch (m_schedule[id].kind) {
      case Kind::move:
        for (std::uint32_t i = 0; i < uses[1].count; ++i) value(uses[1], i) = value(uses[0], i);
        return;
      case Kind::combine:
        for (std::uint32_t i = 0; i < uses[1].count; ++i) add(value(uses[1], i), value(uses[0], i));
        return;
      case Kind::user: return user(id);
      default: break;
    }
    role(+uses[1].buffer) == "keys_values" || role(+uses[1].buffer) == "ring" ||
            role(+uses[0].buffer) == "ring"
        ? one_pass(id)
        : two_passes(id);
  }

  /// Sums of other tokens are no sums, which is a fault only if they are a result. Zeros add
  /// nothing.
  static void add(AttentionValue& into, const AttentionValue& from) {
    const auto is_zero = [](std::uint64_t sum) { return sum == 0; };
    if (!from.wrong && std::ranges::all_of(from.sums, is_zero)) return;
    into.wrong = into.wrong || from.wrong || into.sums.size() != from.sums.size();
    for (std::size_t i = 0; !into.wrong && i < into.sums.size(); ++i) into.sums[i] += from.sums[i];
  }

  /// The softmax of rsa() finishes rows; its clearing action clears gradients.
  void user(ActionId id) {
    if (m_schedule[m_schedule[id].queue].from.value != m_schedule[id].stage.value)
      return fault(id, "has queries of another rank than it says");
    for (const Use& use : m_schedule.uses(id))
      for (std::uint32_t i = 0; i < use.count; ++i) {
        if (use.first + i >= ranks() && use.access() == Access::write)
          return fault(id, "clears a part of no block");
        AttentionValue& each = value(use, i);
        if (role(+use.buffer) == "scores") {
          if (each.what != name("scores", use.first + i, 0))
            return fault(id, "finishes " + each.what);
          each.what = "finished " + each.what;
        } else if (use.access() != Access::write && role(+use.buffer) != "values") {
          return fault(id, "takes rows of " + role(+use.buffer));
        }
        if (use.access() != Access::write) continue;
        const std::size_t tokens =
            positions(use.first + i, 0, m_pieces.pieces()).size();  // of the block of the part
        each = {true, false, {}, std::vector<std::uint64_t>(tokens, 0)};
      }
  }

  /// Adds the weights of the visible pairs to one side of them, those of rsa() by their buffer.
  void weigh(std::vector<std::uint64_t>& sums, const std::vector<std::int64_t>& mine,
             const std::vector<std::int64_t>& others, bool queries, bool begin,
             std::string_view label = {}) {
    const std::uint64_t factor = label == "key_grads" ? 3 : label == "value_grads" ? 5 : 1;
    if (begin) sums.assign(mine.size(), 0);
    if (sums.size() != mine.size()) {
      if (m_fault.empty()) m_fault = text(m_schedule.name(), ": sums of other tokens");
      return;
    }
    for (std::size_t i = 0; i < mine.size(); ++i)
      for (const std::int64_t other : others) {
        const std::int64_t q = queries ? mine[i] : other, k = queries ? other : mine[i];
        if (sees(m_mask, q, k)) sums[i] += factor * pair_weight(q, k);
      }
  }

  /// The parts of a use are those of a block, from `first` on.
  void expect(ActionId id, const Use& use, std::string_view label, std::uint32_t block,
              std::uint32_t first = 0) {
    for (std::uint32_t i = 0; i < use.count; ++i)
      if (value(use, i).what != name(label, block, first + i))
        fault(id, text("has ", value(use, i).what, " in place of ", label));
  }

  void one_pass(ActionId id) {
    const auto uses = m_schedule.uses(id);
    const schedule::AttentionPieces::Block block = m_pieces.block(m_schedule, id);
    const bool backward = m_schedule[id].kind == Kind::backward;
    const Use& result = uses[backward ? 4 : 2];
    if (result.count != block.query_count || (backward && uses[5].count != block.key_count))
      return fault(id, "has results of other pieces");
    for (std::uint32_t i = 0; i < block.query_count; ++i)
      if (value(uses[0], i).what != name("queries", block.queries, block.first_query + i))
        fault(id, "has other queries than it says: " + value(uses[0], i).what);
    for (std::uint32_t i = 0; i < block.key_count; ++i)
      if (value(uses[1], i).what != name("keys_values", block.keys, block.first_key + i))
        fault(id, "has other keys than it says: " + value(uses[1], i).what);
    if (backward) {
      expect(id, uses[2], "state", block.queries, block.first_query);
      expect(id, uses[3], "output_grads", block.queries, block.first_query);
      if (uses[2].count != block.query_count || uses[3].count != block.query_count)
        fault(id, "has rows of other pieces");
    }
    if (!m_fault.empty()) return;
    const auto keys = positions(block.keys, block.first_key, block.key_count);
    for (std::uint32_t i = 0; i < block.query_count; ++i) {
      const auto mine = positions(block.queries, block.first_query + i, 1);
      weigh(value(result, i).sums, mine, keys, true, result.access() == Access::write);
      value(result, i).written = true;
      if (result.access() == Access::write) value(result, i).wrong = false;
    }
    if (!backward) return;
    const auto queries = positions(block.queries, block.first_query, block.query_count);
    for (std::uint32_t i = 0; i < block.key_count; ++i) {
      const auto mine = positions(block.keys, block.first_key + i, 1);
      weigh(value(uses[5], i).sums, mine, queries, false, uses[5].access() == Access::write);
      value(uses[5], i).written = true;
      if (uses[5].access() == Access::write) value(uses[5], i).wrong = false;
    }
  }

  void two_passes(ActionId id) {
    const auto uses = m_schedule.uses(id);
    const std::uint32_t q = m_schedule[id].stage.value, k = m_schedule[id].item.value;
    if (q >= ranks() || k >= ranks()) return fault(id, "names a block that does not exist");
    if (m_schedule[m_schedule[id].queue].from.value != q)
      return fault(id, "has queries of another rank than it says");
    const auto queries = positions(q, 0, m_pieces.pieces());
    const auto keys = positions(k, 0, m_pieces.pieces());
    const bool backward = m_schedule[id].kind == Kind::backward;
    const bool first = backward == (role(+uses[0].buffer) == "scores");
    const bool by_keys = first != backward;
    if (value(uses[1]).what != name(by_keys ? "keys" : "values", k, 0))
      fault(id, "has other keys than it says: " + value(uses[1]).what);
    if (!backward && first) expect(id, uses[0], "queries", q);
    if (backward) expect(id, uses[0], first ? "scores" : "score_grads", k);
    if (backward && first) expect(id, uses[2], "output", q);
    if (backward && first) expect(id, uses[3], "output_grads", q);
    if (backward && !first) expect(id, uses[2], "queries", q);
    const auto add_to = [&](const Use& use, bool of_queries) {
      weigh(value(use).sums, of_queries ? queries : keys, of_queries ? keys : queries, of_queries,
            use.access() == Access::write, role(+use.buffer));
      value(use).written = true;
      if (use.access() == Access::write) value(use).wrong = false;
    };
    if (!backward && first) {
      value(uses[2]) = {true, false, name("scores", k, 0)};
    } else if (!backward) {
      if (value(uses[0]).what != "finished " + name("scores", k, 0))
        fault(id, "has unfinished rows: " + value(uses[0]).what);
      add_to(uses[2], true);
    } else if (first) {
      value(uses[4]) = {true, false, name("score_grads", k, 0)};
      add_to(uses[5], false);
    } else {
      add_to(uses[3], true);
      add_to(uses[4], false);
    }
  }

  /// What every rank has at the end.
  void compare() {
    for (std::size_t b = 0; b < m_values.size(); ++b) {
      const std::string& label = role(b);
      const bool of_queries =
          label == "query_grads" || (!m_backward && (label == "state" || label == "output"));
      const bool of_keys =
          label == "key_value_grads" || label == "key_grads" || label == "value_grads";
      if (!of_queries && !of_keys) continue;
      const auto rank = m_schedule.buffers()[b].rank.value;
      const bool blocks = label == "key_grads" || label == "value_grads";
      const bool whole = blocks || (m_values[b].size() == 1 && m_pieces.pieces() > 1);
      for (std::uint32_t part = 0; part < m_values[b].size(); ++part) {
        if (blocks && part != rank) continue;
        const auto mine = whole ? positions(rank, 0, m_pieces.pieces()) : positions(rank, part, 1);
        if (mine.empty()) continue;
        std::vector<std::int64_t> all;
        for (std::int64_t t = 0; t < m_tokens; ++t) all.push_back(t);
        std::vector<std::uint64_t> expected;
        weigh(expected, mine, all, of_queries, true, label);
        if (!m_values[b][part].written || m_values[b][part].wrong ||
            m_values[b][part].sums != expected)
          m_fault = text(m_schedule.name(), ": wrong pairs in ", label, " of rank ", rank,
                         ", part ", part);
      }
    }
  }
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(m_ranks); }

  const Schedule& m_schedule;
  AttentionMask m_mask;
  schedule::AttentionPieces m_pieces;
  int m_ranks;
  bool m_backward;
  std::int64_t m_tokens = 0;
  std::vector<Values> m_values;
  std::string m_fault;
};

/// Empty if `schedule` computes every visible pair once, reads no part that nothing has written,
/// and finds in every part the block that its action names; else the first fault.
[[nodiscard]] inline std::string attention_fault(const Schedule& schedule,
                                                 const schedule::AttentionForm& form) {
  return AttentionMeaning(schedule, form).run();
}

}  // namespace heddle::test
