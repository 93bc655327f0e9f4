// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of hash.hpp.

#include <cstdint>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::uint64_t hash(const Schedule& schedule) {
  std::uint64_t state = fnv1a({});
  const auto mix = [&state](auto... numbers) {
    const std::uint64_t words[] = {static_cast<std::uint64_t>(numbers)...};
    for (const std::uint64_t word : words) state = (state ^ word) * 0x100000001b3u;
  };
  mix(schedule.ranks());
  for (const std::uint32_t domain : schedule.domains()) mix(domain);
  for (const Buffer& buffer : schedule.buffers()) {
    mix(+buffer.rank, buffer.parts, +buffer.stage, +buffer.tier, buffer.type, buffer.transient,
        buffer.bytes, fnv1a(schedule[buffer.label]));
    if (buffer.ends != nullptr)
      for (const Bytes end : *buffer.ends) mix(end);
    if (buffer.block != 0) mix(buffer.block);
    if (buffer.record != 0) mix(fnv1a("record"), buffer.record);
    // A Schedule with one granule a microbatch runs like the one without granules.
    if (impl::parts_per_item(buffer) > 1)
      for (const std::int64_t samples : *buffer.granules) mix(fnv1a("granule"), samples);
  }
  for (const Queue& queue : schedule.queues()) mix(+queue.from, +queue.to, +queue.lane);
  for (const Action& action : schedule.actions())
    mix(action.kind, action.flags, action.units, +action.queue, +action.stage, +action.item,
        action.first_use);
  for (const Use& use : schedule.all_uses()) mix(+use.buffer, use.first, use.count, use.mode);
  return state;
}

}  // namespace heddle::inline v0
