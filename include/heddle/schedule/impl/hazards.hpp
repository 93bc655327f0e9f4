// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Derives the dependencies between actions from the storage that they touch: read after write,
/// write after read and write after write, part by part, in one sweep of the list. The Builder and
/// carried() use it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0::impl {

/// Returns the end of the action to which a use belongs. A move reads at its source (0) and writes
/// at its destination (1). Every other action has only the end 0.
[[nodiscard]] constexpr std::uint32_t end_of(Kind kind, const Use& use) noexcept {
  return kind == Kind::move && use.writes() ? 1 : 0;
}

/// Returns the end at which other actions see the values that an action wrote. For a fused action
/// it is the end of the pair.
[[nodiscard]] constexpr std::uint32_t written_at(const Action& action) noexcept {
  return action.kind == Kind::move || (action.flags & flag::with_next) != 0;
}
/// Returns the end at which an action no longer needs the values that it read. For a fused action
/// it is the end of the pair.
[[nodiscard]] constexpr std::uint32_t read_until(const Action& action) noexcept {
  return (action.flags & flag::with_next) != 0;
}

/// The state of every part (its last writer and the readers since then), from which the
/// dependencies follow.
class Hazards {
 public:
  static constexpr std::uint32_t none = 0xffffffffu;

  /// Appends a buffer. Consecutive buffers of one rank and stage that have as many parts share a
  /// range of states, part by part. An action is likely to touch the same part of several of them,
  /// and so it reaches fewer pages of memory.
  void add_buffer(const Buffer& buffer);
  /// Reserves memory for so many buffers with so many parts in all.
  void reserve(std::size_t buffers, std::size_t parts);

  /// Returns true if no action has written the part yet.
  [[nodiscard]] bool unwritten(BufferId buffer, std::uint32_t part) const {
    // Buffers that were added since the last sweep have no places yet.
    return +buffer >= m_places.size() || m_parts[m_places[+buffer].of(part)].writer == none;
  }

  /// Sweeps the action with the number `self`. Appends to `out` its dependencies on earlier actions
  /// of other queues, at most one per (queue, end, mine). One is enough because actions of a queue
  /// complete in order, so the latest one stands for the others. `actions[i]` is the action with
  /// the number i, modulo `actions.size()`.
  void sweep(std::uint32_t self, std::span<const Action> actions, std::span<const Use> uses,
             std::vector<After>& out);

 private:
  struct PartState {
    std::uint32_t writer = none;
    /// The reader since the last write, or `chain` + the first Link of readers in several queues.
    std::uint32_t readers = none;
  };
  static constexpr std::uint32_t chain = 1u << 31;  ///< above the numbers of actions
  struct Link {
    std::uint32_t reader;
    std::uint32_t next;
  };

  /// A buffer that was added since the last sweep.
  struct NewBuffer {
    Rank rank;
    Stage stage;
    std::uint32_t parts;
  };
  /// The places of the states of a buffer's parts in m_parts.
  struct Place {
    std::uint32_t first;
    std::uint32_t step;

    [[nodiscard]] std::size_t of(std::uint32_t part) const {
      return first + std::size_t{part} * step;
    }
  };

  /// Gives the new buffers their places.
  void place_buffers();
  static const Action& at(std::span<const Action> actions, std::uint32_t number) {
    return actions[number < actions.size() ? number : number - actions.size()];
  }
  static void depend(std::uint32_t on, std::uint32_t end, std::uint32_t mine, const Action& action,
                     std::span<const Action> actions, std::size_t begin, std::vector<After>& out);
  void add_reader(PartState& part, std::uint32_t self, std::span<const Action> actions);
  /// Returns the first Link of a part, or none if it has at most one reader.
  [[nodiscard]] static std::uint32_t first_link(const PartState& part) {
    return part.readers == none || part.readers < chain ? none : part.readers - chain;
  }
  [[nodiscard]] std::uint32_t new_link(Link link);
  void release(PartState& part);

  std::vector<Place> m_places;   ///< by buffer
  std::vector<NewBuffer> m_new;  ///< the buffers that have no places yet
  std::vector<PartState> m_parts;
  std::vector<Link> m_links;
  std::uint32_t m_free = none;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/impl/hazards.ipp>
#endif
