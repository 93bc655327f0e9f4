// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of ring_attention.hpp.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/attention/impl/attention_writer.hpp>
#include <heddle/schedule/attention/ring_attention.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Pieces that travel together, and their direction.
struct RingWay {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  bool clockwise = true;

  /// The lane of K and V.
  [[nodiscard]] std::uint32_t lane() const { return clockwise ? 0 : 1; }
  [[nodiscard]] std::uint32_t gradient_lane() const { return lane() + 2; }
};

class RingAttention {
 public:
  explicit RingAttention(const AttentionForm& form)
      : m_w("ring attention", form), m_written(m_w.p, false) {
    if (form.ways == 2)
      m_ways = {{0, 1, true}, {1, 1, false}};
    else
      m_ways = {{0, m_w.h, true}};
    const Bytes keys = m_w.piece_bytes(2 * form.key_bytes());
    const Bytes queries = m_w.piece_bytes(form.query_bytes());
    const Bytes state = m_w.piece_bytes(form.state_bytes());
    const std::uint32_t steps = (m_w.p - 1) * m_w.h;
    m_queries = m_w.add("queries", m_w.h, queries);
    m_keys = m_w.add("keys_values", m_w.h, keys);
    m_state = m_w.add("state", m_w.h, state, Lifetime::persistent, state);
    if (m_w.p > 1) m_ring = m_w.add("ring", steps, keys, Lifetime::transient);
    if (!form.backward) return;
    m_output_grads = m_w.add("output_grads", m_w.h, queries);
    m_query_grads = m_w.add("query_grads", m_w.h, queries);
    m_home = m_w.add("key_value_grads", m_w.h, keys);
    if (m_w.p == 1) return;
    m_partial = m_w.add("partial", steps, keys, Lifetime::transient);
    m_arrived = m_w.add("arrived", steps, keys, Lifetime::transient);
    m_sums.resize(std::size_t{m_w.p} * m_w.h);
  }

  Schedule run() && {
    for (std::uint32_t t = 0; t < m_w.p; ++t) {
      if (t + 1 < m_w.p)
        for (const RingWay& way : m_ways) send(t, way);
      for (std::uint32_t r = 0; r < m_w.p; ++r)
        if (t == 0)
          work(r, t, {0, m_w.h, true});
        else
          for (const RingWay& way : m_ways) work(r, t, way);
      if (m_w.form.backward && t > 0)
        for (const RingWay& way : m_ways) pass_gradients(t, way);
    }
    return std::move(m_w.builder).build();
  }

 private:
  /// Where the gradient of a piece is summed up: on the rank at which its keys are in this step.
  enum class Sum : std::uint8_t { none, partial, arrived };

  /// The parts of what arrives in step t, t >= 1.
  [[nodiscard]] std::uint32_t slot(std::uint32_t t, std::uint32_t piece) const {
    return (t - 1) * m_w.h + piece;
  }
  /// The pieces of K and V that rank r has in step t.
  [[nodiscard]] PartRange keys(std::uint32_t r, std::uint32_t t, std::uint32_t first,
                               std::uint32_t count) const {
    if (t == 0) return {m_keys[r], first, count};
    return {m_ring[r], slot(t, first), count};
  }
  [[nodiscard]] Sum& sum(std::uint32_t block, std::uint32_t piece) {
    return m_sums[std::size_t{block} * m_w.h + piece];
  }

  /// Every rank passes on what it has in step t.
  void send(std::uint32_t t, const RingWay& way) {
    for (std::uint32_t r = 0; r < m_w.p; ++r) {
      const std::uint32_t to = m_w.next(r, way.clockwise);
      m_w.move(r, to, way.lane(), m_w.behind(r, t, way.clockwise), keys(r, t, way.first, way.count),
               keys(to, t + 1, way.first, way.count));
    }
  }

  void work(std::uint32_t r, std::uint32_t t, const RingWay& way) {
    const std::uint32_t owner = m_w.behind(r, t, way.clockwise);
    const AttentionPieces::Block block = m_w.pieces.visible(r, owner, way.first, way.count);
    if (block.query_count == 0) return;
    const auto of_queries = [&](Access access, const OnRanks& buffers) {
      return use(access, buffers[r], block.first_query, block.query_count);
    };
    const PartRange from = keys(r, t, block.first_key, block.key_count);
    std::vector<Use> uses = {of_queries(Access::read, m_queries),
                             read(from.buffer, from.first, from.count)};
    const Access access = AttentionWriter::first_write(m_written, r);
    if (!m_w.form.backward) {
      uses.push_back(of_queries(access, m_state));
      return m_w.work(Kind::forward, r, r, owner, uses);
    }
    uses.push_back(of_queries(Access::read, m_state));
    uses.push_back(of_queries(Access::read, m_output_grads));
    uses.push_back(of_queries(access, m_query_grads));
    uses.push_back(t == 0 ? write(m_home[r], block.first_key, block.key_count)
                          : write(m_partial[r], slot(t, block.first_key), block.key_count));
    m_w.work(Kind::backward, r, r, owner, uses);
    if (t == 0) return;
    for (std::uint32_t k = block.first_key; k < block.first_key + block.key_count; ++k) {
      if (sum(owner, k) == Sum::arrived)
        m_w.combine(r, owner, {m_arrived[r], slot(t - 1, k), 1}, {m_partial[r], slot(t, k), 1});
      sum(owner, k) = Sum::partial;
    }
  }

  /// Every rank passes on the gradients of the block that it has in step t; after the last step
  /// they are at home.
  void pass_gradients(std::uint32_t t, const RingWay& way) {
    for (std::uint32_t r = 0; r < m_w.p; ++r) {
      const std::uint32_t owner = m_w.behind(r, t, way.clockwise);
      const std::uint32_t to = m_w.next(r, way.clockwise);
      for (std::uint32_t k = way.first, end = 0; k < way.first + way.count; k = end) {
        const Sum where = sum(owner, k);
        for (end = k + 1; end < way.first + way.count && sum(owner, end) == where;) ++end;
        if (where == Sum::none) continue;
        const PartRange from = where == Sum::partial
                                   ? PartRange{m_partial[r], slot(t, k), end - k}
                                   : PartRange{m_arrived[r], slot(t - 1, k), end - k};
        const PartRange into{m_arrived[to], slot(t, k), end - k};
        m_w.move(r, to, way.gradient_lane(), owner, from, into, flag::gradient);
        for (std::uint32_t piece = k; piece < end; ++piece) sum(owner, piece) = Sum::arrived;
        if (t + 1 == m_w.p) m_w.combine(to, owner, into, {m_home[to], k, end - k});
      }
    }
  }

  AttentionWriter m_w;
  std::vector<RingWay> m_ways;
  OnRanks m_queries, m_keys, m_ring, m_state;
  OnRanks m_output_grads, m_query_grads, m_home, m_partial, m_arrived;
  std::vector<bool> m_written;  ///< of each rank: whether its state or query_grads has a value
  std::vector<Sum> m_sums;      ///< of each piece of each block
};

}  // namespace impl

HEDDLE_INLINE Schedule ring_attention(const AttentionForm& form) {
  form.expect_valid("heddle::schedule::ring_attention");
  return impl::RingAttention(form).run();
}

}  // namespace heddle::inline v0::schedule
