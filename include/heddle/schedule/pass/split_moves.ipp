// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of split_moves.hpp.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/pass/split_moves.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Returns `buffer` with every part cut into `units` parts of whole elements. The old boundaries
/// between parts stay.
[[nodiscard]] inline Buffer cut_finer(Buffer buffer, std::uint32_t units) {
  if (units == 1) return buffer;
  const Buffer whole = buffer;
  buffer.parts *= units;
  buffer.granules.reset();  // a unit need not have whole samples
  if (heddle::impl::is_cut_evenly(buffer) || (buffer.parts == units && buffer.ends == nullptr))
    return buffer;
  std::vector<Bytes> sizes;
  sizes.reserve(buffer.parts);
  for (std::uint32_t part = 0; part < whole.parts; ++part) {
    const Buffer alone{.parts = units,
                       .type = whole.type,
                       .bytes = part_bytes(whole, part, 1),
                       .record = whole.record};
    for (std::uint32_t unit = 0; unit < units; ++unit) sizes.push_back(part_bytes(alone, unit, 1));
  }
  heddle::impl::cut_in_parts(buffer, std::move(sizes));
  return buffer;
}

HEDDLE_INLINE Schedule split_moves_at(const Schedule& schedule, std::uint32_t units,
                                      const std::vector<std::vector<MovePiece>>& pieces) {
  constexpr const char* where = "heddle::schedule::split_moves";
  std::vector<std::uint32_t> finer(schedule.buffers().size(), 1);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    if (pieces[i].empty()) continue;
    std::uint64_t end = 0;
    for (const MovePiece& piece : pieces[i]) {
      expects(piece.first == end && piece.count >= 1, [&] {
        return ErrorInfo{where, "the pieces of a move must be consecutive",
                         text("a piece of ", piece.count, " units at ", piece.first, " after ", end,
                              " in action ", id)};
      });
      end += piece.count;
    }
    expects(end == units, [&] {
      return ErrorInfo{where, "the pieces of a move must cover all units",
                       text(end, " of ", units, " units of action ", id)};
    });
    for (const Use& use : schedule.uses(id)) {
      expects(units == 1 || schedule[use.buffer].block == 0, [&] {
        return ErrorInfo{where, "parts that begin with scales cannot be cut",
                         text("buffer ", use.buffer, " of action ", id)};
      });
      finer[+use.buffer] = units;
    }
  }
  std::size_t next = 0;
  Builder builder = Builder::like(
      schedule, [&](const Buffer& buffer) { return cut_finer(buffer, finer[next++]); });
  std::vector<Use> uses;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Action& action = schedule[id];
    const auto cut = [&](std::uint32_t first, std::uint32_t count) {
      uses.clear();
      for (const Use& use : schedule.uses(id)) {
        const std::uint32_t each = finer[+use.buffer];
        const bool piece = count != 0;
        uses.push_back(schedule::use(use.access(), use.buffer,
                                     use.first * each + (piece ? use.count * first : 0),
                                     use.count * (piece ? count : each)));
      }
    };
    if (pieces[i].empty()) {
      cut(0, 0);
      builder.add(schedule, id, uses);
    }
    for (const MovePiece& piece : pieces[i]) {
      cut(piece.first, piece.count);
      const Queue& queue = schedule[action.queue];
      builder.add({action.kind, builder.queue(queue.from, queue.to, piece.lane), action.stage,
                   action.item, action.flags, action.units},
                  uses);
    }
  }
  return std::move(builder).build();
}

}  // namespace impl

}  // namespace heddle::inline v0::schedule
