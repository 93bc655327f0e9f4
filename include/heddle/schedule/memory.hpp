// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Memory of a timeline: which parts hold a live value when, and how much that is at its peak.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// A value's life in one part: from the start of the action that wrote it to the end of the last
/// one that touched it. Values of transient buffers only; what persists is always there.
template <class Time>
struct Life {
  BufferId buffer;         ///< where the value is
  std::uint32_t part = 0;  ///< in which part
  Time begin = {};         ///< the start of its writer
  Time end = {};           ///< the end of its last user
};

/// The lives of all values whose buffer satisfies `selected(buffer)`, in no particular order.
template <class Time, class Select>
[[nodiscard]] std::vector<Life<Time>> lives(const BasicTimeline<Time>& timeline,
                                            Select&& selected) {
  const Schedule& schedule = timeline.schedule();
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> first(schedule.buffers().size(), none);
  std::vector<std::size_t> open;  // the life that a part's present value has
  for (std::size_t b = 0; b < first.size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    if (!buffer.transient || !selected(buffer)) continue;
    first[b] = open.size();
    open.resize(open.size() + buffer.parts, none);
  }
  std::vector<Life<Time>> result;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto& span = timeline.spans()[i];
    const bool moves = schedule[ActionId{i}].kind == Kind::move;
    for (const Use& use : schedule.uses(ActionId{i})) {
      if (first[+use.buffer] == none) continue;
      const Time until = moves && use.writes() ? span.arrival : span.end;
      for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
        std::size_t& life = open[first[+use.buffer] + part];
        if (use.access() == Access::write) {
          life = result.size();
          result.push_back({use.buffer, part, span.start, until});
        } else {
          result[life].end = std::max(result[life].end, until);
        }
      }
    }
  }
  return result;
}

namespace impl {

/// Peak of the sum of `weight(life)` over the lives that overlap. At equal times ends count before
/// beginnings: what is freed can be used at once. A life that begins and ends at one time ends
/// after them: however short it is, its value needs a place.
template <class Time, class Weight>
[[nodiscard]] std::uint64_t peak(const std::vector<Life<Time>>& lives, Weight&& weight) {
  enum class Event : std::uint8_t { end, begin, end_at_once };
  struct Change {
    Time at;
    Event event;
    std::uint64_t amount;
  };
  std::vector<Change> changes;
  changes.reserve(2 * lives.size());
  for (const auto& life : lives) {
    changes.push_back({life.begin, Event::begin, weight(life)});
    changes.push_back(
        {life.end, life.begin < life.end ? Event::end : Event::end_at_once, weight(life)});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.at < b.at || (!(b.at < a.at) && a.event < b.event);
  });
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const Change& change : changes) {
    const auto amount = static_cast<std::int64_t>(change.amount);
    live += change.event == Event::begin ? amount : -amount;
    most = std::max(most, live);
  }
  return static_cast<std::uint64_t>(most);
}

}  // namespace impl

/// Most values of role `label` that are live at once on `rank`; `saved` counts live activations.
template <class Time>
[[nodiscard]] std::uint64_t peak_parts(const BasicTimeline<Time>& timeline, Rank rank,
                                       std::string_view label) {
  const Schedule& schedule = timeline.schedule();
  const auto found = lives(timeline, [&](const Buffer& buffer) {
    return buffer.rank == rank && schedule[buffer.label] == label;
  });
  return impl::peak(found, [](const auto&) { return std::uint64_t{1}; });
}

/// Most bytes of transient storage that are live at once on `rank`.
template <class Time>
[[nodiscard]] Bytes peak_bytes(const BasicTimeline<Time>& timeline, Rank rank) {
  const Schedule& schedule = timeline.schedule();
  const auto found = lives(timeline, [&](const Buffer& buffer) { return buffer.rank == rank; });
  return impl::peak(
      found, [&](const auto& life) { return part_bytes(schedule[life.buffer], life.part, 1); });
}

}  // namespace heddle::inline v0
