// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of terms.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/proof/impl/terms.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE Terms::Terms() : m_terms(1), m_slots(1024, 0) {}

HEDDLE_INLINE std::uint64_t Terms::hash(const Term& term) noexcept {
  std::uint64_t state =
      static_cast<std::uint64_t>(term.kind) << 8 | static_cast<std::uint64_t>(term.role);
  const auto mix = [&state](std::uint64_t high, std::uint64_t low) {
    state = (state ^ (high << 32 | low)) * 0x9e3779b97f4a7c15u;
    state ^= state >> 29;
  };
  mix(term.stage, term.item);
  mix(term.line, term.edge);
  mix(term.first_sample, term.last_sample);
  mix(term.a, term.b);
  mix(0, term.begin);
  mix(0, term.end);
  return state;
}

HEDDLE_INLINE TermId Terms::add(const Term& term) {
  if (2 * m_terms.size() > m_slots.size()) grow();
  const std::size_t mask = m_slots.size() - 1;
  for (std::size_t slot = hash(term) & mask;; slot = (slot + 1) & mask) {
    TermId& found = m_slots[slot];
    if (found == 0) {
      found = static_cast<TermId>(m_terms.size());
      m_terms.push_back(term);
      return found;
    }
    if (m_terms[found] == term) return found;
  }
}

HEDDLE_INLINE void Terms::grow() {
  m_slots.assign(4 * m_slots.size(), 0);
  const std::size_t mask = m_slots.size() - 1;
  for (TermId id = 1; id < m_terms.size(); ++id) {
    std::size_t slot = hash(m_terms[id]) & mask;
    while (m_slots[slot] != 0) slot = (slot + 1) & mask;
    m_slots[slot] = id;
  }
}

HEDDLE_INLINE TermId Terms::composite(Term::Kind kind, TermId a, TermId b, std::uint64_t width) {
  Term term;
  term.kind = kind;
  term.a = a;
  term.b = b;
  term.end = width;
  return add(term);
}

HEDDLE_INLINE TermId Terms::wrap(Term::Kind kind, TermId a) {
  const Term of = m_terms[a];
  if (a == 0 || of.kind == kind) return a;
  if (of.kind == Term::Kind::join) {
    const TermId first = wrap(kind, of.a);
    return join(first, wrap(kind, of.b));
  }
  return composite(kind, a, 0, of.width());
}

HEDDLE_INLINE TermId Terms::decoded(TermId a) {
  const Term of = m_terms[a];
  if (of.kind == Term::Kind::encoded) return of.a;
  if (of.kind != Term::Kind::join) return a;
  const TermId first = decoded(of.a);
  return join(first, decoded(of.b));
}

HEDDLE_INLINE TermId Terms::unrounded(TermId a) {
  const Term of = m_terms[a];
  if (of.kind == Term::Kind::rounded) return of.a;
  if (of.kind != Term::Kind::join) return a;
  const TermId first = unrounded(of.a);
  return join(first, unrounded(of.b));
}

HEDDLE_INLINE TermId Terms::sum(TermId a, TermId b) {
  const std::uint64_t width = m_terms[a].width();
  if (m_terms[a].kind != Term::Kind::join) std::swap(a, b);
  if (const Term joined = m_terms[a]; joined.kind == Term::Kind::join) {
    const std::uint64_t cut = m_terms[joined.a].width();
    const TermId first = sum(joined.a, slice(b, 0, cut));
    return join(first, sum(joined.b, slice(b, cut, width - cut)));
  }
  return composite(Term::Kind::sum, a < b ? a : b, a < b ? b : a, width);
}

HEDDLE_INLINE TermId Terms::join(TermId a, TermId b) {
  Term first = m_terms[a];
  const Term& second = m_terms[b];
  if (first.kind == Term::Kind::value && second.begin == first.end) {
    Term longer = first;
    longer.begin = second.begin;
    longer.end = second.end;
    if (longer == second) {
      first.end = second.end;
      return add(first);
    }
  }
  // Ranges that follow each other meet in the same order, whatever came first.
  if (first.kind == Term::Kind::join && m_terms[first.b].kind == Term::Kind::value) {
    const TermId last = join(first.b, b);
    if (m_terms[last].kind == Term::Kind::value) return join(first.a, last);
  }
  return composite(Term::Kind::join, a, b, first.width() + second.width());
}

HEDDLE_INLINE TermId Terms::slice(TermId a, std::uint64_t first, std::uint64_t width) {
  Term of = m_terms[a];
  if (a == 0 || (first == 0 && width == of.width())) return a;
  switch (of.kind) {
    case Term::Kind::value:
      of.begin += first;
      of.end = of.begin + width;
      return add(of);
    case Term::Kind::sum: {
      const TermId left = slice(of.a, first, width);
      return sum(left, slice(of.b, first, width));
    }
    case Term::Kind::join: {
      const std::uint64_t cut = m_terms[of.a].width();
      if (first + width <= cut) return slice(of.a, first, width);
      if (first >= cut) return slice(of.b, first - cut, width);
      const TermId left = slice(of.a, first, cut - first);
      return join(left, slice(of.b, 0, first + width - cut));
    }
    default: return wrap(of.kind, slice(of.a, first, width));
  }
}

HEDDLE_INLINE std::vector<TermId> Terms::addends(TermId id, bool rounds) const {
  std::vector<TermId> found;
  std::vector<TermId> open = {id};
  while (!open.empty()) {
    const TermId next = open.back();
    open.pop_back();
    const Term& term = m_terms[next];
    if (term.kind == Term::Kind::sum) {
      open.push_back(term.b);
      open.push_back(term.a);
    } else if (rounds && term.kind == Term::Kind::rounded) {
      open.push_back(term.a);
    } else {
      found.push_back(next);
    }
  }
  return found;
}

HEDDLE_INLINE std::optional<std::uint32_t> Terms::fault_of(TermId id) const {
  std::vector<TermId> open = {id};
  while (!open.empty()) {
    const Term& term = m_terms[open.back()];
    open.pop_back();
    if (term.kind == Term::Kind::value && term.role == Term::Role::wrong) return term.stage;
    if (term.b != 0) open.push_back(term.b);
    if (term.a != 0) open.push_back(term.a);
  }
  return std::nullopt;
}

HEDDLE_INLINE std::string Terms::describe(TermId id) const {
  const Term& term = m_terms[id];
  const auto part = [&] {
    if (term.total != 0 && term.width() == term.total) return std::string();
    if (term.total != 0) return text(", ", term.begin, " to ", term.end, " of ", term.total);
    return text(", samples ", term.begin, " to ", term.end);
  };
  const auto of_item = [&](const char* what) {
    return text("the ", what, " of stage ", term.stage, " for microbatch ", term.item,
                term.line == 0 ? "" : text(" of replica ", term.line));
  };
  switch (term.kind) {
    case Term::Kind::nothing: return "no value";
    case Term::Kind::sum: return text("a sum with ", describe(term.a));
    case Term::Kind::rounded: return text("the rounded form of ", describe(term.a));
    case Term::Kind::encoded: return text("the encoded form of ", describe(term.a));
    case Term::Kind::join: return text(describe(term.a), " and ", describe(term.b));
    case Term::Kind::value: break;
  }
  switch (term.role) {
    case Term::Role::output: return of_item("output") + part();
    case Term::Role::saved: return of_item("activations") + part();
    case Term::Role::input_grad: return of_item("input gradient") + part();
    case Term::Role::delta: return of_item("delta") + part();
    case Term::Role::contribution: return of_item("gradient") + part();
    case Term::Role::weights:
      return text("version ", term.item, " of the weights of stage ", term.stage, part());
    case Term::Role::pairs:
      return text("the pairs of queries ", term.stage, '.', term.line, " and keys ", term.item, '.',
                  term.edge);
    case Term::Role::wrong: return "a wrong value";
    case Term::Role::initial: break;
  }
  return text("the value that buffer ", term.stage, " had before the step");
}

}  // namespace heddle::inline v0::impl
