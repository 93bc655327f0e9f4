// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fold.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {

// A conflict that a fold would cause: action `reader` would see the value of another part.
struct FoldConflict {
  ActionId reader;
  std::uint32_t part = 0;   // the part that it reads
  std::uint32_t found = 0;  // the part whose value the slot holds
};

// Follows the uses of one buffer and compares, at every read, the writer before and after the fold.
// `touched` lists the (action, use) pairs of the buffer in list order.
inline bool find_conflict(std::span<const std::pair<ActionId, Use>> touched, std::uint32_t slots,
                          FoldConflict* conflict) {
  constexpr std::uint32_t nothing = 0xffffffffu;
  std::vector<std::uint32_t> holds(slots, nothing);
  for (const auto& [id, use] : touched) {
    for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
      std::uint32_t& slot = holds[part % slots];
      if (use.access() == Access::write) {
        slot = part;
      } else if (slot != part) {
        if (conflict != nullptr) *conflict = {id, part, slot};
        return true;
      }
    }
  }
  return false;
}

// Returns the uses of every buffer in list order. The list of a buffer that cannot fold is empty.
inline std::vector<std::vector<std::pair<ActionId, Use>>> uses_by_buffer(const Schedule& schedule) {
  std::vector<std::vector<std::pair<ActionId, Use>>> touched(schedule.buffers().size());
  for (std::size_t i = 0; i < schedule.size(); ++i)
    for (const Use& use : schedule.uses(ActionId{i}))
      if (const Buffer& buffer = schedule[use.buffer]; buffer.transient && buffer.parts > 1)
        touched[+use.buffer].emplace_back(ActionId{i}, use);
  return touched;
}

// Returns the Schedule in which buffer b has slots[b] parts. The size of a part is unchanged.
inline Schedule rename_parts(const Schedule& schedule, const std::vector<std::uint32_t>& slots) {
  std::size_t next = 0;
  Builder builder = Builder::like(schedule, [&](Buffer buffer) {
    const std::uint32_t wanted = slots[next++];
    if (wanted != buffer.parts) {
      buffer.bytes = schedule::part_offset(buffer, wanted);
      if (buffer.ends != nullptr)
        buffer.ends = std::make_shared<const std::vector<Bytes>>(
            buffer.ends->begin(), buffer.ends->begin() + static_cast<std::ptrdiff_t>(wanted));
    }
    buffer.parts = wanted;
    return buffer;
  });
  std::vector<Use> uses;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    uses.clear();
    for (Use use : schedule.uses(ActionId{i})) {
      use.first %= slots[+use.buffer];
      uses.push_back(use);
    }
    builder.add(schedule, ActionId{i}, uses);
  }
  return std::move(builder).build();
}

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule fold(const Schedule& schedule, BufferId buffer, std::uint32_t slots) {
  expects(+buffer < schedule.buffers().size(), [&] {
    return ErrorInfo{"heddle::schedule::fold", "no such buffer",
                     text("buffer ", buffer, " of ", schedule.buffers().size())};
  });
  const Buffer& old = schedule[buffer];
  const std::uint32_t each = heddle::impl::parts_per_item(old);
  const auto describe = [&] {
    return text("'", schedule[old.label], "' of stage ", old.stage, " on rank ", old.rank);
  };
  expects(
      slots >= 1 && slots <= old.parts / each && old.transient && heddle::impl::is_cut_alike(old),
      [&] {
        return ErrorInfo{"heddle::schedule::fold", text("cannot fold ", describe()),
                         text(old.parts, " parts, ", old.bytes, " bytes, ", slots, " slots, ",
                              old.transient ? "transient" : "persistent")};
      });
  const auto touched = heddle::impl::uses_by_buffer(schedule)[+buffer];
  const std::uint32_t wanted = slots * each;
  for (const auto& [id, use] : touched)
    expects(use.first % wanted + use.count <= wanted, [&] {
      return ErrorInfo{
          "heddle::schedule::fold",
          text(action_text(schedule, id), " uses several parts of ", describe(), " at once"),
          text("parts ", use.first, " to ", use.first + use.count - 1, " are not consecutive in ",
               slots, " slots")};
    });
  heddle::impl::FoldConflict conflict;
  if (wanted < old.parts && heddle::impl::find_conflict(touched, wanted, &conflict))
    throw infeasible({"heddle::schedule::fold", text(slots, " slots are too few for ", describe()),
                      text(action_text(schedule, conflict.reader), " reads part ", conflict.part,
                           ", but its slot holds part ", conflict.found),
                      "use more slots, or call fold() without a buffer, which finds their number"});
  std::vector<std::uint32_t> parts;
  for (const Buffer& other : schedule.buffers()) parts.push_back(other.parts);
  parts[+buffer] = wanted;
  return heddle::impl::rename_parts(schedule, parts);
}

HEDDLE_INLINE Schedule fold(const Schedule& schedule, std::uint32_t slack) {
  const auto touched = heddle::impl::uses_by_buffer(schedule);
  std::vector<std::uint32_t> slots;
  for (std::size_t b = 0; b < touched.size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    const auto& uses = touched[b];
    const std::uint32_t each = heddle::impl::parts_per_item(buffer);
    const bool within = std::all_of(uses.begin(), uses.end(), [&](const auto& entry) {
      return entry.second.first % each + entry.second.count <= each;
    });
    std::uint32_t wanted = buffer.parts;
    if (!uses.empty() && within && heddle::impl::is_cut_alike(buffer)) {
      wanted = each;
      while (wanted < buffer.parts && heddle::impl::find_conflict(uses, wanted, nullptr))
        wanted += each;
      const bool travels = std::any_of(uses.begin(), uses.end(), [&](const auto& entry) {
        const Action& action = schedule[entry.first];
        const Queue& queue = schedule[action.queue];
        return (action.kind == Kind::move && !queue.local()) || queue.from != buffer.rank;
      });
      // No more than all parts, before the multiplication can overflow.
      if (travels) wanted += std::min(slack, buffer.parts / each) * each;
      while (wanted < buffer.parts && heddle::impl::find_conflict(uses, wanted, nullptr))
        wanted += each;
    }
    slots.push_back(std::min(wanted, buffer.parts));
  }
  return heddle::impl::rename_parts(schedule, slots);
}

}  // namespace schedule

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
        return ErrorInfo{"heddle::schedule::fold", "an action uses several parts at once",
                         text(schedule::action_text(schedule, id), " uses ", use.count,
                              " parts of '", schedule[schedule[buffer].label], "'"),
                         "cut the buffer into the ranges that actions use"};
      });
      std::size_t& life = present[use.first];
      if (use.access() == Access::write) {
        life = result.lives.size();
        result.lives.push_back({first, end, schedule::part_bytes(schedule[buffer], use.first, 1)});
      }
      result.lives[life].end = std::max(result.lives[life].end, end);
      result.of_use.back() = life;
    }
  }
  return result;
}

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule fold(const Schedule& schedule, BufferId buffer, PlaceLivesOptions options) {
  expects(+buffer < schedule.buffers().size(), [&] {
    return ErrorInfo{"heddle::schedule::fold", "no such buffer",
                     text("buffer ", buffer, " of ", schedule.buffers().size())};
  });
  const Buffer& old = schedule[buffer];
  bool bound = old.bytes > 0;
  for (std::uint32_t part = 0; part < old.parts; ++part)
    bound = bound && part_bytes(old, part, 1) > 0;
  expects(old.transient && bound && old.block == 0 && old.record == 0 && old.granules == nullptr,
          [&] {
            return ErrorInfo{
                "heddle::schedule::fold",
                text("'", schedule[old.label], "' on rank ", old.rank, " cannot lie in an arena"),
                text(old.transient ? "transient" : "persistent", ", ", old.bytes, " bytes in ",
                     old.parts, " parts, scales for blocks of ", old.block, ", records of ",
                     old.record, old.granules == nullptr ? "" : ", granules"),
                "every part needs bytes, and only transient values without scales, records and "
                "granules share memory"};
          });
  const heddle::impl::ListedLives found = heddle::impl::listed_lives(schedule, buffer);
  heddle::impl::expect_valid(options);
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

}  // namespace schedule

}  // namespace heddle::inline v0
