// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rounds.hpp.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/impl/rounds.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>

namespace heddle::inline v0::schedule::impl {

/// Appends Rounds to a Builder.
class RoundWriter {
 public:
  RoundWriter(Builder& builder, std::span<const Use> members, Stage stage, std::uint32_t chunks)
      : m_builder(builder), m_members(members), m_stage(stage), m_chunks(chunks) {}

  void write(const Rounds& rounds) {
    add_scratch(rounds);
    for (const Round& round : rounds) {
      for (std::uint32_t chunk = 0; chunk < m_chunks; ++chunk) {
        for (const Hop& hop : round) send(hop, chunk);
        // Merges come after all sends. If a rank merged first, it would delay the next rank, all
        // around a ring. And partners that exchange must send the values from before the merge.
        merge_arrived();
      }
    }
  }

 private:
  struct Merge {
    Use from;
    Use into;
    bool in_front;
  };

  /// Chunk `chunk` of some blocks. Several blocks take as many messages as one block.
  [[nodiscard]] Use piece(const Blocks& blocks, Access access, std::uint32_t chunk) const {
    const Use& member = m_members[blocks.member];
    return use(access, member.buffer, member.first + blocks.first * m_chunks + chunk * blocks.count,
               blocks.count);
  }

  /// Whether these parts are known to have no bytes. Such parts are not sent.
  [[nodiscard]] bool is_nothing(const Use& parts) const {
    const Buffer& buffer = m_builder[parts.buffer];
    return (buffer.bytes != 0 || buffer.ends != nullptr) &&
           part_bytes(buffer, parts.first, parts.count) == 0;
  }

  /// Appends the message of a hop. A message to be merged goes into scratch.
  void send(const Hop& hop, std::uint32_t chunk) {
    const Use from = piece(hop.from, Access::read, chunk);
    Use to = piece(hop.to, Access::write, chunk);
    if (is_nothing(from)) return;
    if (hop.merges) {
      std::uint32_t& filled = m_filled[hop.to.member];
      const BufferId scratch = m_scratch[hop.to.member];
      m_arrived.push_back({schedule::read(scratch, filled, to.count),
                           schedule::update(to.buffer, to.first, to.count), hop.in_front});
      to = schedule::write(scratch, filled, to.count);
      filled += to.count;
    } else if (m_builder[to.buffer].transient) {
      to = with_empty_neighbours(to);
    }
    const Rank sender = m_builder[from.buffer].rank;
    const Rank receiver = m_builder[to.buffer].rank;
    const QueueId queue =
        sender == receiver ? m_builder.local(sender, Lane{1}) : m_builder.queue(sender, receiver);
    m_builder.add({Kind::move, queue, m_stage, Item{from.first}, m_flags}, {from, to});
  }

  /// Extends `parts` by adjacent parts of no bytes. These are not sent, but a later action that
  /// passes them on must find them written.
  [[nodiscard]] Use with_empty_neighbours(const Use& parts) const {
    const Buffer& buffer = m_builder[parts.buffer];
    const auto is_empty = [&](std::uint32_t part) { return is_nothing(read(parts.buffer, part)); };
    std::uint32_t first = parts.first, end = parts.first + parts.count;
    while (first > 0 && is_empty(first - 1)) --first;
    while (end < buffer.parts && is_empty(end)) ++end;
    return use(parts.access(), parts.buffer, first, end - first);
  }

  void merge_arrived() {
    for (const Merge& merge : m_arrived) {
      const Rank rank = m_builder[merge.into.buffer].rank;
      const auto& [from, into, in_front] = merge;
      m_builder.add({Kind::combine, m_builder.local(rank, Lane{1}), m_stage, Item{into.first}},
                    {in_front ? into : from, in_front ? from : into});
    }
    m_arrived.clear();
  }

  /// Adds one scratch buffer for each member that merges. It has one part for every part that the
  /// member receives, in order of arrival. Each is written once, so that fold() can fold them.
  void add_scratch(const Rounds& rounds) {
    m_filled.assign(m_members.size(), 0);
    std::vector<std::vector<Bytes>> sizes(m_members.size());
    for (const Round& round : rounds) {
      for (std::uint32_t chunk = 0; chunk < m_chunks; ++chunk) {
        for (const Hop& hop : round) {
          const Use to = piece(hop.to, Access::write, chunk);
          if (!hop.merges || is_nothing(to)) continue;
          m_flags = flag::gradient;
          for (std::uint32_t part = to.first; part < to.first + to.count; ++part)
            sizes[hop.to.member].push_back(part_bytes(m_builder[to.buffer], part, 1));
        }
      }
    }
    for (std::size_t member = 0; member < m_members.size(); ++member) {
      Buffer buffer = m_builder[m_members[member].buffer];
      buffer.label = m_builder.label("scratch");
      buffer.transient = true;
      m_scratch.push_back(m_members[member].buffer);
      if (sizes[member].empty()) continue;
      heddle::impl::cut_in_parts(buffer, std::move(sizes[member]), heddle::impl::is_bound(buffer));
      m_scratch.back() = m_builder.add_buffer(buffer);
    }
  }

  Builder& m_builder;
  std::span<const Use> m_members;
  Stage m_stage;
  std::uint32_t m_chunks;
  std::uint8_t m_flags = 0;             ///< flags of moves: gradient if any hop merges
  std::vector<BufferId> m_scratch;      ///< the scratch buffer of each member
  std::vector<std::uint32_t> m_filled;  ///< number of its parts that have been written
  std::vector<Merge> m_arrived;         ///< merges of the current chunk of the round
};

HEDDLE_INLINE void append(Builder& builder, std::span<const Use> members, Stage stage,
                          const Rounds& rounds, int chunks) {
  expects(chunks >= 1, [&] {
    return ErrorInfo{"heddle::schedule::append", "a block needs at least one chunk",
                     text("chunks = ", chunks)};
  });
  RoundWriter(builder, members, stage, static_cast<std::uint32_t>(chunks)).write(rounds);
}

}  // namespace heddle::inline v0::schedule::impl
