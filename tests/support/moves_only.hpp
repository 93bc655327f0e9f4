// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A schedule in which nothing is computed: `count` messages of `bytes` bytes each, rank 0 to 1.

#include <cstdint>
#include <utility>

#include <heddle/schedule.hpp>

namespace heddle::test {

[[nodiscard]] inline Schedule moves_only(std::uint32_t count, Bytes bytes) {
  Builder builder("moves only", 2);
  const LabelId label = builder.label("data");
  const BufferId from = builder.add_buffer({.rank = Rank{0},
                                            .parts = count,
                                            .label = label,
                                            .transient = false,
                                            .bytes = count * bytes});
  const BufferId to =
      builder.add_buffer({.rank = Rank{1}, .parts = count, .label = label, .bytes = count * bytes});
  const QueueId channel = builder.queue(Rank{0}, Rank{1});
  for (std::uint32_t m = 0; m < count; ++m)
    builder.add({.kind = Kind::move, .queue = channel, .item = Item{m}},
                {schedule::read(from, m), schedule::write(to, m)});
  return std::move(builder).build();
}

}  // namespace heddle::test
