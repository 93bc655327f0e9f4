// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rsa.hpp.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/attention/impl/attention_writer.hpp>
#include <heddle/schedule/attention/rsa.hpp>
#include <heddle/schedule/collective/form.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

class TwoPassRing {
 public:
  explicit TwoPassRing(const AttentionForm& form) : m_w("rsa", form), m_written(m_w.p, false) {
    const Bytes queries = m_w.block_bytes(form.query_bytes());
    const Bytes keys = m_w.block_bytes(form.key_bytes());
    const Bytes scores =
        m_w.block_bytes(m_w.block_bytes(static_cast<Bytes>(form.heads) * size_of(form.type)));
    m_queries = m_w.add("queries", 1, queries);
    m_keys = m_w.add("keys", 1, keys);
    m_values = m_w.add("values", 1, keys);
    m_scores = m_w.add("scores", m_w.p, scores);
    m_output = m_w.add("output", 1, queries);
    if (m_w.p > 1) m_ring = m_w.add("ring_rows", 2 * (m_w.p - 1), keys, Lifetime::transient);
    if (!form.backward) return;
    m_output_grads = m_w.add("output_grads", 1, queries);
    m_query_grads = m_w.add("query_grads", 1, queries);
    m_score_grads = m_w.add("score_grads", m_w.p, scores);
    m_key_grads = m_w.add("key_grads", m_w.p, keys);
    m_value_grads = m_w.add("value_grads", m_w.p, keys);
  }

  Schedule run() && {
    if (m_w.form.backward) return std::move(*this).backward();
    go_round(m_keys, 0, [&](std::uint32_t r, std::uint32_t k, Use block) {
      m_w.work(Kind::forward, r, r, k, {read(m_queries[r]), block, write(m_scores[r], k)});
    });
    for (std::uint32_t r = 0; r < m_w.p; ++r) {
      std::vector<Use> uses = runs(r, true, Access::update, m_scores[r]);
      if (uses.empty()) continue;
      uses.push_back(update(m_values[r]));
      m_w.work(Kind::user, r, r, 0, uses);
    }
    go_round(m_values, m_w.p - 1, [&](std::uint32_t r, std::uint32_t k, Use block) {
      m_w.work(Kind::forward, r, r, k, {read(m_scores[r], k), block, next_use(m_output[r], r)});
    });
    return std::move(m_w.builder).build();
  }

 private:
  Schedule backward() && {
    for (std::uint32_t r = 0; r < m_w.p; ++r) {
      std::vector<Use> uses = runs(r, false, Access::write, m_key_grads[r]);
      for (const Use& each : runs(r, false, Access::write, m_value_grads[r])) uses.push_back(each);
      if (!uses.empty()) m_w.work(Kind::user, r, r, 0, uses);
    }
    go_round(m_values, 0, [&](std::uint32_t r, std::uint32_t k, Use block) {
      m_w.work(Kind::backward, r, r, k,
               {read(m_scores[r], k), block, read(m_output[r]), read(m_output_grads[r]),
                write(m_score_grads[r], k), write(m_value_grads[r], k)});
    });
    go_round(m_keys, m_w.p - 1, [&](std::uint32_t r, std::uint32_t k, Use block) {
      m_w.work(Kind::backward, r, r, k,
               {read(m_score_grads[r], k), block, read(m_queries[r]), next_use(m_query_grads[r], r),
                write(m_key_grads[r], k)});
    });
    for (const OnRanks& grads : {m_value_grads, m_key_grads}) {
      std::vector<Use> members;
      for (const BufferId buffer : grads) members.push_back(update(buffer, 0, m_w.p));
      CollectiveForm{.collective = Collective::reduce_scatter, .algorithm = Algorithm::ring}(
          m_w.builder, members, Stage{0});
    }
    return std::move(m_w.builder).build();
  }

  [[nodiscard]] Use next_use(BufferId buffer, std::uint32_t r) {
    return use(AttentionWriter::first_write(m_written, r), buffer);
  }
  [[nodiscard]] bool visible(std::uint32_t r, std::uint32_t k) const {
    return m_w.pieces.visible(r, k, 0, m_w.h).query_count != 0;
  }

  /// The parts of `buffer` whose blocks of keys rank r sees, or sees not, as runs of neighbours.
  [[nodiscard]] std::vector<Use> runs(std::uint32_t r, bool seen, Access access,
                                      BufferId buffer) const {
    std::vector<Use> uses;
    for (std::uint32_t k = 0, end = 0; k < m_w.p; k = end) {
      end = k + 1;
      if (visible(r, k) != seen) continue;
      while (end < m_w.p && visible(r, end) == seen) ++end;
      uses.push_back(use(access, buffer, k, end - k));
    }
    return uses;
  }

  /// The blocks of `home` go around; those that arrive are parts of "ring_rows" from `first` on.
  template <class Work>
  void go_round(const OnRanks& home, std::uint32_t first, Work&& work) {
    const auto at = [&](std::uint32_t r, std::uint32_t t) {
      return t == 0 ? PartRange{home[r]} : PartRange{m_ring[r], first + t - 1, 1};
    };
    for (std::uint32_t t = 0; t < m_w.p; ++t) {
      for (std::uint32_t r = 0; r < m_w.p && t + 1 < m_w.p; ++r) {
        const std::uint32_t to = m_w.next(r, true);
        m_w.move(r, to, 0, m_w.behind(r, t, true), at(r, t), at(to, t + 1));
      }
      for (std::uint32_t r = 0; r < m_w.p; ++r) {
        const std::uint32_t k = m_w.behind(r, t, true);
        const PartRange block = at(r, t);
        if (visible(r, k)) work(r, k, read(block.buffer, block.first));
      }
    }
  }

  AttentionWriter m_w;
  OnRanks m_queries, m_keys, m_values, m_scores, m_output, m_ring;
  OnRanks m_output_grads, m_query_grads, m_score_grads, m_key_grads, m_value_grads;
  std::vector<bool> m_written;  ///< of each rank: whether its output or query_grads has a value
};

}  // namespace impl

HEDDLE_INLINE Schedule rsa(const AttentionForm& form) {
  constexpr const char* where = "heddle::schedule::rsa";
  form.expect_valid(where);
  expects(form.ways == 1, [&] {
    return ErrorInfo{where, "the blocks of ring self-attention travel in one direction only",
                     text("expected 1, got ways = ", form.ways),
                     "use ring_attention() for two ways"};
  });
  return impl::TwoPassRing(form).run();
}

}  // namespace heddle::inline v0::schedule
