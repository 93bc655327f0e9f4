// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// random_schedule(): legal Schedules that no generator would write, to find what a rule forgot.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/coverage.hpp"

namespace heddle::test {

/// Draws f(seed, "schedule", 0), f(seed, "schedule", 1), ...
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : m_random(seed, "schedule") {}

  [[nodiscard]] std::uint32_t below(std::uint64_t bound) {
    return static_cast<std::uint32_t>(m_random.below(m_index++, bound));
  }
  [[nodiscard]] bool chance(double probability) {
    return m_random.uniform(m_index++) < probability;
  }

 private:
  Random m_random;
  std::uint64_t m_index = 0;
};

/// `length` actions on `ranks` ranks: computing ones with any uses in several local queues, moves
/// in several lanes and within ranks, combines, groups. Buffers are few, so hazards of every kind
/// occur; some persist, so that steps depend on each other. 8 bytes a part, i64. With `tiers`, the
/// three buffers of a rank lie in three tiers, and moves between them have two lanes of their own.
class RandomSchedule {
 public:
  RandomSchedule(std::uint64_t seed, int ranks, int length, bool groups, bool tiers = false)
      : m_dice(seed), m_builder(text("random ", seed), ranks), m_tiers(tiers) {
    const auto count = static_cast<std::uint32_t>(ranks);
    for (std::uint32_t r = 0; r < count; ++r)
      for (std::uint32_t b = 0; b < 3; ++b) {
        const std::uint32_t parts = 1 + m_dice.below(4);
        m_builder.add_buffer({.rank = Rank{r},
                              .parts = parts,
                              .label = m_builder.label("data"),
                              .tier = Tier{tiers ? b : 0},
                              .type = Scalar::i64,
                              .transient = b != 0,
                              .bytes = Bytes{8} * parts});
      }
    m_buffers = 3 * count;
    while (m_added < length) {
      const std::uint32_t dice = m_dice.below(10);
      if (dice < 4)
        add_move();
      else if (dice < 5)
        add_combine();
      else if (dice < 6 && ranks > 1 && groups)
        add_group();
      else
        add_work();
    }
  }

  [[nodiscard]] Schedule build() && { return std::move(m_builder).build(); }

 private:
  [[nodiscard]] Use range(BufferId buffer, std::uint32_t most = 4) {
    const std::uint32_t parts = m_builder[buffer].parts;
    const std::uint32_t first = m_dice.below(parts);
    const std::uint32_t count = 1 + m_dice.below(std::min(most, parts - first));
    return schedule::read(buffer, first, count);
  }
  [[nodiscard]] bool readable(const Use& use) const {
    if (!m_builder[use.buffer].transient) return true;
    for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
      if (!m_written.contains({use.buffer, part})) return false;
    return true;
  }
  /// Gives `use` a random access that is legal; a read where `reads`.
  [[nodiscard]] Use with_access(Use use, bool reads) {
    if (reads || (readable(use) && m_dice.chance(0.6)))
      return schedule::use(reads || m_dice.chance(0.7) ? Access::read : Access::update, use.buffer,
                           use.first, use.count);
    return schedule::write(use.buffer, use.first, use.count);
  }
  [[nodiscard]] BufferId any() { return BufferId{m_dice.below(m_buffers)}; }
  [[nodiscard]] BufferId any_of(Rank rank) { return BufferId{3 * +rank + m_dice.below(3)}; }

  void add(Kind kind, QueueId queue, const std::vector<Use>& uses) {
    const auto number = static_cast<std::uint32_t>(m_added++);
    m_builder.add({.kind = kind, .queue = queue, .stage = Stage{number % 5}, .item = Item{number}},
                  uses);
    for (const Use& use : uses)
      if (use.writes())
        for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
          m_written.insert({use.buffer, part});
  }

  void add_move() {
    const Use from = range(any());
    const BufferId target = any();
    const Use to = range(target, from.count);
    if (target == from.buffer || !readable(from)) return;
    const Use source = schedule::read(from.buffer, from.first, to.count);
    const Rank source_rank = m_builder[from.buffer].rank, target_rank = m_builder[target].rank;
    const std::uint32_t base = m_tiers && source_rank == target_rank ? 4 : 0;
    add(Kind::move, m_builder.queue(source_rank, target_rank, Lane{base + m_dice.below(2)}),
        {source, schedule::write(target, to.first, to.count)});
  }
  void add_combine() {
    const Use from = range(any());
    const Rank rank = m_builder[from.buffer].rank;
    const Use into = range(any_of(rank), from.count);
    const Use source = schedule::read(from.buffer, from.first, into.count);
    if (into.buffer == from.buffer || !readable(source) || !readable(into)) return;
    add(Kind::combine, m_builder.local(rank, Lane{m_dice.below(3)}),
        {source, schedule::update(into.buffer, into.first, into.count)});
  }
  void add_work() {
    constexpr Kind kinds[] = {Kind::forward,  Kind::backward_input, Kind::backward_weight,
                              Kind::backward, Kind::cast,           Kind::update,
                              Kind::user};
    const Rank rank{m_dice.below(m_buffers / 3)};
    std::vector<Use> uses;
    for (std::uint32_t u = m_dice.below(4); u > 0; --u)
      uses.push_back(with_access(range(any_of(rank)), false));
    add(kinds[m_dice.below(7)], m_builder.local(rank, Lane{m_dice.below(3)}), uses);
  }
  void add_group() {
    const Use first = range(any());
    std::vector<Use> uses{with_access(first, false)};
    for (std::uint32_t u = 1 + m_dice.below(2); u > 0; --u)
      uses.push_back(with_access(range(any()), false));
    add(Kind::group, m_builder.local(m_builder[first.buffer].rank, Lane{3}), uses);
  }

  Dice m_dice;
  Builder m_builder;
  bool m_tiers;
  std::uint32_t m_buffers = 0;
  int m_added = 0;
  std::set<std::pair<BufferId, std::uint32_t>> m_written;
};

/// Counts what `schedule` has of what a schedule can have.
inline void count_schedule(Coverage& coverage, const Schedule& schedule) {
  std::array<bool, kind_count> kinds{};
  bool within = false, other_lane = false, several = false, spans = false, updates = false;
  bool nothing = false, persistent = false;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    const Queue& queue = schedule[action.queue];
    kinds[static_cast<std::size_t>(action.kind)] = true;
    within |= action.kind == Kind::move && queue.local();
    other_lane |= action.kind == Kind::move && +queue.lane != 0;
    const auto uses = schedule.uses(ActionId{i});
    nothing |= uses.empty();
    std::size_t writes = 0;
    for (const Use& use : uses) {
      writes += use.writes();
      spans |= action.kind == Kind::group && schedule[use.buffer].rank != queue.from;
      updates |= use.access() == Access::update && action.kind != Kind::combine;
      persistent |= use.writes() && !schedule[use.buffer].transient;
    }
    several |= writes > 1;
  }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    coverage.count(text(static_cast<Kind>(kind)), kinds[kind]);
  coverage.count("a move within a rank", within);
  coverage.count("a move in the second lane", other_lane);
  coverage.count("an action that writes several buffers", several);
  coverage.count("a group that uses another rank's buffer", spans);
  coverage.count("an update that is no sum", updates);
  coverage.count("an action that uses nothing", nothing);
  coverage.count("a buffer that persists is written", persistent);
}

[[nodiscard]] inline Schedule random_schedule(std::uint64_t seed, int ranks, int length,
                                              bool groups = true, bool tiers = false) {
  return RandomSchedule(seed, ranks, length, groups, tiers).build();
}

}  // namespace heddle::test
