// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of group_decoding.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/systems/lpd/group_decoding.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE Schedule group_decoding(std::span<const std::int64_t> sizes, int ranks,
                                      Bytes per_token) {
  constexpr const char* where = "heddle::systems::group_decoding";
  expects(ranks >= 1 && per_token >= 1, [&] {
    return ErrorInfo{where, "a decoder needs a rank, and a token at least one byte",
                     heddle::text("ranks = ", ranks, ", per_token = ", per_token)};
  });
  Builder builder(heddle::text("decoding in ", sizes.size(), " groups"), ranks);
  builder.share_memory(std::vector<std::uint32_t>(static_cast<std::size_t>(ranks), 0));
  const LabelId label = builder.label("tokens");
  std::vector<Use> earlier;
  std::vector<Use> uses;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    expects(sizes[g] >= 1, [&] {
      return ErrorInfo{where, "a group has at least one token",
                       heddle::text("sizes[", g, "] = ", sizes[g])};
    });
    expects(static_cast<Bytes>(sizes[g]) <= std::numeric_limits<Bytes>::max() / per_token, [&] {
      return ErrorInfo{where, "the bytes of a group do not fit in 64 bits",
                       heddle::text("sizes[", g, "] = ", sizes[g], ", per_token = ", per_token)};
    });
    std::vector<Use> written;
    for (int rank = 0; rank < ranks && rank < sizes[g]; ++rank) {
      Buffer buffer;
      buffer.rank = Rank{rank};
      buffer.label = label;
      const std::int64_t tokens = heddle::impl::even_count(sizes[g], ranks, rank);
      buffer.bytes = static_cast<Bytes>(tokens) * per_token;
      const BufferId id = builder.add_buffer(buffer);
      uses = earlier;
      uses.push_back(schedule::write(id));
      ActionSpec spec;
      spec.queue = builder.local(Rank{rank});
      spec.item = Item{g};
      builder.add(spec, uses);
      written.push_back(schedule::read(id));
    }
    earlier.insert(earlier.end(), written.begin(), written.end());
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::systems
