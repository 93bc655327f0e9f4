// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of hazards.hpp.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/impl/hazards.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void Hazards::add_buffer(std::uint32_t parts) {
  m_first_part.push_back(static_cast<std::uint32_t>(m_parts.size()));
  m_parts.resize(m_parts.size() + parts);
}

HEDDLE_INLINE void Hazards::reserve(std::size_t buffers, std::size_t parts) {
  m_first_part.reserve(buffers);
  m_parts.reserve(parts);
}

HEDDLE_INLINE void Hazards::sweep(std::uint32_t self, std::span<const Action> actions,
                                  std::span<const Use> uses, std::vector<After>& out) {
  const std::size_t begin = out.size();
  const Action& action = at(actions, self);
  for (const Use& use : uses) {
    const std::uint32_t mine = end_of(action.kind, use);
    PartState* part = &m_parts[m_first_part[+use.buffer] + use.first];
    for (PartState* last = part + use.count; part != last; ++part) {
      // The readers have waited for the writer, so an action that waits for them need not.
      if (use.writes() && part->reader != none) {
        depend(part->reader, read_until(at(actions, part->reader)), mine, action, actions, begin,
               out);
        for (std::uint32_t link = part->more; link != none; link = m_links[link].next)
          depend(m_links[link].reader, read_until(at(actions, m_links[link].reader)), mine, action,
                 actions, begin, out);
        release(*part);
      } else if (part->writer != none) {
        depend(part->writer, written_at(at(actions, part->writer)), mine, action, actions, begin,
               out);
      }
      if (use.writes())
        part->writer = self;
      else
        add_reader(*part, self, actions);
    }
  }
}

HEDDLE_INLINE void Hazards::depend(std::uint32_t on, std::uint32_t end, std::uint32_t mine,
                                   const Action& action, std::span<const Action> actions,
                                   std::size_t begin, std::vector<After>& out) {
  const QueueId queue = at(actions, on).queue;
  // Actions of one queue run in order and need no edge. The exception is the result of a move:
  // messages of a channel are matched in order but not stored in order, and a local queue continues
  // before its move has arrived.
  if (queue == action.queue && (end == 0 || at(actions, on).kind != Kind::move)) return;
  for (std::size_t i = begin; i < out.size(); ++i) {
    After& known = out[i];
    if (known.end == end && known.mine == mine && at(actions, known.action).queue == queue) {
      if (known.action < on) known = After::of(on, mine, end);
      return;
    }
  }
  out.push_back(After::of(on, mine, end));
}

HEDDLE_INLINE void Hazards::add_reader(PartState& part, std::uint32_t self,
                                       std::span<const Action> actions) {
  const QueueId queue = at(actions, self).queue;
  if (part.reader == none || at(actions, part.reader).queue == queue) {
    part.reader = self;
    return;
  }
  for (std::uint32_t link = part.more; link != none; link = m_links[link].next) {
    if (at(actions, m_links[link].reader).queue == queue) {
      m_links[link].reader = self;
      return;
    }
  }
  std::uint32_t link = m_free;
  if (link != none) {
    m_free = m_links[link].next;
  } else {
    link = static_cast<std::uint32_t>(m_links.size());
    m_links.emplace_back();
  }
  m_links[link] = {self, part.more};
  part.more = link;
}

HEDDLE_INLINE void Hazards::release(PartState& part) {
  part.reader = none;
  if (part.more == none) return;
  std::uint32_t last = part.more;
  while (m_links[last].next != none) last = m_links[last].next;
  m_links[last].next = m_free;
  m_free = part.more;
  part.more = none;
}

}  // namespace heddle::inline v0::impl
