// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of place_lives.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/place_lives.hpp>

namespace heddle::inline v0::impl {

// The state of one place_lives() call.
class LivesPlacer {
 public:
  explicit LivesPlacer(std::vector<EventLife> lives)
      : m_lives(std::move(lives)), m_overlaps(m_lives.size()), m_offsets(m_lives.size()) {
    std::vector<std::size_t> open;
    Bytes live = 0;
    for (const std::size_t i : by([](const EventLife& life) { return life.begin; })) {
      std::erase_if(open, [&](std::size_t other) {
        const bool ended = m_lives[other].end < m_lives[i].begin;
        if (ended) live -= m_lives[other].bytes;
        return ended;
      });
      for (const std::size_t other : open) {
        m_overlaps[i].push_back(other);
        m_overlaps[other].push_back(i);
      }
      open.push_back(i);
      live += m_lives[i].bytes;
      m_best.live = std::max(m_best.live, live);
    }
    m_best.bytes = std::numeric_limits<Bytes>::max();
  }

  [[nodiscard]] PlacedLives run(int rounds) {
    const auto longest_first = [](const EventLife& life) { return life.begin - life.end; };
    const auto area = [](const EventLife& life) {
      return static_cast<double>(life.bytes) * static_cast<double>(life.end - life.begin);
    };
    // Ascending; differences of unsigned numbers wrap, so that longer lives come first.
    const auto by_begin = by([](const EventLife& life) { return life.begin; });
    try_order(by_begin);
    try_equal_slots(by_begin);
    try_order(by([](const EventLife& life) { return ~life.bytes; }));
    try_order(by(longest_first));
    try_order(by([&](const EventLife& life) { return -area(life); }));
    try_order(by([](const EventLife& life) { return ~life.end; }));
    search(rounds);
    return std::move(m_best);
  }

 private:
  // Returns the lives in ascending order of `key`.
  template <class Key>
  [[nodiscard]] std::vector<std::size_t> by(Key&& key) const {
    std::vector<std::size_t> order(m_lives.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      const auto left = key(m_lives[a]), right = key(m_lives[b]);
      return left != right ? left < right : m_lives[a].begin < m_lives[b].begin;
    });
    return order;
  }

  // Places the lives in slots of the largest size.
  void try_equal_slots(const std::vector<std::size_t>& order) {
    if (is_optimal()) return;
    const std::vector<EventLife> lives = m_lives;
    const Bytes largest = std::ranges::max(lives, {}, &EventLife::bytes).bytes;
    for (EventLife& life : m_lives) life.bytes = largest;
    fit(order, false);
    m_lives = lives;
    (void)keep(order);
  }

  // Places the lives in this order, each in a gap between those that are placed: in the lowest gap,
  // or in the smallest one.
  void fit(const std::vector<std::size_t>& order, bool best_fit) {
    constexpr Bytes none = std::numeric_limits<Bytes>::max();
    m_placed.assign(m_lives.size(), false);
    for (const std::size_t i : order) {
      m_taken.clear();
      for (const std::size_t other : m_overlaps[i])
        if (m_placed[other])
          m_taken.emplace_back(m_offsets[other], m_offsets[other] + m_lives[other].bytes);
      std::ranges::sort(m_taken);
      Bytes at = 0, found = none, smallest = none;
      for (const auto& [begin, end] : m_taken) {
        if (begin > at && begin - at >= m_lives[i].bytes && begin - at < smallest) {
          found = at;
          smallest = begin - at;
          if (!best_fit) break;
        }
        at = std::max(at, end);
      }
      m_offsets[i] = found == none ? at : found;
      m_placed[i] = true;
    }
  }

  // Keeps the present placement if it is the best one. Returns the size of its arena.
  Bytes keep(const std::vector<std::size_t>& order) {
    Bytes top = 0;
    for (std::size_t i = 0; i < m_lives.size(); ++i)
      top = std::max(top, m_offsets[i] + m_lives[i].bytes);
    if (top < m_best.bytes) {
      m_best.bytes = top;
      m_best.offsets = m_offsets;
      m_best_order = order;
    }
    return top;
  }

  Bytes place(const std::vector<std::size_t>& order, bool best_fit) {
    fit(order, best_fit);
    return keep(order);
  }

  [[nodiscard]] bool is_optimal() const { return m_best.bytes == m_best.live; }

  void try_order(const std::vector<std::size_t>& order) {
    for (const bool best_fit : {false, true})
      if (!is_optimal()) (void)place(order, best_fit);
  }

  // Returns a life at the top of the present placement, or one that carries it.
  [[nodiscard]] std::size_t one_at_top(Bytes top, const Random& random, std::uint64_t number) {
    const auto choose = [&](const std::vector<std::size_t>& from) {
      return from[random.below(number++, from.size())];
    };
    m_chosen.clear();
    for (std::size_t i = 0; i < m_lives.size(); ++i)
      if (m_offsets[i] + m_lives[i].bytes == top) m_chosen.push_back(i);
    std::size_t life = choose(m_chosen);
    for (std::uint64_t down = random.below(number++, 3); down > 0; --down) {
      m_chosen.clear();
      for (const std::size_t other : m_overlaps[life])
        if (m_offsets[other] + m_lives[other].bytes == m_offsets[life]) m_chosen.push_back(other);
      if (m_chosen.empty()) break;
      life = choose(m_chosen);
    }
    return life;
  }

  // Moves lives at the top to other positions of the order, most often to earlier ones. Keeps a
  // change if the arena does not grow.
  void search(int rounds) {
    constexpr std::uint64_t draws = 8;  // random numbers for each round
    constexpr int patience = 200;       // rounds until the search returns to the best order
    const Random random(0, "heddle::place_lives");
    std::vector<std::size_t> order = m_best_order, changed;
    Bytes present = m_best.bytes;
    bool placed[2] = {false, false};  // whether m_offsets is of `order`, by first and by best fit
    for (int round = 0; round < rounds && !is_optimal(); ++round) {
      const std::uint64_t number = draws * static_cast<std::uint64_t>(round);
      const bool best_fit = random.below(number, 2) != 0;
      if (!placed[best_fit ? 1 : 0]) present = place(order, best_fit);
      const std::size_t life = one_at_top(present, random, number + 1);
      changed = order;
      const auto from = std::ranges::find(changed, life);
      const auto index = static_cast<std::uint64_t>(from - changed.begin());
      const bool any = random.below(number + 6, 4) == 0;
      const std::uint64_t limit = any ? changed.size() : std::max<std::uint64_t>(index, 1);
      const auto to =
          changed.begin() + static_cast<std::ptrdiff_t>(random.below(number + 7, limit));
      if (to < from)
        std::rotate(to, from, from + 1);
      else
        std::rotate(from, from + 1, to + 1);
      const Bytes top = place(changed, best_fit);
      placed[0] = placed[1] = false;
      if (top <= present) {
        order = changed;
        present = top;
        placed[best_fit ? 1 : 0] = true;
      }
      if (round % patience == patience - 1) {
        order = m_best_order;
        placed[0] = placed[1] = false;
      }
    }
  }

  std::vector<EventLife> m_lives;
  std::vector<std::vector<std::size_t>> m_overlaps;  // by life: the lives that overlap it in time
  std::vector<Bytes> m_offsets;                      // of the present placement
  std::vector<bool> m_placed;
  std::vector<std::pair<Bytes, Bytes>> m_taken;  // ranges of the arena, by begin
  std::vector<std::size_t> m_chosen;
  PlacedLives m_best;
  std::vector<std::size_t> m_best_order;
};

HEDDLE_INLINE void expect_valid(const PlaceLivesOptions& options) {
  constexpr const char* where = "heddle::schedule::place_lives";
  expects(options.alignment >= 1 && options.alignment <= Bytes{1} << 48, [&] {
    return ErrorInfo{where, "the alignment must be from 1 to 2^48",
                     text("alignment = ", options.alignment), "1 allows every offset"};
  });
  expects(options.rounds >= 0, [&] {
    return ErrorInfo{where, "the number of rounds must not be negative",
                     text("rounds = ", options.rounds), "0 is no search"};
  });
}

HEDDLE_INLINE PlacedLives place_event_lives(std::vector<EventLife> lives,
                                            const PlaceLivesOptions& options) {
  expect_valid(options);
  if (lives.empty()) return {};
  constexpr Bytes most = std::numeric_limits<Bytes>::max();
  Bytes sum = 0;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    // No placement is larger than all lives one after another, so no offset overflows.
    expects(lives[i].bytes <= most - sum - (options.alignment - 1), [&] {
      return ErrorInfo{"heddle::schedule::place_lives",
                       "the sizes of the lives add up to more than 64 bits",
                       text("life ", i, " has ", lives[i].bytes, " bytes, after ", sum)};
    });
    sum += (lives[i].bytes + options.alignment - 1) / options.alignment * options.alignment;
  }
  for (EventLife& life : lives)
    life.bytes = (life.bytes + options.alignment - 1) / options.alignment * options.alignment;
  return LivesPlacer(std::move(lives)).run(options.rounds);
}

}  // namespace heddle::inline v0::impl
