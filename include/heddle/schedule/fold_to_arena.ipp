// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fold_to_arena.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/fold_to_arena.hpp>

namespace heddle::inline v0 {

namespace impl {

// The values of one buffer: their lives in list order, and the value of every use in the list.
struct ListedLives {
  std::vector<SizedLife<std::size_t>> lives;
  std::vector<std::size_t> of_use;
};

inline ListedLives listed_lives(const Schedule& schedule, BufferId buffer) {
  ListedLives result;
  std::vector<std::size_t> present(schedule[buffer].parts);
  std::size_t first = 0;  // the action, or the first one of the fused pair
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    if (i == 0 || (schedule[ActionId{i - 1}].flags & flag::with_next) == 0) first = i;
    const std::size_t end = i + 1 + ((schedule[id].flags & flag::with_next) != 0 ? 1 : 0);
    for (const Use& use : schedule.uses(id)) {
      result.of_use.push_back(0);
      if (use.buffer != buffer) continue;
      expects(use.count == 1, [&] {
        return ErrorInfo{"heddle::fold_to_arena", "an action uses several parts at once",
                         text(action_text(schedule, id), " uses ", use.count, " parts of '",
                              schedule[schedule[buffer].label], "'"),
                         "cut the buffer into the ranges that actions use"};
      });
      std::size_t& life = present[use.first];
      if (use.access() == Access::write) {
        life = result.lives.size();
        result.lives.push_back({first, end, part_bytes(schedule[buffer], use.first, 1)});
      }
      result.lives[life].end = std::max(result.lives[life].end, end);
      result.of_use.back() = life;
    }
  }
  return result;
}

}  // namespace impl

HEDDLE_INLINE Schedule fold_to_arena(const Schedule& schedule, BufferId buffer,
                                     PlaceLivesOptions options) {
  expects(+buffer < schedule.buffers().size(), [&] {
    return ErrorInfo{"heddle::fold_to_arena", "no such buffer",
                     text("buffer ", buffer, " of ", schedule.buffers().size())};
  });
  const Buffer& old = schedule[buffer];
  bool bound = old.bytes > 0;
  for (std::uint32_t part = 0; part < old.parts; ++part)
    bound = bound && part_bytes(old, part, 1) > 0;
  expects(old.transient && bound && old.block == 0 && old.record == 0 && old.granules == nullptr,
          [&] {
            return ErrorInfo{
                "heddle::fold_to_arena",
                text("'", schedule[old.label], "' on rank ", old.rank, " cannot lie in an arena"),
                text(old.transient ? "transient" : "persistent", ", ", old.bytes, " bytes in ",
                     old.parts, " parts, scales for blocks of ", old.block, ", records of ",
                     old.record, old.granules == nullptr ? "" : ", granules"),
                "every part needs bytes, and only transient values without scales, records and "
                "granules share memory"};
          });
  const impl::ListedLives found = impl::listed_lives(schedule, buffer);
  impl::expect_valid(options);
  options.alignment = std::lcm(options.alignment, size_of(old.type));
  const PlacedLives placed = place_lives(found.lives, options);
  std::vector<Bytes> ends;
  for (std::size_t life = 0; life < found.lives.size(); ++life)
    for (const Bytes end : {placed.offsets[life], placed.offsets[life] + found.lives[life].bytes})
      if (end > 0) ends.push_back(end);
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  if (ends.empty()) return schedule;        // no action uses the buffer
  const auto part_at = [&](Bytes offset) {  // the number of ends up to this offset
    return static_cast<std::uint32_t>(std::ranges::upper_bound(ends, offset) - ends.begin());
  };
  std::size_t next = 0;
  Builder builder = Builder::like(schedule, [&](Buffer each) {
    if (next++ != +buffer) return each;
    each.parts = static_cast<std::uint32_t>(ends.size());
    each.bytes = ends.back();
    each.ends = std::make_shared<const std::vector<Bytes>>(ends);
    return each;
  });
  std::vector<Use> uses;
  for (std::size_t i = 0, number = 0; i < schedule.size(); ++i) {
    uses.clear();
    for (const Use& use : schedule.uses(ActionId{i})) {
      const std::size_t life = found.of_use[number++];
      if (use.buffer != buffer) {
        uses.push_back(use);
        continue;
      }
      const std::uint32_t first = part_at(placed.offsets[life]);
      const std::uint32_t end = part_at(placed.offsets[life] + found.lives[life].bytes);
      uses.push_back(schedule::use(use.access(), buffer, first, end - first));
    }
    builder.add(schedule, ActionId{i}, uses);
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0
