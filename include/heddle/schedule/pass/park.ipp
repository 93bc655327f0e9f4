// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of park.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/park.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one park() call.
class Parker {
 public:
  Parker(const Schedule& schedule, std::span<const Parking> parking)
      : m_schedule(schedule),
        m_parking(static_cast<std::size_t>(schedule.ranks())),
        m_builder(slots_of(parking)),
        m_lots(m_parking.size()),
        m_parked(schedule.buffers().size()),
        m_free(schedule.buffers().size()) {
    Lane lane{1};
    for (const Queue& queue : schedule.queues()) lane = std::max(lane, Lane{+queue.lane + 1});
    for (const Parking& each : parking) {
      Lot& lot = m_lots[+each.from];
      lot.out = m_builder.queue(each.from, each.to, lane);
      lot.back = m_builder.queue(each.to, each.from, each.from == each.to ? Lane{+lane + 1} : lane);
    }
    for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
      Buffer buffer = schedule[BufferId{b}];
      const Parking* const place = place_of(buffer);
      if (place == nullptr) continue;
      for (std::uint32_t slot = 0; slot < m_builder[BufferId{b}].parts; ++slot)
        m_free[b].push_back(slot);
      buffer.rank = place->to;
      buffer.tier = place->tier;
      buffer.label = m_builder.label(role::parked);
      m_parked[b] = m_builder.add_buffer(buffer);
    }
    for (std::size_t i = 0; i < schedule.size(); ++i)
      for_each_value(ActionId{i}, [&](std::size_t value, const Use& use) {
        m_values[value].uses.push_back({i, !use.reads()});
      });
  }

  Schedule run() {
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      // Fused actions stay neighbours.
      std::size_t end = i + 1;
      while ((m_schedule[ActionId{end - 1}].flags & flag::with_next) != 0) ++end;
      for (std::size_t each = i; each < end; ++each)
        for_each_value(ActionId{each}, [&](std::size_t value, const Use&) { need(value, end); });
      for (std::size_t each = i; each < end; ++each) {
        const auto uses = m_schedule.uses(ActionId{each});
        std::vector<Use> in_slots(uses.begin(), uses.end());
        for_each_value(ActionId{each}, [&](std::size_t value, const Use& use) {
          in_slots[static_cast<std::size_t>(&use - uses.data())].first = m_values[value].slot;
        });
        m_builder.add(m_schedule, ActionId{each}, in_slots);
      }
      for (std::size_t each = i; each < end; ++each)
        for_each_value(ActionId{each}, [&](std::size_t value, const Use&) { used(value); });
      i = end - 1;
    }
    return std::move(m_builder).build();
  }

 private:
  /// A use of a value: the action, and whether it begins a new value.
  struct UseAt {
    std::size_t action;
    bool begins;
  };
  enum class State : std::uint8_t { none, kept, parked };
  /// A saved value of one microbatch.
  struct Value {
    BufferId buffer;
    std::uint32_t part;
    std::vector<UseAt> uses = {};
    std::size_t next = 0;    ///< the number of its next use
    std::uint32_t slot = 0;  ///< its part on its rank, if it is kept
    State state = State::none;
  };
  /// The values of a rank, sorted by the action of their next use.
  struct Lot {
    QueueId out = {}, back = {};
    std::set<std::pair<std::size_t, std::size_t>> kept = {}, parked = {};
  };

  /// Returns a Builder whose limited ranks have as many parts for saved values as their limits say.
  Builder slots_of(std::span<const Parking> parking) {
    for (const Parking& each : parking) {
      check(each);
      m_parking[+each.from] = &each;
    }
    return Builder::like(m_schedule, [this](Buffer buffer) {
      const Parking* const place = place_of(buffer);
      if (place == nullptr) return buffer;
      if (buffer.ends != nullptr || buffer.granules != nullptr || buffer.bytes % buffer.parts != 0)
        throw infeasible({"heddle::schedule::park",
                          "the saved values of a stage have different sizes",
                          text("stage ", buffer.stage, " on rank ", buffer.rank),
                          "park() takes microbatches of one size that are not divided"});
      const Bytes each = buffer.bytes / buffer.parts;
      buffer.parts = std::min(buffer.parts, static_cast<std::uint32_t>(place->limit));
      buffer.bytes = each * buffer.parts;
      return buffer;
    });
  }

  void check(const Parking& each) const {
    const auto complain = [&](bool fits, const char* what) {
      expects(fits, [&] {
        return ErrorInfo{"heddle::schedule::park", what,
                         text("from = ", each.from, ", to = ", each.to, ", tier = ", each.tier,
                              ", limit = ", each.limit, ", ranks = ", m_parking.size())};
      });
    };
    complain(+each.from < m_parking.size() && +each.to < m_parking.size(), "a rank does not exist");
    complain(each.limit >= 1, "a rank must keep at least one value");
    complain(each.from != each.to || +each.tier != 0, "a rank cannot park where its values are");
    complain(m_parking[+each.from] == nullptr, "a rank is named twice");
  }

  /// Returns where the values of a buffer are parked, or null if they are not.
  [[nodiscard]] const Parking* place_of(const Buffer& buffer) const {
    return m_schedule[buffer.label] == role::saved ? m_parking[+buffer.rank] : nullptr;
  }

  /// Calls `visit(value, use)` for the saved values that the action uses on a limited rank.
  template <class Visit>
  void for_each_value(ActionId id, const Visit& visit) {
    for (const Use& use : m_schedule.uses(id)) {
      if (place_of(m_schedule[use.buffer]) == nullptr) continue;
      const auto [found, added] = m_numbers.try_emplace({use.buffer, use.first}, m_values.size());
      if (added) m_values.push_back({use.buffer, use.first});
      visit(found->second, use);
    }
  }

  Lot& lot_of(const Value& value) { return m_lots[+m_schedule[value.buffer].rank]; }
  [[nodiscard]] std::size_t limit_of(const Value& value) const {
    return static_cast<std::size_t>(place_of(m_schedule[value.buffer])->limit);
  }
  /// Returns the action of the next use of a value.
  [[nodiscard]] std::size_t next_of(std::size_t value) const {
    const Value& of = m_values[value];
    return of.uses[of.next].action;
  }

  /// Gives a value a slot on its rank before the actions up to `end` run.
  void need(std::size_t value, std::size_t end) {
    const State state = m_values[value].state;
    if (state == State::kept) return;
    Lot& lot = lot_of(m_values[value]);
    if (lot.kept.size() == limit_of(m_values[value])) {
      const auto [next, farthest] = *lot.kept.rbegin();
      if (next < end)
        throw infeasible({"heddle::schedule::park",
                          "an action needs more saved values than its rank keeps",
                          text(schedule::action_text(m_schedule, ActionId{next}),
                               ", limit = ", limit_of(m_values[value])),
                          "raise the limit"});
      move_out(farthest);
    }
    if (state == State::parked) return move_back(value);
    take_slot(value);
  }

  /// Notes that the next use of a value is done. A dead value makes room for a parked one.
  void used(std::size_t value) {
    Value& of = m_values[value];
    Lot& lot = lot_of(of);
    lot.kept.erase({next_of(value), value});
    ++of.next;
    if (of.next < of.uses.size() && !of.uses[of.next].begins) {
      lot.kept.insert({next_of(value), value});
      return;
    }
    of.state = State::none;
    m_free[+of.buffer].push_back(of.slot);
    if (!lot.parked.empty() && lot.kept.size() < limit_of(of))
      move_back(lot.parked.begin()->second);
  }

  void take_slot(std::size_t value) {
    Value& of = m_values[value];
    auto& free = m_free[+of.buffer];
    of.slot = free.front();
    free.pop_front();
    of.state = State::kept;
    lot_of(of).kept.insert({next_of(value), value});
  }
  void move_out(std::size_t value) {
    Value& of = m_values[value];
    Lot& lot = lot_of(of);
    lot.kept.erase({next_of(value), value});
    lot.parked.insert({next_of(value), value});
    of.state = State::parked;
    m_builder.add(move_of(of, lot.out), {schedule::read(of.buffer, of.slot),
                                         schedule::write(m_parked[+of.buffer], of.part)});
    m_free[+of.buffer].push_back(of.slot);
  }
  void move_back(std::size_t value) {
    Value& of = m_values[value];
    Lot& lot = lot_of(of);
    lot.parked.erase({next_of(value), value});
    take_slot(value);
    m_builder.add(move_of(of, lot.back), {schedule::read(m_parked[+of.buffer], of.part),
                                          schedule::write(of.buffer, of.slot)});
  }
  [[nodiscard]] ActionSpec move_of(const Value& value, QueueId queue) const {
    const Action& maker = m_schedule[ActionId{value.uses.front().action}];
    return {Kind::move, queue, maker.stage, maker.item};
  }

  const Schedule& m_schedule;
  std::vector<const Parking*> m_parking;  ///< by rank; null for a rank that parks nothing
  Builder m_builder;
  std::vector<Lot> m_lots;                        ///< by rank
  std::vector<BufferId> m_parked;                 ///< the buffer of the parked values, by buffer
  std::vector<std::deque<std::uint32_t>> m_free;  ///< the free parts, longest free first, by buffer
  std::vector<Value> m_values;
  std::map<std::pair<BufferId, std::uint32_t>, std::size_t> m_numbers;
};

}  // namespace impl

HEDDLE_INLINE std::vector<Parking> Parking::bpipe(int ranks) {
  expects(ranks >= 1, [&] {
    return ErrorInfo{"heddle::Parking::bpipe", "there must be at least one rank",
                     text("ranks = ", ranks)};
  });
  std::vector<Parking> parking;
  for (int rank = 0; 2 * rank + 1 < ranks; ++rank)
    parking.push_back({Rank{rank}, Rank{ranks - 1 - rank}, {}, (ranks + 3) / 2});
  return parking;
}

namespace schedule {

HEDDLE_INLINE Schedule park(const Schedule& schedule, std::span<const Parking> parking) {
  return heddle::impl::Parker(schedule, parking).run();
}

}  // namespace schedule

}  // namespace heddle::inline v0
