// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of token_ring.hpp.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/attention/impl/attention_writer.hpp>
#include <heddle/schedule/attention/token_ring.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

class TokenRing {
 public:
  explicit TokenRing(const AttentionForm& form) : m_w("token ring", form) {
    const Bytes queries = m_w.piece_bytes(form.query_bytes());
    const Bytes state = m_w.piece_bytes(form.state_bytes());
    const std::uint32_t steps = (m_w.p - 1) * m_w.h;
    m_queries = m_w.add("queries", m_w.h, queries);
    m_keys = m_w.add("keys_values", m_w.h, m_w.piece_bytes(2 * form.key_bytes()));
    m_state = m_w.add("state", m_w.h, state, Lifetime::persistent, state);
    if (m_w.p == 1) return;
    m_ring = m_w.add("ring", steps, queries, Lifetime::transient);
    m_partial = m_w.add("partial", steps, state, Lifetime::transient, state);
    m_arrived = m_w.add("arrived", steps, state, Lifetime::transient, state);
  }

  Schedule run() && {
    std::vector<Return> returned, earlier;
    for (std::uint32_t s = 0; s < m_w.p; ++s) {
      if (s + 1 < m_w.p) pass_queries(s);
      for (std::uint32_t r = 0; r < m_w.p; ++r) work(r, s, returned);
      for (const Return& each : returned)
        m_w.move(each.from, each.owner, 1, each.owner,
                 {m_partial[each.from], each.first, each.count},
                 {m_arrived[each.owner], each.first, each.count});
      // A rank computes its next step before it waits for what returns from this one.
      join(earlier);
      earlier = std::exchange(returned, {});
    }
    join(earlier);
    return std::move(m_w.builder).build();
  }

 private:
  /// A state on its way to the owner of its queries.
  struct Return {
    std::uint32_t from = 0;
    std::uint32_t owner = 0;
    std::uint32_t piece = 0;  ///< of the queries
    std::uint32_t first = 0;  ///< part of "partial" and "arrived"
    std::uint32_t count = 1;
  };

  [[nodiscard]] PartRange queries(std::uint32_t r, std::uint32_t s, std::uint32_t first,
                                  std::uint32_t count) const {
    if (s == 0) return {m_queries[r], first, count};
    return {m_ring[r], (s - 1) * m_w.h + first, count};
  }

  void pass_queries(std::uint32_t s) {
    for (std::uint32_t r = 0; r < m_w.p; ++r) {
      const std::uint32_t to = m_w.next(r, true);
      m_w.move(r, to, 0, m_w.behind(r, s, true), queries(r, s, 0, m_w.h),
               queries(to, s + 1, 0, m_w.h));
    }
  }

  void work(std::uint32_t r, std::uint32_t s, std::vector<Return>& returned) {
    const std::uint32_t owner = m_w.behind(r, s, true);
    const AttentionPieces::Block block = m_w.pieces.visible(owner, r, 0, m_w.h);
    if (block.query_count == 0) return;
    const PartRange of = queries(r, s, block.first_query, block.query_count);
    const std::uint32_t part = s == 0 ? block.first_query : (s - 1) * m_w.h + block.first_query;
    m_w.work(
        Kind::forward, r, owner, r,
        {read(of.buffer, of.first, of.count), read(m_keys[r], block.first_key, block.key_count),
         write(s == 0 ? m_state[r] : m_partial[r], part, block.query_count)});
    if (s > 0) returned.push_back({r, owner, block.first_query, part, block.query_count});
  }

  void join(const std::vector<Return>& returned) {
    for (const Return& each : returned)
      m_w.combine(each.owner, each.from, {m_arrived[each.owner], each.first, each.count},
                  {m_state[each.owner], each.piece, each.count});
  }

  AttentionWriter m_w;
  OnRanks m_queries, m_keys, m_state, m_ring, m_partial, m_arrived;
};

}  // namespace impl

HEDDLE_INLINE Schedule token_ring(const AttentionForm& form) {
  constexpr const char* where = "heddle::schedule::token_ring";
  form.expect_valid(where);
  expects(!form.backward, [&] {
    return ErrorInfo{where, "TokenRing has no backward pass",
                     text("expected a forward pass, got backward with ", form.ranks, " ranks"),
                     "train with ring_attention(), which may have two ways"};
  });
  expects(form.ways == 1, [&] {
    return ErrorInfo{
        where, "queries travel in one direction only, because states use the other direction",
        text("expected 1, got ways = ", form.ways), "use ring_attention() for two ways"};
  });
  return impl::TokenRing(form).run();
}

}  // namespace heddle::inline v0::schedule
