// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Builder: the only way to make a Schedule. Generators and passes append buffers, queues and
/// actions; dependencies are derived while they do.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/impl/hazards.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// What Builder::add is told of an action besides its uses.
struct ActionSpec {
  Kind kind = Kind::user;   ///< what is done
  QueueId queue = {};       ///< where it takes its turn; from Builder::queue
  Stage stage = {};         ///< which stage does it
  Item item = {};           ///< to which microbatch
  std::uint8_t flags = 0;   ///< bits of namespace flag
  std::uint16_t units = 1;  ///< shares of the device it occupies
};

/// Appends to a Schedule under construction. Every function throws contract_error where the piece
/// does not fit what is there; the Builder is unchanged then.
class Builder {
 public:
  /// An empty schedule over `ranks` ranks; the name is for people to read.
  Builder(std::string name, int ranks) {
    expects(ranks >= 1, [&] {
      return Complaint{"heddle::Builder", "a schedule needs at least one rank",
                       text("ranks = ", ranks)};
    });
    m_body.name = std::move(name);
    m_body.ranks = ranks;
    m_body.labels.emplace_back();  // LabelId{0}: storage without a role
  }

  /// A Builder that has the ranks, labels, buffers and queues of `schedule` under the same numbers,
  /// and no actions yet: where a pass begins. `change(buffer)` returns each buffer as it shall be.
  template <class Change>
  [[nodiscard]] static Builder like(const Schedule& schedule, Change&& change) {
    Builder builder(schedule.name(), schedule.ranks());
    builder.m_body.labels.assign(schedule.labels().begin(), schedule.labels().end());
    builder.m_body.domains.assign(schedule.domains().begin(), schedule.domains().end());
    for (const Buffer& buffer : schedule.buffers()) builder.add_buffer(change(buffer));
    for (const Queue& queue : schedule.queues()) builder.queue(queue.from, queue.to, queue.lane);
    builder.reserve_actions(schedule.size(), schedule.all_uses().size());
    return builder;
  }

  /// From now on actions may touch storage of other ranks with the same number in `domains`, which
  /// has one for every rank.
  void share_memory(std::vector<std::uint32_t> domains) {
    expects(domains.size() == static_cast<std::size_t>(m_body.ranks), [&] {
      return Complaint{"heddle::Builder::share_memory", "every rank is in one domain",
                       text(domains.size(), " domains for ", m_body.ranks, " ranks")};
    });
    m_body.domains = std::move(domains);
  }

  /// The number of the label `name`, new or known.
  LabelId label(std::string_view name) {
    auto& labels = m_body.labels;
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] == name) return LabelId{i};
    labels.emplace_back(name);
    return LabelId{labels.size() - 1};
  }

  /// Adds storage. Its rank and label must exist; it has at least one part, fewer than parts_limit,
  /// and where it says where they end, it does so for each.
  BufferId add_buffer(const Buffer& buffer) {
    expects(+buffer.rank < static_cast<std::size_t>(m_body.ranks) && buffer.parts >= 1, [&] {
      return Complaint{
          "heddle::Builder::add_buffer", "a buffer needs a rank and at least one part",
          text("rank ", buffer.rank, " of ", m_body.ranks, ", ", buffer.parts, " parts")};
    });
    expects(buffer.parts < parts_limit, [&] {
      return Complaint{"heddle::Builder::add_buffer", "a buffer has too many parts",
                       text("at most ", parts_limit - 1, ", got ", buffer.parts)};
    });
    expects(+buffer.label < m_body.labels.size(), [&] {
      return Complaint{"heddle::Builder::add_buffer", "no such label",
                       text("label ", buffer.label, " of ", m_body.labels.size()),
                       "make it with Builder::label"};
    });
    if (buffer.ends != nullptr) check_ends(buffer);
    m_body.buffers.push_back(buffer);
    m_hazards.add_buffer(buffer.parts);
    return BufferId{m_body.buffers.size() - 1};
  }

  /// The queue from -> to; `from == to` is a local queue of that rank. Made on first use.
  /// Lanes are below 32767: every MPI has tags for them, and one is left for the Runner's own
  /// words.
  QueueId queue(Rank from, Rank to, Lane lane = Lane{0}) {
    const auto ranks = static_cast<std::size_t>(m_body.ranks);
    expects(+from < ranks && +to < ranks && +lane < 32767, [&] {
      return Complaint{
          "heddle::Builder::queue", "no such queue",
          text("from rank ", from, " to rank ", to, ", lane ", lane, ", with ", ranks, " ranks")};
    });
    const std::uint64_t key = ((+from * ranks + +to) << 16) | +lane;
    const auto [entry, fresh] = m_queue_of.try_emplace(key, QueueId{m_body.queues.size()});
    if (fresh) m_body.queues.push_back({from, to, lane});
    return entry->second;
  }
  /// The queue of local work `lane` of a rank.
  QueueId local(Rank rank, Lane lane = Lane{0}) { return queue(rank, rank, lane); }

  /// Appends an action and derives what it waits for.
  /// A move has two uses, the read at its source and the write at its destination.
  ActionId add(const ActionSpec& spec, std::span<const Use> uses) {
    check(spec, uses);
    const auto self = static_cast<std::uint32_t>(m_body.actions.size());
    m_body.actions.push_back({spec.kind, spec.flags, spec.units, spec.queue, spec.stage, spec.item,
                              static_cast<std::uint32_t>(m_body.uses.size())});
    m_body.uses.insert(m_body.uses.end(), uses.begin(), uses.end());
    m_hazards.sweep(self, m_body.actions, uses, m_body.after);
    m_body.after_begin.push_back(static_cast<std::uint32_t>(m_body.after.size()));
    return ActionId{self};
  }
  /// As above.
  ActionId add(const ActionSpec& spec, std::initializer_list<Use> uses) {
    return add(spec, std::span(uses.begin(), uses.size()));
  }
  /// Appends action `id` of `other`, which numbers its queues and buffers as this Builder does.
  ActionId add(const Schedule& other, ActionId id, std::span<const Use> uses) {
    const Action& action = other[id];
    return add({action.kind, action.queue, action.stage, action.item, action.flags, action.units},
               uses);
  }

  /// A buffer that was added.
  [[nodiscard]] const Buffer& operator[](BufferId id) const { return m_body.buffers[+id]; }
  /// Number of ranks.
  [[nodiscard]] int ranks() const noexcept { return m_body.ranks; }

  /// Makes room for so many actions with so many uses in all.
  void reserve_actions(std::size_t actions, std::size_t uses) {
    m_body.actions.reserve(actions);
    m_body.uses.reserve(uses);
    m_body.after_begin.reserve(actions + 1);
    m_body.after.reserve(actions + actions / 8);
  }
  /// Makes room for so many buffers with so many parts in all.
  void reserve_buffers(std::size_t buffers, std::size_t parts) {
    m_body.buffers.reserve(buffers);
    m_hazards.reserve(buffers, parts);
  }

  /// The finished Schedule; the Builder is spent.
  [[nodiscard]] Schedule build() && {
    expects(!awaits_partner(), [] {
      return Complaint{"heddle::Builder::build", "the last action is fused with a next one", {}};
    });
    m_hazards = {};
    return Schedule(std::move(m_body));
  }

 private:
  /// Whether the last action is fused with the one to come.
  [[nodiscard]] bool awaits_partner() const {
    return !m_body.actions.empty() && (m_body.actions.back().flags & flag::with_next) != 0;
  }

  static void check_ends(const Buffer& buffer) {
    const std::vector<Bytes>& ends = *buffer.ends;
    expects(ends.size() == buffer.parts && ends.back() == buffer.bytes &&
                std::is_sorted(ends.begin(), ends.end()),
            [&] {
              return Complaint{
                  "heddle::Builder::add_buffer",
                  "the ends of parts go up, one for each part, to the buffer's size",
                  text(ends.size(), " ends for ", buffer.parts, " parts, the last at ",
                       ends.empty() ? Bytes{0} : ends.back(), " of ", buffer.bytes, " bytes")};
            });
  }

  void check(const ActionSpec& spec, std::span<const Use> uses) const {
    const auto fail = [&](std::string_view what, std::string why) {
      return Complaint{text("heddle::Builder::add(", spec.stage, spec.kind, spec.item, ")"),
                       std::string(what), std::move(why)};
    };
    expects(+spec.queue < m_body.queues.size(),
            [&] { return fail("no such queue", text("queue ", spec.queue)); });
    const Queue& queue = m_body.queues[+spec.queue];
    expects(m_body.actions.size() < (1u << 30),
            [&] { return fail("a schedule holds fewer than 2^30 actions", {}); });
    expects(!awaits_partner() ||
                (m_body.actions.back().queue == spec.queue && (spec.flags & flag::with_next) == 0),
            [&] {
              return fail("it is not the partner of the fused action before it",
                          text("which is ", m_body.actions.back().stage, m_body.actions.back().kind,
                               m_body.actions.back().item));
            });
    expects(queue.local() || (spec.flags & flag::with_next) == 0,
            [&] { return fail("only local work is fused", {}); });
    if (spec.kind == Kind::move) {
      expects(
          uses.size() == 2 && uses[0].access() == Access::read && uses[1].access() == Access::write,
          [&] { return fail("a move reads one range and writes another", {}); });
    } else {
      expects(queue.local(), [&] {
        return fail("only moves run in a channel",
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
        return fail("a buffer lives on another rank than the action's queue",
                    text("buffer on rank ", buffer.rank, ", queue on rank ", place));
      });
      if (buffer.transient && use.reads()) {
        for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
          expects(!m_hazards.unwritten(use.buffer, part), [&] {
            return fail("it reads a part that nothing has written in this step",
                        text("part ", part, " of '", m_body.labels[+buffer.label], "' of stage ",
                             buffer.stage, " on rank ", buffer.rank));
          });
        }
      }
    }
  }

  impl::ScheduleBody m_body;
  impl::Hazards m_hazards;
  std::unordered_map<std::uint64_t, QueueId> m_queue_of;
};

/// A dependency on the previous step, for schedules that run again and again.
struct Carried {
  ActionId action;  ///< the action that waits
  After on;         ///< what it waits for, one step earlier
};

/// The dependencies that reach from one step into the next, in list order of the waiting action.
/// Their distance is always one step. Cost: two sweeps of the list.
[[nodiscard]] inline std::vector<Carried> carried(const Schedule& schedule) {
  impl::Hazards hazards;
  for (const Buffer& buffer : schedule.buffers()) hazards.add_buffer(buffer.parts);
  const auto length = static_cast<std::uint32_t>(schedule.size());
  std::vector<After> edges;
  std::vector<Carried> result;
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

}  // namespace heddle::inline v0
