// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Trail: what a loop decided while it ran, as a Schedule with its Timeline. So everything that
/// draws, measures or prices a Schedule does so for a farm, a race, a fixed_point() or a stream()
/// too.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// A list of events. Only the workers are in it, not a rank or thread that only gives work out.
class Trail {
 public:
  /// One piece of work in a trail.
  struct Event {
    Worker worker = {};     ///< who worked
    std::int64_t item = 0;  ///< what on
    Seconds start = 0;      ///< when it began, in steady_seconds()
    Seconds end = 0;        ///< when it ended
    /// True if there was nothing to do for the worker when it asked, so that the end of another
    /// event let this one begin.
    bool waited = false;
    Stage stage = {};  ///< the stage of a stream() that it was
  };

  /// Adds an event. The events of one worker must not overlap. One thread at a time calls it.
  /// @throws contract_error if a time is not finite, or if the event ends before it starts.
  void add(const Event& event);

  /// Says that there are at least so many workers, of which some may never work.
  void expect_workers(int workers) noexcept;

  /// Adds the events and the workers of another trail with the same workers.
  void append(const Trail& other);

  /// Removes all events and workers.
  void clear() noexcept;

  /// Returns the events, in the order in which they were added.
  [[nodiscard]] std::span<const Event> events() const noexcept {
    return {m_events.data(), m_events.size()};
  }

  /// Returns the number of workers: those of the events, and those that were expected.
  [[nodiscard]] int workers() const noexcept;

  /// Returns the times of the events, beginning at 0, and their Schedule. Workers are its ranks. An
  /// event is an action of Kind::user with its item and stage. If time passes before it, an action
  /// of Kind::group takes this time, which counts as idle, because there was nothing to do, or the
  /// work was being given out. An action depends on the one before it of its worker. If the worker
  /// had waited, it also depends on the event of any worker that ended last before it.
  /// @throws contract_error if events of one worker overlap.
  [[nodiscard]] Timeline timeline(const std::string& name = "trail") const;

 private:
  std::vector<Event> m_events;
  int m_workers = 1;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/trail.ipp>
#endif
