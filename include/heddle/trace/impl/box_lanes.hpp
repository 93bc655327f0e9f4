// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BoxLanes: the boxes in a picture of a timeline, and the lanes of the ranks in which they are.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/impl/guests.hpp>
#include <heddle/trace/impl/kind_style.hpp>

namespace heddle::inline v0::trace::impl {

/// The actions that a picture shows as boxes, by kind. The lanes of a rank share the height of its
/// row. A rank has a lane for each queue and guest that has a box, in their order.
class BoxLanes {
 public:
  /// An action on one of its ranks.
  struct Place {
    ActionId id;
    Rank rank;
    int lane;
  };

  explicit BoxLanes(const Timeline& timeline) {
    const Schedule& schedule = timeline.schedule();
    place_lanes(timeline);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      if (!is_box(timeline, id)) continue;
      auto& list = m_of_kind[static_cast<std::size_t>(schedule[id].kind)];
      const QueueId queue = schedule[id].queue;
      const Rank home = schedule[queue].from;
      list.push_back({id, home, m_lane_of[+queue]});
      for (const Rank rank : guests(schedule, id)) {
        const auto found =
            std::lower_bound(m_guests.begin(), m_guests.end(), GuestQueue{queue, rank});
        list.push_back(
            {id, rank, m_guest_lane[static_cast<std::size_t>(found - m_guests.begin())]});
      }
    }
  }

  /// Returns the boxes of a kind, in the order of their actions.
  [[nodiscard]] const std::vector<Place>& boxes(Kind kind) const {
    return m_of_kind[static_cast<std::size_t>(kind)];
  }
  /// Returns the number of lanes of a rank.
  [[nodiscard]] int lanes(Rank rank) const { return m_lanes[+rank]; }

 private:
  /// Returns true if the action takes time on one rank. Moves between ranks are arrows.
  [[nodiscard]] static bool is_box(const Timeline& timeline, ActionId id) {
    const Schedule& schedule = timeline.schedule();
    return schedule[schedule[id].queue].local() && timeline[id].start < timeline[id].end;
  }

  void place_lanes(const Timeline& timeline) {
    const Schedule& schedule = timeline.schedule();
    std::vector<bool> used(schedule.queues().size());
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      if (!is_box(timeline, id)) continue;
      used[+schedule[id].queue] = true;
      for (const Rank rank : guests(schedule, id)) m_guests.push_back({schedule[id].queue, rank});
    }
    std::sort(m_guests.begin(), m_guests.end());
    m_guests.erase(std::unique(m_guests.begin(), m_guests.end()), m_guests.end());
    m_lane_of.resize(used.size());
    m_lanes.resize(static_cast<std::size_t>(schedule.ranks()));
    for (std::size_t q = 0; q < used.size(); ++q)
      if (used[q]) m_lane_of[q] = m_lanes[+schedule[QueueId{q}].from]++;
    for (const GuestQueue& guest : m_guests) m_guest_lane.push_back(m_lanes[+guest.rank]++);
  }

  std::vector<int> m_lanes;    ///< by rank: the number of its lanes
  std::vector<int> m_lane_of;  ///< by queue: its lane on its rank
  std::vector<GuestQueue> m_guests;
  std::vector<int> m_guest_lane;  ///< by entry of m_guests
  std::array<std::vector<Place>, kind_count> m_of_kind;
};

}  // namespace heddle::inline v0::trace::impl
