// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of tie_parameters.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/pass/tie_parameters.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The state of one tie_parameters() call.
class ParameterTier {
 public:
  ParameterTier(const Schedule& schedule, const std::vector<TiedRanges>& ties,
                const std::vector<UpdateShare>& shares)
      : m_schedule(schedule), m_ties(ties), m_shares(shares) {
    check_ties();
    for (std::size_t i = 0; i < schedule.size(); ++i)
      if (schedule[ActionId{i}].kind == Kind::update) add_update(ActionId{i});
    if (m_updates.empty()) return;
    for (const TiedRanges& tie : ties) {
      add_pieces(tie.stage, tie.offset, tie.other, tie.other_offset, tie.bytes);
      add_pieces(tie.other, tie.other_offset, tie.stage, tie.offset, tie.bytes);
    }
  }

  [[nodiscard]] Schedule run() {
    if (m_updates.empty()) return m_schedule;
    Builder builder = Builder::like(m_schedule, [&, next = std::size_t{0}](Buffer buffer) mutable {
      return cut(std::move(buffer), next++);
    });
    std::vector<Use> uses;
    const auto add = [&](ActionId id) {
      uses.clear();
      for (const Use& use : m_schedule.uses(id)) uses.push_back(finer(use));
      builder.add(m_schedule, id, uses);
    };
    std::size_t reached = 0;     // updates of tied stages
    std::vector<ActionId> held;  // actions from the first of them on that cannot stay before it
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      const bool ties = reached < m_updates.size() && m_updates[reached].action == id;
      if (!ties && (held.empty() || !conflicts(id))) {
        add(id);
        continue;
      }
      check_order(id);
      held.push_back(id);
      for (const Use& use : m_schedule.uses(id)) m_touched.insert({+use.buffer, use.writes()});
      if (!ties || ++reached < m_updates.size()) continue;
      exchange(builder);
      for (const ActionId each : held) add(each);
      held.clear();
      m_touched.clear();
    }
    return std::move(builder).build();
  }

 private:
  /// An update of a tied stage, and the bytes of the stage's gradients that it uses.
  struct Update {
    ActionId action;
    Stage stage;
    Rank rank;
    BufferId gradients;
    Bytes begin, end;
    Bytes at;   ///< where they begin in the buffer `gradients`
    bool sums;  ///< true if the stage sums them over ranks itself

    [[nodiscard]] Bytes in_buffer(Bytes offset) const { return offset - begin + at; }
  };
  /// Bytes of a gradient that an update gets from the other copy.
  struct Piece {
    const Update* to;
    Bytes at;  ///< in the buffer of `to`
    const Update* from;
    Bytes from_at;  ///< in the buffer of `from`
    Bytes bytes;
  };

  static constexpr const char* where = "heddle::schedule::tie_parameters";

  void check_ties() const {
    std::map<Stage, std::vector<std::pair<Bytes, Bytes>>> ranges;
    for (const TiedRanges& tie : m_ties) {
      ranges[tie.stage].emplace_back(tie.offset, tie.offset + tie.bytes);
      ranges[tie.other].emplace_back(tie.other_offset, tie.other_offset + tie.bytes);
    }
    for (auto& [stage, each] : ranges) {
      std::ranges::sort(each);
      for (std::size_t i = 1; i < each.size(); ++i)
        expects(each[i].first >= each[i - 1].second, [&, &of = stage, &all = each] {
          return ErrorInfo{where, "two ranges of tied parameters overlap",
                           text("stage ", of, ": bytes ", all[i - 1].first, " to ",
                                all[i - 1].second, " and ", all[i].first, " to ", all[i].second),
                           "tie each parameter to one other parameter"};
        });
    }
  }

  [[nodiscard]] bool is_tied(Stage stage) const {
    return std::ranges::any_of(
        m_ties, [&](const TiedRanges& tie) { return tie.stage == stage || tie.other == stage; });
  }

  [[noreturn]] void refuse(ActionId id, const char* why) const {
    throw infeasible(
        {where, "an asynchronous schedule cannot sum the gradients of tied parameters",
         text(schedule::action_text(m_schedule, id), " of '", m_schedule.name(), "': ", why),
         "use a schedule that updates every stage once, at the end of the step, such "
         "as one_f_one_b"});
  }

  void add_update(ActionId id) {
    const Stage stage = m_schedule[id].stage;
    if (!is_tied(stage)) return;
    const auto uses = m_schedule.uses(id);
    if (uses.size() != 2 || uses.back().access() != Access::update)
      refuse(id, "the stage keeps several versions of its weights");
    const Use& use = uses.front();
    const Buffer& buffer = m_schedule[use.buffer];
    const Bytes begin = schedule::part_offset(buffer, use.first);
    const Bytes end = begin + schedule::part_bytes(buffer, use.first, use.count);
    Update update{id, stage, buffer.rank, use.buffer, begin, end, begin, false};
    for (const UpdateShare& share : m_shares)
      if (share.rank == buffer.rank && share.stage == stage) set_share(update, share, buffer);
    for (const Update& other : m_updates)
      if (other.gradients == update.gradients && other.begin < update.end &&
          update.begin < other.end)
        refuse(id, "the stage is updated more than once in a step");
    for (const TiedRanges& tie : m_ties) {
      if (update.sums) break;  // the buffer has a part of the stage's gradients
      if (tie.stage == stage) check_range(buffer, tie.offset, tie.bytes);
      if (tie.other == stage) check_range(buffer, tie.other_offset, tie.bytes);
    }
    m_updates.push_back(update);
  }

  /// Gives an update of a whole buffer the part of the gradients that its rank updates.
  void set_share(Update& update, const UpdateShare& share, const Buffer& buffer) const {
    const Bytes element = value_bytes(buffer);
    expects(update.end - update.begin == buffer.bytes && share.at <= buffer.bytes &&
                share.bytes <= buffer.bytes - share.at && share.at % element == 0 &&
                share.first % element == 0 && share.bytes % element == 0,
            [&] {
              return ErrorInfo{
                  where, "the share of an update is not among the gradients of its rank",
                  text("stage ", share.stage, " on rank ", share.rank, " has ", buffer.bytes,
                       " bytes in elements of ", element, ", the share begins at byte ", share.at,
                       " and has ", share.bytes),
                  "divide updates either by shard_updates() or within the stages"};
            });
    update.begin = share.first;
    update.end = share.first + share.bytes;
    update.at = share.at;
    update.sums = true;
  }

  void check_range(const Buffer& buffer, Bytes offset, Bytes bytes) const {
    const Bytes element = value_bytes(buffer);
    expects(offset <= buffer.bytes && bytes <= buffer.bytes - offset && offset % element == 0 &&
                bytes % element == 0,
            [&] {
              return ErrorInfo{
                  where, "a tied parameter is not among the gradients of its stage",
                  text("stage ", buffer.stage, " has ", buffer.bytes, " bytes in elements of ",
                       element, ", the parameter begins at byte ", offset, " and has ", bytes),
                  "give the schedule the sizes of its stages before"};
            });
  }

  /// Finds what the updates of `stage` need of the gradients of `other`.
  void add_pieces(Stage stage, Bytes offset, Stage other, Bytes other_offset, Bytes bytes) {
    std::map<Bytes, std::size_t> seen;  // by their first byte: updates of replicas
    for (const Update& to : m_updates) {
      if (to.stage != stage) continue;
      const std::size_t replica = seen[to.begin]++;
      const Bytes last = std::min(to.end, offset + bytes);
      for (Bytes at = std::max(to.begin, offset); at < last;) {
        const Bytes from_at = at - offset + other_offset;
        std::vector<const Update*> from;  // those that have the byte `from_at`
        for (const Update& each : m_updates)
          if (each.stage == other && each.begin <= from_at && from_at < each.end)
            from.push_back(&each);
        expects(!from.empty(), [&] {
          return ErrorInfo{where, "no rank updates the other copy of a tied parameter",
                           text("stage ", other, ", byte ", from_at, ", for stage ", stage)};
        });
        // The copy on this rank, or the one of the same replica: the order of updates is the same.
        const auto here = std::ranges::find(from, to.rank, [](const Update* u) { return u->rank; });
        const Update* const chosen = here != from.end() ? *here : from[replica % from.size()];
        const Bytes count = std::min(last - at, chosen->end - from_at);
        const Piece piece{&to, to.in_buffer(at), chosen, chosen->in_buffer(from_at), count};
        m_pieces.push_back(piece);
        for (const Bytes end : {piece.at, piece.at + count}) m_cuts[+to.gradients].insert(end);
        for (const Bytes end : {piece.from_at, piece.from_at + count})
          m_cuts[+chosen->gradients].insert(end);
        at += count;
      }
    }
  }

  /// Returns buffer `number` with an end of a part at each cut, and notes where its parts are.
  [[nodiscard]] Buffer cut(Buffer buffer, std::size_t number) {
    const auto found = m_cuts.find(number);
    if (found == m_cuts.end()) return buffer;
    Parts& parts = m_parts[number];
    std::vector<Bytes> sizes;
    for (std::uint32_t part = 0; part < buffer.parts; ++part) {
      const Bytes begin = schedule::part_offset(buffer, part),
                  end = schedule::part_offset(buffer, part + 1);
      parts.first.push_back(static_cast<std::uint32_t>(sizes.size()));
      Bytes at = begin;
      for (auto c = found->second.upper_bound(begin); c != found->second.end() && *c < end; ++c) {
        parts.offsets.push_back(at);
        sizes.push_back(*c - at);
        at = *c;
      }
      parts.offsets.push_back(at);
      sizes.push_back(end - at);
    }
    parts.first.push_back(static_cast<std::uint32_t>(sizes.size()));
    parts.offsets.push_back(buffer.bytes);
    buffer.granules.reset();
    cut_in_parts(buffer, std::move(sizes));
    return buffer;
  }

  /// Returns the use in the numbers of the finer parts.
  [[nodiscard]] Use finer(const Use& use) const {
    const auto found = m_parts.find(+use.buffer);
    if (found == m_parts.end()) return use;
    const std::vector<std::uint32_t>& first = found->second.first;
    return schedule::use(use.access(), use.buffer, first[use.first],
                         first[use.first + use.count] - first[use.first]);
  }

  /// Returns a use of `bytes` bytes of a buffer that has cuts at both ends of them, or of a whole
  /// buffer.
  [[nodiscard]] Use range(Access access, BufferId buffer, Bytes at, Bytes bytes) const {
    const auto found = m_parts.find(+buffer);
    if (found == m_parts.end()) return schedule::use(access, buffer, 0, m_schedule[buffer].parts);
    const std::vector<Bytes>& offsets = found->second.offsets;
    const auto begin = std::ranges::upper_bound(offsets, at) - offsets.begin() - 1;
    const auto end = std::ranges::lower_bound(offsets, at + bytes) - offsets.begin();
    return schedule::use(access, buffer, static_cast<std::uint32_t>(begin),
                         static_cast<std::uint32_t>(end - begin));
  }

  /// Returns true if the action cannot stay before the actions that are held.
  [[nodiscard]] bool conflicts(ActionId id) const {
    return std::ranges::any_of(m_schedule.uses(id), [&](const Use& use) {
      return m_touched.contains({+use.buffer, true}) ||
             (use.writes() && m_touched.contains({+use.buffer, false}));
    });
  }

  void check_order(ActionId id) const {
    const Kind kind = m_schedule[id].kind;
    if (schedule::is_work(kind) && kind != Kind::update)
      refuse(id, "it computes with the weights after their update");
  }

  void exchange(Builder& builder) const {
    for (const Update& update : m_updates) {
      if (!update.sums) continue;
      const Bytes all = m_schedule[update.gradients].bytes;
      builder.add({Kind::group, builder.local(update.rank), update.stage},
                  {range(Access::update, update.gradients, 0, all)});
    }
    std::vector<BufferId> scratch;
    for (const Piece& piece : m_pieces) {
      Buffer buffer = m_schedule[piece.to->gradients];
      buffer.label = builder.label("scratch");
      buffer.transient = true;
      buffer.granules.reset();
      cut_in_parts(buffer, {piece.bytes});
      scratch.push_back(builder.add_buffer(buffer));
    }
    for (std::size_t p = 0; p < m_pieces.size(); ++p) {
      const Piece& piece = m_pieces[p];
      builder.add({Kind::move, builder.queue(piece.from->rank, piece.to->rank), piece.from->stage,
                   Item{}, flag::gradient},
                  {range(Access::read, piece.from->gradients, piece.from_at, piece.bytes),
                   schedule::write(scratch[p])});
    }
    for (std::size_t p = 0; p < m_pieces.size(); ++p) {
      const Piece& piece = m_pieces[p];
      builder.add({Kind::combine, builder.local(piece.to->rank, Lane{1}), piece.to->stage},
                  {schedule::read(scratch[p]),
                   range(Access::update, piece.to->gradients, piece.at, piece.bytes)});
    }
  }

  /// How a buffer is cut: the first new part of each old one, and the offsets of the new ones.
  struct Parts {
    std::vector<std::uint32_t> first;
    std::vector<Bytes> offsets;
  };

  const Schedule& m_schedule;
  const std::vector<TiedRanges>& m_ties;
  const std::vector<UpdateShare>& m_shares;
  std::vector<Update> m_updates;                     ///< in list order
  std::vector<Piece> m_pieces;                       ///< refer to m_updates
  std::map<std::size_t, std::set<Bytes>> m_cuts;     ///< by buffer
  std::map<std::size_t, Parts> m_parts;              ///< by buffer
  std::set<std::pair<std::size_t, bool>> m_touched;  ///< buffers of held actions; true: written
};

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule tie_parameters(const Schedule& schedule, const std::vector<TiedRanges>& ties,
                                      const std::vector<UpdateShare>& shares) {
  if (ties.empty()) return schedule;
  return heddle::impl::ParameterTier(schedule, ties, shares).run();
}

}  // namespace schedule

}  // namespace heddle::inline v0
