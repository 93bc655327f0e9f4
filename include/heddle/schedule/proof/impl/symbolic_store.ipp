// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of symbolic_store.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/message_sizes.hpp>
#include <heddle/schedule/proof/impl/symbolic_store.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE SymbolicStore::SymbolicStore(const Schedule& schedule) : m_schedule(schedule) {
  std::size_t parts = 0;
  for (const Buffer& buffer : schedule.buffers()) {
    m_first.push_back(parts);
    parts += buffer.parts;
  }
  m_content.assign(parts, 0);
  for (std::size_t b = 0; b < m_first.size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    if (buffer.transient) continue;
    Term whole{.kind = Term::Kind::value, .stage = static_cast<std::uint32_t>(b)};
    const Use all = schedule::read(BufferId{b}, 0, buffer.parts);
    whole.end = whole.total = width(all);
    write(all, m_terms.add(whole));
  }
}

HEDDLE_INLINE std::uint64_t SymbolicStore::width(BufferId id, std::uint32_t part) const {
  const Buffer& buffer = m_schedule[id];
  if (buffer.granules != nullptr)
    return static_cast<std::uint64_t>((*buffer.granules)[part % buffer.granules->size()]);
  return is_bound(buffer) ? schedule::part_bytes(buffer, part, 1) : 1;
}

HEDDLE_INLINE std::uint64_t SymbolicStore::width(const Use& use) const {
  const Buffer& buffer = m_schedule[use.buffer];
  if (buffer.granules == nullptr)
    return is_bound(buffer) ? schedule::part_bytes(buffer, use.first, use.count) : use.count;
  std::uint64_t sum = 0;
  for (std::uint32_t part = 0; part < use.count; ++part) sum += width(use.buffer, use.first + part);
  return sum;
}

HEDDLE_INLINE TermId SymbolicStore::read(const Use& use) {
  TermId all = 0;
  for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
    if (width(use.buffer, part) == 0) continue;
    const TermId next = at(use.buffer, part);
    if (next == 0) return 0;
    all = all == 0 ? next : m_terms.join(all, next);
  }
  return all;
}

HEDDLE_INLINE void SymbolicStore::write(const Use& use, TermId term) {
  std::uint64_t begin = 0;
  for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
    const std::uint64_t each = width(use.buffer, part);
    at(use.buffer, part) = each == 0 ? 0 : m_terms.slice(term, begin, each);
    begin += each;
  }
}

HEDDLE_INLINE std::string SymbolicStore::transfer(ActionId id) {
  const std::span<const Use> uses = m_schedule.uses(id);
  switch (m_schedule[id].kind) {
    case Kind::move: return copy(uses);
    case Kind::combine: return combine(uses);
    case Kind::cast: return cast(uses);
    default: return sum_all(uses);
  }
}

HEDDLE_INLINE std::string SymbolicStore::copy(std::span<const Use> uses) {
  bool alike = uses[0].count == uses[1].count;
  for (std::uint32_t part = 0; alike && part < uses[0].count; ++part)
    alike =
        width(uses[0].buffer, uses[0].first + part) == width(uses[1].buffer, uses[1].first + part);
  if (alike) {  // also of messages, whose width is not that of their values
    for (std::uint32_t part = 0; part < uses[0].count; ++part) {
      const TermId term = at(uses[0].buffer, uses[0].first + part);
      if (term == 0 && width(uses[0].buffer, uses[0].first + part) != 0)
        return text("moves no value from ", describe(uses[0]));
      at(uses[1].buffer, uses[1].first + part) = term;
    }
    return {};
  }
  const TermId term = read(uses[0]);
  const std::uint64_t all = width(uses[1]);
  if (term == 0) return text("moves no value from ", describe(uses[0]));
  if (m_terms[term].width() != all)
    return text("moves ", m_terms[term].width(), " units to ", describe(uses[1]), ", which has ",
                all);
  write(uses[1], term);
  return {};
}

HEDDLE_INLINE std::string SymbolicStore::combine(std::span<const Use> uses) {
  if (uses.size() != 2) return "does not combine two ranges";
  const Use& added = uses[0].writes() ? uses[1] : uses[0];
  const Use& into = uses[0].writes() ? uses[0] : uses[1];
  TermId more = read(added);
  const TermId old = read(into);
  if (more == 0 && old == 0 && width(into) == 0) return {};
  for (const auto& [term, use] : {std::pair(more, added), std::pair(old, into)})
    if (term == 0) return text("adds no value from ", describe(use));
  more = m_terms.decoded(more);
  if (m_terms[more].width() != m_terms[old].width())
    return text("adds ", m_terms[more].width(), " units to ", m_terms[old].width());
  write(into, m_terms.sum(old, more));
  return {};
}

HEDDLE_INLINE std::string SymbolicStore::cast(std::span<const Use> uses) {
  if (uses.size() < 2 || uses[0].count != uses[1].count) return "does not cast parts to parts";
  const bool narrows = m_schedule[m_schedule[uses[1].buffer].label] == role::narrow;
  for (std::uint32_t part = 0; part < uses[0].count; ++part) {
    TermId& from = at(uses[0].buffer, uses[0].first + part);
    if (width(uses[0].buffer, uses[0].first + part) == 0) continue;
    if (from == 0) return text("casts no value from ", describe(uses[0]));
    const bool coded = m_terms.decoded(from) != from;
    if (narrows == coded) return text(coded ? "encodes " : "decodes ", m_terms.describe(from));
    const TermId plain = coded ? m_terms.decoded(from) : m_terms.rounded(from);
    at(uses[1].buffer, uses[1].first + part) = narrows ? m_terms.encoded(plain) : plain;
    if (uses[0].writes()) from = plain;  // the sender keeps what the receivers decode
  }
  return {};
}

HEDDLE_INLINE std::string SymbolicStore::sum_all(std::span<const Use> uses) {
  TermId all = 0;
  for (const Use& use : uses) {
    const TermId term = read(use);
    if (term == 0) {
      if (width(use) == 0) continue;
      return text("sums no value of ", describe(use));
    }
    if (all != 0 && m_terms[all].width() != m_terms[term].width())
      return text("sums ", m_terms[all].width(), " units and ", m_terms[term].width());
    all = all == 0 ? term : m_terms.sum(all, term);
  }
  if (all != 0)
    for (const Use& use : uses) write(use, all);
  return {};
}

HEDDLE_INLINE std::string SymbolicStore::describe(const Use& use) const {
  const Buffer& buffer = m_schedule[use.buffer];
  return text("part ", use.first, " of '", m_schedule[buffer.label], "' of stage ", buffer.stage,
              " on rank ", buffer.rank);
}

}  // namespace heddle::inline v0::impl
