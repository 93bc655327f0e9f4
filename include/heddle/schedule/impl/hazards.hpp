// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Derives dependencies from storage: read after write, write after read, write after write, seen
/// part by part while the list is swept once. Used by the Builder and by carried().

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/schedule/action.hpp>

namespace heddle::inline v0::impl {

/// Which end of an action a use belongs to: a move reads at its source (0) and writes at its
/// destination (1); everything else has one end.
[[nodiscard]] constexpr std::uint32_t end_of(Kind kind, const Use& use) noexcept {
  return kind == Kind::move && use.writes() ? 1 : 0;
}

/// The end at which others see what an action wrote, and at which it lets go of what it read: those
/// of a fused action when its partner is done too.
[[nodiscard]] constexpr std::uint32_t written_at(const Action& action) noexcept {
  return action.kind == Kind::move || (action.flags & flag::with_next) != 0;
}
[[nodiscard]] constexpr std::uint32_t read_until(const Action& action) noexcept {
  return (action.flags & flag::with_next) != 0;
}

/// The state of every part (who wrote it last, who has read it since) and the edges that follow.
class Hazards {
 public:
  static constexpr std::uint32_t none = 0xffffffffu;

  /// Appends a buffer of `parts` parts.
  void add_buffer(std::uint32_t parts) {
    m_first_part.push_back(static_cast<std::uint32_t>(m_parts.size()));
    m_parts.resize(m_parts.size() + parts);
  }
  void reserve(std::size_t buffers, std::size_t parts) {
    m_first_part.reserve(buffers);
    m_parts.reserve(parts);
  }

  /// True where nothing has written the part yet.
  [[nodiscard]] bool unwritten(BufferId buffer, std::uint32_t part) const {
    return m_parts[m_first_part[+buffer] + part].writer == none;
  }

  /// Sweeps one action, numbered `self`, and appends to `out` its edges to earlier actions of other
  /// queues, at most one per (queue, end, mine): queues complete in order, so the latest stands for
  /// the others. `actions[i]` must give the actions swept before, by their number modulo
  /// `actions.size()`.
  void sweep(std::uint32_t self, std::span<const Action> actions, std::span<const Use> uses,
             std::vector<After>& out) {
    const std::size_t begin = out.size();
    const Action& action = at(actions, self);
    for (const Use& use : uses) {
      const std::uint32_t mine = end_of(action.kind, use);
      PartState* part = &m_parts[m_first_part[+use.buffer] + use.first];
      for (PartState* last = part + use.count; part != last; ++part) {
        // Readers have waited for the writer, so whoever waits for them need not.
        if (use.writes() && part->reader != none) {
          depend(part->reader, read_until(at(actions, part->reader)), mine, action, actions, begin,
                 out);
          for (std::uint32_t link = part->more; link != none; link = m_links[link].next)
            depend(m_links[link].reader, read_until(at(actions, m_links[link].reader)), mine,
                   action, actions, begin, out);
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

 private:
  struct PartState {
    std::uint32_t writer = none;
    std::uint32_t reader = none;  ///< a reader since the last write ...
    std::uint32_t more = none;    ///< ... and a chain of those in other queues
  };
  struct Link {
    std::uint32_t reader;
    std::uint32_t next;
  };

  static const Action& at(std::span<const Action> actions, std::uint32_t number) {
    return actions[number < actions.size() ? number : number - actions.size()];
  }

  static void depend(std::uint32_t on, std::uint32_t end, std::uint32_t mine, const Action& action,
                     std::span<const Action> actions, std::size_t begin, std::vector<After>& out) {
    const QueueId queue = at(actions, on).queue;
    // Order within a queue needs no edge, but for what a move delivers: messages of a channel are
    // matched in order, not stored in order, and a local queue goes on before its move has arrived.
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

  void add_reader(PartState& part, std::uint32_t self, std::span<const Action> actions) {
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

  void release(PartState& part) {
    part.reader = none;
    if (part.more == none) return;
    std::uint32_t last = part.more;
    while (m_links[last].next != none) last = m_links[last].next;
    m_links[last].next = m_free;
    m_free = part.more;
    part.more = none;
  }

  std::vector<std::uint32_t> m_first_part;
  std::vector<PartState> m_parts;
  std::vector<Link> m_links;
  std::uint32_t m_free = none;
};

}  // namespace heddle::inline v0::impl
