// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// place_lives(): places values of any sizes in one arena, so that values share addresses if they
/// do not live at the same time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/live_intervals.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The life of a value and its size.
template <class Time>
struct SizedLife {
  Time begin = {};  ///< the time from which the value needs its place
  Time end = {};    ///< the time from which others can have the place
  Bytes bytes = 0;  ///< the size of the value
};

/// Options of place_lives().
struct PlaceLivesOptions {
  Bytes alignment = 1;  ///< all offsets are multiples of it, and sizes are rounded up to it
  int rounds = 100;     ///< placements that the local search tries
};

/// The result of place_lives().
struct PlacedLives {
  std::vector<Bytes> offsets = {};  ///< the offset of every life in the arena, in bytes
  Bytes bytes = 0;                  ///< the size of the arena
  Bytes live = 0;                   ///< the most bytes that live at one time; a lower bound
};

namespace impl {

/// A life in a sequence of events: it begins with event `begin` and ends with event `end`.
struct EventLife {
  std::size_t begin = 0;
  std::size_t end = 0;
  Bytes bytes = 0;
};

/// Checks the options of place_lives().
void expect_valid(const PlaceLivesOptions& options);

/// Places lives of events. See place_lives().
[[nodiscard]] PlacedLives place_event_lives(std::vector<EventLife> lives,
                                            const PlaceLivesOptions& options);

}  // namespace impl

namespace schedule {

/// Returns an offset for every life, such that no two lives that overlap in time overlap in memory.
/// At equal times, lives end before others begin. But a life that begins and ends at the same time
/// ends last, as in memory_curve().
///
/// To find the smallest arena is NP-hard (Garey and Johnson, "Computers and intractability", 1979,
/// problem SR2), so the arena is the best of several. Five orders of the lives (by begin, size,
/// duration, area and end) are each placed by first fit and by best fit, and once in slots of equal
/// size. Then a local search moves lives that lie at the top to earlier positions of the best
/// order. It ends early if the arena equals the lower bound. The result is deterministic.
///
/// The arena equals the lower bound if the lives are nested (any two are disjoint, or one holds the
/// other), or if all sizes are equal. The cost of a placement grows with the number of pairs of
/// lives that overlap, and so does the memory of the search.
///
/// It is not in memory/, because that room needs Kokkos, and planners and generators of schedules
/// do not.
/// @throws contract_error if a life ends before it begins or has a time that is not a number, if
///         the sizes add up to more than 64 bits, if the alignment is 0 or above 2^48, or if the
///         number of rounds is negative.
template <class Time>
[[nodiscard]] PlacedLives place_lives(const std::vector<SizedLife<Time>>& lives,
                                      const PlaceLivesOptions& options = {}) {
  enum class At : std::uint8_t { end, begin, end_at_once };
  struct Event {
    const Time* time;
    At at;
    std::size_t life;
  };
  std::vector<Event> events;
  events.reserve(2 * lives.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const SizedLife<Time>& life = lives[i];
    expects(!(life.end < life.begin), [&] {
      return ErrorInfo{"heddle::schedule::place_lives", text("life ", i, " ends before it begins"),
                       text("it has ", life.bytes, " bytes")};
    });
    expects(life.begin == life.begin && life.end == life.end, [&] {
      return ErrorInfo{"heddle::schedule::place_lives",
                       text("a time of life ", i, " is not a number"),
                       text("it has ", life.bytes, " bytes")};
    });
    events.push_back({&life.begin, At::begin, i});
    events.push_back({&life.end, life.begin < life.end ? At::end : At::end_at_once, i});
  }
  std::sort(events.begin(), events.end(), [&](const Event& a, const Event& b) {
    if (*a.time < *b.time || *b.time < *a.time) return *a.time < *b.time;
    if (a.at != b.at) return a.at < b.at;
    const Time &end = lives[a.life].end, &other = lives[b.life].end;  // the longer life first
    return end < other || other < end ? other < end : a.life < b.life;
  });
  std::vector<heddle::impl::EventLife> result(lives.size());
  for (std::size_t e = 0; e < events.size(); ++e) {
    heddle::impl::EventLife& life = result[events[e].life];
    (events[e].at == At::begin ? life.begin : life.end) = e;
    life.bytes = lives[events[e].life].bytes;
  }
  return heddle::impl::place_event_lives(std::move(result), options);
}

/// Returns an offset for every life of live_intervals(), with the bytes of its part.
/// @throws contract_error as the overload above does.
template <class Time>
[[nodiscard]] PlacedLives place_lives(const Schedule& schedule,
                                      const std::vector<LiveInterval<Time>>& lives,
                                      const PlaceLivesOptions& options = {}) {
  std::vector<SizedLife<Time>> sized;
  sized.reserve(lives.size());
  for (const LiveInterval<Time>& life : lives)
    sized.push_back({life.begin, life.end, part_bytes(schedule[life.buffer], life.part, 1)});
  return place_lives(sized, options);
}

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/place_lives.ipp>
#endif
