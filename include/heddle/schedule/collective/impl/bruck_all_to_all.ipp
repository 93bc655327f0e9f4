// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: bruck all to all.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>

namespace heddle::inline v0::schedule::impl {

/// The positions of blocks in a rank's scratch buffer. It holds the messages that the rank sends,
/// one for each step 1, 2, 4, ... below P, then the messages that it receives. A block from rank s
/// to rank s + w takes the steps that sum up to w. The blocks of a message are in ascending order
/// of w.
class BruckPlaces {
 public:
  explicit BruckPlaces(std::uint32_t members) : m_members(members) {}

  /// Number of blocks in the message of `step`.
  [[nodiscard]] constexpr std::uint32_t count(std::uint32_t step) const {
    const std::uint32_t rest = m_members % (2 * step);
    return m_members / (2 * step) * step + std::max(rest, step) - step;
  }
  /// Number of blocks in the messages of all steps below this one.
  [[nodiscard]] constexpr std::uint32_t before(std::uint32_t step) const {
    std::uint32_t sum = 0;
    for (std::uint32_t each = 1; each < step; each *= 2) sum += count(each);
    return sum;
  }
  /// Position of the block with distance `way` in the sent message of `step`.
  [[nodiscard]] constexpr std::uint32_t sent(std::uint32_t way, std::uint32_t step) const {
    return before(step) + way / (2 * step) * step + way % step;
  }
  /// Position of the block with distance `way` in the received message of `step`.
  [[nodiscard]] constexpr std::uint32_t received(std::uint32_t way, std::uint32_t step) const {
    return before(m_members) + sent(way, step);
  }
  /// Calls `at(way, step)` for every block of a message and every message, in their order.
  template <class At>
  void for_each(At&& at) const {
    for (std::uint32_t step = 1; step < m_members; step *= 2)
      for (std::uint32_t way = step; way < m_members; ++way)
        if ((way & step) != 0) at(way, step);
  }

 private:
  std::uint32_t m_members;
};

HEDDLE_INLINE void bruck_all_to_all(Team& team) {
  const std::uint32_t p = team.size();
  const BruckPlaces places(p);
  // Copies a block to the message of its next step on rank `at`, or to the output of that rank.
  const auto put = [&](const Blocks& from, std::uint32_t at, std::uint32_t way,
                       std::uint32_t taken) {
    const std::uint32_t left = way - taken, step = left & (~left + 1);
    const std::uint32_t source = (at + p - taken) % p;
    team.copy(from, left == 0 ? Blocks{p + at, source, 1}
                              : Blocks{2 * p + at, places.sent(way, step), 1});
  };
  team.next_round();
  for (std::uint32_t way = 0; way < p; ++way)
    for (std::uint32_t r = 0; r < p; ++r) put({r, (r + way) % p, 1}, r, way, 0);
  for (std::uint32_t step = 1; step < p; step *= 2) {
    const std::uint32_t count = places.count(step);
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r)
      team.copy({2 * p + r, places.sent(step, step), count},
                {2 * p + (r + step) % p, places.received(step, step), count});
    team.next_round();
    for (std::uint32_t way = step; way < p; ++way)
      for (std::uint32_t r = 0; r < p && (way & step) != 0; ++r)
        put({2 * p + r, places.received(way, step), 1}, r, way, way % (2 * step));
  }
}

HEDDLE_INLINE void keep_for_bruck(Builder& builder, std::vector<Use>& members, std::uint32_t,
                                  std::uint32_t chunks) {
  const auto p = static_cast<std::uint32_t>(members.size() / 2);
  const BruckPlaces places(p);
  for (std::uint32_t r = 0; r < p && p > 1; ++r) {
    Buffer buffer = builder[members[r].buffer];
    const bool bound = heddle::impl::is_bound(buffer);
    buffer.label = builder.label("scratch");
    buffer.transient = true;
    std::vector<Bytes> sizes;
    const auto add = [&](std::uint32_t way, std::uint32_t taken) {
      const Use& source = members[(r + p - taken) % p];
      const std::uint32_t block = (r + p - taken + way) % p;
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
        sizes.push_back(
            part_bytes(builder[source.buffer], source.first + block * chunks + chunk, 1));
    };
    places.for_each([&](std::uint32_t way, std::uint32_t step) { add(way, way % step); });
    places.for_each([&](std::uint32_t way, std::uint32_t step) { add(way, way % (2 * step)); });
    heddle::impl::cut_in_parts(buffer, std::move(sizes), bound);
    members.push_back(update(builder.add_buffer(buffer), 0, buffer.parts));
  }
}

}  // namespace heddle::inline v0::schedule::impl
