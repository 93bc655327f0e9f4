// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RoundLog: the times of the last rounds of simulate_periodic(), from which it proves that they
/// are steady.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <heddle/simulate/impl/class_prices.hpp>

namespace heddle::inline v0::impl {

/// One round, in which every rank computed up to one repetition of its entries.
struct Round {
  /// Every start and arrival as a maximum: the times of which it is the maximum, then the maximum.
  std::vector<PeriodTicks> times;
  /// All that tells two rounds apart besides times: the positions of the ranks, the sizes of the
  /// maxima, and the ages of the messages that were received.
  std::vector<std::uint32_t> marks;
  std::vector<std::uint32_t> sizes;  ///< the sizes of the maxima, without the maximum itself
  /// A message that was sent. Its arrival grows as the time at `place` in `times`.
  struct Sent {
    std::size_t series;
    std::int64_t item;
    PeriodTicks arrival;
    std::size_t place;
  };
  std::vector<Sent> sent;
  /// A message that was received from a run: the place of its microbatch in the run.
  struct FromRun {
    std::int64_t place, count, shift;
  };
  std::vector<FromRun> from_runs;
  std::vector<std::int64_t> done;  ///< by rank, at the end: repetitions of the present entries
  std::vector<std::size_t> at;     ///< by rank, at the end: which Repetition these are
  std::vector<PeriodTicks> state;  ///< at the end: the clocks of the ranks, and the channels
  std::uint32_t oldest = 0;        ///< rounds since the oldest message that was received was sent
};

/// The last rounds since the last jump: `most` of them, or fewer if they have very many times.
class RoundLog {
 public:
  explicit RoundLog(std::size_t most) : m_most(most) {}

  void add(Round round) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::uint32_t mark : round.marks) hash = (hash ^ mark) * 0x100000001b3u;
    m_hashes.push_back(hash);
    m_times += round.times.size();
    m_rounds.push_back(std::move(round));
    while (m_rounds.size() > m_most || (m_times > most_times && m_rounds.size() > 6)) {
      m_times -= m_rounds.front().times.size();
      m_rounds.pop_front();
      m_hashes.pop_front();
    }
  }
  void clear() {
    m_rounds.clear();
    m_hashes.clear();
    m_times = 0;
  }
  /// Returns a round; 0 is the last one.
  [[nodiscard]] const Round& operator[](std::size_t ago) const {
    return m_rounds[m_rounds.size() - 1 - ago];
  }

  /// Returns the number of rounds after which all times grow by constant amounts, if it can be
  /// proven. Let a window be so many rounds. The windows that are compared reach back to every
  /// message that was received in the last one. All of them have the same marks, and each time has
  /// the same growth from one window to the next.
  [[nodiscard]] std::optional<std::size_t> steady() const {
    for (std::size_t window = 1; 3 * window <= m_rounds.size(); ++window) {
      if (hash(0) != hash(window)) continue;
      std::size_t oldest = 0;
      for (std::size_t r = 0; r < window; ++r)
        oldest = std::max<std::size_t>(oldest, (*this)[r].oldest);
      const std::size_t windows = std::max<std::size_t>(3, 2 + oldest / window);
      if (windows * window <= m_rounds.size() && repeats(window, windows) && grows(window, windows))
        return window;
    }
    return {};
  }

  /// Returns how many more windows the maxima of the last window keep their winners, at most
  /// `most`. The times have grown by constant amounts.
  [[nodiscard]] std::int64_t kept(std::size_t window, std::int64_t most) const {
    for (std::size_t r = 0; r < window; ++r) {
      const Round& now = (*this)[r];
      const Round& before = (*this)[r + window];
      std::size_t first = 0;
      for (const std::uint32_t size : now.sizes) {
        const std::size_t end = first + size;  // where the maximum is
        const PeriodTicks growth = now.times[end] - before.times[end];
        bool won = false;
        for (std::size_t t = first; t < end; ++t) {
          const PeriodTicks own = now.times[t] - before.times[t];
          won |= now.times[t] == now.times[end] && own == growth;
          if (own > growth)
            most = static_cast<std::int64_t>(
                std::min<PeriodTicks>(most, (now.times[end] - now.times[t]) / (own - growth)));
        }
        if (!won) return 0;
        first = end + 1;
      }
    }
    return most;
  }

 private:
  [[nodiscard]] std::uint64_t hash(std::size_t ago) const {
    return m_hashes[m_hashes.size() - 1 - ago];
  }
  [[nodiscard]] bool repeats(std::size_t window, std::size_t windows) const {
    for (std::size_t r = 0; r < (windows - 1) * window; ++r)
      if (hash(r) != hash(r + window) || (*this)[r].marks != (*this)[r + window].marks)
        return false;
    return true;
  }
  [[nodiscard]] bool grows(std::size_t window, std::size_t windows) const {
    for (std::size_t r = 0; r < (windows - 2) * window; ++r) {
      const auto& a = (*this)[r].times;
      const auto& b = (*this)[r + window].times;
      const auto& c = (*this)[r + 2 * window].times;
      for (std::size_t t = 0; t < a.size(); ++t)
        if (a[t] - b[t] != b[t] - c[t]) return false;
    }
    return true;
  }

  static constexpr std::size_t most_times = 1 << 24;

  std::size_t m_most;
  std::size_t m_times = 0;  ///< the number of times of all rounds
  std::deque<Round> m_rounds;
  std::deque<std::uint64_t> m_hashes;
};

}  // namespace heddle::inline v0::impl
