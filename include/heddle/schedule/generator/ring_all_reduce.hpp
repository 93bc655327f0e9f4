// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Ring all-reduce: every member ends with the sum of all, after a reduce-scatter and an all-gather
/// around a ring.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/weave.hpp>

namespace heddle::inline v0::schedule {

/// Generates the actions of an all-reduce in place of a group action: expand() takes it.
///
/// With P members and m bytes, every member sends 2 (P - 1) messages per chunk, of m / (P C) bytes.
/// Segment s is summed in the order x[s] + x[s+1] + ... around the ring, so the result is the same
/// on every member and in every run. Time with latency a and bandwidth b, x = m / (P C b): max(2
/// (P-1) (a + x) + (C-1) x, 2 (P-1) m / (P b) + a).
struct RingAllReduce {
  int chunks = 1;  ///< C: pieces of a segment, which overlap each other's latencies

  /// In how many parts each of `members` ranges must be cut.
  [[nodiscard]] std::uint32_t parts(std::size_t members) const {
    expects(chunks >= 1, [&] {
      return Complaint{"heddle::schedule::RingAllReduce", "a segment has at least one chunk",
                       text("chunks = ", chunks)};
    });
    return static_cast<std::uint32_t>(members) * static_cast<std::uint32_t>(chunks);
  }

  /// Appends the actions. `members` are the ranges to sum, each a whole buffer cut in parts().
  void operator()(Builder& builder, std::span<const Use> members, Stage stage) const {
    const auto ranks = static_cast<std::uint32_t>(members.size());
    const std::uint32_t pieces = parts(ranks);
    std::vector<BufferId> scratch;
    for (const Use& member : members) {
      Buffer buffer = builder[member.buffer];
      expects(member.first == 0 && member.count == pieces && buffer.parts == pieces, [&] {
        return Complaint{"heddle::schedule::RingAllReduce",
                         "a member is a whole buffer, cut evenly",
                         text("parts [", member.first, ", ", member.first + member.count, ") of ",
                              buffer.parts, ", expected ", pieces)};
      });
      // Cut as the data is, so that every piece has the size of what it receives.
      buffer.label = builder.label("scratch");
      buffer.transient = true;
      scratch.push_back(ranks > 1 ? builder.add_buffer(buffer) : member.buffer);
    }
    const auto per_segment = static_cast<std::uint32_t>(chunks);
    const auto pass = [&](bool reduces) {
      for (std::uint32_t k = 0; k + 1 < ranks; ++k) {
        for (std::uint32_t c = 0; c < per_segment; ++c) {
          const auto piece_of = [&](std::uint32_t r) {
            return (r + ranks + (reduces ? 0 : 1) - k) % ranks * per_segment + c;
          };
          for (std::uint32_t r = 0; r < ranks; ++r) {
            const std::uint32_t next = (r + 1) % ranks;
            const BufferId from = members[r].buffer;
            const BufferId to = reduces ? scratch[next] : members[next].buffer;
            builder.add({Kind::move, builder.queue(builder[from].rank, builder[to].rank), stage,
                         Item{piece_of(r)}, flag::gradient},
                        {read(from, piece_of(r)), write(to, piece_of(r))});
          }
          // A rank that added before it sent would keep the next one waiting, and that the one
          // after it, all around the ring.
          for (std::uint32_t r = 0; reduces && r < ranks; ++r) {
            const std::uint32_t next = (r + 1) % ranks;
            const BufferId into = members[next].buffer;
            builder.add({Kind::combine, builder.local(builder[into].rank, Lane{1}), stage,
                         Item{piece_of(r)}},
                        {read(scratch[next], piece_of(r)), update(into, piece_of(r))});
          }
        }
      }
    };
    pass(true);
    pass(false);
  }
};

/// Of ring_all_reduce().
struct RingAllReduceOptions {
  int ranks = 1;              ///< around the ring
  Bytes bytes = 0;            ///< per rank
  Scalar type = Scalar::f64;  ///< of the elements that are added
  int chunks = 1;             ///< pieces of each rank's share that travel one behind the other
};

/// An all-reduce of one buffer of role "data" per rank, on its own.
[[nodiscard]] inline Schedule ring_all_reduce(const RingAllReduceOptions& options) {
  Builder builder(text("ring all-reduce P=", options.ranks, " C=", options.chunks), options.ranks);
  const RingAllReduce ring{options.chunks};
  const std::uint32_t pieces = ring.parts(static_cast<std::size_t>(options.ranks));
  std::vector<Use> members;
  for (int r = 0; r < options.ranks; ++r)
    members.push_back(update(builder.add_buffer({.rank = Rank{r},
                                                 .parts = pieces,
                                                 .label = builder.label("data"),
                                                 .type = options.type,
                                                 .transient = false,
                                                 .bytes = options.bytes}),
                             0, pieces));
  ring(builder, members, Stage{0});
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
