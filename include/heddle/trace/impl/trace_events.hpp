// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TraceEvents: writes timelines as an array of Chrome trace events: processes, tracks, slices,
/// flow arrows and counters.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/impl/guests.hpp>
#include <heddle/trace/impl/json.hpp>
#include <heddle/trace/impl/slices.hpp>

namespace heddle::inline v0::trace::impl {

/// The writer of one array of events.
class TraceEvents {
 public:
  /// Constructs a writer that appends the events of `timelines` timelines to `out`.
  TraceEvents(std::string& out, std::size_t timelines) : m_out(out), m_timelines(timelines) {
    m_out += '[';
  }
  void close() { m_out += "\n]"; }

  /// Adds the `number`-th timeline, called `name`. The processes of a rank in all timelines are
  /// neighbours.
  void add(std::string_view name, const Timeline& timeline, std::size_t number) {
    m_number = number;
    const Schedule& schedule = timeline.schedule();
    const std::string prefix = name.empty() ? "rank " : std::string(name) + ": rank ";
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
      const std::size_t process = process_of(Rank{rank});
      metadata("process_name", process, 0, "name", prefix + text(rank));
      metadata("process_sort_index", process, 0, "sort_index", process);
    }
    name_tracks(schedule);
    add_slices(timeline);
    add_counters(timeline);
  }

 private:
  /// Returns the process number of a rank. Process and thread numbers begin at 1, because viewers
  /// take 0 for the idle process of the system.
  [[nodiscard]] std::size_t process_of(Rank rank) const {
    return +rank * m_timelines + m_number + 1;
  }

  /// Appends an event. `fill(object)` appends its further members. Thread 0 means the whole
  /// process.
  template <class Fill>
  void event(std::string_view name, std::string_view phase, std::size_t process, std::size_t thread,
             Fill&& fill) {
    m_out += std::exchange(m_separator, ",\n");
    JsonObject object(m_out);
    object.member("name", name).member("ph", phase).member("pid", process);
    if (thread != 0) object.member("tid", thread);
    fill(object);
  }
  template <class Value>
  void metadata(std::string_view name, std::size_t process, std::size_t thread,
                std::string_view key, const Value& value) {
    event(name, "M", process, thread,
          [&](JsonObject& object) { JsonObject(object.value("args")).member(key, value); });
  }

  /// Names a track for every end of a queue that has actions: first local lanes, then sends, then
  /// receives, then the groups of other ranks' lanes that take place on the rank too.
  void name_tracks(const Schedule& schedule) {
    struct Track {
      std::tuple<Rank, int, Rank, Lane> order;  ///< rank, group, peer, lane
      std::size_t* thread;
    };
    m_here.assign(schedule.queues().size(), 0);
    m_there.assign(schedule.queues().size(), 0);
    std::vector<bool> used(schedule.queues().size());
    for (const Action& action : schedule.actions()) used[+action.queue] = true;
    std::vector<Track> tracks;
    for (std::size_t q = 0; q < used.size(); ++q) {
      if (!used[q]) continue;
      const auto [from, to, lane] = schedule[QueueId{q}];
      tracks.push_back({{from, from == to ? 0 : 1, to, lane}, &m_here[q]});
      if (from != to) tracks.push_back({{to, 2, from, lane}, &m_there[q]});
    }
    m_guests = guest_queues(schedule);
    m_guest_threads.assign(m_guests.size(), 0);
    for (std::size_t g = 0; g < m_guests.size(); ++g) {
      const Queue& queue = schedule[m_guests[g].queue];
      tracks.push_back({{m_guests[g].rank, 3, queue.from, queue.lane}, &m_guest_threads[g]});
    }
    std::sort(tracks.begin(), tracks.end(),
              [](const Track& a, const Track& b) { return a.order < b.order; });
    for (const Track& track : tracks) {
      const auto [rank, group, peer, lane] = track.order;
      const std::string suffix = +lane == 0 ? "" : text(" lane ", lane);
      const std::string name = group == 1   ? text("send to ", peer, suffix)
                               : group == 2 ? text("receive from ", peer, suffix)
                               : group == 3 ? text("groups of ", peer, suffix)
                               : +lane == 0 ? "compute"
                                            : text("lane ", lane);
      *track.thread = ++m_threads;
      metadata("thread_name", process_of(rank), m_threads, "name", name);
      metadata("thread_sort_index", process_of(rank), m_threads, "sort_index", m_threads);
    }
  }

  void add_slices(const Timeline& timeline) {
    const Schedule& schedule = timeline.schedule();
    const Slices slices(timeline);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      const auto queue = +schedule[id].queue;
      const auto [from, to, lane] = schedule.queues()[queue];
      add_slice(schedule, id, 0, slices.here[i], process_of(from), m_here[queue]);
      for (const Rank rank : guests(schedule, id)) {
        const auto found = std::lower_bound(m_guests.begin(), m_guests.end(),
                                            GuestQueue{schedule[id].queue, rank});
        add_slice(schedule, id, 0, slices.here[i], process_of(rank),
                  m_guest_threads[static_cast<std::size_t>(found - m_guests.begin())]);
      }
      if (from == to) continue;
      add_flow("s", slices.here[i].start, process_of(from), m_here[queue]);
      add_slice(schedule, id, 1, slices.there[i], process_of(to), m_there[queue]);
      // The event follows its slice directly, because viewers bind an arrow to the last slice.
      add_flow("f", slices.there[i].start, process_of(to), m_there[queue]);
      ++m_flows;
    }
  }

  void add_slice(const Schedule& schedule, ActionId id, int end, const Slice& slice,
                 std::size_t process, std::size_t thread) {
    const Action& action = schedule[id];
    const auto uses = schedule.uses(id);
    Bytes bytes = 0;
    for (const Use& use : uses.first(action.kind == Kind::move ? 1 : uses.size()))
      bytes += schedule.bytes(use);
    event(schedule::action_text(schedule, id, end), "X", process, thread, [&](JsonObject& object) {
      object.member("cat", to_string(action.kind))
          .microseconds("ts", slice.start)
          .microseconds("dur", slice.end - slice.start);
      JsonObject(object.value("args"))
          .member("stage", action.stage.value)
          .member("microbatch", action.item.value)
          .member("bytes", bytes)
          .member("action", id.value);
    });
  }

  void add_flow(std::string_view phase, Nanoseconds at, std::size_t process, std::size_t thread) {
    event("move", phase, process, thread, [&](JsonObject& object) {
      object.member("cat", "move").member("id", m_flows).microseconds("ts", at);
      if (phase == "f") object.member("bp", "e");
    });
  }

  /// Adds counters of what every rank holds, in bytes, or in parts if the schedule has no sizes.
  /// Parts of different roles are not added up.
  void add_counters(const Timeline& timeline) {
    const std::vector<MemoryUse> ranks = schedule::memory_use(timeline);
    const bool sized = std::any_of(ranks.begin(), ranks.end(), [](const MemoryUse& use) {
      return schedule::peak(use.all).bytes != 0;
    });
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::size_t process = process_of(Rank{r});
      add_counter("live activations", process, ranks[r].activations, timeline.begin(), sized);
      add_counter("weights", process, ranks[r].weights, timeline.begin(), sized);
      if (sized) add_counter("memory", process, ranks[r].all, timeline.begin(), sized);
    }
  }

  void add_counter(std::string_view name, std::size_t process, const MemoryCurve<Seconds>& curve,
                   Seconds begin, bool sized) {
    for (std::size_t s = 0; s < curve.size(); ++s) {
      const Nanoseconds at = nanoseconds(curve[s].at - begin);
      // Changes at the same time are one step for a viewer.
      if (s + 1 < curve.size() && nanoseconds(curve[s + 1].at - begin) == at) continue;
      event(name, "C", process, 0, [&](JsonObject& object) {
        object.microseconds("ts", at);
        const auto& [parts, bytes] = curve[s].holds;
        JsonObject(object.value("args")).member(sized ? "bytes" : "parts", sized ? bytes : parts);
      });
    }
  }

  std::string& m_out;
  std::size_t m_timelines;
  std::size_t m_number = 0;
  std::size_t m_threads = 0;
  std::uint64_t m_flows = 1;
  const char* m_separator = "\n";
  std::vector<std::size_t> m_here;   ///< thread of a queue at its source
  std::vector<std::size_t> m_there;  ///< and at its destination
  std::vector<GuestQueue> m_guests;
  std::vector<std::size_t> m_guest_threads;  ///< thread of each of m_guests
};

}  // namespace heddle::inline v0::trace::impl
