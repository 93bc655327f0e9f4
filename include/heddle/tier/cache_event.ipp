// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cache_event.hpp.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tier/cache_event.hpp>

namespace heddle::inline v0::tier {

HEDDLE_INLINE Schedule recorded_schedule(std::string name, std::span<const Object> objects,
                                         std::span<const CacheEvent> events, Tier slower) {
  expects(slower > 0, [] {
    return ErrorInfo{"heddle::tier::recorded_schedule",
                     "both tiers are tier 0",
                     {},
                     "give the slower tier the number of its memory"};
  });
  Builder builder(std::move(name), 1);
  const QueueId queue = builder.local(0);
  struct Places {
    BufferId below, here;
  };
  std::vector<std::optional<Places>> places(objects.size());
  for (const CacheEvent& event : events) {
    const std::size_t o = +event.object;
    expects(o < objects.size(), [&] {
      return ErrorInfo{"heddle::tier::recorded_schedule", "an event names no object",
                       text("object ", o, " of ", objects.size())};
    });
    if (!places[o]) {
      Buffer buffer{.label = builder.label(objects[o].name),
                    .tier = slower,
                    .type = objects[o].type,
                    .transient = false,
                    .bytes = objects[o].bytes};
      const BufferId below = builder.add_buffer(buffer);
      buffer.tier = 0;
      places[o] = Places{below, builder.add_buffer(buffer)};
    }
    const auto [below, here] = *places[o];
    const Item item{event.object.value};
    switch (event.what) {
      case CacheEvent::What::load:
        builder.add({.kind = Kind::move, .queue = queue, .item = item},
                    {schedule::read(below), schedule::write(here)});
        break;
      case CacheEvent::What::use:
        builder.add({.kind = Kind::user, .queue = queue, .item = item}, {schedule::read(here)});
        break;
      case CacheEvent::What::write_back:
        builder.add({.kind = Kind::move, .queue = queue, .item = item},
                    {schedule::read(here), schedule::write(below)});
        break;
      case CacheEvent::What::evict: break;
    }
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::tier
