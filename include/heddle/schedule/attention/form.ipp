// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of form.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/fold.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Pairs (query, key) with key <= query, for ascending intervals of queries and of keys.
inline std::int64_t causal_pairs(std::span<const Interval> queries,
                                 std::span<const Interval> keys) {
  std::int64_t pairs = 0;
  std::int64_t before = 0;  // keys that every query from here on sees
  std::size_t first = 0;
  for (const Interval& query : queries) {
    for (; first < keys.size() && keys[first].end <= query.begin + 1; ++first)
      before += keys[first].size();
    pairs += before * query.size();
    for (std::size_t k = first; k < keys.size() && keys[k].begin < query.end; ++k) {
      // Query q sees min(q + 1, end) - begin keys of this interval, if that is more than 0.
      const Interval& key = keys[k];
      const std::int64_t least = std::max(query.begin, key.begin);
      const std::int64_t all = std::clamp(key.end, least, query.end);  // from here it sees all
      const std::int64_t low = least + 1 - key.begin, high = all - key.begin;
      if (all > least) pairs += (low + high) * (all - least) / 2;
      pairs += (query.end - all) * key.size();
    }
  }
  return pairs;
}

/// The positions of `set` in [begin, end).
inline std::vector<Interval> within(const IndexSet& set, const Interval& bounds) {
  std::vector<Interval> inside;
  for (const Interval& interval : set.intervals()) {
    const Interval cut{std::max(interval.begin, bounds.begin), std::min(interval.end, bounds.end)};
    if (cut.size() > 0) inside.push_back(cut);
  }
  return inside;
}

inline std::int64_t visible_pairs(const AttentionMask& mask, const IndexSet& queries,
                                  const IndexSet& keys) {
  if (queries.size() == 0 || keys.size() == 0) return 0;
  std::int64_t pairs = 0;
  std::int64_t begin = 0;
  for (std::size_t s = 0; s <= mask.segments.size(); ++s) {
    const std::int64_t end =
        s < mask.segments.size() ? mask.segments[s] : std::numeric_limits<std::int64_t>::max();
    const Interval segment{std::exchange(begin, end), end};
    const std::vector<Interval> q = within(queries, segment), k = within(keys, segment);
    const auto size = [](const std::vector<Interval>& all) {
      std::int64_t sum = 0;
      for (const Interval& each : all) sum += each.size();
      return sum;
    };
    pairs += mask.causal ? causal_pairs(q, k) : size(q) * size(k);
  }
  return pairs;
}

/// The two halves of a share, the first of which has one more where they differ.
inline std::vector<IndexSet> halves(const IndexSet& share) {
  IndexSet first, second;
  const std::int64_t middle = (share.size() + 1) / 2;
  first.add({0, middle});
  second.add({middle, share.size()});
  return {share.at(first), share.at(second)};
}

/// Returns, for every part that an action reads, in list order, the action that has written it, or
/// -1.
inline std::vector<std::int64_t> writers_of_reads(const Schedule& schedule) {
  std::vector<std::vector<std::int64_t>> writer;
  for (const Buffer& buffer : schedule.buffers()) writer.emplace_back(buffer.parts, -1);
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto uses = schedule.uses(ActionId{i});
    const auto for_each_part = [&](const auto& visit) {
      for (const Use& use : uses)
        for (std::uint32_t part = 0; part < use.count; ++part)
          visit(use, writer[+use.buffer][use.first + part]);
    };
    for_each_part([&](const Use& use, std::int64_t& by) {
      if (use.reads()) found.push_back(by);
    });
    for_each_part([&](const Use& use, std::int64_t& by) {
      if (use.access() != Access::read) by = static_cast<std::int64_t>(i);
    });
  }
  return found;
}

}  // namespace impl

HEDDLE_INLINE void AttentionForm::expect_valid(const char* where) const {
  expects(ranks >= 1, [&] {
    return ErrorInfo{where, "an attention needs at least one rank", text("ranks = ", ranks)};
  });
  expects(ways == 1 || ways == 2, [&] {
    return ErrorInfo{where, "K,V blocks must travel around the ring in one direction or in two",
                     text("expected 1 or 2, got ways = ", ways)};
  });
  expects(tokens >= 0 && heads >= 1 && head_width >= 1, [&] {
    return ErrorInfo{where, "tokens, heads and head_width are out of range",
                     text("tokens = ", tokens, ", heads = ", heads, ", head_width = ", head_width)};
  });
  expects(kv_heads >= 0 && (kv_heads == 0 || heads % kv_heads == 0), [&] {
    return ErrorInfo{where, "the number of heads must be a multiple of the number of K,V heads",
                     text("heads = ", heads, ", kv_heads = ", kv_heads)};
  });
  expects(order.fits(static_cast<std::size_t>(ranks)), [&] {
    return ErrorInfo{where, "the weights of the order must be as many as the ranks",
                     text(order, ", ", ranks, " ranks")};
  });
  expects(heddle::impl::is_known(type), [&] {
    return ErrorInfo{where, "there is no such element type", text("type: ", type)};
  });
  // The largest buffers have Q, or K and V, or a state of all tokens, several times.
  __extension__ using Wide = __int128;
  const Wide rows = Wide{all_tokens()} * heads;  // 63 and 31 bits
  expects(rows <= (std::int64_t{1} << 58) / (std::int64_t{head_width} + 1), [&] {
    return ErrorInfo{
        where, "the elements do not fit in 58 bits",
        text("tokens = ", all_tokens(), ", heads = ", heads, ", head_width = ", head_width)};
  });
  mask.expect_valid(where);
}

HEDDLE_INLINE AttentionPieces::AttentionPieces(const AttentionForm& form) : m_mask(form.mask) {
  form.expect_valid("heddle::schedule::AttentionPieces");
  const std::int64_t n = form.all_tokens();
  const bool zigzag = form.order == ShardOrder::zigzag();
  m_pieces = zigzag || form.ways == 2 ? 2 : 1;
  for (std::int64_t r = 0; r < form.ranks; ++r) {
    const IndexSet share = form.order.share(n, form.ranks, r);
    m_block_capacity = std::max(m_block_capacity, share.size());
    if (m_pieces == 1) {
      m_positions.push_back(share);
    } else if (zigzag) {
      const std::int64_t chunks = 2 * std::int64_t{form.ranks};
      m_positions.push_back(ShardOrder::even().share(n, chunks, r));
      m_positions.push_back(ShardOrder::even().share(n, chunks, chunks - 1 - r));
    } else {
      for (IndexSet& half : impl::halves(share)) m_positions.push_back(std::move(half));
    }
  }
  for (const IndexSet& piece : m_positions) m_capacity = std::max(m_capacity, piece.size());
}

HEDDLE_INLINE IndexSet AttentionPieces::positions(std::uint32_t block, std::uint32_t first,
                                                  std::uint32_t count) const {
  const std::size_t blocks = m_positions.size() / m_pieces;
  expects(block < blocks && std::uint64_t{first} + count <= m_pieces, [&] {
    return ErrorInfo{"heddle::schedule::AttentionPieces", "there is no such block or piece",
                     text("block ", block, " of ", blocks, ", pieces ", first, " to ",
                          std::uint64_t{first} + count, " of ", m_pieces)};
  });
  IndexSet all;
  for (std::uint32_t piece = first; piece < first + count; ++piece)
    for (const Interval& interval : positions(block, piece).intervals()) all.add(interval);
  return all;
}

HEDDLE_INLINE AttentionPieces::Block AttentionPieces::visible(std::uint32_t queries,
                                                              std::uint32_t keys,
                                                              std::uint32_t first,
                                                              std::uint32_t count) const {
  (void)positions(queries, 0, 0);  // both checks
  (void)positions(keys, first, count);
  std::uint32_t query_begin = m_pieces, query_end = 0, key_begin = m_pieces, key_end = 0;
  for (std::uint32_t q = 0; q < m_pieces; ++q)
    for (std::uint32_t k = first; k < first + count; ++k) {
      if (impl::visible_pairs(m_mask, positions(queries, q), positions(keys, k)) == 0) continue;
      query_begin = std::min(query_begin, q);
      query_end = std::max(query_end, q + 1);
      key_begin = std::min(key_begin, k);
      key_end = std::max(key_end, k + 1);
    }
  if (query_end == 0) return {queries, keys, 0, 0, first, 0};
  return {queries, keys, query_begin, query_end - query_begin, key_begin, key_end - key_begin};
}

HEDDLE_INLINE std::int64_t AttentionPieces::pairs(const AttentionPieces::Block& block) const {
  return impl::visible_pairs(m_mask, positions(block.queries, block.first_query, block.query_count),
                             positions(block.keys, block.first_key, block.key_count));
}

HEDDLE_INLINE AttentionPieces::PairShape AttentionPieces::shape(
    const AttentionPieces::Block& block) const {
  const std::int64_t visible = pairs(block);
  if (visible == 0) return AttentionPieces::PairShape::empty;
  const auto all = [](const IndexSet& queries, const IndexSet& keys) {
    return queries.size() * keys.size();
  };
  if (visible != all(positions(block.queries, block.first_query, block.query_count),
                     positions(block.keys, block.first_key, block.key_count)))
    return AttentionPieces::PairShape::diagonal;
  return visible == all(positions(block.queries, 0, m_pieces), positions(block.keys, 0, m_pieces))
             ? AttentionPieces::PairShape::full
             : AttentionPieces::PairShape::half;
}

HEDDLE_INLINE AttentionPieces::Block AttentionPieces::block(const Schedule& schedule,
                                                            ActionId id) const {
  const Action& action = schedule[id];
  const auto uses = schedule.uses(id);
  expects(action.kind <= Kind::backward && uses.size() >= 3, [&] {
    return ErrorInfo{"heddle::schedule::AttentionPieces::block",
                     "the action computes no (query, key) pairs",
                     text(action.stage, action.kind, action.item)};
  });
  AttentionPieces::Block block{action.stage.value, action.item.value, 0, m_pieces, 0, m_pieces};
  const std::string& keys = schedule[schedule[uses[1].buffer].label];
  if (keys != "keys_values" && keys != "ring") return block;  // rsa(): whole
  block.first_query = uses[0].first % m_pieces;
  block.query_count = uses[0].count;
  block.first_key = uses[1].first % m_pieces;
  block.key_count = uses[1].count;
  return block;
}

namespace impl {

HEDDLE_INLINE void expect_made_of(const char* where, const Schedule& schedule, BufferId id,
                                  const AttentionPieces& pieces, Bytes query_bytes,
                                  Bytes key_bytes) {
  const Buffer& buffer = schedule[id];
  const std::string& label = schedule[buffer.label];
  const bool keys = label == "keys_values";
  if (!keys && label != "queries") return;
  const bool whole = !keys && buffer.parts == 1;  // as in rsa()
  const auto tokens =
      static_cast<Bytes>(whole ? pieces.block_capacity() : pieces.capacity() * pieces.pieces());
  const Bytes expected = tokens * (keys ? 2 * key_bytes : query_bytes);
  expects((whole || buffer.parts == pieces.pieces()) && buffer.bytes == expected, [&] {
    return ErrorInfo{
        where, "the schedule is not one of this form",
        text("'", schedule.name(), "' has ", buffer.bytes, " bytes of ", label, " in ",
             buffer.parts, " parts, the form ", expected, " in ", whole ? 1 : pieces.pieces()),
        "give the form of which the schedule was made"};
  });
}

}  // namespace impl

HEDDLE_INLINE Schedule fold_attention(const Schedule& schedule, const AttentionForm& form,
                                      std::uint32_t slots) {
  constexpr const char* where = "heddle::schedule::fold_attention";
  const AttentionPieces of_form(form);
  bool attends = false;
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    impl::expect_made_of(where, schedule, BufferId{b}, of_form, form.query_bytes(),
                         form.key_bytes());
    attends = attends || schedule[schedule[BufferId{b}].label] == "queries";
  }
  expects(attends && schedule.ranks() == form.ranks, [&] {
    return ErrorInfo{where, "the schedule is not one of this form",
                     text("'", schedule.name(), "' has ", schedule.ranks(), " ranks",
                          attends ? "" : " and no queries", ", the form ", form.ranks, " ranks"),
                     "give the form of which the schedule was made"};
  });
  expects(slots >= 1, [] {
    return ErrorInfo{where, "a buffer has at least one slot", "slots = 0"};
  });
  const std::uint32_t pieces = of_form.pieces();
  Schedule folded = schedule;
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    const std::string& label = schedule[buffer.label];
    const bool whole = label == "ring_rows";
    if (label != "ring" && label != "partial" && label != "arrived" && !whole) continue;
    const std::uint32_t wanted = slots * (whole ? 1 : pieces);
    if (wanted < buffer.parts) folded = fold(folded, BufferId{b}, wanted);
  }
  return folded;
}

HEDDLE_INLINE Schedule reuse_own_block(const Schedule& schedule, const AttentionForm& form) {
  constexpr const char* where = "heddle::schedule::reuse_own_block";
  const std::uint32_t pieces = AttentionPieces(form).pieces();
  const auto is_ring = [&](const Buffer& buffer) { return schedule[buffer.label] == "ring"; };
  std::vector<BufferId> own(static_cast<std::size_t>(form.ranks));
  std::string travels;  // the role of the blocks that travel
  for (std::size_t i = 0; i < schedule.size() && travels.empty(); ++i)
    if (schedule[ActionId{i}].kind == Kind::move)
      travels = schedule[schedule[schedule.uses(ActionId{i})[0].buffer].label];
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b)
    if (schedule[schedule[BufferId{b}].label] == travels)
      own[+schedule[BufferId{b}].rank] = BufferId{b};
  Builder builder = Builder::like(schedule, [&](Buffer buffer) {
    if (!is_ring(buffer) || buffer.parts <= pieces) return buffer;
    expects(buffer.parts == 2 * pieces, [&] {
      return ErrorInfo{where, "the ring does not have two slots",
                       text("'", schedule.name(), "' has ", buffer.parts, " parts there, ", pieces,
                            " in a block"),
                       "fold_attention() it to two slots first"};
    });
    buffer.parts = pieces;
    buffer.bytes /= 2;
    return buffer;
  });
  std::vector<Use> uses;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    uses.clear();
    for (Use use : schedule.uses(ActionId{i})) {
      const Buffer& buffer = schedule[use.buffer];
      if (is_ring(buffer) && use.first >= pieces)
        use = schedule::use(use.access(), own[+buffer.rank], use.first - pieces, use.count);
      uses.push_back(use);
    }
    builder.add(schedule, ActionId{i}, uses);
  }
  Schedule reused = std::move(builder).build();
  if (impl::writers_of_reads(reused) != impl::writers_of_reads(schedule))
    throw infeasible({where, "an action would find another value in a rank's own block",
                      text("'", schedule.name(), "'"), "keep both slots"});
  return reused;
}

}  // namespace heddle::inline v0::schedule
