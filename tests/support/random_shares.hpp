// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RandomShares: orders whose stages divide the samples of a microbatch between ranks at random.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

namespace heddle::test {

/// A schedule of 1 to 4 ranks, each of which becomes 1 to 4 ranks that divide the samples: GPipe,
/// 1F1B, ZB-H1, or interleaved 1F1B and ZB-V with two stages on each rank. The number of ranks is
/// at most `most`.
class RandomShares {
 public:
  explicit RandomShares(std::uint64_t seed, std::size_t most = 16) : m_random(seed, "shares") {
    const std::size_t positions = 1 + below(std::min<std::size_t>(4, most));
    m_kind = static_cast<int>(below(5));
    m_per_rank = m_kind >= 3 ? 2 : 1;
    m_microbatches = positions * (1 + below(2));
    std::vector<std::size_t> width(positions, 1);
    std::size_t ranks = positions;
    for (std::size_t& each : width) {
      each += below(std::min<std::size_t>(4, most - ranks + 1));
      ranks += each - 1;
      m_widest = std::max(m_widest, each);
    }
    m_shares.samples = static_cast<std::int64_t>(m_widest + below(8));
    for (std::size_t stage = 0; stage < positions * m_per_rank; ++stage) {
      const bool back = m_kind == 4 && stage >= positions;  // of a V
      m_shares.stages.push_back(
          divided(width[back ? 2 * positions - 1 - stage : stage % positions]));
    }
  }

  /// Returns the orders, with their shares.
  [[nodiscard]] Orders orders() const { return schedule::in_shares(plain(), m_shares); }
  /// Returns the orders before they are divided.
  [[nodiscard]] Orders plain() const {
    const int stages = static_cast<int>(m_shares.stages.size() / m_per_rank);
    const int items = static_cast<int>(m_microbatches);
    if (m_kind == 0) return schedule::gpipe(stages, items);
    if (m_kind == 1) return schedule::one_f_one_b(stages, items);
    if (m_kind == 2) return schedule::zb_h1(stages, items);
    if (m_kind == 3) return schedule::interleaved(stages, 2, items);
    return schedule::zb_v(stages, items);
  }

  [[nodiscard]] StageShares& shares() noexcept { return m_shares; }
  [[nodiscard]] std::size_t microbatches() const noexcept { return m_microbatches; }
  [[nodiscard]] std::size_t widest() const noexcept { return m_widest; }
  [[nodiscard]] std::size_t stages_per_rank() const noexcept { return m_per_rank; }
  /// Returns the shares in words.
  [[nodiscard]] std::string text() const {
    std::string line;
    for (const auto& stage : m_shares.stages) {
      line += line.empty() ? "" : " | ";
      for (const std::int64_t share : stage) line += heddle::text(share, ' ');
    }
    return line;
  }

 private:
  [[nodiscard]] std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(m_random.below(m_index++, bound));
  }
  /// All samples in `count` shares of at least one.
  [[nodiscard]] std::vector<std::int64_t> divided(std::size_t count) {
    std::vector<std::int64_t> shares(count, 1);
    for (std::int64_t left = m_shares.samples - static_cast<std::int64_t>(count); left > 0; --left)
      ++shares[below(count)];
    return shares;
  }

  Random m_random;
  std::uint64_t m_index = 0;
  int m_kind = 0;
  std::size_t m_per_rank = 1;
  std::size_t m_microbatches = 1;
  std::size_t m_widest = 1;
  StageShares m_shares;
};

}  // namespace heddle::test
