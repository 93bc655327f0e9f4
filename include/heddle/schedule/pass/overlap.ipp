// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of overlap.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/overlap.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The state of one overlap() call. A forward sweep of the list finds how far pieces may rise. A
/// backward sweep finds how far they may sink.
class Overlapper {
 public:
  Overlapper(const Schedule& schedule, PartOrder order)
      : m_schedule(schedule), m_order(order), m_cut(schedule.size(), false) {
    for (const Buffer& buffer : schedule.buffers()) {
      m_first_part.push_back(m_parts);
      m_parts += buffer.parts;
    }
  }

  /// Divides action `id` into pieces.
  void choose(ActionId id) {
    std::uint32_t parts = 0;
    for (const Use& use : m_schedule.uses(id)) {
      if (!use.writes()) continue;
      expects(parts == 0 || use.count == parts, [&] {
        return ErrorInfo{where, "an action must write the same number of parts of every buffer",
                         text(parts, " and ", use.count, " parts of action ", id)};
      });
      parts = use.count;
    }
    const Kind kind = m_schedule[id].kind;
    expects(kind != Kind::move && kind != Kind::group && !is_fused(id) && parts != 0, [&] {
      return ErrorInfo{where, "only local work that writes something can be divided into parts",
                       text("action ", id, " is ", kind, is_fused(id) ? ", fused" : "", ", writes ",
                            parts, " parts")};
    });
    if (parts == 1) return;
    m_cut[+id] = true;
    for (std::uint32_t part = 0; part < parts; ++part) m_pieces.push_back({id, part, parts});
  }

  Schedule run() {
    refuse_dependent();
    rise();
    sink();
    std::ranges::stable_sort(m_pieces, {}, &Piece::slot);
    Builder builder = Builder::like(m_schedule, [](const Buffer& buffer) { return buffer; });
    auto piece = m_pieces.begin();
    std::vector<Use> uses;
    for (std::size_t i = 0; i <= m_schedule.size(); ++i) {
      for (; piece != m_pieces.end() && piece->slot == i; ++piece) {
        uses.clear();
        std::uint32_t written = 0;
        for_uses(*piece, [&](const Use& use) {
          uses.push_back(use);
          if (use.writes()) written = use.first;
        });
        const Action& action = m_schedule[piece->action];
        builder.add(
            {action.kind, action.queue, action.stage, Item{written}, action.flags, action.units},
            uses);
      }
      if (i < m_schedule.size() && !m_cut[i])
        builder.add(m_schedule, ActionId{i}, m_schedule.uses(ActionId{i}));
    }
    return std::move(builder).build();
  }

 private:
  static constexpr const char* where = "heddle::schedule::overlap";
  static constexpr std::size_t none = ~std::size_t{0};

  /// One piece of a chosen action.
  struct Piece {
    ActionId action = {};
    std::uint32_t part = 0;
    std::uint32_t parts = 1;  ///< number of parts of the action
    std::size_t key = 0;      ///< sort key: when its inputs arrive, or when its part is sent
    std::size_t slot = 0;     ///< the piece stands before the action with this number
  };

  [[nodiscard]] bool is_fused(ActionId id) const {
    return (m_schedule[id].flags & flag::with_next) != 0 || splits_pair(+id);
  }

  /// Calls `visit(use)` for the uses of a piece: its own part of the buffers of which the action
  /// uses one part per piece, and all of the others.
  template <class Visit>
  void for_uses(const Piece& piece, Visit&& visit) const {
    for (Use use : m_schedule.uses(piece.action)) {
      if (use.count == piece.parts) {
        use.first += piece.part;
        use.count = 1;
      }
      visit(use);
    }
  }
  /// Calls `visit(use, part)` for every part of these uses. Parts are counted over all buffers.
  template <class Visit>
  void for_parts(std::span<const Use> uses, Visit&& visit) const {
    for (const Use& use : uses) {
      const std::size_t first = m_first_part[+use.buffer] + use.first;
      for (std::size_t part = first; part < first + use.count; ++part) visit(use, part);
    }
  }
  template <class Visit>
  void for_parts(const Piece& piece, Visit&& visit) const {
    for_uses(piece, [&](const Use& use) { for_parts(std::span(&use, 1), visit); });
  }

  /// Throws contract_error if a piece needs another one, because pieces move past one another.
  void refuse_dependent() const {
    std::vector<std::size_t> writer(m_parts, none);
    const auto check = [&](std::size_t piece, bool writes) {
      for_parts(m_pieces[piece], [&](const Use& use, std::size_t part) {
        if (use.writes() != writes) return;
        expects(writer[part] == none || writer[part] == piece, [&] {
          return ErrorInfo{
              where, "pieces of different actions depend on each other",
              text("a part of buffer ", use.buffer, " in actions ", m_pieces[writer[part]].action,
                   " and ", m_pieces[piece].action),
              "choose independent actions, and divide dependent ones by separate calls"};
        });
        if (writes) writer[part] = piece;
      });
    };
    for (const bool writes : {true, false})
      for (std::size_t piece = 0; piece < m_pieces.size(); ++piece) check(piece, writes);
  }

  /// Returns the pieces of the action whose first piece is `first`.
  [[nodiscard]] std::span<Piece> pieces_from(std::size_t first) {
    return std::span(m_pieces).subspan(first, m_pieces[first].parts);
  }

  /// Moves the pieces of a consumer up in the list if its inputs arrive one message after another.
  /// A piece stands after its inputs have arrived and just before its rank reads a later message. A
  /// rank that walks the list then sends all that it can before it computes, and computes before it
  /// waits.
  void rise() {
    struct Wait {
      std::size_t arrived;  ///< the action before this number delivered the value
      std::size_t action;
    };
    std::vector<std::vector<Wait>> waits(static_cast<std::size_t>(m_schedule.ranks()));
    std::vector<std::size_t> touched(m_parts, 0), written(m_parts, 0), arrived(m_parts, 0);
    std::vector<std::size_t> in_queue(m_schedule.queues().size(), 0);
    std::size_t next = 0;
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      const Queue& queue = m_schedule[m_schedule[id].queue];
      std::vector<Wait>& of_rank = waits[+queue.from];
      std::size_t& before = in_queue[+m_schedule[id].queue];
      if (!m_cut[i]) {
        Wait wait{0, i};
        for_parts(m_schedule.uses(id), [&](const Use& use, std::size_t part) {
          if (use.reads()) wait.arrived = std::max(wait.arrived, arrived[part]);
          touched[part] = i + 1;
          if (!use.writes()) return;
          written[part] = i + 1;
          arrived[part] = queue.local() ? 0 : i + 1;
        });
        if (wait.arrived > (of_rank.empty() ? 0 : of_rank.back().arrived)) of_rank.push_back(wait);
        before = i + 1;
        continue;
      }
      const std::span<Piece> pieces = pieces_from(next);
      next += pieces.size();
      std::vector<std::size_t> arrivals(pieces.size(), 0);
      for (Piece& piece : pieces)
        for_parts(piece, [&](const Use& use, std::size_t part) {
          piece.key = std::max(piece.key, use.writes() ? touched[part] : written[part]);
          if (use.reads()) arrivals[piece.part] = std::max(arrivals[piece.part], arrived[part]);
        });
      m_rises.push_back(std::ranges::adjacent_find(arrivals, std::ranges::not_equal_to{}) !=
                        arrivals.end());
      if (!m_rises.back()) continue;
      arrange(pieces);
      std::size_t come = before;
      for (Piece& piece : pieces) {
        come = std::max(come, piece.key);
        const auto wait = std::ranges::upper_bound(of_rank, come, {}, &Wait::arrived);
        piece.slot = wait == of_rank.end() ? i : wait->action;
        if (splits_pair(piece.slot)) ++piece.slot;
      }
    }
  }

  /// Moves all other pieces down, to the actions that need their parts. The piece whose part is
  /// sent first comes first, also if another value is added to the part before. The pieces whose
  /// parts are not sent come last.
  void sink() {
    const std::size_t end = m_schedule.size();
    std::vector<std::size_t> touched(m_parts, end), written(m_parts, end), sent(m_parts, end);
    std::vector<std::size_t> in_queue(m_schedule.queues().size(), end);
    std::size_t last = m_pieces.size();
    for (std::size_t i = end; i-- > 0;) {
      const ActionId id{i};
      const bool local = m_schedule[m_schedule[id].queue].local();
      std::size_t& behind = in_queue[+m_schedule[id].queue];
      if (!m_cut[i]) {
        for_parts(m_schedule.uses(id), [&](const Use& use, std::size_t part) {
          touched[part] = i;
          if (use.writes()) written[part] = i;
          if (!use.reads()) sent[part] = end;
          if (use.reads() && !local) sent[part] = i;
        });
        behind = i;
        continue;
      }
      last -= m_pieces[last - 1].parts;
      const std::span<Piece> pieces = pieces_from(last);
      const bool rises = m_rises.back();
      m_rises.pop_back();
      if (rises) continue;
      for (Piece& piece : pieces) {
        std::size_t leaves = end;
        piece.slot = end;
        for_parts(piece, [&](const Use& use, std::size_t part) {
          piece.slot = std::min(piece.slot, use.writes() ? touched[part] : written[part]);
          if (use.writes()) leaves = std::min(leaves, sent[part]);
        });
        piece.key = leaves < end ? leaves : end + piece.slot;
      }
      arrange(pieces);
      std::size_t slot = behind;
      for (std::size_t k = pieces.size(); k-- > 0;) {
        slot = std::min(slot, pieces[k].slot);
        pieces[k].slot = splits_pair(slot) ? slot - 1 : slot;
      }
    }
  }

  /// Returns whether a piece before action `slot` would separate a fused pair.
  [[nodiscard]] bool splits_pair(std::size_t slot) const {
    return slot > 0 && (m_schedule[ActionId{slot - 1}].flags & flag::with_next) != 0;
  }
  void arrange(std::span<Piece> pieces) const {
    if (m_order == PartOrder::as_needed) std::ranges::stable_sort(pieces, {}, &Piece::key);
  }

  const Schedule& m_schedule;
  PartOrder m_order;
  std::vector<bool> m_cut;                ///< per action: whether it is divided into pieces
  std::vector<std::size_t> m_first_part;  ///< per buffer, counted over all buffers
  std::size_t m_parts = 0;
  std::vector<Piece> m_pieces;  ///< sorted by action
  std::vector<bool> m_rises;    ///< per divided action
};

HEDDLE_INLINE Schedule overlap_parts(const Schedule& schedule, const std::vector<ActionId>& chosen,
                                     PartOrder order) {
  Overlapper overlapper(schedule, order);
  for (const ActionId id : chosen) overlapper.choose(id);
  return overlapper.run();
}

}  // namespace impl

HEDDLE_INLINE Schedule overlap(const Schedule& schedule, PartOrder order) {
  return overlap(
      schedule,
      [&](ActionId id) {
        return is_work(schedule[id].kind) &&
               std::ranges::any_of(schedule.uses(id),
                                   [](const Use& use) { return use.writes() && use.count > 1; });
      },
      order);
}

}  // namespace heddle::inline v0::schedule
