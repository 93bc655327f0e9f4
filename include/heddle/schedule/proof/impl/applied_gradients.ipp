// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of applied_gradients.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/proof/impl/applied_gradients.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE AppliedGradients::AppliedGradients(Terms& terms, const schedule::SerialStep& step)
    : m_terms(terms), m_step(step), m_updates(static_cast<std::size_t>(step.graph.stages), 1) {
  if (step.places.empty()) m_lines[0].push_back(0);
  for (const schedule::SerialStep::Place& place : step.places) {
    std::vector<std::uint32_t>& lines = m_lines[place.shard];
    if (std::ranges::find(lines, place.line) == lines.end()) lines.push_back(place.line);
  }
  for (auto& [shard, lines] : m_lines) std::ranges::sort(lines);
}

HEDDLE_INLINE SampleRange AppliedGradients::all_samples(std::uint32_t item) const {
  return {0, m_step.shares.empty() ? 1 : m_step.shares.samples_of(Item{item})};
}

HEDDLE_INLINE std::uint32_t AppliedGradients::updates(BufferId weights, std::uint64_t begin) const {
  const auto found = m_applied.find({+weights, begin});
  return found == m_applied.end() ? 0 : static_cast<std::uint32_t>(found->second.sums.size());
}

HEDDLE_INLINE void AppliedGradients::add(BufferId buffer, const Term& weights, std::uint64_t at,
                                         TermId sum) {
  Applied& applied = m_applied[{+buffer, weights.begin}];
  applied.stage = weights.stage;
  applied.shard = weights.line;
  applied.gradient = at;
  applied.sums.push_back(sum);
  std::uint32_t& most = m_updates[weights.stage];
  most = std::max(most, static_cast<std::uint32_t>(applied.sums.size()));
}

HEDDLE_INLINE AppliedGradients::Difference AppliedGradients::difference() {
  for (const auto& [where, applied] : m_applied)
    if (Difference found = wrong(applied); !found.what.empty()) return found;
  // All ranks that hold a range apply the same gradients in each of their updates.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, const Applied*> first;
  for (const auto& [where, applied] : m_applied) {
    const Applied*& other = first[{applied.stage, applied.shard, where.second}];
    if (other == nullptr) other = &applied;
    const std::size_t both = std::min(other->sums.size(), applied.sums.size());
    for (std::size_t i = 0; i < both && applied.sums.size() > 1; ++i) {
      if (other->sums[i] == applied.sums[i]) continue;
      std::vector<TermId> a = m_terms.addends(other->sums[i], true);
      std::vector<TermId> b = m_terms.addends(applied.sums[i], true);
      std::ranges::sort(a);
      std::ranges::sort(b);
      if (a != b)
        return {0, text("update ", i, " of stage ", applied.stage,
                        " applies different gradients on two ranks")};
    }
  }
  return {};
}

HEDDLE_INLINE std::vector<std::pair<std::uint32_t, std::uint64_t>> AppliedGradients::owners(
    std::uint32_t stage, std::uint64_t at) const {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> found = {{stage, at}};
  for (const TiedRanges& tie : m_step.ties) {
    if (tie.stage == stage && tie.offset <= at && at - tie.offset < tie.bytes)
      found.emplace_back(tie.other.value, at - tie.offset + tie.other_offset);
    else if (tie.other == stage && tie.other_offset <= at && at - tie.other_offset < tie.bytes)
      found.emplace_back(tie.stage.value, at - tie.other_offset + tie.offset);
  }
  return found;
}

HEDDLE_INLINE AppliedGradients::Difference AppliedGradients::collect(
    TermId term, std::uint32_t stage, std::uint64_t at,
    std::map<std::uint64_t, std::vector<Piece>>& pieces) {
  while (m_terms[term].kind == Term::Kind::join) {
    const Term joined = m_terms[term];
    const std::uint64_t cut = m_terms[joined.a].width();
    if (Difference found = collect(joined.b, stage, at + cut, pieces); !found.what.empty())
      return found;
    term = joined.a;
  }
  // A range ends where a tied parameter begins or ends.
  const std::uint64_t width = m_terms[term].width();
  for (const TiedRanges& tie : m_step.ties)
    for (const auto& [of, begin] :
         {std::pair(tie.stage, tie.offset), {tie.other, tie.other_offset}})
      for (const std::uint64_t cut : {begin, begin + tie.bytes}) {
        if (of != stage || cut <= at || cut >= at + width) continue;
        const TermId first = m_terms.slice(term, 0, cut - at);
        const TermId second = m_terms.slice(term, cut - at, at + width - cut);
        Difference found = collect(first, stage, at, pieces);
        return !found.what.empty() ? found : collect(second, stage, cut, pieces);
      }
  const auto parts = owners(stage, at);
  std::vector<Piece>& all = pieces[at];
  for (const TermId addend : m_terms.addends(term, m_step.rounds)) {
    const Term& has = m_terms[addend];
    const bool fits = has.kind == Term::Kind::value && has.role == Term::Role::contribution &&
                      std::ranges::any_of(parts, [&](const auto& owner) {
                        return owner.first == has.stage && owner.second == has.begin;
                      });
    if (!fits)
      return {addend, text("the update of stage ", stage, " applies ", m_terms.describe(addend))};
    all.push_back({has.stage, has.line, has.item, has.first_sample, has.last_sample});
  }
  return {};
}

HEDDLE_INLINE AppliedGradients::Difference AppliedGradients::wrong(const Applied& applied) {
  const std::tuple key(applied.stage, applied.shard, std::uint64_t{applied.gradient},
                       applied.sums.front());
  const bool once = applied.sums.size() == 1;
  if (once && m_proved.contains(key)) return {};
  std::map<std::uint64_t, std::vector<Piece>> pieces;
  for (const TermId sum : applied.sums)
    if (Difference found = collect(sum, applied.stage, applied.gradient, pieces);
        !found.what.empty())
      return found;
  for (auto& [at, all] : pieces) {
    std::ranges::sort(all);
    for (const auto& [owner, begin] : owners(applied.stage, at))
      if (std::string fault = not_once(all, owner, applied.stage, applied.shard); !fault.empty())
        return {0, text("the gradient", fault)};
  }
  if (once) m_proved.insert(key);
  return {};
}

HEDDLE_INLINE std::string AppliedGradients::not_once(std::vector<Piece> pieces, std::uint32_t of,
                                                     std::uint32_t stage,
                                                     std::uint32_t shard) const {
  std::erase_if(pieces, [&](const Piece& piece) { return piece.stage != of; });
  std::size_t next = 0;
  for (const std::uint32_t line : m_lines.at(shard)) {
    while (next < pieces.size() && pieces[next].line < line) ++next;  // of other shards
    for (std::uint32_t item = 0; std::cmp_less(item, m_step.microbatches); ++item) {
      const auto complain = [&](const char* verb, std::int64_t first, std::int64_t last,
                                const char* how) {
        const SampleRange all = all_samples(item);
        const bool whole = first == all.begin && last == all.end;
        return text(" of stage ", stage, verb,
                    of == stage ? "" : text("that of stage ", of, " for "), "microbatch ", item,
                    line == 0 ? "" : text(" of replica ", line),
                    whole ? "" : text(", samples ", first, " to ", last), how);
      };
      std::int64_t done = 0;
      for (; next < pieces.size() && pieces[next].line == line && pieces[next].item == item;
           ++next) {
        const Piece& piece = pieces[next];
        if (piece.first > done) return complain(" lacks ", done, piece.first, "");
        if (piece.first < done) return complain(" has ", piece.first, piece.last, " twice");
        done = piece.last;
      }
      if (const std::int64_t all = all_samples(item).end; done != all)
        return complain(" lacks ", done, all, "");
    }
  }
  return {};
}

}  // namespace heddle::inline v0::impl
