// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// emittable_random(): random schedules without what emit_mpi() refuses.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heddle/schedule.hpp>

#include "support/random_schedule.hpp"

namespace heddle::test {

/// Returns a random schedule whose casts and user actions are forwards, and which has no groups.
[[nodiscard]] inline Schedule emittable_random(std::uint64_t seed, int ranks, int length) {
  const Schedule random = RandomSchedule(seed, ranks, length, false).build();
  Builder builder = Builder::like(random, [](const Buffer& buffer) { return buffer; });
  for (std::size_t i = 0; i < random.size(); ++i) {
    const Action& action = random[ActionId{i}];
    const bool refused = action.kind == Kind::cast || action.kind == Kind::user;
    builder.add({.kind = refused ? Kind::forward : action.kind,
                 .queue = action.queue,
                 .stage = action.stage,
                 .item = action.item,
                 .flags = action.flags},
                random.uses(ActionId{i}));
  }
  return std::move(builder).build();
}

}  // namespace heddle::test
