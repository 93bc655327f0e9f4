// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of drop_unread.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The parts of a message that are read, counted from its first one; none: it is dropped.
struct ReadRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Whether part i of one range is as long as part i of the other, for all i.
inline bool cut_alike(const Schedule& schedule, const Use& a, const Use& b) {
  if (a.count != b.count) return false;
  for (std::uint32_t i = 0; i < a.count; ++i)
    if (part_bytes(schedule[a.buffer], a.first + i, 1) !=
        part_bytes(schedule[b.buffer], b.first + i, 1))
      return false;
  return true;
}

/// Which parts of every move are read, found from the end of the list.
inline std::vector<ReadRange> read_ranges(const Schedule& schedule) {
  std::vector<std::vector<bool>> wanted;  // whether a later action reads the present value
  for (const Buffer& buffer : schedule.buffers())
    wanted.emplace_back(buffer.parts, !buffer.transient);
  const auto mark = [&](const Use& use, bool value) {
    for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
      wanted[+use.buffer][part] = value;
  };
  const auto fused = [&](std::size_t i) {
    return (schedule[ActionId{i}].flags & flag::with_next) != 0;
  };
  std::vector<ReadRange> ranges(schedule.size());
  for (std::size_t i = schedule.size(); i-- > 0;) {
    const auto uses = schedule.uses(ActionId{i});
    if (schedule[ActionId{i}].kind != Kind::move) {
      for (const Use& use : uses)
        if (use.access() == Access::write) mark(use, false);
      for (const Use& use : uses)
        if (use.reads()) mark(use, true);
      continue;
    }
    const Use& from = uses[0];
    const Use& to = uses[1];
    const std::vector<bool>& parts = wanted[+to.buffer];
    std::uint32_t begin = 0, end = to.count;
    while (begin < end && !parts[to.first + begin]) ++begin;
    while (begin < end && !parts[to.first + end - 1]) --end;
    const bool read = begin < end || fused(i) || (i > 0 && fused(i - 1));
    if (!read) continue;
    const bool whole = begin == end || !cut_alike(schedule, from, to);
    const ReadRange range = whole ? ReadRange{0, std::max(from.count, to.count)}
                                  : ReadRange{begin, end};
    ranges[i] = range;
    const auto kept = [&](const Use& use) {
      return whole ? use
                   : schedule::use(use.access(), use.buffer, use.first + begin, end - begin);
    };
    mark(kept(to), false);
    mark(kept(from), true);
  }
  return ranges;
}

}  // namespace impl

HEDDLE_INLINE Schedule drop_unread(const Schedule& schedule) {
  const std::vector<impl::ReadRange> ranges = impl::read_ranges(schedule);
  Builder builder = Builder::like(schedule, [](const Buffer& buffer) { return buffer; });
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const auto uses = schedule.uses(id);
    const auto [begin, end] = ranges[i];
    if (schedule[id].kind != Kind::move) {
      builder.add(schedule, id, uses);
    } else if (end - begin >= std::max(uses[0].count, uses[1].count)) {
      builder.add(schedule, id, uses);
    } else if (begin < end) {
      const Use cut[] = {read(uses[0].buffer, uses[0].first + begin, end - begin),
                         write(uses[1].buffer, uses[1].first + begin, end - begin)};
      builder.add(schedule, id, cut);
    }
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
