// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of why_not_attention.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/proof/impl/symbolic_store.hpp>
#include <heddle/schedule/proof/impl/terms.hpp>
#include <heddle/schedule/proof/why_not_attention.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The state of one proof of an attention. Pieces are those of AttentionPieces; the blocks of rsa()
/// are one piece.
class AttentionProver {
  using Term = heddle::impl::Term;
  using TermId = heddle::impl::TermId;

 public:
  AttentionProver(const Schedule& schedule, const AttentionForm& form)
      : m_schedule(schedule),
        m_form(form),
        m_pieces(form),
        m_ranks(static_cast<std::uint32_t>(form.ranks)),
        m_store(schedule) {
    for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
      expect_made_of(where, schedule, BufferId{b}, m_pieces, form.query_bytes(), form.key_bytes());
      m_two_passes = m_two_passes || label(BufferId{b}) == "scores";
      m_buffers.try_emplace({label(BufferId{b}), schedule[BufferId{b}].rank.value}, BufferId{b});
    }
    m_h = m_two_passes ? 1 : m_pieces.pieces();
    const bool complete =
        std::ranges::all_of(persistent(), [&](std::string_view role) { return has(role); });
    expects(schedule.ranks() == form.ranks && complete, [&] {
      return ErrorInfo{where, "the schedule is not one of this form",
                       text("'", schedule.name(), "' has ", schedule.ranks(), " ranks",
                            complete ? "" : " and lacks buffers", ", the form ", form.ranks,
                            form.backward ? " ranks, backward" : " ranks, forward"),
                       "give the form of which the schedule was made"};
    });
    m_visible.reserve(std::size_t{m_ranks} * m_h * m_ranks * m_h);
    for (std::uint32_t q = 0; q < m_ranks * m_h; ++q)
      for (std::uint32_t k = 0; k < m_ranks * m_h; ++k)
        m_visible.push_back(m_two_passes
                                ? m_pieces.visible(q, k, 0, m_pieces.pieces()).query_count != 0
                                : m_pieces.pairs({q / m_h, k / m_h, q % m_h, 1, k % m_h, 1}) != 0);
  }

  [[nodiscard]] std::string run() {
    for (std::size_t i = 0; i < m_schedule.size(); ++i)
      if (const std::string fault = perform(ActionId{i}); !fault.empty())
        return text(action_text(m_schedule, ActionId{i}), " on rank ",
                    m_schedule[m_schedule[ActionId{i}].queue].from, ' ', fault);
    for (std::uint32_t rank = 0; rank < m_ranks; ++rank)
      for (std::uint32_t piece = 0; piece < m_h; ++piece)
        for (const std::string_view role : results())
          if (std::string fault = wrong(role, rank, piece); !fault.empty())
            return text("'", role, "' of rank ", rank, ", piece ", piece, ' ', fault);
    return {};
  }

 private:
  static constexpr const char* where = "heddle::schedule::why_not_equivalent";

  [[nodiscard]] const std::string& label(BufferId buffer) const {
    return m_schedule[m_schedule[buffer].label];
  }

  /// The roles that hold the result, and those that every rank must have.
  [[nodiscard]] std::vector<std::string_view> results() const {
    if (!m_form.backward) return {m_two_passes ? "output" : "state"};
    if (m_two_passes) return {"query_grads", "key_grads", "value_grads"};
    return {"query_grads", "key_value_grads"};
  }
  [[nodiscard]] std::vector<std::string_view> persistent() const {
    std::vector<std::string_view> roles = results();
    roles.push_back("queries");
    roles.push_back(m_two_passes ? "keys" : "keys_values");
    return roles;
  }
  [[nodiscard]] bool has(std::string_view role) const {
    for (std::uint32_t rank = 0; rank < m_ranks; ++rank)
      if (+find(role, rank) == m_schedule.buffers().size()) return false;
    return true;
  }
  /// Returns the buffer of a role on a rank, or the number of all buffers.
  [[nodiscard]] BufferId find(std::string_view role, std::uint32_t rank) const {
    const auto found = m_buffers.find({role, rank});
    return found == m_buffers.end() ? BufferId{m_schedule.buffers().size()} : found->second;
  }

  /// The value that a part of a role on a rank had before.
  [[nodiscard]] TermId initial(std::string_view role, std::uint32_t rank, std::uint32_t part) {
    const BufferId buffer = find(role, rank);
    if (+buffer == m_schedule.buffers().size() || part >= m_schedule[buffer].parts) return 0;
    Term whole{.kind = Term::Kind::value, .stage = buffer.value};
    whole.end = whole.total = m_store.width(read(buffer, 0, m_schedule[buffer].parts));
    const TermId all = m_store.terms().add(whole);
    return m_store.terms().slice(all, m_store.width(read(buffer, 0, part)),
                                 m_store.width(buffer, part));
  }
  /// A value of the pair of two blocks. A saved one is a block of scores; an output is a block of
  /// probabilities.
  [[nodiscard]] TermId of_pair(Term::Role role, std::uint32_t q, std::uint32_t k,
                               std::uint64_t width) {
    Term term{.kind = Term::Kind::value, .role = role, .stage = q, .item = k};
    term.end = term.total = width;
    return m_store.terms().add(term);
  }

  [[nodiscard]] TermId& at(const Use& use, std::uint32_t i = 0) {
    return m_store.at(use.buffer, use.first + i);
  }

  /// Returns the fault of an action, or an empty string.
  [[nodiscard]] std::string perform(ActionId id) {
    const Action& action = m_schedule[id];
    const std::span<const Use> uses = m_schedule.uses(id);
    if (action.kind == Kind::move || action.kind == Kind::combine) return m_store.transfer(id);
    if (action.kind == Kind::user && m_two_passes) return user(action, uses);
    if (action.kind != (m_form.backward ? Kind::backward : Kind::forward))
      return "does work that this attention does not have";
    const std::uint32_t q = action.stage.value, k = action.item.value;
    if (q >= m_ranks || k >= m_ranks)
      return text("names a block that does not exist; there are ", m_ranks);
    return m_two_passes ? two_passes(q, k, uses) : one_pass(q, k, uses);
  }

  /// Expects that a use reads what `role` of a rank held before, from part `first` on.
  [[nodiscard]] std::string expect(const Use& use, std::string_view role, std::uint32_t rank,
                                   std::uint32_t first) {
    for (std::uint32_t i = 0; i < use.count; ++i)
      if (at(use, i) == 0 || at(use, i) != initial(role, rank, first + i))
        return text("reads ", describe(at(use, i)), "; expected '", role, "' of rank ", rank,
                    ", piece ", first + i);
    return {};
  }
  [[nodiscard]] std::string expect(const Use& use, Term::Role role, std::uint32_t q,
                                   std::uint32_t k) {
    if (at(use) == 0 || at(use) != of_pair(role, q, k, m_store.width(use.buffer, use.first)))
      return text("reads ", describe(at(use)), "; expected ",
                  role == Term::Role::saved ? "the scores" : "the probabilities", " of queries ", q,
                  " and keys ", k);
    return {};
  }

  /// Adds the pairs of one block with pieces [first, first + count) of the other one to each piece
  /// of `use`, from piece `mine` of the own block on.
  [[nodiscard]] std::string meet(const Use& use, std::uint32_t q, std::uint32_t k, bool of_queries,
                                 std::uint32_t mine, std::uint32_t first, std::uint32_t count) {
    heddle::impl::Terms& terms = m_store.terms();
    for (std::uint32_t i = 0; i < use.count; ++i) {
      TermId met = 0;
      for (std::uint32_t other = first; other < first + count; ++other) {
        Term pair{.kind = Term::Kind::value, .role = Term::Role::pairs, .stage = q, .item = k};
        pair.line = of_queries ? mine + i : other;
        pair.edge = of_queries ? other : mine + i;
        pair.first_sample =
            static_cast<std::uint32_t>(std::ranges::find(sides, label(use.buffer)) - sides.begin());
        pair.end = pair.total = m_store.width(use.buffer, use.first + i);
        const TermId one = terms.add(pair);
        met = met == 0 ? one : terms.sum(met, one);
      }
      if (use.reads() && at(use, i) == 0)
        return text("adds to no value in '", label(use.buffer), "'");
      at(use, i) = use.reads() ? terms.sum(at(use, i), met) : met;
    }
    return {};
  }

  [[nodiscard]] std::string one_pass(std::uint32_t q, std::uint32_t k, std::span<const Use> uses) {
    const std::size_t wanted = m_form.backward ? 6 : 3;
    if (uses.size() != wanted) return text("has ", uses.size(), " uses; expected ", wanted);
    const std::uint32_t first_query = uses[0].first % m_h, first_key = uses[1].first % m_h;
    for (std::size_t u = 0; u < wanted; ++u) {
      const Use& alike = uses[u == 1 || u == 5 ? 1 : 0];
      if (uses[u].count != alike.count || uses[u].first % m_h != alike.first % m_h ||
          uses[u].first % m_h + uses[u].count > m_h)
        return text("takes other pieces of '", label(uses[u].buffer), "' than of '",
                    label(alike.buffer), "', or pieces of two blocks");
    }
    std::string fault = expect(uses[0], "queries", q, first_query);
    if (fault.empty()) fault = expect(uses[1], "keys_values", k, first_key);
    if (fault.empty() && m_form.backward) fault = expect(uses[2], "state", q, first_query);
    if (fault.empty() && m_form.backward) fault = expect(uses[3], "output_grads", q, first_query);
    const Use& of_queries = uses[m_form.backward ? 4 : 2];
    if (fault.empty()) fault = meet(of_queries, q, k, true, first_query, first_key, uses[1].count);
    if (fault.empty() && m_form.backward)
      fault = meet(uses[5], q, k, false, first_key, first_query, uses[0].count);
    return fault;
  }

  [[nodiscard]] std::string two_passes(std::uint32_t q, std::uint32_t k,
                                       std::span<const Use> uses) {
    if (uses.empty()) return "has no uses";
    const bool first =
        !m_form.backward ? label(uses[0].buffer) == "queries" : label(uses[0].buffer) == "scores";
    const std::size_t wanted = !m_form.backward ? 3 : first ? 6 : 5;
    if (uses.size() != wanted) return text("has ", uses.size(), " uses; expected ", wanted);
    for (const Use& use : uses)
      if (use.count != 1) return text("takes several blocks of '", label(use.buffer), "'");
    std::string fault = expect(uses[1], first == m_form.backward ? "values" : "keys", k, 0);
    const auto next = [&](std::string found) {
      if (fault.empty()) fault = std::move(found);
      return fault.empty();
    };
    if (!m_form.backward && first) {
      if (next(expect(uses[0], "queries", q, 0)))
        at(uses[2]) =
            of_pair(Term::Role::saved, q, k, m_store.width(uses[2].buffer, uses[2].first));
    } else if (!m_form.backward) {
      if (next(expect(uses[0], Term::Role::output, q, k))) next(meet(uses[2], q, k, true, 0, 0, 1));
    } else if (first) {
      next(expect(uses[0], "scores", q, k));
      next(expect(uses[2], "output", q, 0));
      if (next(expect(uses[3], "output_grads", q, 0)) && next(meet(uses[5], q, k, false, 0, 0, 1)))
        at(uses[4]) =
            of_pair(Term::Role::saved, q, k, m_store.width(uses[4].buffer, uses[4].first));
    } else {
      next(expect(uses[0], Term::Role::saved, q, k));
      if (next(expect(uses[2], "queries", q, 0)) && next(meet(uses[3], q, k, true, 0, 0, 1)))
        next(meet(uses[4], q, k, false, 0, 0, 1));
    }
    return fault;
  }

  /// The softmax of rsa() makes probabilities of the scores of whole rows. Its clearing action
  /// writes zeros.
  [[nodiscard]] std::string user(const Action& action, std::span<const Use> uses) {
    const std::uint32_t q = action.stage.value;
    if (q != m_schedule[action.queue].from.value) return "names queries of another rank";
    std::vector<std::uint32_t> finished;
    for (const Use& use : uses)
      for (std::uint32_t i = 0; i < use.count; ++i) {
        const std::uint64_t width = m_store.width(use.buffer, use.first + i);
        if (m_form.backward) {
          Term zero{.kind = Term::Kind::value, .role = Term::Role::pairs, .last_sample = 1};
          zero.end = zero.total = width;
          at(use, i) = m_store.terms().add(zero);
        } else if (label(use.buffer) == "scores") {
          const std::uint32_t k = use.first + i;
          if (std::string fault = expect(read(use.buffer, k), Term::Role::saved, q, k);
              !fault.empty())
            return fault;
          at(use, i) = of_pair(Term::Role::output, q, k, width);
          finished.push_back(k);
        } else if (label(use.buffer) != "values") {
          return text("takes rows of '", label(use.buffer), "'");
        }
      }
    std::ranges::sort(finished);
    for (std::uint32_t k = 0; !m_form.backward && k < m_ranks; ++k)
      if (std::ranges::binary_search(finished, k) != sees(q, k))
        return text("makes probabilities of rows that ", sees(q, k) ? "lack" : "have",
                    " the scores of keys ", k);
    return {};
  }

  [[nodiscard]] bool sees(std::uint32_t q, std::uint32_t k) const {
    return m_visible[std::size_t{q} * m_ranks * m_h + k];
  }

  /// Returns the difference of a result, or an empty string.
  [[nodiscard]] std::string wrong(std::string_view role, std::uint32_t rank, std::uint32_t piece) {
    const bool of_queries =
        role != "key_value_grads" && role != "key_grads" && role != "value_grads";
    const std::uint32_t mine = rank * m_h + piece;
    std::vector<std::uint32_t> expected, found;
    for (std::uint32_t other = 0; other < m_ranks * m_h; ++other)
      if (of_queries ? sees(mine, other) : sees(other, mine)) expected.push_back(other);
    if (expected.empty()) return {};
    const char* const others = of_queries ? "keys " : "queries ";
    const TermId term = m_store.at(find(role, rank), m_two_passes && !of_queries ? rank : piece);
    if (term == 0) return "has no value";
    for (const TermId addend : m_store.terms().addends(term, false)) {
      const Term& pair = m_store.terms()[addend];
      const std::uint32_t queries = pair.stage * m_h + pair.line;
      const std::uint32_t keys = pair.item * m_h + pair.edge;
      const bool met = pair.kind == Term::Kind::value && pair.role == Term::Role::pairs;
      if (met && pair.last_sample == 1) continue;
      if (!met || (of_queries ? queries : keys) != mine || !same_side(pair.first_sample, role))
        return text("has ", describe(addend));
      if (sees(queries, keys)) found.push_back(of_queries ? keys : queries);
    }
    std::ranges::sort(found);
    for (const std::uint32_t other : expected)
      if (!std::ranges::binary_search(found, other)) return text("lacks ", others, name(other));
    for (std::size_t i = 1; i < found.size(); ++i)
      if (found[i] == found[i - 1]) return text("has ", others, name(found[i]), " twice");
    return {};
  }

  /// Whether pairs that were added to buffers of side `side` belong to a result.
  [[nodiscard]] static bool same_side(std::uint32_t side, std::string_view role) {
    if (side >= sides.size()) return false;
    if (sides[side] == role) return true;
    return sides[side] == "partial" && (role == "state" || role == "key_value_grads");
  }

  /// The name of a piece: "2.1" is piece 1 of block 2.
  [[nodiscard]] std::string name(std::uint32_t piece) const {
    return m_h == 1 ? text(piece) : text(piece / m_h, '.', piece % m_h);
  }
  [[nodiscard]] std::string describe(TermId id) {
    const Term& term = m_store.terms()[id];
    if (term.kind != Term::Kind::value) return m_store.terms().describe(id);
    switch (term.role) {
      case Term::Role::initial: {
        const Buffer& buffer = m_schedule[BufferId{term.stage}];
        return text("'", m_schedule[buffer.label], "' of rank ", buffer.rank, ", piece ",
                    term.begin / std::max<std::uint64_t>(1, term.width()));
      }
      case Term::Role::saved:
        return text("the scores of queries ", term.stage, " and keys ", term.item);
      case Term::Role::output:
        return text("the probabilities of queries ", term.stage, " and keys ", term.item);
      default: return m_store.terms().describe(id);
    }
  }

  /// The roles of sums over pairs. Sums on their way are in "partial".
  static constexpr std::array<std::string_view, 7> sides = {
      "state", "output", "query_grads", "partial", "key_value_grads", "key_grads", "value_grads"};

  const Schedule& m_schedule;
  const AttentionForm& m_form;
  AttentionPieces m_pieces;
  std::uint32_t m_ranks;
  heddle::impl::SymbolicStore m_store;
  /// By role and rank.
  std::map<std::pair<std::string_view, std::uint32_t>, BufferId> m_buffers;
  bool m_two_passes = false;    ///< whether it is one of rsa()
  std::uint32_t m_h = 1;        ///< pieces of a block
  std::vector<bool> m_visible;  ///< by piece of queries and piece of keys
};

}  // namespace impl

HEDDLE_INLINE std::string why_not_equivalent(const Schedule& schedule, const AttentionForm& form) {
  return impl::AttentionProver(schedule, form).run();
}

}  // namespace heddle::inline v0::schedule
