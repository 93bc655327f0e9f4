// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of builder.hpp.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/impl/hazards.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Builder::Builder(std::string name, int ranks) {
  expects(ranks >= 1, [&] {
    return ErrorInfo{"heddle::Builder", "a schedule needs at least one rank",
                     text("ranks = ", ranks)};
  });
  m_body.name = std::move(name);
  m_body.ranks = ranks;
  m_body.labels.emplace_back();  // LabelId{0}: storage without a role
}

HEDDLE_INLINE void Builder::share_memory(std::vector<std::uint32_t> domains) {
  expects(domains.size() == static_cast<std::size_t>(m_body.ranks), [&] {
    return ErrorInfo{"heddle::Builder::share_memory", "every rank needs one memory domain",
                     text(domains.size(), " domains for ", m_body.ranks, " ranks")};
  });
  m_body.domains = std::move(domains);
}

HEDDLE_INLINE LabelId Builder::label(std::string_view name) {
  auto& labels = m_body.labels;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == name) return LabelId{i};
  labels.emplace_back(name);
  return LabelId{labels.size() - 1};
}

HEDDLE_INLINE BufferId Builder::add_buffer(const Buffer& buffer) {
  expects(+buffer.rank < static_cast<std::size_t>(m_body.ranks) && buffer.parts >= 1, [&] {
    return ErrorInfo{
        "heddle::Builder::add_buffer", "a buffer needs a rank and at least one part",
        text("rank ", buffer.rank, " of ", m_body.ranks, ", ", buffer.parts, " parts")};
  });
  expects(buffer.parts < parts_limit, [&] {
    return ErrorInfo{"heddle::Builder::add_buffer", "a buffer has too many parts",
                     text("at most ", parts_limit - 1, ", got ", buffer.parts)};
  });
  expects(+buffer.label < m_body.labels.size(), [&] {
    return ErrorInfo{"heddle::Builder::add_buffer", "no such label",
                     text("label ", buffer.label, " of ", m_body.labels.size()),
                     "make it with Builder::label"};
  });
  impl::expect_sizes(buffer, m_body.labels[+buffer.label], "heddle::Builder::add_buffer");
  m_body.buffers.push_back(buffer);
  m_hazards.add_buffer(buffer);
  return BufferId{m_body.buffers.size() - 1};
}

HEDDLE_INLINE QueueId Builder::queue(Rank from, Rank to, Lane lane) {
  const auto ranks = static_cast<std::size_t>(m_body.ranks);
  expects(+from < ranks && +to < ranks && +lane < 32767, [&] {
    return ErrorInfo{
        "heddle::Builder::queue", "no such queue",
        text("from rank ", from, " to rank ", to, ", lane ", lane, ", with ", ranks, " ranks")};
  });
  const std::uint64_t key = ((+from * ranks + +to) << 16) | +lane;
  const auto [entry, fresh] = m_queue_of.try_emplace(key, QueueId{m_body.queues.size()});
  if (fresh) m_body.queues.push_back({from, to, lane});
  return entry->second;
}

HEDDLE_INLINE ActionId Builder::add(const ActionSpec& spec, std::span<const Use> uses) {
  check(spec, uses);
  const auto self = static_cast<std::uint32_t>(m_body.actions.size());
  m_body.actions.push_back({spec.kind, spec.flags, spec.units, spec.queue, spec.stage, spec.item,
                            static_cast<std::uint32_t>(m_body.uses.size())});
  m_body.uses.insert(m_body.uses.end(), uses.begin(), uses.end());
  m_hazards.sweep(self, m_body.actions, uses, m_body.after);
  m_body.after_begin.push_back(static_cast<std::uint32_t>(m_body.after.size()));
  return ActionId{self};
}

HEDDLE_INLINE ActionId Builder::add(const ActionSpec& spec, std::initializer_list<Use> uses) {
  return add(spec, std::span(uses.begin(), uses.size()));
}

HEDDLE_INLINE ActionId Builder::add(const Schedule& other, ActionId id, std::span<const Use> uses) {
  const Action& action = other[id];
  return add({action.kind, action.queue, action.stage, action.item, action.flags, action.units},
             uses);
}

HEDDLE_INLINE void Builder::reserve_actions(std::size_t actions, std::size_t uses) {
  m_body.actions.reserve(actions);
  m_body.uses.reserve(uses);
  m_body.after_begin.reserve(actions + 1);
  m_body.after.reserve(actions + actions / 2);
}

HEDDLE_INLINE void Builder::reserve_buffers(std::size_t buffers, std::size_t parts) {
  m_body.buffers.reserve(buffers);
  m_hazards.reserve(buffers, parts);
}

HEDDLE_INLINE Schedule Builder::build() && {
  expects(!awaits_partner(), [] {
    return ErrorInfo{"heddle::Builder::build",
                     "the last action is fused with a next action that was not added",
                     {}};
  });
  m_hazards = {};
  return Schedule(std::move(m_body));
}

HEDDLE_INLINE Builder Builder::without_buffers(const Schedule& schedule) {
  Builder builder(schedule.name(), schedule.ranks());
  builder.m_body.labels.assign(schedule.labels().begin(), schedule.labels().end());
  builder.m_body.domains.assign(schedule.domains().begin(), schedule.domains().end());
  for (const Queue& queue : schedule.queues()) builder.queue(queue.from, queue.to, queue.lane);
  builder.reserve_actions(schedule.size(), schedule.all_uses().size());
  return builder;
}

HEDDLE_INLINE bool Builder::awaits_partner() const {
  return !m_body.actions.empty() && (m_body.actions.back().flags & flag::with_next) != 0;
}

HEDDLE_INLINE void Builder::check(const ActionSpec& spec, std::span<const Use> uses) const {
  const auto fail = [&](std::string_view what, std::string why) {
    return ErrorInfo{text("heddle::Builder::add(", spec.stage, spec.kind, spec.item, ")"),
                     std::string(what), std::move(why)};
  };
  expects(static_cast<std::size_t>(spec.kind) < kind_count,
          [&] { return fail("no such kind", text("kind ", static_cast<int>(spec.kind))); });
  expects(+spec.queue < m_body.queues.size(),
          [&] { return fail("no such queue", text("queue ", spec.queue)); });
  const Queue& queue = m_body.queues[+spec.queue];
  expects(m_body.actions.size() < (1u << 30),
          [&] { return fail("a schedule must have fewer than 2^30 actions", {}); });
  expects(!awaits_partner() ||
              (m_body.actions.back().queue == spec.queue && (spec.flags & flag::with_next) == 0),
          [&] {
            return fail("it is not a valid partner of the fused action before it",
                        text("the fused action is ", m_body.actions.back().stage,
                             m_body.actions.back().kind, m_body.actions.back().item));
          });
  expects(queue.local() || (spec.flags & flag::with_next) == 0,
          [&] { return fail("only local work can be fused", {}); });
  if (spec.kind == Kind::move) {
    expects(
        uses.size() == 2 && uses[0].access() == Access::read && uses[1].access() == Access::write,
        [&] { return fail("a move must read one range and write another", {}); });
  } else {
    expects(queue.local(), [&] {
      return fail("only moves can run in a channel",
                  text("queue from rank ", queue.from, " to rank ", queue.to));
    });
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Use& use = uses[i];
    expects(+use.buffer < m_body.buffers.size(),
            [&] { return fail("no such buffer", text("buffer ", use.buffer)); });
    const Buffer& buffer = m_body.buffers[+use.buffer];
    const std::uint64_t last = std::uint64_t{use.first} + use.count;
    expects(use.count >= 1 && last <= buffer.parts, [&] {
      return fail("the parts are not in the buffer",
                  text("[", use.first, ", ", last, ") of ", buffer.parts));
    });
    const Rank place = spec.kind == Kind::move && i == 1 ? queue.to : queue.from;
    const bool shared = queue.local() && !m_body.domains.empty() &&
                        m_body.domains[+buffer.rank] == m_body.domains[+place];
    expects(buffer.rank == place || shared || spec.kind == Kind::group, [&] {
      return fail("a buffer is on another rank than the action's queue",
                  text("buffer on rank ", buffer.rank, ", queue on rank ", place));
    });
    if (buffer.transient && use.reads()) {
      for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
        expects(!m_hazards.unwritten(use.buffer, part), [&] {
          return fail("it reads a part that no action has written in this step",
                      text("part ", part, " of '", m_body.labels[+buffer.label], "' of stage ",
                           buffer.stage, " on rank ", buffer.rank));
        });
      }
    }
  }
}

namespace schedule {

HEDDLE_INLINE std::vector<heddle::impl::Carried> impl::carried(const Schedule& schedule) {
  heddle::impl::Hazards hazards;
  for (const Buffer& buffer : schedule.buffers()) hazards.add_buffer(buffer);
  const auto length = static_cast<std::uint32_t>(schedule.size());
  std::vector<After> edges;
  std::vector<heddle::impl::Carried> result;
  for (std::uint32_t number = 0; number < 2 * length; ++number) {
    const ActionId id{number % length};
    edges.clear();
    hazards.sweep(number, schedule.actions(), schedule.uses(id), edges);
    if (number < length) continue;
    for (const After& edge : edges)
      if (edge.action < length) result.push_back({id, edge});
  }
  return result;
}

}  // namespace schedule

}  // namespace heddle::inline v0
