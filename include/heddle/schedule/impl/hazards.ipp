// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of hazards.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/impl/hazards.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void Hazards::add_buffer(const Buffer& buffer) {
  m_new.push_back({buffer.rank, buffer.stage, buffer.parts});
}

HEDDLE_INLINE void Hazards::reserve(std::size_t buffers, std::size_t parts) {
  m_new.reserve(buffers);
  m_places.reserve(buffers);
  m_parts.reserve(parts);
}

HEDDLE_INLINE void Hazards::place_buffers() {
  constexpr std::size_t most_beside = 16;  // buffers, so that the inner loop stays short
  for (std::size_t begin = 0, end = 0; begin < m_new.size(); begin = end) {
    const NewBuffer& head = m_new[begin];
    while (end < m_new.size() && end - begin < most_beside && m_new[end].rank == head.rank &&
           m_new[end].stage == head.stage)
      ++end;
    const std::size_t places = m_places.size();
    for (std::size_t b = begin; b < end; ++b) {
      // Buffers with as many parts share a range: the states of part 0 of all of them come first.
      Place place{static_cast<std::uint32_t>(m_parts.size()), 0};
      for (std::size_t other = begin; other < end; ++other) {
        if (m_new[other].parts != m_new[b].parts) continue;
        ++place.step;
        if (other < b) place.first = m_places[places + (other - begin)].first + 1;
      }
      if (place.first == m_parts.size())
        m_parts.resize(m_parts.size() + std::size_t{m_new[b].parts} * place.step);
      m_places.push_back(place);
    }
  }
  m_new.clear();
}

HEDDLE_INLINE void Hazards::sweep(std::uint32_t self, std::span<const Action> actions,
                                  std::span<const Use> uses, std::vector<After>& out) {
  if (!m_new.empty()) place_buffers();
  const std::size_t begin = out.size();
  const Action& action = at(actions, self);
  for (const Use& use : uses) {
    const std::uint32_t mine = end_of(action.kind, use);
    const Place place = m_places[+use.buffer];
    for (std::uint32_t p = use.first; p != use.first + use.count; ++p) {
      PartState* const part = &m_parts[place.of(p)];
      // The readers have waited for the writer, so an action that waits for them need not.
      if (use.writes() && part->readers != none) {
        const auto wait_for = [&](std::uint32_t reader) {
          depend(reader, read_until(at(actions, reader)), mine, action, actions, begin, out);
        };
        if (part->readers < chain) wait_for(part->readers);
        for (std::uint32_t link = first_link(*part); link != none; link = m_links[link].next)
          wait_for(m_links[link].reader);
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
  const auto replaces = [&](std::uint32_t& reader) {
    if (at(actions, reader).queue != queue) return false;
    reader = self;
    return true;
  };
  if (part.readers == none) {
    part.readers = self;
    return;
  }
  if (part.readers < chain) {
    if (replaces(part.readers)) return;
    part.readers = chain + new_link({part.readers, none});
  }
  for (std::uint32_t link = first_link(part); link != none; link = m_links[link].next)
    if (replaces(m_links[link].reader)) return;
  const std::uint32_t first = first_link(part);
  const std::uint32_t second = new_link({self, m_links[first].next});
  m_links[first].next = second;
}

HEDDLE_INLINE std::uint32_t Hazards::new_link(Link link) {
  if (m_free == none) {
    m_links.push_back(link);
    return static_cast<std::uint32_t>(m_links.size() - 1);
  }
  const std::uint32_t place = m_free;
  m_free = m_links[place].next;
  m_links[place] = link;
  return place;
}

HEDDLE_INLINE void Hazards::release(PartState& part) {
  const std::uint32_t first = first_link(part);
  part.readers = none;
  if (first == none) return;
  std::uint32_t last = first;
  while (m_links[last].next != none) last = m_links[last].next;
  m_links[last].next = m_free;
  m_free = first;
}

}  // namespace heddle::inline v0::impl
