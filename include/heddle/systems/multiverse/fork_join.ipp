// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fork_join.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/systems/multiverse/fork_join.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE Schedule fork_join(const ForkedText& text, Bytes per_token) {
  expects(per_token > 0, [&] {
    return ErrorInfo{"heddle::systems::fork_join", "a token needs at least one byte",
                     heddle::text("per_token = ", per_token)};
  });
  const std::vector<ForkedText::Segment>& segments = text.segments();
  const std::size_t ranks = text.paths().size();
  Builder builder(heddle::text("fork-join of ", ranks, " paths"), static_cast<int>(ranks));
  builder.share_memory(std::vector<std::uint32_t>(ranks, 0));
  const LabelId label = builder.label("tokens");
  std::vector<BufferId> buffers;
  std::vector<Use> uses;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    expects(static_cast<Bytes>(segments[s].tokens) <= std::numeric_limits<Bytes>::max() / per_token,
            [&] {
              return ErrorInfo{"heddle::systems::fork_join",
                               "the bytes of a segment do not fit in 64 bits",
                               heddle::text("segment ", s, " of ", segments[s].tokens,
                                            " tokens, per_token = ", per_token)};
            });
    const Rank rank{segments[s].path};
    Buffer buffer;
    buffer.rank = rank;
    buffer.label = label;
    buffer.bytes = static_cast<Bytes>(segments[s].tokens) * per_token;
    buffers.push_back(builder.add_buffer(buffer));
    uses.clear();
    for (std::size_t seen = 0; seen < s; ++seen)
      if (text.sees(segments[s].path, segments[seen].path))
        uses.push_back(schedule::read(buffers[seen]));
    uses.push_back(schedule::write(buffers[s]));
    ActionSpec spec;
    spec.queue = builder.local(rank);
    spec.item = Item{s};
    builder.add(spec, uses);
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::systems
